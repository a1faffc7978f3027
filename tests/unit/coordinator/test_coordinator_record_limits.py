"""Names that no record could hold are refused before anything changes."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import MAX_STRING_BYTES, GroupCoordinator, fits_records
from kgctl.coordinator.effects import Reply, refuse
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import (
    ConsumerGroupHeartbeat,
    JoinGroup,
    JoinProtocol,
    OffsetCommit,
    OffsetCommitPartition,
    Request,
    TxnOffsetCommit,
)

LONGEST = "g" * MAX_STRING_BYTES
TOO_LONG = LONGEST + "g"
PARTITION = OffsetCommitPartition(topic="t", partition=0, offset=1)

OVERSIZED = {
    "group": JoinGroup(request_id=1, group_id=TOO_LONG),
    "group in letters of several bytes": JoinGroup(request_id=1, group_id="ä" * 16_384),
    "protocol": JoinGroup(request_id=1, group_id="g", protocols=(JoinProtocol(name=TOO_LONG),)),
    "client id, as the beginning of a member id": JoinGroup(request_id=1, group_id="g", client_id="c" * (MAX_STRING_BYTES - 36)),
    "instance id, likewise": JoinGroup(request_id=1, group_id="g", group_instance_id=LONGEST),
    "group of a commit": OffsetCommit(request_id=1, group_id=TOO_LONG, partitions=(PARTITION,)),
    "group of a transactional commit": TxnOffsetCommit(request_id=1, group_id=TOO_LONG, producer_id=1, partitions=(PARTITION,)),
    "regular expression": ConsumerGroupHeartbeat(request_id=1, group_id="g", member_id="m", subscribed_topic_regex=TOO_LONG),
}


@pytest.mark.parametrize("request_", OVERSIZED.values(), ids=OVERSIZED)
def test_an_oversized_name_is_an_unknown_server_error_and_changes_nothing(request_: Request) -> None:
    coordinator = GroupCoordinator(CoordinatorConfig(), lambda prefix: f"{prefix}-id")
    before = coordinator.durable()

    effects = coordinator.handle(request_, 0)

    assert effects == [Reply(1, refuse(request_, ErrorCode.UNKNOWN_SERVER_ERROR))]
    assert coordinator.durable() == before


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": LONGEST},
        {"group_id": "ä" * 16_383},
        {"group_id": "g", "client_id": "c" * (MAX_STRING_BYTES - 37)},
        {"group_id": None},
    ],
    ids=["longest", "longest of two bytes", "longest client id", "no group"],
)
def test_the_longest_names_fit(fields: dict[str, Any]) -> None:
    assert fits_records(JoinGroup(request_id=1, **fields))
