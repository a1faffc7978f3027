"""What the examples of a page speak to: a cluster with two groups, one of them active; and a history with fixed times. For README
it is the demo's."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from kgctl.cli import demo
from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from tests.support.patience import PATIENCE_S

CONFIG = """\
current-context: staging
contexts:
  staging:
    bootstrap-server: broker1:9092,broker2:9092
    timeout: 20s
  desk:
    embedded: ~/kgctl-data
"""

ELSEWHERE = ("simulate", "history", "manual", "context", "serve", "demo")
"""First words of commands that need no cluster, unless they say so themselves."""

DAY, FIRST_MINUTE = "2026-03-02", 38
UNPOLLED = {"max.poll.interval.ms": "3600000"}
"""Nobody polls while the examples run, which a slow machine may take its time for."""


class Session:
    """The cluster and the history of one page, each made when a command first needs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        (folder / "config.yaml").write_text(CONFIG)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.close()

    def typed(self, line: str) -> str:
        """What is typed where a page shows ``line``."""
        return line

    def shown(self, text: str) -> str:
        """What a page shows of this output."""
        return text

    def variables(self, argv: Sequence[str]) -> Mapping[str, str]:
        """The environment of this command, once what it needs is there."""
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "TZ": "UTC",
            "KGCTL_CONFIG": str(self._folder / "config.yaml"),
            "KGCTL_BACKUP_DIR": str(self._folder / "backups"),
            "KGCTL_WAREHOUSE": str(self._folder / "warehouse"),
        }
        if argv[0] == "kgctl":
            if "history" in argv or "--to-history" in argv:
                _ = self._history
            if argv[1] not in ELSEWHERE or "--from-group" in argv:
                variables["KGCTL_BOOTSTRAP_SERVER"] = self._cluster
            if "billing" in argv:
                _ = self._billing
        return variables

    @cached_property
    def _history(self) -> None:
        """``warehouse`` is a built history, ``history`` one that is collected only, ``kafka-logs`` the segments of a broker."""
        from tests.support.pipeline.collected import collected_history
        from tests.support.pipeline.example import example_history
        from tests.support.pipeline.segments import example_segments

        example_history(self._folder / "warehouse")
        collected_history(self._folder / "history")
        example_segments(self._folder / "kafka-logs")

    @cached_property
    def _cluster(self) -> str:
        """Its address. ``payments`` has left with a lag of 120, ``shipping`` is there with two static members."""
        from kgctl.admin.librdkafka import ConsumerTeam, produce
        from kgctl.server.background import BackgroundServer

        config = {"group.initial.rebalance.delay.ms": "300"}
        server = self._stack.enter_context(BackgroundServer(topics={"orders": 3, "returns": 1}, config=config))
        produce(server.bootstrap, "orders", 300, 3)
        with ConsumerTeam(server.bootstrap, "payments", ["orders"], 1) as payments:
            payments.consume(300)
        produce(server.bootstrap, "orders", 90, 3)
        shipping = self._stack.enter_context(
            ConsumerTeam(server.bootstrap, "shipping", ["orders"], 2, static=True, properties=UNPOLLED)
        )
        shipping.consume(390)
        produce(server.bootstrap, "orders", 30, 3)
        return server.bootstrap

    @cached_property
    def _billing(self) -> None:
        """A group that was down while records that it had not read were deleted."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        from kgctl.admin.librdkafka import ConsumerTeam, produce

        produce(self._cluster, "returns", 40, 1)
        with ConsumerTeam(self._cluster, "billing", ["returns"], 1) as billing:
            billing.consume(40)
        produce(self._cluster, "returns", 60, 1)
        admin = AdminClient({"bootstrap.servers": self._cluster})  # in a variable: what it is asked ends with it
        for future in admin.delete_records([TopicPartition("returns", 0, 75)]).values():
            future.result(PATIENCE_S)


class DemoSession(Session):
    """README's: the cluster of ``kgctl demo --keep`` and its history, which is made anew before it is asked.

    The moments of that history are a minute apart in README, the first at 08:38, and stand for its own where they are typed.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._moments: dict[str, str] = {}

    def typed(self, line: str) -> str:
        """With the history's own moments."""
        for real, moment in self._moments.items():
            line = line.replace(moment, real)
        return line

    def shown(self, text: str) -> str:
        """With README's moments."""
        return re.sub(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", self._moment, text)

    def _moment(self, found: re.Match[str]) -> str:
        if found[0].startswith(DAY):
            return found[0]
        return self._moments.setdefault(found[0], f"{DAY}T08:{FIRST_MINUTE + len(self._moments)}:00.000Z")

    def variables(self, argv: Sequence[str]) -> Mapping[str, str]:
        """Those of the cluster, for whatever asks it or its history."""
        variables = super().variables(argv)
        if argv[:2] != ["kgctl", "history"]:
            return variables
        own = {**variables, "KGCTL_BOOTSTRAP_SERVER": self._cluster}
        assert run(["history", "collect", "--once"], _quiet(own)) == 0
        assert run(["history", "build"], _quiet(own)) == 0
        return own

    @cached_property
    def _history(self) -> None:
        """The demo has made it."""

    @cached_property
    def _cluster(self) -> str:
        """Its address, after the demo's whole story."""
        stage = demo.DemoStage(_quiet(os.environ), self._folder)
        bootstrap = self._stack.enter_context(demo.played(stage))
        self._stack.enter_context(demo.kept(stage, bootstrap))
        assert stage.worst == 0
        return bootstrap


def _quiet(variables: Mapping[str, str]) -> Environment:
    return Environment(io.StringIO(), io.StringIO(), io.StringIO(), variables)


def session_of(page: str, folder: Path) -> Session:
    """What the examples of a page speak to."""
    return DemoSession(folder) if page == "README" else Session(folder)
