"""Loading a coordinator from a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.streams.records import group_record
from kgctl.errors import StorageError
from kgctl.model.requests import ConsumerGroupHeartbeat, ListGroups, ListGroupsResult, OffsetFetch, OffsetFetchResult
from kgctl.model.values import partition_for
from kgctl.serde.coordinator_records import encode_record
from kgctl.storage.folder import DataFolder, load_coordinator
from kgctl.storage.record_log import StoredRecord
from tests.support.coordinator_traffic import CONFIG, Traffic
from tests.support.storage import commit, marker, new_folder


def load(folder: DataFolder, **options: list[int]) -> GroupCoordinator:
    return load_coordinator(folder, CONFIG, lambda prefix: prefix, 2_000_000, partitions=options.get("partitions"))


def group_ids(coordinator: GroupCoordinator) -> list[str]:
    (reply,) = coordinator.handle(ListGroups(request_id=1), 2_000_000)
    result = vars_of(reply)
    assert isinstance(result, ListGroupsResult)
    return sorted(group.group_id for group in result.groups)


def vars_of(reply: object) -> object:
    return getattr(reply, "result", None)


def test_the_loaded_coordinator_answers_with_what_the_log_holds(folder: DataFolder) -> None:
    folder.record_log.append([commit("g", 0, 5), commit("g", 1, 6, producer=9), commit("h", 0, 7), marker(9)], 1_000)
    coordinator = load(folder)
    (reply,) = coordinator.handle(OffsetFetch(request_id=1, group_id="g"), 2_000_000)
    result = vars_of(reply)

    assert isinstance(result, OffsetFetchResult)
    assert {(fetched.partition.partition, fetched.offset) for fetched in result.offsets} == {(0, 5), (1, 6)}
    assert group_ids(coordinator) == ["g", "h"]


def test_sessions_start_with_the_settings_that_groups_have_of_their_own(folder: DataFolder) -> None:
    join = ConsumerGroupHeartbeat(
        request_id=1, api_version=1, group_id="g", member_id="m", member_epoch=0, rebalance_timeout_ms=1, topic_partitions=(),
        subscribed_topic_names=(),
    )  # fmt: skip
    effects = GroupCoordinator(CONFIG, str).handle(join, 1_000)
    folder.record_log.append([effect for effect in effects if isinstance(effect, AppendRecord)], 1_000)
    group_configs = {"g": {"consumer.session.timeout.ms": "59000"}}

    coordinator = load_coordinator(folder, CONFIG, str, 2_000, group_configs=group_configs)

    assert coordinator.next_deadline_ms() == 2_000 + 59_000


def test_a_broker_of_several_loads_its_own_partitions(folder: DataFolder) -> None:
    folder.record_log.append([commit("group-a", 0, 5), commit("group-b", 0, 6)], 1_000)

    assert group_ids(load(folder, partitions=[partition_for("group-a", 4)])) == ["group-a"]
    assert group_ids(load(folder, partitions=[])) == []


def test_members_and_their_timers_come_back(folder: DataFolder) -> None:
    traffic = Traffic(folder.record_log)
    traffic.run(("join", "g-0", None))
    coordinator = load(folder)

    assert coordinator.durable() == traffic.coordinator.durable()
    assert coordinator.next_deadline_ms() == 2_010_000


def test_a_record_that_cannot_be_read_stops_the_load_and_is_named(folder: DataFolder) -> None:
    folder.record_log.write([StoredRecord(3, 41, 0, b"\x00\x02\x00\x01g", None)])
    damage(folder)
    with pytest.raises(StorageError, match=r"offset 41 of partition 3 (cannot be read|is damaged)"):
        load(folder)


def damage(folder: DataFolder) -> None:
    """Put a value that is cut off into the log's only record."""
    inside = vars(folder.record_log)
    if folder.path is None:
        inside["_records"][1] = replace(inside["_records"][1], value=b"\x00\x03\x00")
        return
    with inside["_database"].transaction() as connection:
        connection.execute("UPDATE record SET value = x'000300'")


def test_a_damaged_record_of_a_transaction_does_not_keep_the_folder_from_opening(tmp_path: Path) -> None:
    with new_folder("sqlite", tmp_path) as folder:
        folder.record_log.append([commit("g", 0, 5, producer=9)], 1)
        damage(folder)
    with new_folder("sqlite", tmp_path) as folder, pytest.raises(StorageError, match="offset 0 of partition"):
        load(folder)


def test_an_unknown_type_is_no_obstacle(folder: DataFolder) -> None:
    key, value = encode_record(group_record("s", 2, 0, 0, {}))
    folder.record_log.write([StoredRecord(0, 0, 0, b"\x00\x63x", b"?"), StoredRecord(0, 1, 0, key, value)])

    assert group_ids(load(folder)) == ["s"]
