"""``python -m tests.calibration.sharing [-n TIMES] [--save] [CASE ...]``: share groups, as Java's KafkaShareConsumer has them
and as they are simulated. ``-n 0`` simulates only.

A scenario of ``sharing_scenarios/`` is played with Apache Kafka 4.3.1 and a process for each pod: what each was given, did and
was told is written down, and comes to the same figures as a run.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from uuid import uuid4

from kgctl.simulate.metrics.result import RunResult, run
from kgctl.simulate.scenario.kinds.cluster import PoisonRecords
from kgctl.simulate.scenario.kinds.pods import Crash, Stop
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.sources import read_source

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "sharing.json"
"""Case -> the figures of each time it was played."""
SOURCE = FOLDER.parent / "java/simulate/SharePods.java"
Figures = dict[str, float]
NAMES = ("acknowledged", "redelivered", "redeliveries", "most_deliveries", "archived", "duplicates", "refused", "lag", "back_s")
"""``back_s``: from a crash to the first delivery of a record again; 0 without a crash."""
_S = 1_000_000


def cases() -> dict[str, Scenario]:
    """The scenarios, by their names."""
    files = [load(read_source(str(path))) for path in sorted((FOLDER / "sharing_scenarios").glob("*.yaml"))]
    return {file.name: file.variants[0].scenario for file in files}


def measured() -> dict[str, list[Figures]]:
    """What was measured."""
    found: dict[str, list[Figures]] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    return found


def simulated(scenario: Scenario, seeds: Iterable[int]) -> list[Figures]:
    """The figures of a run with each of these seeds."""
    return [_of_run(scenario, run(scenario, seed)) for seed in seeds]


def _of_run(scenario: Scenario, result: RunResult) -> Figures:
    found = {name: float(result.metric(name) or 0) for name in NAMES[:6]}
    found["refused"] = float(result.metric("refused_acknowledgements") or 0)
    found["lag"] = float(int(float(result.metric("lag") or 0)))
    crashes = [mark.at_us for mark in result.recording.history.events if mark.event == "crash"]
    assert result.recording.share is not None
    again = [each.at_us for each in result.recording.share.redelivered if crashes and each.at_us >= crashes[0]]
    found["back_s"] = (again[0] - crashes[0]) / _S if again else 0.0
    return found


# --- the real thing


@dataclass(slots=True)
class Pod:
    """A pod's process, and what it has said: (when in ms, what, partition, offset, deliveries)."""

    process: subprocess.Popen[str]
    said: list[tuple[int, str, int, int, int]] = field(default_factory=list)

    def listen(self) -> None:
        """Read until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            at_ms, what, partition, offset, count = line.split()
            self.said.append((int(at_ms), what, int(partition), int(offset), int(count)))


class Played:
    """One play of a scenario of one set of members and one topic, with crashes, stops and bad records."""

    def __init__(self, scenario: Scenario, bootstrap: str) -> None:
        from tests.support.kafka.install import POM
        from tests.support.maven import compile_java, java_command

        self._scenario = scenario
        (self._members,), (self._topic,), (self._traffic,) = scenario.members, scenario.topics, scenario.traffic
        self._name = f"{scenario.name}-{uuid4()}"
        self._command = java_command(compile_java(POM, [SOURCE]), "SharePods")
        self._common = [f"bootstrap={bootstrap}", f"group={self._name}", f"topic={self._name}"]
        self._pods: list[Pod] = []
        self._running: dict[int, Pod] = {}

    def figures(self) -> Figures:
        """Play it, and say what it came to."""
        settings = [f"{name}={value}" for name, value in self._scenario.group.settings.items()]
        self._do("make", f"partitions={self._topic.partitions}", *settings)
        for index in range(self._members.count):
            self._start(index)
        time.sleep(12)  # two heartbeats, by which each knows its partitions
        assert self._scenario.duration_us is not None
        (_, _), (from_us, rate_uhz) = self._traffic.steps
        poison = [event for event in self._scenario.events if isinstance(event, PoisonRecords)]
        bad = [f"{(event.at_us - from_us) / _S}:{event.records}" for event in poison]
        rate, seconds = rate_uhz / _S, (self._scenario.duration_us - from_us) / _S
        began = time.monotonic() - from_us / _S
        writer = subprocess.Popen(
            [
                *self._command,
                "write",
                *self._common,
                f"partitions={self._topic.partitions}",
                f"rate={rate}",
                f"seconds={seconds}",
                f"bad={','.join(bad)}",
            ]
        )
        crashed_ms = self._events(began)
        time.sleep(max(began + self._scenario.duration_us / _S - time.monotonic(), 0))
        left = self._do("left").splitlines()
        writer.wait()
        for pod in self._running.values():
            pod.process.kill()
        for pod in self._pods:
            pod.process.wait()
        time.sleep(0.5)
        return self._counted(sum(int(line.split()[2]) for line in left), crashed_ms)

    def _do(self, what: str, *more: str) -> str:
        return subprocess.run([*self._command, what, *self._common, *more], capture_output=True, text=True, check=True).stdout

    def _start(self, index: int) -> None:
        members: MemberSet = self._members
        work_us = 0 if members.rate_uhz is None else 1_000_000_000_000 // members.rate_uhz
        settings = [f"client.{name}={value}" for name, value in members.config.items()]
        command = [*self._command, "pod", *self._common, f"work={work_us}", *settings]
        pod = Pod(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        threading.Thread(target=pod.listen, daemon=True).start()
        self._pods.append(pod)
        self._running[index] = pod

    def _events(self, began: float) -> int:
        """Do what the scenario does to pods, at its times; when the first was killed."""
        steps = []
        for event in self._scenario.events:
            if isinstance(event, Crash | Stop):
                index = int(event.target.partition("/")[2])
                steps.append((event.at_us, event.kind, index))
                if event.length is not None:
                    boot_us = event.length.mean_us + self._members.boot.mean_us
                    steps.append((event.at_us + boot_us, "start", index))
        crashed_ms = 0
        for at_us, what, index in sorted(steps):
            time.sleep(max(began + at_us / _S - time.monotonic(), 0))
            if what == "start":
                self._start(index)
                continue
            self._running.pop(index).process.send_signal(signal.SIGKILL if what == "crash" else signal.SIGTERM)
            crashed_ms = crashed_ms or int(time.time() * 1000)
        return crashed_ms

    def _counted(self, lag: int, crashed_ms: int) -> Figures:
        said = sorted(each for pod in self._pods for each in pod.said)
        most: Counter[tuple[int, int]] = Counter()
        for _, what, partition, offset, count in said:
            if what == "got":
                most[partition, offset] = max(most[partition, offset], count)
        done = Counter((partition, offset) for _, what, partition, offset, _ in said if what == "did")
        again = [count for count in most.values() if count > 1]
        told = {(partition, offset) for _, what, partition, offset, _ in said if what == "told"}
        bad = {(partition, offset) for _, what, partition, offset, _ in said if what == "failed"}
        back = [at_ms for at_ms, what, _, _, count in said if what == "got" and count > 1 and at_ms >= crashed_ms > 0]
        limit = int(self._scenario.group.settings.get("share.delivery.count.limit", "5"))
        return {
            "acknowledged": float(len(told - bad)),
            "redelivered": float(len(again)),
            "redeliveries": float(sum(count - 1 for count in again)),
            "most_deliveries": float(max(most.values(), default=0)),
            "archived": float(len([where for where, count in most.items() if count >= limit and where not in told - bad])),
            "duplicates": float(sum(count - 1 for count in done.values())),
            "refused": float(sum(what == "refused" for _, what, *_ in said)),
            "lag": float(lag),
            "back_s": (back[0] - crashed_ms) / 1000 if back else 0.0,
        }


def played(scenario: Scenario, times: int) -> list[Figures]:
    """The figures of so many plays, each with a group and a topic of its own."""
    from tests.support.kafka.broker import KafkaBroker
    from tests.support.kafka.data import wait_until_coordinating

    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder), overrides=scenario.cluster.config)
        broker.start()
        try:
            wait_until_coordinating(broker.bootstrap)
            return [Played(scenario, broker.bootstrap).figures() for _ in range(times)]
        finally:
            broker.stop()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.sharing")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("-n", "--times", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    for name, scenario in cases().items():
        if options.cases and name not in options.cases:
            continue
        found = played(scenario, options.times) if options.times else measured().get(name, [])
        if options.save:
            everything = measured()
            everything.setdefault(name, []).extend(found)
            MEASURED.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
        print(name, flush=True)
        model = simulated(scenario, range(1, options.seeds + 1))
        for figure in NAMES:
            real, ours = (sorted(each[figure] for each in each_run) for each_run in (found, model))
            shown = " ".join(f"{value:8.2f}" for value in real)
            print(f"  {figure:16} real {shown:30} simulated {ours[0]:8.2f} {median(ours):8.2f} {ours[-1]:8.2f}", flush=True)


if __name__ == "__main__":
    main()
