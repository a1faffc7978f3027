"""Columns that several questions to the history have alike; those that one has stand with it."""

from __future__ import annotations

from kgctl.cli.report import Column, JsonKind

CLUSTER = Column("cluster", meaning="the cluster's name in the warehouse")
COMMITTED = Column("committed_offset", kind=JsonKind.WHOLE, meaning="the offset that was committed then")
TOTAL_LAG = Column(
    "total_lag", kind=JsonKind.WHOLE, unit="records", meaning="the lags of its partitions together; null: one is unknown"
)
MAX_LAG = Column("max_lag", wide=True, kind=JsonKind.WHOLE, unit="records", meaning="the lag of the partition furthest behind")
MAX_LAG_MS = Column("max_lag_ms", kind=JsonKind.WHOLE, unit="ms", meaning="how far the partition furthest behind is")
REBALANCES = Column("rebalances", kind=JsonKind.WHOLE, meaning="how many rebalances there were")
REBALANCE_MS = Column("rebalance_ms", kind=JsonKind.WHOLE, unit="ms", meaning="how long they took together")
COMMITS = Column("commits", kind=JsonKind.WHOLE, meaning="how many commits there were")
RESETS = Column("resets", kind=JsonKind.WHOLE, meaning="how many resets there were")
RECORDS = Column("records", kind=JsonKind.WHOLE, meaning="records that were collected now")
KNOWN = Column("known", kind=JsonKind.WHOLE, meaning="records that were there already")
DAMAGED = Column("damaged", kind=JsonKind.WHOLE, meaning="stretches of files that could not be read")
TABLE = Column("table", meaning="a table of the warehouse")

NOT_BUILT = (
    Column("records_not_built", kind=JsonKind.WHOLE, meaning="records that were collected after the last build"),
    Column("late_records_not_built", kind=JsonKind.WHOLE, meaning="of these, those older than what is built"),
    Column("samples_not_built", kind=JsonKind.WHOLE, meaning="samples of log ends that were collected after the last build"),
)
"""What the answer does not know of."""
