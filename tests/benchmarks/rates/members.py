"""Live members: kgctl.ConsumerGroup beside aiokafka's coordination, each in a process of its own; and the start of a fixture.

``python -m tests.benchmarks.rates.members CLIENT BOOTSTRAP TOPIC MEMBERS SECONDS`` is one contestant, whose numbers are JSON.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from tests.benchmarks.clusters import CLUSTERS, scratch
from tests.benchmarks.measure import ENVIRONMENT, BenchmarkError
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.kafka.data import create_topic, unique
from tests.support.patience import PATIENCE_MS

MEMBERS, FEW = 200, 5
BEAT_MS, SESSION_MS = 500, 60_000
FIXTURES = 20

Numbers = Mapping[str, float]


def kgctl(bootstrap: str, topic: str, members: int, seconds: float) -> Numbers:
    """All members of one group, then heartbeats alone, then commits alone."""
    from kgctl import ConsumerGroup

    given: dict[str, Any] = {"heartbeat_interval_ms": BEAT_MS, "session_timeout_ms": SESSION_MS, "assignors": ["range"]}
    with ExitStack() as stack:
        begun, begun_cpu = time.perf_counter(), time.process_time()
        groups = [stack.enter_context(ConsumerGroup(bootstrap, topic, [topic], **given)) for _ in range(members)]
        generations = [group.next(timeout_ms=PATIENCE_MS) for group in groups]
        while len({each.generation_id for each in generations}) > 1 or any(each.ended.is_set() for each in generations):
            newest = max(each.generation_id for each in generations)
            generations = [
                group.next(timeout_ms=PATIENCE_MS) if each.generation_id < newest or each.ended.is_set() else each
                for group, each in zip(groups, generations, strict=True)
            ]
        joined, joined_cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
        cpu = time.process_time()
        time.sleep(seconds)
        beating = time.process_time() - cpu
        commits = _rate(lambda offset: generations[0].commit({(topic, 0): offset}), seconds)
    return _numbers(members, seconds, joined, joined_cpu, beating, commits)


async def aiokafka(bootstrap: str, topic: str, members: int, seconds: float) -> Numbers:
    """The same, in one event loop. Its consumers fetch as well: from topics without records, every half second."""
    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    given = {"heartbeat_interval_ms": BEAT_MS, "session_timeout_ms": SESSION_MS, "enable_auto_commit": False, "group_id": topic}
    assignor = {"partition_assignment_strategy": [RangePartitionAssignor]}
    begun, begun_cpu = time.perf_counter(), time.process_time()
    consumers = [AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, **given, **assignor) for _ in range(members)]
    await asyncio.gather(*(consumer.start() for consumer in consumers))
    while any(len(consumer.assignment()) != 1 for consumer in consumers):
        await asyncio.sleep(0.01)
    joined, joined_cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
    cpu = time.process_time()
    await asyncio.sleep(seconds)
    beating = time.process_time() - cpu
    (place,) = consumers[0].assignment()
    until, commits = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        commits += 1
        await consumers[0].commit({TopicPartition(place.topic, place.partition): commits})
    await asyncio.gather(*(consumer.stop() for consumer in consumers))
    return _numbers(members, seconds, joined, joined_cpu, beating, commits / seconds)


def _rate(work: Callable[[int], object], seconds: float) -> float:
    until, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        count += 1
        work(count)
    return count / seconds


def _numbers(members: int, seconds: float, joined: float, joined_cpu: float, beating: float, commits: float) -> Numbers:
    beats = members * seconds * 1000 / BEAT_MS
    return {"joined": joined, "joined_cpu": joined_cpu, "beat_us": beating / beats * 1e6, "commits": commits}


def measure(clusters: Sequence[str], scale: Scale) -> Iterator[Row]:
    """On each server the contestants take turns."""
    members = FEW if scale.small else MEMBERS
    with scratch() as folder, ExitStack() as stack:
        for name in sorted(clusters, reverse=True):
            running = stack.enter_context(CLUSTERS[name](folder / name))
            found: dict[str, list[Numbers]] = {client: [] for client in ("kgctl", "aiokafka")}
            for _ in range(max(scale.runs, 1)):
                for client, numbers in found.items():
                    numbers.append(_contest(client, running.bootstrap, members, 5 * scale.seconds))
                    alone = _contest(client, running.bootstrap, 1, scale.seconds)
                    numbers[-1] = {**numbers[-1], "commits": alone["commits"]}
            for client, numbers in found.items():
                yield _row(f"{client}, {members} members, {running.name}", numbers)
    starts = sorted(_fixture_s() for _ in range(FIXTURES))
    yield Row("kgctl.testing.EmbeddedServer to its first answer", (f"{starts[0]:.3f}", f"{starts[len(starts) // 2]:.3f}"))


def _contest(client: str, bootstrap: str, members: int, seconds: float) -> dict[str, float]:
    topic = unique("members")
    create_topic(bootstrap, topic, members)
    command = [sys.executable, "-m", "tests.benchmarks.rates.members", client, bootstrap, topic, str(members), str(seconds)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    if done.returncode:
        raise BenchmarkError(f"{client}: {done.stderr.strip().splitlines()[-1:]}")
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def _row(name: str, runs: Sequence[Numbers]) -> Row:
    least = {key: min(run[key] for run in runs) for key in ("joined", "joined_cpu", "beat_us")}
    most = max(run["commits"] for run in runs)
    return Row(name, (f"{least['joined']:.2f}", f"{least['joined_cpu']:.2f}", f"{least['beat_us']:,.0f}", f"{most:,.0f}"))


def _fixture_s() -> float:
    from kgctl.testing import EmbeddedServer

    begun = time.perf_counter()
    with EmbeddedServer({"orders": 1}) as cluster:
        assert cluster.admin.list_topics(["orders"]) == {"orders": 1}
        return time.perf_counter() - begun


RATES = Rates(
    "members",
    "Members of one group in one process, one partition each: the first join to the last assignment; then idle; commits of one",
    ("joined, s", "CPU s", "CPU us a beat", "commits a second"),
    measure,
)


def main(client: str, bootstrap: str, topic: str, members: str, seconds: str) -> None:
    given = (bootstrap, topic, int(members), float(seconds))
    print(json.dumps(kgctl(*given) if client == "kgctl" else asyncio.run(aiokafka(*given))))


if __name__ == "__main__":
    main(*sys.argv[1:])
