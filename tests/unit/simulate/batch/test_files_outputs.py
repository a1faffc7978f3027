"""A run's cluster as a data folder that other commands read."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from kgctl.admin.embedded import open_embedded
from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Reply
from kgctl.errors import UsageError
from kgctl.model.groups import GroupState, LogOffsets, MetadataImage, TopicMetadata, TopicPartition
from kgctl.model.requests import ConsumerGroupHeartbeat, OffsetCommit, OffsetCommitPartition
from kgctl.model.requests import ConsumerGroupHeartbeatResult as Beat
from kgctl.simulate.batch.files import ClusterState, write_records, write_state
from kgctl.storage.folder import open_folder

ORDERS = TopicMetadata("orders", UUID(int=7), 2)
O0, O1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
START_MS, YEAR_MS = 1_767_225_600_000, 31_536_000_000


def state() -> ClusterState:
    """A consumer group of one member that has committed 50, then 90 of 100 records; the other partition is empty."""
    coordinator = GroupCoordinator(CoordinatorConfig(), str, MetadataImage({"orders": ORDERS}, 1), START_MS)
    join = ConsumerGroupHeartbeat(
        request_id=1,
        group_id="app",
        member_id="m-0",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("orders",),
        topic_partitions=(),
    )
    joined = coordinator.handle(join, START_MS)
    epoch = next(each.result.member_epoch for each in joined if isinstance(each, Reply) and isinstance(each.result, Beat))
    effects = [(START_MS, each) for each in joined]
    for second, offset in ((1, 50), (2, 90)):
        now_ms = START_MS + 1_000 * second
        effects += [(now_ms, each) for each in coordinator.handle(_commit(offset, epoch), now_ms)]
    records = tuple((now_ms, each) for now_ms, each in effects if isinstance(each, AppendRecord))
    return ClusterState(START_MS + 9_000, records, {"orders": ORDERS}, {O0: 100, O1: 0}, {"offsets.retention.minutes": "5"})


def _commit(offset: int, epoch: int) -> OffsetCommit:
    committed = OffsetCommitPartition(topic="orders", partition=0, offset=offset, topic_id=ORDERS.topic_id)
    return OffsetCommit(request_id=1, group_id="app", member_id="m-0", generation_id=epoch, partitions=(committed,))


def test_group_is_described_as_the_scenario_left_it_however_late(tmp_path: Path) -> None:
    write_state(tmp_path / "state", state())

    with open_embedded(tmp_path / "state", lambda: START_MS + YEAR_MS) as admin:
        group = admin.describe_groups(["app"]).values["app"]
        offsets = admin.list_committed_offsets(["app"]).values["app"]
        bounds = admin.list_log_offsets([O0, O1]).values

    assert (group.state, [member.member_id for member in group.members]) == (GroupState.STABLE, ["m-0"])
    assert group.members[0].target_assignment == {"orders": (0, 1)}
    assert {partition: committed.offset for partition, committed in offsets.items()} == {O0: 90}
    assert bounds == {O0: LogOffsets(0, 100), O1: LogOffsets(0, 0)}


def test_records_have_the_whole_log_with_its_times_and_members(tmp_path: Path) -> None:
    write_records(tmp_path / "records", state())

    with open_folder(tmp_path / "records", create=False) as folder:
        times = [stored.timestamp_ms - START_MS for stored in folder.record_log.read()]
        commits = list(folder.commit_log.read())
        properties = folder.settings.broker_properties()

    assert times == [ms - START_MS for ms, _ in state().records]
    assert [(each.group, each.offset, each.timestamp_ms - START_MS, each.member_id) for each in commits] == [
        ("app", 50, 1_000, "m-0"),
        ("app", 90, 2_000, "m-0"),
    ]
    assert properties == {"offsets.retention.minutes": "5"}


def test_state_keeps_one_record_a_key(tmp_path: Path) -> None:
    write_state(tmp_path, state())

    with open_folder(tmp_path, create=False) as folder:
        keys = [(stored.partition, stored.key) for stored in folder.record_log.read()]

    assert len(keys) == len(set(keys)) == len({each.record for _, each in state().records}) - 1


def test_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    write_records(tmp_path / "data", state())
    (tmp_path / "file").touch()

    with pytest.raises(UsageError, match=r"data is not empty: name a new folder$"):
        write_records(tmp_path / "data", state())
    with pytest.raises(UsageError, match=r"file is not empty: name a new folder$"):
        write_state(tmp_path / "file", state())
