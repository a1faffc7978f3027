"""The groups of a data folder, without a server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from kgctl.admin import ItemError, Results
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.admin.embedded import EmbeddedGroupAdmin, open_embedded
from kgctl.coordinator.effects import AppendRecord
from kgctl.errors import NotFoundError, RefusedError, UsageError
from kgctl.model.coordinator_records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CoordinatorRecord,
)
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import (
    GroupDescription,
    GroupListing,
    GroupState,
    GroupType,
    LogOffsets,
    MemberDescription,
    OffsetAndMetadata,
    TopicMetadata,
    TopicPartition,
)
from kgctl.model.share_records import ShareGroupMetadataKey, ShareGroupMetadataValue
from kgctl.serde.record_batch import Record, build_batch
from kgctl.storage.files import LOCK_FILE
from kgctl.storage.folder import open_folder
from kgctl.storage.record_log import CommitEntry, StoredRecord
from tests.support.coordinator_traffic import Traffic
from tests.support.storage import commit, contents, marker

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOWHERE = TopicPartition("nowhere", 0)
SERVED_UNTIL_MS = 1_700_000_000_000
SESSION_MS = 10_000
TARGET_OF_NOTHING = ConsumerGroupTargetAssignmentMemberValue()
ACTIVE = ItemError(ErrorCode.NON_EMPTY_GROUP, "group 'g' is active: its offsets can be set only while it has no members")
NO_GROUP = ItemError(ErrorCode.GROUP_ID_NOT_FOUND, "group 'none' does not exist")
SHARE_GROUP = AppendRecord(CoordinatorRecord(ShareGroupMetadataKey("s"), ShareGroupMetadataValue(2)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with a topic of two partitions, ten records in the first, one each second."""
    with open_folder(tmp_path / "data", create=True) as folder:
        folder.topics.create_topics([TopicMetadata("t", UUID(int=7), 2)])
        for number in range(10):
            folder.topics.append_batch(T0, build_batch([Record(0, number * 1_000, None, b"v")]), 0)
    return tmp_path / "data"


def opened(path: Path, later_ms: int = 0) -> EmbeddedGroupAdmin:
    """So long after the folder was last served."""
    return open_embedded(path, lambda: SERVED_UNTIL_MS + later_ms)


def written(path: Path, *effects: AppendRecord) -> None:
    with open_folder(path, create=False) as folder:
        folder.record_log.append(effects, SERVED_UNTIL_MS)
    served(path)


def joined(path: Path, instance: str | None = None) -> str:
    """A member of group "g" that owns t-0, there when the folder was last served; its id is the answer."""
    with open_folder(path, create=False) as folder:
        traffic = Traffic(folder.record_log, SERVED_UNTIL_MS)
        traffic.run(("join", "g", instance))
        folder.record_log.append([commit("g", 0, 5)], SERVED_UNTIL_MS)
    served(path)
    return traffic.members["g"]


def served(path: Path) -> None:
    os.utime(path / LOCK_FILE, (SERVED_UNTIL_MS / 1_000, SERVED_UNTIL_MS / 1_000))


def records(path: Path) -> list[StoredRecord]:
    with open_folder(path, create=False) as folder:
        return contents(folder)


def test_groups_of_every_type_are_listed(path: Path) -> None:
    joined(path)
    written(path, commit("simple", 0, 5), SHARE_GROUP)
    stable = GroupListing("g", "consumer", GroupState.STABLE, GroupType.CLASSIC)
    empty = GroupListing("simple", "", GroupState.EMPTY, GroupType.CLASSIC)
    with opened(path) as admin:
        assert list(admin.list_groups()) == ["g", "s", "simple"]
        assert admin.list_groups(states=[GroupState.STABLE]) == Results({"g": stable})
        assert admin.list_groups(types=[GroupType.CLASSIC]) == Results({"g": stable, "simple": empty})
        assert list(admin.list_groups(types=[GroupType.SHARE])) == ["s"]


def test_a_group_is_described_with_its_members(path: Path) -> None:
    member = joined(path, "instance")
    with opened(path) as admin:
        described = admin.describe_groups(["g", "none", "g"])

    assert described == Results(
        {
            "g": GroupDescription(
                "g",
                GroupState.STABLE,
                protocol_type="consumer",
                assignor="range",
                members=(
                    MemberDescription(
                        member,
                        host="/127.0.0.1",
                        group_instance_id="instance",
                        assignment={"t": (0,)},
                        subscribed_topics=("t",),
                    ),
                ),
            )
        },
        {"none": NO_GROUP},
    )


def test_a_group_of_another_type_says_so(path: Path) -> None:
    written(path, SHARE_GROUP)
    with opened(path) as admin:
        assert admin.describe_groups(["s"]).errors == {
            "s": ItemError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "group 's' is a share group, not a consumer group")
        }


def test_committed_offsets(path: Path) -> None:
    written(path, commit("a", 1, 5), commit("a", 0, 6), commit("b", 0, 7), commit("b", 1, 8, producer=9))
    with opened(path) as admin:
        assert admin.list_committed_offsets(["a", "b", "none"]) == Results(
            {
                "a": {T0: OffsetAndMetadata(6, "m", 0), T1: OffsetAndMetadata(5, "m", 0)},
                "b": {T0: OffsetAndMetadata(7, "m", 0)},
                "none": {},
            }
        )


def test_an_open_transaction_is_an_error_where_stable_offsets_are_wanted(path: Path) -> None:
    written(path, commit("a", 0, 6), commit("b", 0, 7), commit("b", 0, 8, producer=9))
    with opened(path) as admin:
        found = admin.list_committed_offsets(["a", "b"], require_stable=True)
        assert (list(found.values), {group: e.code for group, e in found.errors.items()}) == (
            ["a"],
            {"b": ErrorCode.UNSTABLE_OFFSET_COMMIT},
        )
    written(path, marker(9))
    with opened(path) as admin:
        assert admin.list_committed_offsets(["b"], require_stable=True).values["b"][T0].offset == 8


def test_log_offsets_and_times_come_from_the_folders_topics(path: Path) -> None:
    unknown = {NOWHERE: ItemError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nowhere-0 does not exist, or this user may not see it")}
    with opened(path) as admin:
        assert admin.list_log_offsets([T0, T1, NOWHERE]) == Results({T0: LogOffsets(0, 10), T1: LogOffsets(0, 0)}, unknown)
        assert admin.list_offsets_at([T0, T1, NOWHERE], 3_500) == Results({T0: 4, T1: None}, unknown)
        assert admin.list_offsets_at([T0], 9_001) == Results({T0: None})
        assert (admin.list_topics(), admin.list_topics(["t", "nowhere"]), admin.list_topics([])) == ({"t": 2}, {"t": 2}, {})


def test_altered_offsets_are_there_for_the_next_command_and_in_the_audit(path: Path) -> None:
    with opened(path, 5_000) as admin:
        altered = admin.alter_offsets("g", {T0: OffsetAndMetadata(3, "by hand"), NOWHERE: OffsetAndMetadata(1)})
        assert (dict(altered.values), list(altered.errors)) == ({T0: None}, [NOWHERE])
        assert altered.errors[NOWHERE].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with opened(path) as admin:
        assert admin.list_committed_offsets(["g"]).values == {"g": {T0: OffsetAndMetadata(3, "by hand")}}
    with open_folder(path, create=False) as folder:
        assert list(folder.commit_log.read()) == [CommitEntry("g", "t", 0, 3, SERVED_UNTIL_MS + 5_000, "by hand")]


def test_nothing_to_alter_writes_nothing(path: Path) -> None:
    with opened(path) as admin:
        assert list(admin.alter_offsets("g", {NOWHERE: OffsetAndMetadata(1)}).errors) == [NOWHERE]
        assert admin.delete_offsets("g", []) == Results()
        assert admin.remove_members("g") == Results()
        assert admin.delete_groups([]) == Results()

    assert records(path) == []


def test_an_error_of_one_partition_leaves_the_others(path: Path) -> None:
    with opened(path) as admin:
        altered = admin.alter_offsets("g", {T0: OffsetAndMetadata(3, "m" * 5_000), T1: OffsetAndMetadata(4)})

    assert (list(altered.values), altered.errors[T0].code) == ([T1], ErrorCode.OFFSET_METADATA_TOO_LARGE)


def test_a_name_that_kafkas_format_has_no_room_for_is_refused(path: Path) -> None:
    with opened(path) as admin:
        altered = admin.alter_offsets("g" * 40_000, {T0: OffsetAndMetadata(3)})
        assert (dict(altered.values), altered.errors[T0].code) == ({}, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert admin.list_groups() == Results()


def test_a_group_with_members_is_not_altered_or_deleted(path: Path) -> None:
    joined(path)
    with opened(path, SESSION_MS - 1) as admin:
        assert admin.alter_offsets("g", {T0: OffsetAndMetadata(3)}) == Results({}, {T0: ACTIVE})
        assert admin.delete_offsets("g", [T0]).errors[T0].code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert admin.delete_groups(["g", "none"]).errors == {
            "g": ItemError(ErrorCode.NON_EMPTY_GROUP, "group 'g' is not empty: it has members"),
            "none": NO_GROUP,
        }


def test_members_that_died_with_the_server_are_gone_once_their_session_is_over(path: Path) -> None:
    joined(path)
    with opened(path, SESSION_MS) as admin:
        assert admin.describe_groups(["g"]).values["g"].state is GroupState.EMPTY
        assert admin.alter_offsets("g", {T0: OffsetAndMetadata(3)}) == Results({T0: None})
    with opened(path) as admin:
        assert admin.describe_groups(["g"]).values["g"].state is GroupState.EMPTY


def test_looking_changes_nothing_on_disk(path: Path) -> None:
    joined(path)
    before = records(path)
    served(path)
    with opened(path, SESSION_MS * 1_000) as admin:
        admin.list_groups()
        admin.describe_groups(["g", "none"])
        admin.list_committed_offsets(["g"])

    assert records(path) == before


def test_the_folders_own_configuration_counts(path: Path) -> None:
    with open_folder(path, create=False) as folder:
        folder.settings.set_broker_properties({"offset.metadata.max.bytes": "1", "num.partitions": "3"})
    with opened(path) as admin:
        assert admin.alter_offsets("g", {T0: OffsetAndMetadata(3, "mm")}).errors[T0].code is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_retention_is_left_to_the_server(path: Path) -> None:
    written(path, commit("old", 0, 5))
    with opened(path, 40 * 86_400_000) as admin:
        admin.alter_offsets("new", {T0: OffsetAndMetadata(3)})
        assert list(admin.list_committed_offsets(["old"]).values["old"]) == [T0]


def test_offsets_and_groups_are_deleted(path: Path) -> None:
    written(path, commit("g", 0, 5), commit("g", 1, 6), commit("h", 0, 7))
    with opened(path) as admin:
        assert admin.delete_offsets("g", [T0, TopicPartition("t", 9)]) == Results({T0: None, TopicPartition("t", 9): None})
        assert admin.delete_offsets("none", [T0]) == Results({}, {T0: NO_GROUP})
        assert admin.delete_groups(["h"]) == Results({"h": None})
    with opened(path) as admin:
        assert list(admin.list_groups()) == ["g"]
        assert admin.list_committed_offsets(["g"]).values == {"g": {T1: OffsetAndMetadata(6, "m", 0)}}


def modern_group(path: Path) -> None:
    """Group "modern" with a dynamic member that owns t-0 and a topic that is gone, and a static one without anything."""
    topic, gone = UUID(int=7), UUID(int=8)
    member = ConsumerGroupMemberMetadataValue(None, None, "c", "/h", ("t",), "", 60_000)
    targets = {"m-1": ConsumerGroupTargetAssignmentMemberValue(((topic, (0,)), (gone, (1,)))), "m-2": TARGET_OF_NOTHING}
    records: list[CoordinatorRecord] = []
    for name, instance in (("m-1", None), ("m-2", "i-2")):
        records.append(CoordinatorRecord(ConsumerGroupMemberMetadataKey("modern", name), replace(member, instance_id=instance)))
    records.append(CoordinatorRecord(ConsumerGroupMetadataKey("modern"), ConsumerGroupMetadataValue(3)))
    for name, target in targets.items():
        records.append(CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey("modern", name), target))
    epoch = ConsumerGroupTargetAssignmentMetadataValue(3)
    records.append(CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey("modern"), epoch))
    for name, target in targets.items():
        owned = tuple(AssignedTopicPartitions(found, numbers, (3,)) for found, numbers in target.topic_partitions)
        value = ConsumerGroupCurrentMemberAssignmentValue(3, 2, 0, owned)
        records.append(CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey("modern", name), value))
    written(path, *map(AppendRecord, records))


def test_a_group_of_the_consumer_protocol_is_described_with_its_epochs(path: Path) -> None:
    modern_group(path)
    owner = MemberDescription(
        "m-1",
        "c",
        "/h",
        assignment={"t": (0,)},
        target_assignment={"t": (0,)},
        subscribed_topics=("t",),
        member_epoch=3,
        is_classic_in_consumer_group=False,
    )
    idle = replace(owner, member_id="m-2", group_instance_id="i-2", assignment={}, target_assignment={})
    with opened(path) as admin:
        described = admin.describe_groups(["modern"]).values["modern"]

    assert described == GroupDescription(
        "modern",
        GroupState.STABLE,
        GroupType.CONSUMER,
        "consumer",
        "uniform",
        members=(owner, idle),
        group_epoch=3,
        assignment_epoch=3,
    )


def test_members_of_the_consumer_protocol_are_removed_too(path: Path) -> None:
    modern_group(path)
    with opened(path) as admin:
        removed = admin.remove_members("modern", member_ids=["m-1", "m-3"], group_instance_ids=["i-2"])
        assert (sorted(removed.values), list(removed.errors)) == (["i-2", "m-1"], ["m-3"])
    with opened(path) as admin:
        described = admin.describe_groups(["modern"]).values["modern"]
        assert (described.members, described.state) == ((), GroupState.EMPTY)


def test_members_are_removed_by_member_id_and_by_instance(path: Path) -> None:
    member = joined(path)
    with opened(path) as admin:
        removed = admin.remove_members("g", member_ids=[member, "nobody"], group_instance_ids=["no-instance"], reason="why")
        assert (list(removed.values), {key: e.message for key, e in removed.errors.items()}) == (
            [member],
            {"nobody": "group 'g' has no member 'nobody'", "no-instance": "group 'g' has no member 'no-instance'"},
        )
    joined(path, "instance")
    with opened(path) as admin:
        assert admin.remove_members("g", group_instance_ids=["instance"]) == Results({"instance": None})
        assert admin.describe_groups(["g"]).values["g"].members == ()
        assert list(admin.remove_members("none", member_ids=["m"]).errors) == ["m"]


def test_a_missing_folder_is_not_found_and_one_in_use_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no data folder"):
        open_embedded(tmp_path / "none")
    with opened(path), pytest.raises(RefusedError, match=f"in use by process {os.getpid()}"):
        open_embedded(path)


def test_a_folder_that_cannot_be_loaded_is_free_again(path: Path) -> None:
    with open_folder(path, create=False) as folder:
        folder.settings.set_broker_properties({"offsets.retention.minutes": "soon"})
    for _ in range(2):
        with pytest.raises(UsageError, match=r"offsets\.retention\.minutes"):
            open_embedded(path)


def test_connecting_by_settings_uses_the_wall_clock(path: Path) -> None:
    written(path, commit("g", 0, 5))
    with connect(ConnectionSettings(embedded=path)) as admin:
        assert list(admin.list_groups()) == ["g"]
        admin.close()
