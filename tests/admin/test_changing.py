"""Commits, deletions and removals: the same contract for Apache Kafka and ``kgctl serve``."""

from __future__ import annotations

import pytest

from kgctl.admin import GroupAdmin
from kgctl.errors import UnsupportedError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, OffsetAndMetadata, TopicPartition
from tests.support.admin_targets import Target
from tests.support.kafka import commit, committed, unique
from tests.support.kafka.consumers import joined
from tests.support.kafka_python import committed_offsets, group_ids


def member_ids(admin: GroupAdmin, group: str) -> list[str]:
    return [member.member_id for member in admin.describe_groups([group]).values[group].members]


def test_offsets_of_a_group_without_members_are_set(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    commit(target.bootstrap, group, {(topic, 0): 9, (topic, 1): 9})
    wanted = {
        TopicPartition(topic, 0): OffsetAndMetadata(1, "by kgctl"),
        TopicPartition(topic, 2): OffsetAndMetadata(0),
    }
    results = any_admin.alter_offsets(group, wanted)

    assert (results.values, results.errors) == (dict.fromkeys(wanted), {})
    assert any_admin.list_committed_offsets([group]).values[group] == {
        **wanted,
        TopicPartition(topic, 1): OffsetAndMetadata(9),
    }


def test_a_leader_epoch_is_committed_with_the_offset(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    wanted = {TopicPartition(topic, 0): OffsetAndMetadata(3, leader_epoch=0)}
    any_admin.alter_offsets(group, wanted)

    assert any_admin.list_committed_offsets([group]).values[group] == wanted


def test_setting_offsets_creates_a_group_that_was_not_there(target: Target, any_admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    any_admin.alter_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(3)})

    assert any_admin.describe_groups([group]).values[group].state is GroupState.EMPTY


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_an_active_group_are_refused_with_a_sentence(target: Target, any_admin: GroupAdmin, protocol: str) -> None:
    topic, other, group = target.topic(), target.topic(), unique("group")
    partitions = [TopicPartition(topic, 0), TopicPartition(other, 0)]
    with joined(target.bootstrap, group, topic, {"c": 3}, group_protocol=protocol):
        results = any_admin.alter_offsets(group, dict.fromkeys(partitions, OffsetAndMetadata(3)))

    assert not results.values
    assert {each: error.code for each, error in results.errors.items()} == dict.fromkeys(partitions, ErrorCode.NON_EMPTY_GROUP)
    assert results.errors[partitions[0]].message.startswith(f"group '{group}' is active")


def test_an_unknown_topic_is_refused_and_the_rest_is_set(target: Target, any_admin: GroupAdmin) -> None:
    topic, gone, group = target.topic(), unique("gone"), unique("group")
    good, bad = TopicPartition(topic, 0), TopicPartition(gone, 0)
    results = any_admin.alter_offsets(group, {good: OffsetAndMetadata(1), bad: OffsetAndMetadata(1)})

    assert list(results.values) == [good]
    assert {each: error.code for each, error in results.errors.items()} == {bad: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert results.status == "partial"


def test_nothing_to_change_is_nothing_changed(any_admin: GroupAdmin) -> None:
    assert any_admin.alter_offsets(unique("group"), {}).values == {}
    assert any_admin.delete_groups([]).values == {}


def test_offsets_are_deleted_also_where_there_are_none(target: Target, admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    commit(target.bootstrap, group, {(topic, 0): 1, (topic, 1): 2})
    wanted = [TopicPartition(topic, 1), TopicPartition(topic, 2)]
    results = admin.delete_offsets(group, wanted)

    assert (results.values, results.errors) == (dict.fromkeys(wanted), {})
    assert committed(target.bootstrap, group) == {(topic, 0): 1}


def test_offsets_of_an_unknown_topic_or_partition_cannot_be_deleted(target: Target, admin: GroupAdmin) -> None:
    topic, gone, group = target.topic(), unique("gone"), unique("group")
    commit(target.bootstrap, group, {(topic, 0): 1})
    bad = [TopicPartition(topic, 9), TopicPartition(gone, 0)]
    results = admin.delete_offsets(group, [TopicPartition(topic, 0), *bad])

    assert list(results.values) == [TopicPartition(topic, 0)]
    assert {each: error.code for each, error in results.errors.items()} == dict.fromkeys(
        bad, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_offsets_of_a_missing_group_cannot_be_deleted(target: Target, admin: GroupAdmin) -> None:
    partition = TopicPartition(target.topic(), 0)
    results = admin.delete_offsets(unique("missing"), [partition])

    assert {each: error.code for each, error in results.errors.items()} == {partition: ErrorCode.GROUP_ID_NOT_FOUND}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_offsets_of_a_subscribed_topic_cannot_be_deleted_but_those_of_another_can(
    target: Target, admin: GroupAdmin, protocol: str
) -> None:
    topic, other, group = target.topic(), target.topic(), unique("group")
    commit(target.bootstrap, group, {(topic, 0): 1, (other, 0): 2})
    read, stale = TopicPartition(topic, 0), TopicPartition(other, 0)
    with joined(target.bootstrap, group, topic, {"c": 3}, group_protocol=protocol):
        results = admin.delete_offsets(group, [read, stale])

    assert list(results.values) == [stale]
    assert {each: error.code for each, error in results.errors.items()} == {read: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert committed(target.bootstrap, group) == {(topic, 0): 1}


def test_groups_are_deleted_with_their_offsets(target: Target, any_admin: GroupAdmin) -> None:
    topic, groups = target.topic(), [unique("group"), unique("group")]
    for group in groups:
        commit(target.bootstrap, group, {(topic, 0): 1})
    results = any_admin.delete_groups(groups)

    assert (results.values, results.errors) == (dict.fromkeys(groups), {})
    assert set(any_admin.describe_groups(groups).errors) == set(groups)
    assert committed(target.bootstrap, groups[0]) == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_active_and_missing_groups_are_not_deleted_and_harm_no_other(
    target: Target, any_admin: GroupAdmin, protocol: str
) -> None:
    topic, active, missing, idle = target.topic(), unique("group"), unique("missing"), unique("idle")
    commit(target.bootstrap, idle, {(topic, 0): 1})
    with joined(target.bootstrap, active, topic, {"c": 3}, group_protocol=protocol):
        results = any_admin.delete_groups([active, missing, idle])

    assert list(results.values) == [idle]
    assert {group: error.code for group, error in results.errors.items()} == {
        active: ErrorCode.NON_EMPTY_GROUP,
        missing: ErrorCode.GROUP_ID_NOT_FOUND,
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_is_removed_by_its_id(target: Target, admin: GroupAdmin, protocol: str) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}, group_protocol=protocol):
        (member,) = member_ids(admin, group)
        results = admin.remove_members(group, member_ids=[member, "nobody"], reason="a test")
        left = member_ids(admin, group)

    assert list(results.values) == [member]
    assert {key: error.code for key, error in results.errors.items()} == {"nobody": ErrorCode.UNKNOWN_MEMBER_ID}
    assert results.errors["nobody"].message == f"group '{group}' has no member 'nobody'"
    assert member not in left


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_is_removed_by_its_instance_id(target: Target, admin: GroupAdmin, protocol: str) -> None:
    topic, group = target.topic(), unique("group")
    with joined(target.bootstrap, group, topic, {"c": 3}, group_instance_id="inst-1", group_protocol=protocol):
        (member,) = member_ids(admin, group)
        results = admin.remove_members(group, group_instance_ids=["inst-1", "inst-2"])
        left = member_ids(admin, group)

    assert list(results.values) == ["inst-1"]
    assert {key: error.code for key, error in results.errors.items()} == {"inst-2": ErrorCode.UNKNOWN_MEMBER_ID}
    assert member not in left


def test_members_of_a_missing_group_cannot_be_removed(admin: GroupAdmin) -> None:
    missing = unique("missing")
    results = admin.remove_members(missing, member_ids=["nobody"])

    assert {key: error.code for key, error in results.errors.items()} == {"nobody": ErrorCode.GROUP_ID_NOT_FOUND}
    assert admin.remove_members(missing).values == {}


def test_confluent_alone_says_what_it_cannot_do(target: Target) -> None:
    with target.confluent() as confluent:
        with pytest.raises(UnsupportedError, match="deleting offsets needs kgctl's own connection"):
            confluent.delete_offsets("g", [TopicPartition("t", 0)])
        with pytest.raises(UnsupportedError, match="removing members needs kgctl's own connection"):
            confluent.remove_members("g", member_ids=["m"])


def test_kafka_python_sees_what_was_changed(target: Target, admin: GroupAdmin) -> None:
    topic, group = target.topic(), unique("group")
    admin.alter_offsets(group, {TopicPartition(topic, number): OffsetAndMetadata(number) for number in range(3)})
    admin.delete_offsets(group, [TopicPartition(topic, 1)])
    seen = committed_offsets(target.bootstrap, group)
    admin.delete_groups([group])

    assert seen == {TopicPartition(topic, 0): 0, TopicPartition(topic, 2): 2}
    assert group not in group_ids(target.bootstrap)
