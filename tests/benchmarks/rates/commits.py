"""Commits a second, heartbeats beside them, and what a group and a connection weigh.

``kgctl serve --data`` flushes what it writes before it answers (fsync, one for all that waits); Apache Kafka leaves that to the
system. Heartbeats are timed alone, then beside two thousand commits a second, or as many as the server takes. Memory is that
of ``kgctl serve``: a JVM's says little.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.serde.frames import frame
from kgctl.serde.messages import encode_request
from tests.benchmarks.clusters import apache_kafka, scratch
from tests.benchmarks.rates.heartbeats import Beating, joined
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.serve import ServeProcess
from tests.support.wire.raw_client import RawClient

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.synchronize import Event

CREATE_TOPICS, OFFSET_COMMIT = 19, 8
WRITERS = (1, 16)
WANTED_A_SECOND = 2_000
GROUPS, SMALL_GROUPS = 2_000, 50
CONNECTIONS, SMALL_CONNECTIONS = 1_000, 20


def commit(group: str) -> bytes:
    """A commit of one partition, as it goes over the wire."""
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    topics = [{"name": "orders", "partitions": [partition]}]
    values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
    return frame(encode_request(OFFSET_COMMIT, 8, 1, "benchmark", values))


class Committing:
    """Connections that commit, each again as soon as it has its answer, at most so often a second in all.

    They are a process of their own: beside other threads of this one they would wait for their turn, and measure that.
    """

    def __init__(self, bootstrap: str, writers: int, at_most: float = float("inf")) -> None:
        self.count = 0
        context = get_context("spawn")
        self._ended = context.Event()
        self._counted: SimpleQueue[int] = context.SimpleQueue()
        self._process = context.Process(target=_commit_on, args=(bootstrap, writers, at_most, self._ended, self._counted))

    def __enter__(self) -> Committing:
        self._process.start()
        self._counted.get()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.count = self._counted.get()
        self._process.join()


def _commit_on(bootstrap: str, writers: int, at_most: float, ended: Event, counted: SimpleQueue[int]) -> None:
    """In the other process: begin when all are connected, and tell how many commits were answered."""
    counts = [0] * writers
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(bootstrap)) for _ in range(writers)]
        threads = [
            threading.Thread(target=_write, args=(raw, f"c{number}", writers / at_most, ended, counts, number))
            for number, raw in enumerate(clients)
        ]
        counted.put(0)
        for thread in threads:
            thread.start()
        ended.wait()
        for thread in threads:
            thread.join()
    counted.put(sum(counts))


def _write(raw: RawClient, group: str, pause_s: float, ended: Event, counts: list[int], number: int) -> None:
    """By a timetable, so that what was late once does not make everything later."""
    payload, due_s = commit(group), time.perf_counter()
    while not ended.is_set():
        raw.socket.sendall(payload)
        raw.receive()
        counts[number] += 1
        due_s = max(due_s + pause_s, time.perf_counter() - 1.0)
        time.sleep(max(0.0, due_s - time.perf_counter()))


def rows_of(name: str, bootstrap: str, scale: Scale) -> Iterator[Row]:
    """Commits and heartbeats of one server."""
    with RawClient(bootstrap) as raw:
        topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        raw.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 30_000})
    for writers in WRITERS:
        with Committing(bootstrap, writers) as committing:
            time.sleep(scale.seconds)
        yield Row(f"{name}: commits a second, {writers} connections", (f"{committing.count / scale.seconds:,.0f}", ""))
    with ExitStack() as stack:
        members = joined(stack, bootstrap, 1)
        for writers in (0, max(WRITERS)):
            beating = Beating(name, members)
            with Committing(bootstrap, writers, WANTED_A_SECOND) as committing:
                for _ in range(scale.runs):
                    beating.run(scale.seconds)
            rate = committing.count / (scale.seconds * scale.runs)
            beating.round_trips_s.sort()
            most = beating.round_trips_s[int(len(beating.round_trips_s) * 0.99)]
            yield Row(
                f"{name}: heartbeats beside {rate:,.0f} commits a second", (f"{max(beating.rates):,.0f}", f"{most * 1e6:,.0f}")
            )


def weights(server: ServeProcess, scale: Scale) -> Iterator[Row]:
    """Bytes of memory for one more group with an offset, and for one more connection."""
    groups = SMALL_GROUPS if scale.small else GROUPS
    connections = SMALL_CONNECTIONS if scale.small else CONNECTIONS

    def grown(do: Callable[[], None]) -> int:
        before = _memory_bytes(server.process.pid)
        do()
        return _memory_bytes(server.process.pid) - before

    with RawClient(server.bootstrap) as raw, ExitStack() as stack:

        def commit_all() -> None:
            for number in range(groups):
                payload = commit(f"weighed-{number}")
                raw.socket.sendall(payload)
                raw.receive()

        def connect_all() -> None:
            for _ in range(connections):
                stack.enter_context(RawClient(server.bootstrap)).call(18, 0)

        yield Row(f"kgctl serve: bytes a group with an offset, {groups:,}", (f"{grown(commit_all) / groups:,.0f}", ""))
        yield Row(f"kgctl serve: bytes a connection, {connections:,}", (f"{grown(connect_all) / connections:,.0f}", ""))


def _memory_bytes(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(clusters: Sequence[str], scale: Scale) -> Iterator[Row]:
    """One server after the other: each has the disk for itself."""
    with scratch() as folder:
        if "serve" in clusters:
            with ServeProcess(data=folder / "data") as server:
                yield from rows_of("kgctl serve", server.bootstrap, scale)
                yield from weights(server, scale)
        if "kafka" in clusters:
            with apache_kafka(folder / "kafka") as cluster:
                yield from rows_of(cluster.name, cluster.bootstrap, scale)


RATES = Rates("commits", "Commits and heartbeats on loopback, with a disk", ("a second", "p99 us"), measure)
