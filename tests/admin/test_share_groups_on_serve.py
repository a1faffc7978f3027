"""Share groups of `kgctl serve`, with Java's consumers: kgctl's commands and Kafka's own tool do the same as with a broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgctl.server.background import BackgroundServer
from tests.admin import test_group_types as beside_kafka
from tests.admin.test_group_types import CONFIGS, Groups, Told, compare_lines, name_of
from tests.support.kafka.group_types import SHARE_GROUPS, GroupMembers
from tests.support.members import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]


@pytest.fixture(scope="module")
def groups() -> Iterator[Groups]:
    """A share group with two members; the other names are nobody's."""
    config = {"group.share.min.heartbeat.interval.ms": "200", "group.share.heartbeat.interval.ms": "200"}
    with BackgroundServer(topics={"jobs": 3, "words": 3}, config=config) as server, GroupMembers(server.bootstrap) as members:
        made = Groups(server.bootstrap, members, "share", "jobs", "streams", "words", "counts")
        earliest = ("--add-config", "share.auto.offset.reset=earliest")
        made.tool(CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", made.share, *earliest)
        for name in ("share-1", "share-2"):
            members.share(name, made.share, made.jobs)
        wait_until(lambda: made.members_of(made.share) == 2, "both consumers are there")
        made.fill(made.jobs)
        made.wait(made.share, "Stable", 0)
        yield made


WITH_MEMBERS: tuple[Told, ...] = (
    beside_kafka.test_a_share_group_s_start_offsets_and_lag_are_those_of_kafka_s_tool,
    beside_kafka.test_a_share_group_s_members_are_those_of_kafka_s_tool,
)
WITHOUT_MEMBERS: tuple[Told, ...] = (
    beside_kafka.test_a_share_group_s_changes_and_their_undo_are_seen_by_kafka_s_tool,
    beside_kafka.test_what_is_acknowledged_past_a_start_offset_is_said_to_be_forgotten_and_is,
)


@pytest.mark.parametrize("told", WITH_MEMBERS, ids=name_of)
def test_with_members(groups: Groups, told: Told) -> None:
    told(groups)


def test_state_and_epochs_with_members(groups: Groups) -> None:
    beside_kafka.test_a_group_s_state_and_epochs_are_those_of_kafka_s_tool(groups, SHARE_GROUPS, "ASSIGNMENT-EPOCH")


@pytest.fixture(scope="module")
def empty(groups: Groups) -> Groups:
    """The group without its members, and one record more in each partition; keep these tests behind those with members."""
    groups.members.stop(["share-1", "share-2"])
    groups.fill(groups.jobs, 3)
    groups.wait(groups.share, "Empty", 3)
    return groups


def test_kafka_s_tool_for_consumers_is_played_without_members(empty: Groups) -> None:
    compare_lines(empty, "share", [*beside_kafka.LINES, "--delete-offsets --topic TOPIC"])


@pytest.mark.parametrize("target", beside_kafka.TARGETS, ids=lambda target: target[0])
def test_a_reset_plans_what_kafka_s_tool_plans(empty: Groups, target: tuple[str, ...]) -> None:
    beside_kafka.test_a_share_group_s_reset_plans_what_kafka_s_tool_plans(empty, target)


@pytest.mark.parametrize("told", WITHOUT_MEMBERS, ids=name_of)
def test_without_members(empty: Groups, told: Told) -> None:
    told(empty)
