"""Records collected a second: segments parsed beside kafka-python, and whole collections from segments, a record log, and live.

Rates count processor time, children included, for other work on the machine is none of theirs; the last column is by wall clock.
Batches of 10 records stand for a group's commit of 10 partitions; each batch's checksum is checked, by both.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from kgctl.pipeline.collect.at_rest import collect_at_rest
from kgctl.pipeline.collect.live import CollectPlan, LiveCollection, World
from kgctl.pipeline.engines import LocalEngine
from kgctl.pipeline.sources.at_rest import RestSource, record_log, segments
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, open_reader
from kgctl.pipeline.sources.parse import parse_log
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.serde.record_batch import iterate_batches, place
from kgctl.storage.folder import open_folder
from kgctl.storage.record_log import StoredRecord
from tests.benchmarks.clusters import CLUSTERS, scratch
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.pipeline.segments import CODECS, commit_like, read_by_kafka_python, segment

FILES = 8
SEGMENT_RECORDS = 625_000
PEER_RECORDS = 50_000
LOG_RECORDS = 400_000
SMALL = 4_000
TEMPLATE_RECORDS = 20_000


@dataclass(frozen=True)
class Run:
    """What one run took."""

    records: int
    cpu_s: float
    wall_s: float

    def row(self, name: str) -> Row:
        """A line of the table."""
        return Row(name, (f"{self.records / self.cpu_s:,.0f}", f"{self.records / self.wall_s:,.0f}"))


def measure(clusters: Sequence[str], scale: Scale) -> Sequence[Row]:
    """The best run of each, by processor time."""
    count = SMALL if scale.small else SEGMENT_RECORDS
    rows = list(parsing(count, scale))
    with scratch() as folder:
        write_segments(folder / "logs", count)
        for jobs in (1, 2):
            runs = [collecting(segments(folder / "logs"), folder / f"w{jobs}-{run}", jobs) for run in range(scale.runs)]
            rows.append(least(runs).row(f"{FILES * count:,} records of segments to bronze, {jobs} process{'es' * (jobs - 1)}"))
        write_record_log(folder / "data", SMALL if scale.small else LOG_RECORDS)
        runs = [collecting(record_log(folder / "data"), folder / f"r{run}", 1) for run in range(scale.runs)]
        rows.append(least(runs).row("record log to bronze, 1 process"))
    if "kafka" in clusters:
        rows += from_kafka(SMALL if scale.small else LOG_RECORDS, scale)
    return rows


def parsing(count: int, scale: Scale) -> Iterator[Row]:
    """Bytes in, Arrow tables out."""
    for size in (10, 1, 200):
        yield parsed(repeated(size, "none", count), scale).row(f"parse, {size} records a batch")
    few = repeated(10, "none", min(count, PEER_RECORDS))
    peer = [timed(lambda: len(read_by_kafka_python(few))) for _ in range(scale.runs)]
    yield least(peer).row("kafka-python, 10 records a batch")
    for codec in list(CODECS)[1:]:
        yield parsed(repeated(200, codec, count), scale).row(f"parse, 200 records a batch, {codec}")


def parsed(data: bytes, scale: Scale) -> Run:
    """By kgctl."""
    return least([timed(lambda: parse_log(data, 0).records) for _ in range(scale.runs)])


def repeated(size: int, codec: str, count: int) -> bytes:
    """So many records in batches of ``size``; the first batches again and again, further on in the log."""
    some = segment([size] * max(1, min(count, TEMPLATE_RECORDS) // size), codec=codec)
    batches = [some[at : at + header.size_bytes] for at, header in iterate_batches(some)]
    return b"".join(place(batches[number % len(batches)], number * size, 0) for number in range(count // size))


def write_segments(folder: Path, count: int) -> None:
    """One segment in each of `FILES` partitions."""
    data = repeated(10, "none", count)
    for partition in range(FILES):
        path = folder / f"{OFFSETS_TOPIC}-{partition}"
        path.mkdir(parents=True)
        (path / f"{0:020d}.log").write_bytes(data)


def write_record_log(folder: Path, count: int) -> None:
    """A data folder with so many commits in one partition."""
    with open_folder(folder, create=True, offsets_partitions=1) as opened, opened.bulk():
        for first in range(0, count, 5_000):
            records = (commit_like(offset) for offset in range(first, min(count, first + 5_000)))
            opened.record_log.write([StoredRecord(0, r.offset, r.timestamp_ms, r.key, r.value) for r in records])


def collecting(source: RestSource, folder: Path, jobs: int) -> Run:
    """From a source at rest into a new warehouse."""
    warehouse = Warehouse.create(folder)
    return timed(lambda: collect_at_rest(warehouse, "c", [source], LocalEngine(jobs), str).added)


def from_kafka(count: int, scale: Scale) -> Iterator[Row]:
    """Live, by both readers, from one partition."""
    with scratch() as folder, CLUSTERS["kafka"](folder / "cluster") as cluster:
        produce(cluster.bootstrap, count)
        for reader in ("wire", "confluent"):
            runs = [following(cluster.bootstrap, folder / f"{reader}-{run}", reader) for run in range(scale.runs)]
            yield least(runs).row(f"live from {cluster.name}, {reader}")


def produce(bootstrap: str, count: int) -> None:
    """Commits, put into ``__consumer_offsets`` by the client id that brokers let write there."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": "__admin_client", "queue.buffering.max.messages": 1_000_000}
    )
    for offset in range(count):
        record = commit_like(offset)
        producer.produce(OFFSETS_TOPIC, key=record.key, value=record.value, partition=0)
        if offset % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0


def following(bootstrap: str, folder: Path, reader_name: str) -> Run:
    """Up to the log's end, into a new warehouse."""
    warehouse = Warehouse.create(folder)
    world = World(lambda: 0, time.monotonic, time.sleep, str, str)
    reader, _ = open_reader({"bootstrap.servers": bootstrap}, 15_000, "wire" if reader_name == "wire" else "confluent")
    try:
        collection = LiveCollection(warehouse, "c", reader, source=bootstrap, plan=CollectPlan(once=True), world=world)
        return timed(lambda: collection.run(reader.log_state()).added)
    finally:
        reader.close()


def timed(work: Callable[[], int]) -> Run:
    """Run it; it returns how many records that were."""
    cpu, wall = _cpu_s(), time.perf_counter()
    records = work()
    return Run(records, _cpu_s() - cpu, time.perf_counter() - wall)


def least(runs: Sequence[Run]) -> Run:
    """The one that took least."""
    return min(runs, key=lambda run: run.cpu_s)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


RATES = Rates("collect", "Records collected a second", ("a CPU second", "by wall clock"), measure)
