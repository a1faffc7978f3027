"""A node of Apache Kafka that says where it listens, as ``kgctl serve --for-tests`` does: ``python -m tests.interop.kafka_node``.

It ends with what started it: when its standard input does, or by SIGTERM.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.interop.suites import AS_KAFKA
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating


def main() -> None:
    """Serve until nobody listens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    settings = dict(each.split("=", 1) for each in parser.parse_args().config)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with tempfile.TemporaryDirectory(prefix="kafka-node-") as folder:
        broker = KafkaBroker(Path(folder) / "broker", overrides={**AS_KAFKA, **settings})
        try:
            broker.start()
            wait_until_coordinating(broker.bootstrap)
            print(f"export KAFKA_BOOTSTRAP_SERVERS={broker.bootstrap}", flush=True)
            sys.stdin.read()
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
