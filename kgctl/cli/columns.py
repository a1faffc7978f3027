"""Columns that several commands have alike; those that one command has stand with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgctl.cli.report import TEXTS, WHOLE, Column

GROUP = Column("group", "the group's id", may_be_cut=True)
"""Whoever may commit chooses a name, of up to 249 letters."""
STATE = Column("state", "the group's state, as brokers call it")
TYPE = Column("type", "classic, consumer, share or streams")
PROTOCOL_TYPE = Column("protocol_type", "what its members are: consumer, connect, share, ...", wide=True)
COORDINATOR = Column("coordinator", "`host:port` of the broker that coordinates it", shown=str)
COORDINATOR_ID = Column("coordinator_id", "that broker's id", WHOLE)
MEMBERS = Column("members", "how many members it has", WHOLE, header="#MEMBERS")
TOPIC = Column("topic", "the topic")
PARTITION = Column("partition", "the partition's number", WHOLE)
LOG_START = Column("log_start_offset", "the first offset of the log", WHOLE, wide=True)
LOG_END = Column("log_end_offset", "the offset that the log's next record gets", WHOLE)
LAG = Column("lag", "what is still to be read; of several partitions their sum, null where one is unknown", WHOLE, "records")
FLAGS = Column("flags", "what stands out (`kgctl manual groups`)", TEXTS, if_any=True, shown=lambda flags: tuple(map(str, flags)))
CONSUMER_ID = Column("consumer_id", "the member's id")
HOST = Column("host", "the host that the member came from", if_any=True)
CLIENT_ID = Column("client_id", "the member's `client.id`", if_any=True)
INSTANCE_ID = Column("group_instance_id", "the member's `group.instance.id`, where it is static", if_any=True)
ASSIGNOR = Column("assignor", "the group's assignor")
TARGET_EPOCH = Column("target_assignment_epoch", "the epoch of the assignment that members are brought to", WHOLE, wide=True)
RESULT = Column(
    "result", "what became of the row: planned, deletable, reset, deleted, unchanged, failed, refused, moved, unknown, not-tried"
)
BY_RESULT = (Column("RESULT", "how many rows have this result", WHOLE),)
WRITTEN = Column("file", "the file that was written; null: none was")
ERROR = Column("error", "the code of its error")
DELTA = Column("delta", "how far the commit moves, all partitions together; negative is back", WHOLE, "records")
LAG_AFTER = Column("lag_after", "the lag after the change", WHOLE, "records")


def rounded(name: str, digits: int) -> Callable[[Any], float | None]:
    """Return what reads an attribute of a row, rounded to so many digits."""

    def read(row: object) -> float | None:
        value: float | None = getattr(row, name)
        return None if value is None else round(value, digits)

    return read
