"""Processes with real clients and the lines that they say; and what stands in a play for the simulation's parts."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.errors import AuthError, BrokerError, KgctlError, TimedOutError, UsageError
from kgctl.member.api import StopReason
from kgctl.model.values import frozen_in_order
from kgctl.simulate.against.consumers import CONSUMERS
from kgctl.simulate.against.playable import can_be_killed, settings_of
from kgctl.simulate.engine.cluster import TopicChanger
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase
from kgctl.simulate.recording.trace import CalledBack, CommitRefused, Erred, Joined, Kicked
from kgctl.simulate.recording.traffic import split_rate
from kgctl.simulate.scenario.event_port import GRACE_US
from kgctl.simulate.scenario.model import Topic
from kgctl.simulate.scenario.vocabulary import GapCause, PodChange

if TYPE_CHECKING:
    from kgctl.simulate.against.play import Play


HELPER = "helper"
READY_S = 60.0
SPARE = 2
"""At least so many processes more than run are kept ready: starting one on the clock would add to a pod's boot time."""
_ANSWER_S = 40.0
_END_S = 15.0
_JVM = ("-Xmx192m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@frozen_in_order
class ClientLine:
    """Something that a client did, at a time in microseconds since the epoch. ``rest``: a callback's partitions and the like."""

    at_us: int
    name: str
    what: str
    rest: tuple[str, ...] = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Return the partitions of a callback's line, each as ``topic-0``."""
        return tuple(self.rest[0].split(",")) if self.rest and self.rest[0] else ()


class ClientKind(ABC):
    """A family of clients: how a process of them is started. ``profile``: what the simulation calls them."""

    profile = ""
    is_shared = False
    """Whether a process holds the consumers of several pods, those that are never killed."""
    takes_properties = True
    """Whether a connection may be described by more than its address."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line that starts the client's process."""

    def close(self) -> None:  # noqa: B027  # most have nothing to give back
        """Remove what was prepared for starting clients."""


class PythonClient(ClientKind):
    """One of `CONSUMERS`. Raises `UsageError` where its package is not installed."""

    names = tuple(CONSUMERS)

    def __init__(self, profile: str = "librdkafka") -> None:
        self.profile = profile
        package, consumer = CONSUMERS[profile]
        self.takes_properties = consumer.takes_properties
        if find_spec(package) is None:
            raise UsageError(f"the client {profile} is not installed: there is no Python package {package}")

    def command(self) -> list[str]:
        return [sys.executable, "-m", "kgctl.simulate.against.client", self.profile]


class JavaClient(ClientKind):
    """Kafka's own Java client, compiled here against the jars of an installation of Kafka.

    ``libs`` is its folder ``libs``, or a class path. Raises `UsageError` where there is no JDK, or no such client in the jars.
    """

    profile = "java"
    is_shared = True

    def __init__(self, libs: str) -> None:
        java, javac = _java("java"), _java("javac")
        path = libs if os.pathsep in libs or not Path(libs).is_dir() else str(Path(libs, "*"))
        self._folder = tempfile.TemporaryDirectory(prefix="kgctl-java-")
        with resources.as_file(resources.files("kgctl.simulate.against").joinpath("Fleet.java")) as source:
            command = [javac, "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", self._folder.name, "-cp", path, str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  # the JDK's compiler
        if done.returncode:
            first = next(iter(done.stderr.splitlines()), "")
            raise UsageError(f"the Java client needs kafka-clients of 4.1 or later, in {libs} there is no such: {first}")
        self._command = [java, *_JVM, "-cp", f"{self._folder.name}{os.pathsep}{path}", "Fleet"]

    def command(self) -> list[str]:
        return self._command

    def close(self) -> None:
        self._folder.cleanup()


def _java(program: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", program)) if home else shutil.which(program)
    if not found or not Path(found).exists():
        raise UsageError(f"the Java client needs a JDK: there is no {program} ({'in JAVA_HOME' if home else 'set JAVA_HOME'})")
    return found


class Client:
    """One process. It is told commands, and what it says goes to ``said`` as `ClientLine`s."""

    def __init__(self, command: list[str], connection: Mapping[str, str], said: queue.Queue[ClientLine]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # a client of `ClientKind`
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C at the terminal is for who plays, and cleans up
        )
        self._said = said
        self._is_ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self.tell("connect", *(f"{key}={value}" for key, value in connection.items()))

    def wait_until_ready(self) -> None:
        """Wait until the process takes commands. Raises `KgctlError`."""
        if not self._is_ready.wait(READY_S) or self._process.poll() is not None:
            raise KgctlError("a process with a real client did not start", code="CLIENT_FAILED")

    def tell(self, *words: str) -> None:
        """Give a command. A process that is gone hears nothing."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write("\t".join(words) + "\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """End it as SIGKILL does: nobody leaves a group."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._listener.join(_END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on with SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            at_us, name, what, *rest = text.rstrip("\n").split("\t")
            if what == "ready":
                self._is_ready.set()
            else:
                self._said.put(ClientLine(int(at_us), name, what, tuple(rest)))
        self._is_ready.set()


class _Stable:
    """The processes of one kind. Some are started before they are needed, so that only the scenario's boot times count."""

    def __init__(self, kind: ClientKind, start: Callable[[ClientKind], Client]) -> None:
        self.kind = kind
        self._start = start
        self.spare: list[Client] = []
        self._later = SPARE
        self.shared: Client | None = None

    def prepare(self, begin: int, later: int) -> list[Client]:
        """Start as many as begin, and those that are to be ready from then on."""
        self._later = later
        self.spare += [self._start(self.kind) for _ in range(begin + later - len(self.spare))]
        return self.spare

    def take(self, *, alone: bool) -> Client:
        """A process for one pod; not ``alone``: one that it may share with others."""
        if not alone and self.kind.is_shared:
            self.shared = self.shared or self._next()
            return self.shared
        client = self._next()
        if len(self.spare) < self._later:
            self.spare.append(self._start(self.kind))
        return client

    def _next(self) -> Client:
        return self.spare.pop(0) if self.spare else self._start(self.kind)


class Fleet:
    """All processes of a play, of one kind of clients or several. The caller closes it, which kills what is left."""

    def __init__(self, kinds: Iterable[ClientKind], connection: Mapping[str, str]) -> None:
        self.said: queue.Queue[ClientLine] = queue.Queue()
        self._connection = dict(connection)
        self._all: list[Client] = []
        self._stables = {kind.profile: _Stable(kind, self._start) for kind in kinds}
        self._helper = self._start(PythonClient())
        self._questions = 0

    def prepare(self, number: Callable[[ClientKind], tuple[int, int]]) -> None:
        """Have as many processes ready as ``number`` says, to begin with and later. Raises `KgctlError` if one does not start."""
        spare = [client for stable in self._stables.values() for client in stable.prepare(*number(stable.kind))]
        for client in (self._helper, *spare):
            client.wait_until_ready()

    def take(self, profile: str, *, alone: bool) -> Client:
        """A process for one pod with this client; not ``alone``: one that it may share with others."""
        return self._stables[profile].take(alone=alone)

    def give_back(self, client: Client) -> None:
        """End the process of a pod that is gone."""
        if not any(client is stable.shared for stable in self._stables.values()):
            client.kill()
            self._all.remove(client)

    def help(self, command: str, *words: str) -> None:
        """Have the helper do something that has no answer."""
        self._helper.tell(command, *words)

    def ask(self, command: str, *words: str) -> tuple[str, ...]:
        """Have the helper do something: () once it is done, or the error's code and text. Other lines stay in the queue."""
        number = self.ask_later(command, *words)
        kept: list[ClientLine] = []
        end_s = time.monotonic() + _ANSWER_S
        try:
            while time.monotonic() < end_s:
                with contextlib.suppress(queue.Empty):
                    line = self.said.get(timeout=0.1)
                    if line.name != HELPER:
                        kept.append(line)
                    elif line.rest[0] == number:
                        return line.rest[1:]
        finally:
            for line in kept:
                self.said.put(line)
        return ("_TIMED_OUT", "no answer")

    def ask_later(self, command: str, *words: str) -> str:
        """Have the helper do something; its answer is a line that names what is returned."""
        self._questions += 1
        self._helper.tell(command, str(self._questions), *words)
        return str(self._questions)

    def end_members(self) -> None:
        """Kill every process with consumers."""
        for client in [client for client in self._all if client is not self._helper]:
            client.kill()
            self._all.remove(client)
        for stable in self._stables.values():
            stable.spare, stable.shared = [], None

    def close(self) -> None:
        """Kill the processes that still run."""
        for client in self._all:
            client.kill()
        self._all = []

    def _start(self, kind: ClientKind) -> Client:
        client = Client(kind.command(), self._connection, self.said)
        self._all.append(client)
        return client


_LIMIT_SLACK_US = 500_000
"""By so much less than max.poll.interval.ms a member that is out for want of polls may have read last: lines have their way."""


class PlayedTopics(TopicChanger):
    """The cluster's real topics, under names with the play's prefix."""

    def __init__(self, play: Play) -> None:
        super().__init__(play.context, play.pods, play.broker, play.ownership, play.fast_forward, kind=play.kind)
        self._play = play
        self._numbers: dict[str, int] = {}

    def begin(self) -> None:
        """Create the scenario's topics. Raises `KgctlError` where the cluster refuses one."""
        for topic in self._play.scenario.topics:
            self._numbers[topic.name] = topic.partitions  # from now on it is removed: a signal may come before the answer
            refused = self._play.fleet.ask("create", self._play.prefix + topic.name, str(topic.partitions))
            if refused:
                del self._numbers[topic.name]
            raise_refusal(refused, f"topic {topic.name!r} cannot be created as {self._play.prefix + topic.name!r}")

    def end(self) -> str:
        """Delete all topics of the play: "" or why some are left."""
        names = [self._play.prefix + name for name in self._numbers]
        refused = self._play.fleet.ask("delete", ",".join(names)) if names else ()
        return "" if not refused else f"topics {', '.join(names)} could not be deleted: {refused[1]}"

    def create(self, topic: Topic) -> None:
        super().create(topic)
        self._play.ask_later("create", topic.name, str(topic.partitions))
        self._numbers[topic.name] = topic.partitions

    def grow(self, name: str, partitions: int) -> None:
        """Raise the topic's number of partitions on the cluster."""
        super().grow(name, partitions)
        self._play.ask_later("grow", name, str(partitions))
        self._numbers[name] = partitions
        self._tell_rate(name)

    def delete(self, name: str) -> None:
        super().delete(name)
        self._play.ask_later("delete", name)
        self._numbers.pop(name, None)

    def set_rate(self, name: str, rate_uhz: int) -> None:
        """Write this many records from now on. What is read of them stands in the clients' lines."""
        self._rate_uhz[name] = rate_uhz
        self._tell_rate(name)

    def _tell_rate(self, name: str) -> None:
        if name in self._numbers and name in self._rate_uhz:
            rates = split_rate(self._rate_uhz[name], self._numbers[name], self._weights.get(name, ()))
            for number, rate_uhz in zip(self._play.partitions.present[name], rates, strict=False):
                self._play.ledger.arrivals.set_rate(number, rate_uhz, self._play.loop.now_us)
            text = ",".join(f"{rate / 1_000_000:g}" for rate in rates)
            self._play.fleet.help("produce", self._play.prefix + name, text)

    def _share_out(self, name: str) -> None:
        """Do nothing: what real consumers read is not modelled."""


def raise_refusal(refused: Sequence[str], what: str) -> None:
    """Raise what the helper's answer amounts to: nothing where it is done."""
    if not refused:
        return
    code, why = refused[0], " ".join(refused[1:])
    if code == "_TIMED_OUT":
        raise TimedOutError(f"{what}: {why}")
    kind = AuthError if "AUTHORIZATION" in code or "AUTHENTICATION" in code else BrokerError
    raise kind(f"{what}: {why}", code=code.lstrip("_"))


class PlayedProcess(Process):
    """A process with a real consumer. What it does is heard by `heard`, line by line."""

    def __init__(self, pod: Pod, play: Play) -> None:
        super().__init__(pod, play.around)
        self._play = play
        self._client: Client = play.fleet.take(pod.members.client, alone=can_be_killed(play.scenario, pod.members))
        self._is_told_to_start = False
        self._member_id = ""
        self._kicked_as = ""
        self._read_us = -1

    @property
    def member_id(self) -> str:
        """The id that the coordinator knows it by; "" for none yet."""
        return self._member_id

    def _booted(self, _: object) -> None:
        if self.phase is not ProcessPhase.BOOTING or self._is_told_to_start or self._hold(self._booted, None):
            return
        self._is_told_to_start = True
        play = self._play
        settings = settings_of(self.pod, play.group_id)
        topics = play.subscription(self.pod.members)
        self._client.tell("start", self.pod.name, topics, *(f"{name}={value}" for name, value in settings.items()))

    def stop(self, then: Callable[[], None] | None = None, *, grace_us: int = GRACE_US, on_sigterm: str | None = None) -> None:
        """SIGTERM, as the simulation has it; who closes is told to."""
        was_wanted = self.stop_wanted
        super().stop(then, grace_us=grace_us, on_sigterm=on_sigterm)
        if self.stop_wanted and not was_wanted:
            self.close()

    def close(self) -> None:
        """Have the consumer leave the group, and its process end."""
        self._client.tell("close", self.pod.name)

    def die(self, what: PodChange, *, is_silent: bool = False) -> None:  # noqa: ARG002  # its machine is this one
        """The process is gone, killed where it has not ended by itself."""
        if self.phase is ProcessPhase.GONE:
            return
        self._play.fleet.give_back(self._client)
        super().die(what)
        self._play.is_gone(self, has_left=what is PodChange.STOPPED and self.stop_wanted)

    def stall(self, until_us: int) -> None:
        """The application does not call poll() until then; it did last when it read last."""
        now_us = self.loop.now_us
        self.stalled_until_us = max(until_us, self.stalled_until_us)
        self._client.tell("stall", self.pod.name, str((until_us - now_us) // 1000))
        longest_us = self.pod.members.poll.upper_us
        polled_us = now_us if longest_us is None else max(self._read_us, now_us - longest_us)
        limit_us = polled_us + self.config.max_poll_interval_ms * 1000
        if until_us > limit_us:
            self.loop.at(limit_us, self._is_past_limit)

    def _is_past_limit(self, _: object) -> None:
        if self.phase is ProcessPhase.RUNNING:
            self._play.ownership.end(self, list(self.consuming), GapCause.STALL)

    def is_in_group(self) -> None:
        """The coordinator has it."""
        self._kicked_as = ""

    def is_out(self, member_id: str) -> None:
        """The coordinator has this id of it no longer: it was kicked, unless it has said so itself, or was to end."""
        is_ending = self.pod.process is not self or self.phase is not ProcessPhase.RUNNING or self.stop_wanted
        if is_ending or self._kicked_as == member_id:
            return
        self._kicked_as = member_id
        self._play.emit(Kicked, self.pod.name)
        if self._read_us >= 0 and self.loop.now_us - self._read_us >= self.config.max_poll_interval_ms * 1000 - _LIMIT_SLACK_US:
            self._is_past_limit(None)

    def _simulation_ends(self, reason: StopReason) -> None:
        names = [self._play.partitions.names[number] for number in self.consuming]
        self._play.ownership.stop(self, names, reason)

    def suspend(self) -> None:
        super().suspend()
        self._client.freeze()

    def resume(self, _: object = None) -> None:
        """Let the process go on with SIGCONT."""
        self._client.thaw()
        super().resume()

    def slow(self) -> None:
        """Processing takes longer, or as long as usual again."""
        self._client.tell("slow", self.pod.name, f"{self.pod.factor_ppm / 1_000_000:g}")

    # --- what its client says

    def heard(self, line: ClientLine) -> None:
        """Act on a line that the consumer has printed."""
        hear = _HEAR.get(line.what)
        if hear is not None:
            hear(self, line)

    def subscribed(self, _: ClientLine) -> None:
        if self.phase is not ProcessPhase.BOOTING:
            return
        self.phase = ProcessPhase.RUNNING
        self.pod.tell(PodChange.START)
        self._play.on_running(self)
        self.pod.ready()

    def in_generation(self, line: ClientLine) -> None:
        generation, self._member_id = int(line.rest[0]), line.rest[1] if len(line.rest) > 1 else ""
        if self._member_id:
            self._play.emit(Joined, self.pod.name, self._member_id)
        self._play.is_in_generation(generation)

    def assigned(self, line: ClientLine) -> None:
        partitions = self._play.partitions_of(line)
        self._called("assigned", line)
        self._play.owners.assign(self.pod.number, self._play.partitions.numbers_of(partitions))
        self._play.ownership.start(self, dict.fromkeys(partitions, 0))

    def revoked(self, line: ClientLine) -> None:
        reason = StopReason.CLOSED if self.stop_wanted else StopReason.REVOKED
        self._called("revoked", line)
        self._stop(line, reason)

    def _called(self, callback: str, line: ClientLine) -> None:
        number = len(self._play.partitions_of(line))
        self._play.emit(CalledBack, self.pod.name, number, callback)

    def lost_some(self, line: ClientLine) -> None:
        """It was out of the group, which it hears with its next poll(): later than the coordinator's list has told it."""
        self._called("lost", line)
        self.is_out(self._member_id)
        self._stop(line, StopReason.CLOSED if self.stop_wanted else StopReason.LOST)

    def _stop(self, line: ClientLine, reason: StopReason) -> None:
        named = self._play.partitions_of(line)
        held = [partition for partition in named if self._play.partitions.numbers.get(partition) in self.consuming]
        self._play.ownership.stop(self, held, reason)

    def closing(self, _: ClientLine) -> None:
        if self.consuming:
            self._simulation_ends(StopReason.CLOSED)

    def closed(self, _: ClientLine) -> None:
        self.stop_wanted = True
        self.die(PodChange.STOPPED)

    def refused_commit(self, line: ClientLine) -> None:
        if line.rest[0] != "REBALANCE_IN_PROGRESS":  # each rebalance has it: the client itself puts the commit off
            self._play.emit(CommitRefused, self.pod.name, what=line.rest[0])

    def has_error(self, line: ClientLine) -> None:
        _raise_if_not_allowed(line)
        if line.rest[0] != "_MAX_POLL_EXCEEDED":  # librdkafka's word before the callback that others have, too
            self._play.emit(Erred, self.pod.name, what=line.rest[0].lstrip("_"))

    def has_failed(self, line: ClientLine) -> None:
        _raise_if_not_allowed(line)
        if self.consuming:
            self._simulation_ends(StopReason.FAILED)
        self.fail(line.rest[0].lstrip("_"))

    def read(self, line: ClientLine) -> None:
        self._read_us = self.loop.now_us
        self._play.has_read(self.pod.number, line)


def _raise_if_not_allowed(line: ClientLine) -> None:
    code = line.rest[0]
    if "AUTHORIZATION" in code or "AUTHENTICATION" in code:
        raise AuthError(f"a client of the play ({line.name}) may not do what it needs: {code.lstrip('_')}", code=code.lstrip("_"))


_HEAR: dict[str, Callable[[PlayedProcess, ClientLine], None]] = {
    "subscribed": PlayedProcess.subscribed,
    "generation": PlayedProcess.in_generation,
    "assigned": PlayedProcess.assigned,
    "revoked": PlayedProcess.revoked,
    "lost": PlayedProcess.lost_some,
    "closing": PlayedProcess.closing,
    "closed": PlayedProcess.closed,
    "commit-failed": PlayedProcess.refused_commit,
    "error": PlayedProcess.has_error,
    "failed": PlayedProcess.has_failed,
    "read": PlayedProcess.read,
}
"""What a client says -> what is made of it."""
