"""Groups whose members are no consumers: listed with their type, described by an error that names it, never taken for missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ShareConsumer

from kgctl.admin import GroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState, GroupType, OffsetAndMetadata, TopicPartition
from tests.support.admin_targets import Target
from tests.support.kafka import KafkaBroker, unique
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS

pytestmark = pytest.mark.kafka

SHARE = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.fixture(scope="module")
def kafka(kafka_broker: KafkaBroker) -> Target:
    return Target("kafka", kafka_broker.bootstrap)


@pytest.fixture(scope="module")
def own_admin(kafka: Target) -> Iterator[GroupAdmin]:
    with connect(ConnectionSettings(kafka.bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        yield admin


@pytest.fixture(scope="module")
def share_group(kafka: Target, own_admin: GroupAdmin) -> Iterator[tuple[str, TopicPartition]]:
    """A share group with one member on a topic of its own."""
    topic, group = kafka.topic(partitions=1), unique("share")
    member = ShareConsumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0})
    member.subscribe([topic])

    def is_stable() -> bool:
        member.poll(0.05)
        found = own_admin.list_groups().values.get(group)
        return found is not None and found.state is GroupState.STABLE

    wait_until(is_stable, "the share group is Stable")
    yield group, TopicPartition(topic, 0)
    member.close()


def test_a_share_group_is_listed_with_its_type(own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]) -> None:
    group, _ = share_group
    found = own_admin.list_groups(types=[GroupType.SHARE]).values

    assert (found[group].type, found[group].protocol_type) == (GroupType.SHARE, "share")
    assert group not in own_admin.list_groups(types=[GroupType.CLASSIC, GroupType.CONSUMER]).values


@pytest.mark.parametrize("backend", ["live", "confluent"])
def test_describing_it_names_its_type(
    kafka: Target, own_admin: GroupAdmin, share_group: tuple[str, TopicPartition], backend: str
) -> None:
    group, _ = share_group
    with kafka.confluent() as confluent:
        found = (own_admin if backend == "live" else confluent).describe_groups([group])

    named = "share group" if backend == "live" else "share or streams group"
    assert found.errors[group].code is SHARE
    assert found.errors[group].message == f"group '{group}' is a {named}, not a consumer group"


def test_changing_it_names_its_type_too(own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]) -> None:
    group, partition = share_group
    message = f"group '{group}' is a share group, not a consumer group"

    altered = own_admin.alter_offsets(group, {partition: OffsetAndMetadata(1)})
    assert [(error.code, error.message) for error in altered.errors.values()] == [(SHARE, message)]
    deleted = own_admin.delete_offsets(group, [partition])
    assert [(error.code, error.message) for error in deleted.errors.values()] == [(SHARE, message)]
    removed = own_admin.remove_members(group, member_ids=["m"])
    assert [(error.code, error.message) for error in removed.errors.values()] == [(SHARE, message)]


def test_it_cannot_be_deleted_while_it_has_members(own_admin: GroupAdmin, share_group: tuple[str, TopicPartition]) -> None:
    group, _ = share_group

    assert own_admin.delete_groups([group]).errors[group].code is ErrorCode.NON_EMPTY_GROUP
