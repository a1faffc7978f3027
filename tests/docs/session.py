"""What the examples of a page speak to: a cluster with two groups, one of them active; and a history with fixed times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

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
