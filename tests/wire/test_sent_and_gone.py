"""What a client sent before it went is done, by Apache Kafka and by kgctl serve: a consumer's last words are its LeaveGroup."""

from __future__ import annotations

import socket
import time
from typing import Any

from tests.support.admin_targets import Target
from tests.support.kafka import unique
from tests.support.patience import PATIENCE_S
from tests.support.wire.classic_member import LEAVE_GROUP, ClassicMember
from tests.support.wire.raw_client import RawClient

FETCH, OFFSET_COMMIT, OFFSET_FETCH, DESCRIBE_GROUPS = 1, 8, 9, 15


def test_commit_and_leave_of_a_client_that_is_gone(target: Target) -> None:
    topic, group = target.topic(partitions=1), unique("gone")
    with RawClient(target.bootstrap) as raw:
        member = ClassicMember(raw, group, [topic])
        member.join()
        identity = {"group_id": group, "member_id": member.member_id}
        raw.send(
            OFFSET_COMMIT, 7, {**identity, "generation_id_or_member_epoch": member.generation_id, "topics": [commit(topic, 7)]}
        )
        raw.send(LEAVE_GROUP, 2, identity)
        raw.socket.shutdown(socket.SHUT_WR)
    assert eventually(target, group, topic) == ("Empty", 7)


def test_commit_behind_a_request_that_waits(target: Target) -> None:
    """A fetch at the end of the log waits for records; it is ended with its connection, or after the time that it named."""
    topic, group = target.topic(partitions=1, records=0), unique("gone")
    with RawClient(target.bootstrap) as raw:
        partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000}]
        waiting = {"max_wait_ms": 1_000, "min_bytes": 1, "topics": [{"topic": topic, "partitions": partitions}]}
        raw.send(FETCH, 11, waiting)
        raw.send(
            OFFSET_COMMIT,
            7,
            {"group_id": group, "member_id": "", "generation_id_or_member_epoch": -1, "topics": [commit(topic, 3)]},
        )
        raw.socket.shutdown(socket.SHUT_WR)
    assert eventually(target, group, topic) == ("Empty", 3)


def commit(topic: str, offset: int) -> dict[str, Any]:
    return {"name": topic, "partitions": [{"partition_index": 0, "committed_offset": offset}]}


def eventually(target: Target, group: str, topic: str) -> tuple[str, int]:
    """The group's state and commit, as soon as there is one and no member."""
    deadline = time.monotonic() + PATIENCE_S
    wanted = [{"name": topic, "partition_indexes": [0]}]
    with RawClient(target.bootstrap) as raw:
        while True:
            found = raw.call(DESCRIBE_GROUPS, 5, {"groups": [group]}).groups[0]
            offset = raw.call(OFFSET_FETCH, 5, {"group_id": group, "topics": wanted}).topics[0].partitions[0].committed_offset
            if (found.group_state == "Empty" and offset >= 0) or time.monotonic() > deadline:
                return found.group_state, offset
            time.sleep(0.05)
