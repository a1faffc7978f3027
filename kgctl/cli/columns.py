"""Columns that several commands have alike; those that one command has stand with it."""

from __future__ import annotations

from kgctl.cli.report import Column, JsonKind

GROUP = Column("group", may_be_cut=True, meaning="the group's id")
"""Whoever may commit chooses a name, of up to 249 letters."""
STATE = Column("state", meaning="the group's state, as brokers call it")
TYPE = Column("type", meaning="classic, consumer, share or streams")
PROTOCOL_TYPE = Column("protocol_type", wide=True, meaning="what its members are: consumer, connect, share, ...")
COORDINATOR = Column("coordinator", meaning="`host:port` of the broker that coordinates it")
COORDINATOR_ID = Column("coordinator_id", kind=JsonKind.WHOLE, meaning="that broker's id")
MEMBERS = Column("members", "#MEMBERS", kind=JsonKind.WHOLE, meaning="how many members it has")
TOPIC = Column("topic", meaning="the topic")
PARTITION = Column("partition", kind=JsonKind.WHOLE, meaning="the partition's number")
LOG_START = Column("log_start_offset", wide=True, kind=JsonKind.WHOLE, meaning="the first offset of the log")
LOG_END = Column("log_end_offset", kind=JsonKind.WHOLE, meaning="the offset that the log's next record gets")
LAG = Column(
    "lag",
    kind=JsonKind.WHOLE,
    unit="records",
    meaning="what is still to be read; of several partitions their sum, null where one is unknown",
)
FLAGS = Column("flags", if_any=True, kind=JsonKind.TEXTS, meaning="what stands out (`kgctl manual groups`)")
CONSUMER_ID = Column("consumer_id", meaning="the member's id")
HOST = Column("host", if_any=True, meaning="the host that the member came from")
CLIENT_ID = Column("client_id", if_any=True, meaning="the member's `client.id`")
INSTANCE_ID = Column("group_instance_id", if_any=True, meaning="the member's `group.instance.id`, where it is static")
ASSIGNOR = Column("assignor", meaning="the group's assignor")
TARGET_EPOCH = Column(
    "target_assignment_epoch", wide=True, kind=JsonKind.WHOLE, meaning="the epoch of the assignment that members are brought to"
)
RESULT = Column(
    "result",
    meaning="what became of the row: planned, deletable, reset, deleted, unchanged, failed, refused, moved, unknown, not-tried",
)
BY_RESULT = (Column("RESULT", kind=JsonKind.WHOLE, meaning="how many rows have this result"),)
WRITTEN = Column("file", meaning="the file that was written; null: none was")
ERROR = Column("error", meaning="the code of its error")
DELTA = Column(
    "delta", kind=JsonKind.WHOLE, unit="records", meaning="how far the commit moves, all partitions together; negative is back"
)
LAG_AFTER = Column("lag_after", kind=JsonKind.WHOLE, unit="records", meaning="the lag after the change")
