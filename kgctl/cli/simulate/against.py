"""``kgctl simulate run --against HOST:PORT``: the scenario played with real clients, beside the simulation."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from kgctl.cli.environment import handling
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import option
from kgctl.cli.report import Report
from kgctl.cli.session import Session
from kgctl.errors import KgctlError, UsageError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.model.groups import GroupDescription, TopicPartition
    from kgctl.simulate.against.fleet import ClientKind
    from kgctl.simulate.batch.against import PlayStage
    from kgctl.simulate.batch.judge import RunValues
    from kgctl.simulate.report.outcome import Outcome
    from kgctl.simulate.scenario.load import LoadedFile

_NOT_YET = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_LOCAL = ("127.", "localhost:", "[::1]:", "::1:")


@frozen_in_order
class AgainstOptions:
    """A block of options: where it is played, how often, and with what.

    Raises:
        UsageError: with what, and not where.
    """

    against: Annotated[
        str | None,
        option("HOST:PORT", "Play it with real clients on this cluster too, in real time, and show both side by side."),
    ] = None
    plays: Annotated[int | None, option("N", "How often --against plays each variant. [default: 1]", min=1)] = None
    client: Annotated[
        str | None,
        option("NAME", "What --against plays with: librdkafka, java (needs a JDK and --kafka-libs), aiokafka or kafka-python."),
    ] = None
    kafka_libs: Annotated[
        Path | None,
        option("DIR", "The folder libs of an Apache Kafka of 4.1 or later, for the Java client.", envvar="KGCTL_KAFKA_LIBS"),
    ] = None

    def __post_init__(self) -> None:
        if self.against is None and self.client is not None:
            raise UsageError("--client is what --against HOST:PORT plays with; without it nothing is played")
        if self.against is None and self.plays is not None:
            raise UsageError("--plays is how often --against HOST:PORT plays; without it nothing is played")

    @property
    def times(self) -> int:
        """How often each variant is played."""
        return self.plays or 1

    @property
    def address(self) -> str:
        assert self.against is not None
        return self.against


class ClusterGroups:
    """A `kgctl.simulate.against.play.ClusterPort` by a `GroupAdmin`."""

    def __init__(self, admin: GroupAdmin) -> None:
        self._admin = admin

    def check(self) -> None:
        """Ask about a group that is not there, and delete it: whether the cluster answers, and one may. Raises `KgctlError`."""
        from kgctl.simulate.against.play import PREFIX

        group_id = f"{PREFIX}check"
        self.describe(group_id)
        error = self._admin.delete_groups([group_id]).errors.get(group_id)
        if error is not None and error.code not in _NOT_YET:
            raise error.to_exception(group=group_id)

    def describe(self, group_id: str) -> GroupDescription | None:
        found = self._admin.describe_groups([group_id])
        error = found.errors.get(group_id)
        if error is not None and error.code not in _NOT_YET:
            raise error.to_exception(group=group_id)
        return found.values.get(group_id)

    def committed(self, group_id: str) -> Mapping[TopicPartition, int]:
        found = self._admin.list_committed_offsets([group_id]).values.get(group_id, {})
        return {partition: commit.offset for partition, commit in found.items()}

    def forget(self, group_id: str) -> str:
        """Delete the group; return "" or the reason why not."""
        try:
            error = self._admin.delete_groups([group_id]).errors.get(group_id)
        except KgctlError as problem:
            return problem.message
        return "" if error is None or error.code is ErrorCode.GROUP_ID_NOT_FOUND else error.message


def client_of(options: AgainstOptions, loaded: LoadedFile) -> ClientKind:
    """What it is played with: what ``--client`` says, else the Java client where all members are its and its jars are named.

    Raises:
        UsageError: there is no such client, or no JDK, or no jars.
    """
    from kgctl.simulate.against.fleet import JavaClient, PythonClient

    wanted = options.client
    if wanted is None:
        families = {members.client for variant in loaded.variants for members in variant.scenario.members}
        wanted = "java" if families == {"java"} and options.kafka_libs is not None else "librdkafka"
    if wanted in PythonClient.names:
        return PythonClient(wanted)
    if wanted != "java":
        raise UsageError(f"--client {wanted}: it is one of java, {', '.join(PythonClient.names)}")
    if options.kafka_libs is None:
        raise UsageError("--client java needs --kafka-libs DIR, the folder libs of an Apache Kafka of 4.1 or later")
    if os.pathsep not in str(options.kafka_libs) and not options.kafka_libs.is_dir():  # else it is a class path
        raise UsageError(f"--kafka-libs {options.kafka_libs}: there is no such folder")
    return JavaClient(str(options.kafka_libs))


@contextmanager
def staged(session: Session, options: AgainstOptions, kind: ClientKind) -> Iterator[PlayStage]:
    """The stage for a play, with a connection of its own. Raises `KgctlError`."""
    from kgctl.cli.settings import connection_settings
    from kgctl.simulate.batch.against import PlayStage

    session.flags = session.flags.merged({"bootstrap_server": options.address})
    properties = {
        name: value
        for name, value in connection_settings(session.flags, session.environment).properties.items()
        if not name.startswith("zookeeper.")
    }
    properties["bootstrap.servers"] = options.address
    others = [name for name in properties if name != "bootstrap.servers"]
    if others and not kind.takes_properties:
        raise UsageError(f"--client {kind.profile} takes no settings of a connection: {', '.join(others)}")
    if kind.profile == "java":
        file = session.flags.command_config
        if others and file is None:
            raise UsageError(f"the Java client takes {', '.join(others)} from --command-config FILE only")
        properties = {"bootstrap.servers": options.address, **({"config.file": str(Path(file).absolute())} if file else {})}
    with session.connect() as admin:
        groups = ClusterGroups(admin)
        groups.check()  # before minutes of work
        session.end_limit()  # a play is as long as it is: each request has a time limit of its own
        try:
            yield PlayStage(kind=kind, connection=properties, cluster=groups, label=options.address, plays=options.times)
        finally:
            kind.close()  # after the last of all plays


def ask_first(session: Session, options: AgainstOptions, loaded: LoadedFile, kind: ClientKind, *, yes: bool) -> None:
    """Ask, where the cluster is not this machine's; say how long it takes. Raises `KgctlError` where the answer is no."""
    from kgctl.cli.selection import confirm
    from kgctl.simulate.against.play import PREFIX
    from kgctl.simulate.batch.against import length_us
    from kgctl.simulate.report.outcome import duration

    pods = max(sum(members.count for members in variant.scenario.members) for variant in loaded.variants)
    minutes = duration(length_us(loaded, options.times) // 1_000_000 * 1_000_000)
    what = f"{loaded.name} with {pods} pods ({kind.profile}) on {options.address}, for about {minutes}"
    if options.address.startswith(_LOCAL):
        session.notice(f"playing {what}")
        return
    question = f"Play {what}? Topics and groups are named {PREFIX}... and removed afterwards."
    confirm(session, question, yes=yes)


def check_playable(loaded: LoadedFile, kind: ClientKind) -> None:
    """Raise `kgctl.yaml_files.FileError` with everything that keeps the file from being played."""
    from kgctl.simulate.batch.against import problems_of
    from kgctl.yaml_files import FileError

    if problems := problems_of(loaded, kind.profile):
        raise FileError(problems)


def play_beside(session: Session, loaded: LoadedFile, outcome: Outcome, stage: PlayStage, *, draws: bool) -> Outcome:
    """Play it, and return the outcome with what was measured. Raises `KgctlError`, and `Stopped` after a signal."""
    from kgctl.simulate.batch.against import play_all, with_measured

    done: list[RunValues] = []

    def on_done(values: RunValues) -> None:
        done.append(values)
        session.notice(f"played {len(done)} of {stage.plays * len(loaded.variants)}: {values.variant}, play {values.seed}")

    with _cleaning_up(session):
        values = play_all(loaded, stage, draws=draws, notice=session.notice, on_done=on_done)
    return with_measured(outcome, loaded, stage, values)


class Stopped(Exception):  # noqa: N818 - says what happened; nobody erred
    """A signal has ended the play; what it had made on the cluster is removed."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @property
    def report(self) -> Report:
        code = ExitCode.TERMINATED if self.number == signal.SIGTERM else ExitCode.INTERRUPTED
        error = KgctlError("stopped by a signal: what the play had made on the cluster is removed", code="INTERRUPTED")
        return Report(errors=[error], fixed_exit_code=code)


@contextmanager
def _cleaning_up(session: Session) -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the play, whose topics and group are then removed; more of them change nothing."""
    caught: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if caught:
            return
        caught.append(number)
        session.notice("stopping: consumers are closed, topics and group removed")
        raise Stopped(number)

    with handling({signal.SIGINT: stop, signal.SIGTERM: stop}):
        yield
