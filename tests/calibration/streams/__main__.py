"""``python -m tests.calibration.streams [-n TIMES] [--save] [CASE[:PROTOCOL] ...]``: Kafka Streams on Apache Kafka, played.

``--save`` adds what was measured to measured.json, which `compare` puts beside the simulation.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.calibration.streams.play import Application, figures, filled
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating

TASKS, RECORDS, RATE = 6, 60_000, 20_000


def rolling(app: Application) -> None:
    for pod in ("app-0", "app-1", "app-2"):
        app.stop(pod)
        app.start(pod)
        time.sleep(60)


def crash(app: Application) -> None:
    app.kill("app-0")
    app.wipe("app-0")
    time.sleep(5)
    app.start("app-0")


def scale_out(app: Application) -> None:
    app.start("app-2")


CASES = {"rolling": (3, rolling, 90), "crash": (3, crash, 100), "scale-out": (2, scale_out, 120)}
"""Case -> the pods at the beginning, what is done, for how long it is watched afterwards (seconds)."""
PROTOCOLS = ("classic", "streams")
KEPT = Path(__file__).with_name("measured.json")


def play(bootstrap: str, folder: Path, case: str, protocol: str) -> dict[str, float]:
    pods, act, watched_s = CASES[case]
    name = f"app-{case}-{protocol}-{time.time_ns()}"
    settings = {"application.id": name, "group.protocol": protocol, "probing.rebalance.interval.ms": "60000"}
    if protocol == "classic":
        settings["max.warmup.replicas"] = "10"
    app = Application(bootstrap, folder / name, TASKS, RATE, settings)
    try:
        for number in range(pods):
            app.start(f"app-{number}")
        app.wait(app.whole)
        time.sleep(100 if protocol == "classic" else 45)  # filled, warm-ups moved, one commit interval (30 s) over
        app.wait(app.whole)
        from_ms = time.time_ns() // 1_000_000
        act(app)
        time.sleep(watched_s)
        to_ms = time.time_ns() // 1_000_000
    finally:
        for pod in list(app.running):
            app.kill(pod)
    return figures(app.said, from_ms, to_ms)


def _keep(name: str, found: dict[str, float], *, saves: bool) -> None:
    if saves:
        everything = json.loads(KEPT.read_text())
        everything.setdefault(name, []).append(found)
        KEPT.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.streams")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("-n", "--times", type=int, default=1)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder) / "broker")
        broker.start()
        wait_until_coordinating(broker.bootstrap)
        try:
            with filled(broker.bootstrap, TASKS, RECORDS):
                for _ in range(options.times):
                    for case in CASES:
                        for protocol in PROTOCOLS:
                            name = f"{case}:{protocol}"
                            if not options.cases or name in options.cases or case in options.cases:
                                found = play(broker.bootstrap, Path(folder), case, protocol)
                                print(name, json.dumps(found), flush=True)
                                _keep(name, found, saves=options.save)
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
