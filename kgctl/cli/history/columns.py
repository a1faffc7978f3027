"""Columns that several questions to the history have alike; those that one has stand with it."""

from __future__ import annotations

from kgctl.cli.report import TIME, WHOLE, Column

CLUSTER = Column("cluster", "the cluster's name in the warehouse")
COMMITTED = Column("committed_offset", "the offset that was committed then", WHOLE)
TOTAL_LAG = Column("total_lag", "the lags of its partitions together; null: one is unknown", WHOLE, "records")
MAX_LAG = Column("max_lag", "the lag of the partition furthest behind", WHOLE, "records", wide=True)
MAX_LAG_MS = Column("max_lag_ms", "how far the partition furthest behind is", WHOLE, "ms")
REBALANCES = Column("rebalances", "how many rebalances there were", WHOLE)
REBALANCE_MS = Column("rebalance_ms", "how long they took together", WHOLE, "ms")
COMMITS = Column("commits", "how many commits there were", WHOLE)
RESETS = Column("resets", "how many resets there were", WHOLE)
RECORDS = Column("records", "records that were collected now", WHOLE)
KNOWN = Column("known", "records that were there already", WHOLE)
DAMAGED = Column("damaged", "stretches of files that could not be read", WHOLE)
TABLE = Column("table", "a table of the warehouse")

TOLD = (
    Column("collected_from", "the time of the first record that was collected; null: of one cluster none was", TIME),
    Column("collected_to", "the time of the last one: what came later is not known; of several clusters the earliest", TIME),
    Column("records_not_built", "records that were collected after the last build", WHOLE),
    Column("late_records_not_built", "of these, those older than what is built", WHOLE),
    Column("samples_not_built", "samples of log ends that were collected after the last build", WHOLE),
)
"""What the answer knows of, and what not."""
