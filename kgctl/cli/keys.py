"""The keys of rows in JSON, YAML and CSV: what type a value has, in which unit, and what it says. One entry a key, whichever
commands have it; the manual's tables are made of these."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """A type of JSON, and how it is written where that is text."""

    TEXT = "text"
    WHOLE = "whole number"
    NUMBER = "number"
    BOOL = "true, false"
    TEXTS = "list of texts"
    TIME = "time (`2024-01-31T10:00:00.000Z`)"


class Key(NamedTuple):
    """What a key holds; every value may be null besides, which is unknown or none."""

    kind: Kind
    meaning: str


KEYS = {
    "group": Key(Kind.TEXT, "the group's id"),
    "other_group": Key(Kind.TEXT, "the id of the group that it is compared with"),
    "state": Key(Kind.TEXT, "the group's state, as brokers call it"),
    "type": Key(Kind.TEXT, "classic, consumer, share or streams"),
    "protocol_type": Key(Kind.TEXT, "what its members are: consumer, connect, share, ..."),
    "coordinator": Key(Kind.TEXT, "`host:port` of the broker that coordinates it"),
    "coordinator_id": Key(Kind.WHOLE, "that broker's id"),
    "members": Key(Kind.WHOLE, "how many members it has"),
    "topics": Key(Kind.TEXTS, "its topics: of commits, assignments and subscriptions"),
    "topic": Key(Kind.TEXT, "the topic; null in the row of a whole group (`--totals`)"),
    "partition": Key(Kind.WHOLE, "the partition's number"),
    "partitions": Key(Kind.WHOLE, "how many partitions: with a commit, assigned to the member, or of the change"),
    "unknown": Key(Kind.WHOLE, "how many of them have a lag that is unknown"),
    "current_offset": Key(Kind.WHOLE, "the committed offset: of the record that is read next"),
    "log_start_offset": Key(Kind.WHOLE, "the first offset of the log"),
    "log_end_offset": Key(
        Kind.WHOLE, "the offset that the log's next record gets; with `--lag-mode read-committed` its last stable offset"
    ),
    "lag": Key(Kind.WHOLE, "records between commit and log end; of several partitions their sum, null where one is unknown"),
    "flags": Key(Kind.TEXTS, "what stands out (`kgctl manual groups`)"),
    "time_lag_s": Key(Kind.NUMBER, "seconds since the record that is read next was written; 0 where there is none"),
    "record_time": Key(Kind.TIME, "when that record was written"),
    "commit_age_s": Key(Kind.NUMBER, "seconds since the offset was committed"),
    "commit_time": Key(Kind.TIME, "when it was committed"),
    "next_record_time": Key(Kind.TIME, "the time of the record that is read next"),
    "next_record_key": Key(Kind.TEXT, "its key, bytes that are no text escaped, the first 200"),
    "next_record_value": Key(Kind.TEXT, "its value, likewise"),
    "consumer_id": Key(Kind.TEXT, "the member's id"),
    "host": Key(Kind.TEXT, "the host that the member, or the user, came from"),
    "client_id": Key(Kind.TEXT, "the member's `client.id`"),
    "group_instance_id": Key(Kind.TEXT, "the member's `group.instance.id`, where it is static"),
    "leader_epoch": Key(Kind.WHOLE, "the leader epoch that was committed with the offset"),
    "metadata": Key(Kind.TEXT, "the text that was committed with the offset"),
    "assignment": Key(Kind.TEXT, "what the member has: `orders:0,1;users:2`"),
    "member_epoch": Key(Kind.WHOLE, "the member's epoch (consumer protocol)"),
    "group_epoch": Key(Kind.WHOLE, "the group's epoch (consumer protocol)"),
    "target_assignment_epoch": Key(Kind.WHOLE, "the epoch of the assignment that members are brought to"),
    "target_assignment": Key(Kind.TEXT, "what the member is to have, as `assignment`"),
    "subscribed_topics": Key(Kind.TEXTS, "the topics that the member subscribes to"),
    "rack": Key(Kind.TEXT, "the member's `client.rack`"),
    "assignor": Key(Kind.TEXT, "the group's assignor"),
    "upgraded": Key(Kind.BOOL, "whether the member speaks the consumer protocol, in a group that has both kinds"),
    "offset": Key(Kind.WHOLE, "the record's offset; the committed offset that is deleted or compared"),
    "offsets": Key(Kind.WHOLE, "how many partitions the group has a commit for"),
    "other_offset": Key(Kind.WHOLE, "the offset that it is compared with"),
    "difference": Key(Kind.WHOLE, "`other_offset` - `offset`"),
    "place": Key(Kind.TEXT, "read, next or unread: where the record lies, as seen from the commit"),
    "time": Key(Kind.TIME, "when the record was written, or the change was made"),
    "key": Key(Kind.TEXT, "the record's key, bytes that are no text escaped"),
    "value": Key(Kind.TEXT, "the record's value, likewise"),
    "headers": Key(Kind.TEXTS, "the record's headers, `name=value`"),
    "consumed_per_s": Key(Kind.NUMBER, "records a second that the group reads, over the looks so far"),
    "produced_per_s": Key(Kind.NUMBER, "records a second that are written, over the looks so far"),
    "drain_s": Key(Kind.NUMBER, "seconds until nothing is left to read at these rates; null where that is never"),
    "verdict": Key(Kind.TEXT, "how the group does (`kgctl manual top`)"),
    "old_offset": Key(Kind.WHOLE, "the committed offset before the change"),
    "new_offset": Key(Kind.WHOLE, "that after it; null where the commit is deleted"),
    "delta": Key(Kind.WHOLE, "by how many records the commit moves, all partitions together; negative is back"),
    "lag_before": Key(Kind.WHOLE, "the lag before the change"),
    "lag_after": Key(Kind.WHOLE, "the lag after it"),
    "result": Key(
        Kind.TEXT, "what became of the row: planned, deletable, reset, deleted, unchanged, failed, refused, moved, unknown, ..."
    ),
    "results": Key(Kind.TEXTS, "how many rows have which result"),
    "note": Key(Kind.TEXT, "why, in words"),
    "error": Key(Kind.TEXT, "the code of its error"),
    "id": Key(Kind.TEXT, "the change's id, for `kgctl undo ID`"),
    "groups": Key(Kind.TEXTS, "the groups that were changed; of many, the log has the first 100"),
    "command": Key(Kind.TEXT, "the line that was typed, without `-X`"),
    "cluster": Key(Kind.TEXT, "how the cluster was named"),
    "cluster_id": Key(Kind.TEXT, "the cluster's own id"),
    "is_gone": Key(Kind.BOOL, "whether the undo file is gone"),
    "file": Key(Kind.TEXT, "the undo file; null where there is none"),
    "user": Key(Kind.TEXT, "who made the change"),
    "matches": Key(Kind.BOOL, "whether the regular expression matches the topic"),
}
