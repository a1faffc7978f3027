"""``kgctl demo``: the main job, on a coordinator of its own, with real clients."""

from __future__ import annotations

import shlex
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from kgctl.cli.environment import Environment, handling, interrupt
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import flag
from kgctl.cli.report import shows
from kgctl.cli.session import Session
from kgctl.errors import UsageError

TOPIC, GROUP, OTHER_GROUP = "orders", "payments", "shipping"
PARTITIONS, MEMBERS = 3, 2
READ, UNREAD, LATE = 300, 90, 30
SERVER_CONFIG = {"group.initial.rebalance.delay.ms": "200"}
CLIENT_CONFIG = {"heartbeat.interval.ms": "200"}
UNPOLLED = {"max.poll.interval.ms": "86400000"}
"""For members that hold their partitions for as long as somebody tries commands on them."""


@shows(examples="kgctl demo")
def demo(
    session: Session,
    *,
    keep: Annotated[bool, flag("--keep", "Leave the cluster running until Ctrl-C, to try commands on it.")] = False,
) -> int:
    """Show kgctl's main job in a few seconds, with no broker to install.

    Starts the embedded coordinator on a free port of this machine, lets real consumers of confluent-kafka read and commit
    there, then runs the very commands that you would type, each printed before its output. Nothing is left behind.
    """
    outer = session.environment
    # SIGTERM ends it as Ctrl-C does, so that the cluster and the folder do not stay.
    with handling({signal.SIGTERM: interrupt}), tempfile.TemporaryDirectory(prefix="kgctl-demo-") as folder:
        stage = DemoStage(outer, Path(folder))
        with played(stage) as bootstrap:
            if keep:
                _stay(stage, bootstrap)
    if not keep:
        stage.say("That cluster is gone again. Next, keep one to try commands on, or go to your own (HOST:PORT of a broker):")
        stage.write(f"{outer.program} demo --keep\n{outer.program} --bootstrap-server HOST:PORT list groups --lag\n")
    return stage.worst


@contextmanager
def played(stage: DemoStage) -> Iterator[str]:
    """The whole story, on a cluster whose address this is and that is gone with the block."""
    from kgctl.server.background import BackgroundServer

    stage.say("Starting an embedded coordinator: Kafka's protocol on a free local port, kept in memory.")
    with BackgroundServer(topics={TOPIC: PARTITIONS}, config=SERVER_CONFIG) as server:
        stage.act(server.bootstrap)
        yield server.bootstrap


@contextmanager
def kept(stage: DemoStage, bootstrap: str) -> Iterator[None]:
    """What README's examples speak of beside the story: a second group, with members inside the block, and a history."""
    from kgctl.admin.librdkafka import ConsumerTeam, produce

    with ConsumerTeam(bootstrap, OTHER_GROUP, [TOPIC], MEMBERS, static=True, properties=UNPOLLED) as team:
        team.consume(READ + UNREAD)
        produce(bootstrap, TOPIC, LATE, PARTITIONS)
        stage.say(f"Group {OTHER_GROUP!r} has {MEMBERS} members now. What both groups did so far becomes a history.")
        stage.collect()
        yield


class DemoStage:
    """Plays the story: says what happens, shows each command line, runs it, and remembers the worst exit code.

    The commands see an environment of their own: this cluster and no other, no configuration of the user's, backups in a folder
    that vanishes. Their notices go where their results go, so that the story stays in order.
    """

    def __init__(self, outer: Environment, folder: Path) -> None:
        self._outer = outer
        self._folder = folder
        self._inner = replace(outer, stderr=outer.stdout)
        self.program = outer.program
        self.exported: dict[str, str] = {}
        self.worst = int(ExitCode.OK)

    def write(self, text: str) -> None:
        self._outer.stdout.write(text)
        self._outer.stdout.flush()

    def say(self, text: str) -> None:
        self.write(f"\n# {text}\n")

    def run(self, *argv: str) -> None:
        from kgctl.cli.app import run

        self.write(f"$ kgctl {shlex.join(argv)}\n")
        self.worst = max(self.worst, run(argv, self._inner))

    def export(self, name: str, value: str) -> None:
        """Set a variable for the commands that follow, and show it."""
        self.exported[name] = value
        own = {"KGCTL_CONFIG": str(self._folder / "config.yaml"), "KGCTL_BACKUP_DIR": str(self._folder)}
        self._inner = replace(self._inner, variables={**self._outer.variables, **own, **self.exported})
        self.write(f"$ export {name}={shlex.quote(value)}\n")

    def collect(self) -> None:
        """Make a history of the cluster; where that needs what is not installed, say what installs it."""
        from kgctl.cli.history.asking import require_tables

        try:
            require_tables()
        except UsageError as error:
            self.write(f"(It does not: {error.message})\n")
            return
        self.export("KGCTL_WAREHOUSE", str(self._folder / "warehouse"))
        self.run("history", "collect", "--once")
        self.run("history", "build")

    def act(self, bootstrap: str) -> None:
        """The whole story, on the cluster at this address."""
        from kgctl.admin.librdkafka import ConsumerTeam, produce

        self.export("KGCTL_BOOTSTRAP_SERVER", bootstrap)
        produce(bootstrap, TOPIC, READ, PARTITIONS)
        with ConsumerTeam(bootstrap, GROUP, [TOPIC], MEMBERS, properties=CLIENT_CONFIG) as team:
            team.consume(READ)
            produce(bootstrap, TOPIC, UNREAD, PARTITIONS)
            self.say(
                f"Topic {TOPIC!r}: {READ} records. Group {GROUP!r}: {MEMBERS} consumers (confluent-kafka) read and committed "
                f"them. Then {UNREAD} more records came."
            )
            self.run("list", "groups", "--lag")
            self.say("How far behind is it, and who reads what?")
            self.run("describe", "group", GROUP)
            self.say("What would a reset do? A dry run changes nothing, so it works while the consumers run.")
            self.run("reset-offsets", GROUP, "--topic", TOPIC, "--shift-by", "-50")
        self.say("The consumers have left the group: now the reset can be executed.")
        self.run("reset-offsets", GROUP, "--topic", TOPIC, "--shift-by", "-50", "--execute")
        self.run("describe", "group", GROUP)
        self.say("And back again: each change saves what it took away.")
        self.run("undo", "last", "--execute")


def _stay(stage: DemoStage, bootstrap: str) -> None:
    """Until Ctrl-C, with all that README's examples speak of."""
    try:
        with kept(stage, bootstrap):
            stage.say("It all stays until Ctrl-C. Next, in another terminal:")
            for name, value in stage.exported.items():
                stage.write(f"export {name}={shlex.quote(value)}\n")
            stage.write(f"{stage.program} list groups --lag\n")
            signal.pause()
    except KeyboardInterrupt:
        stage.write("\n")
