"""What the README's examples speak to: ``kgctl serve`` with two groups, one of them active; and a history with fixed times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kgctl.admin.confluent.clients import ConsumerTeam, produce
from tests.support.pipeline.collected import collected_history
from tests.support.pipeline.example import example_history
from tests.support.pipeline.segments import example_segments
from tests.support.serve import ServeProcess

CONFIG = """\
current-context: staging
contexts:
  staging:
    bootstrap-server: broker1:9092,broker2:9092
    timeout: 20s
  desk:
    embedded: ~/kgctl-data
"""

UNPOLLED = {"max.poll.interval.ms": "3600000"}
"""Nobody polls while the examples run, which a slow machine may take its time for."""


@contextmanager
def readme_session(folder: Path) -> Iterator[Mapping[str, str]]:
    """The environment of the examples. ``payments`` has left with a lag of 120, ``shipping`` is there with two static members."""
    (folder / "config.yaml").write_text(CONFIG)
    example_history(folder / "warehouse")
    collected_history(folder / "history")
    example_segments(folder / "kafka-logs")
    config = {"group.initial.rebalance.delay.ms": "300"}
    with ServeProcess(topics={"orders": 3, "returns": 1}, config=config) as server:
        produce(server.bootstrap, "orders", 300, 3)
        with ConsumerTeam(server.bootstrap, "payments", ["orders"], 1) as payments:
            payments.consume(300)
        produce(server.bootstrap, "orders", 90, 3)
        with ConsumerTeam(server.bootstrap, "shipping", ["orders"], 2, static=True, properties=UNPOLLED) as shipping:
            shipping.consume(390)
            produce(server.bootstrap, "orders", 30, 3)
            yield {
                "KGCTL_BOOTSTRAP_SERVER": server.bootstrap,
                "KGCTL_CONFIG": str(folder / "config.yaml"),
                "KGCTL_BACKUP_DIR": str(folder / "backups"),
                "KGCTL_WAREHOUSE": str(folder / "warehouse"),
            }
