"""The tables that follow from decoded records: processor time of each, over all partitions, in one process.

Transactions are resolved first; what several tables share is counted where it is first asked for. Log ends: every 30 seconds.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kgctl.pipeline.decode.decode import decode, resolve
from kgctl.pipeline.store.tables import LOG_OFFSETS
from kgctl.pipeline.tables.collected import log_end_rows
from kgctl.pipeline.tables.registry import PARTITION_TABLES, ClusterInputs, PartitionInputs
from tests.benchmarks.rates.rate import Rates, Row, Scale
from tests.support.pipeline.generated_log import START_MS, Size, generated_log

PARTITIONS, RECORDS = 16, 5_000_000
SMALL = 32_000
SAMPLE_MS = 30_000


def measure(_: Sequence[str], scale: Scale) -> Sequence[Row]:
    """The least of the runs for each table, and their sum."""
    records = SMALL if scale.small else RECORDS
    runs = [run(records) for _ in range(min(scale.runs, 3))]
    rows, least = runs[0][1], {name: min(taken[name] for taken, _ in runs) for name in runs[0][0]}
    lines = [Row(name, (f"{cpu_s:.2f}", f"{rows[name]:,}")) for name, cpu_s in least.items()]
    return [*lines, Row(f"all, of {records:,} records", (f"{sum(least.values()):.2f}", f"{rows.total():,}"))]


def run(records: int) -> tuple[dict[str, float], Counter[str]]:
    """(CPU seconds, rows) by table, over all partitions."""
    taken: defaultdict[str, float] = defaultdict(float)
    rows: Counter[str] = Counter()
    for partition in range(PARTITIONS):
        decoded = decode(generated_log(partition, Size(records // PARTITIONS)))
        began = time.process_time()
        commits = resolve(decoded.commits, decoded.markers).offset_commits
        taken["transactions"] += time.process_time() - began
        samples = log_offsets(commits)
        began = time.process_time()
        ends = log_end_rows(ClusterInputs(samples))
        taken["log_end_offsets"] += time.process_time() - began
        inputs = PartitionInputs(commits, decoded.group_records, ends, decoded.coverage)
        for name in PARTITION_TABLES:
            began = time.process_time()
            rows[name] += inputs.table(name).num_rows
            taken[name] += time.process_time() - began
    return taken, rows


def log_offsets(commits: pa.Table) -> pa.Table:
    """Samples of logs that are a little longer than what anybody has read of them."""
    topic = commits.column("topic").combine_chunks()
    topics = topic.dictionary.to_pylist()
    partition, times = commits.column("partition").to_numpy(), commits.column("time_ms").to_numpy()
    width = int(partition.max()) + 1
    ends = np.zeros((len(topics) * width, int(times.max() - START_MS) // SAMPLE_MS + 2), np.int64)
    moment = (times - START_MS) // SAMPLE_MS + 1
    committed = commits.column("committed_offset").fill_null(0).to_numpy()
    np.maximum.at(ends, (topic.indices.to_numpy() * width + partition, moment), committed)
    np.maximum.accumulate(ends, axis=1, out=ends)
    log, sample = (axis.ravel() for axis in np.indices(ends.shape))
    names = pa.DictionaryArray.from_arrays(pa.array((log // width).astype(np.int32)), pa.array(topics))
    columns = [
        names.cast(pa.string()),
        pa.array((log % width).astype(np.int32)),
        pa.array(START_MS + sample * SAMPLE_MS),
        pa.array(np.zeros(len(log), np.int64)),
        pa.array(ends.ravel() + 100),
    ]
    return pa.Table.from_arrays(columns, schema=LOG_OFFSETS)


RATES = Rates("tables", "Tables from decoded records, one process", ("CPU s", "rows"), measure)
