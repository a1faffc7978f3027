"""Streams groups of `kgctl serve`, with Kafka Streams: kgctl's commands and Kafka's own tool do the same as with a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.server.background import BackgroundServer
from tests.admin import test_group_types as beside_kafka
from tests.admin.test_group_types import RECORDS, Groups, Told, compare_lines, name_of
from tests.support.kafka.group_types import STREAMS_GROUPS, GroupMembers
from tests.support.members import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

OFTEN = {
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    """A word count with two instances; the other names are nobody's."""
    folder = tmp_path_factory.mktemp("streams")
    topics = {"jobs": 3, "words": 3, "counts": 3}
    with BackgroundServer(topics=topics, config=OFTEN) as server, GroupMembers(server.bootstrap) as members:
        made = Groups(server.bootstrap, members, "share", "jobs", "streams", "words", "counts")
        for name in ("streams-1", "streams-2"):
            members.streams(name, made.streams, made.words, made.counts, folder / name)
        wait_until(lambda: made.members_of(made.streams) == 2, "both instances are there")
        made.fill(made.words)
        wait_until(lambda: beside_kafka._read(made) == RECORDS * 5, "all words are counted")
        made.wait(made.streams, "Stable", 0)
        yield made


WITH_MEMBERS: tuple[Told, ...] = (
    beside_kafka.test_a_streams_group_s_offsets_and_lag_are_those_of_kafka_s_tool,
    beside_kafka.test_a_streams_group_s_members_tasks_and_epochs_are_those_of_kafka_s_tool,
)
WITHOUT_MEMBERS: tuple[Told, ...] = (
    beside_kafka.test_a_topic_that_is_not_part_of_a_streams_group_is_refused,
    beside_kafka.test_a_streams_group_s_reset_and_its_undo_are_seen_by_kafka_s_tool,
)


@pytest.mark.parametrize("told", WITH_MEMBERS, ids=name_of)
def test_with_members(groups: Groups, told: Told) -> None:
    told(groups)


def test_state_and_epochs_with_members(groups: Groups) -> None:
    beside_kafka.test_a_group_s_state_and_epochs_are_those_of_kafka_s_tool(groups, STREAMS_GROUPS, "TARGET-ASSIGNMENT-EPOCH")


def test_nothing_is_changed_while_there_are_members(groups: Groups) -> None:
    for line in (
        ("reset-offsets", groups.streams, "--topic", groups.words, "--to-earliest", "--execute"),
        ("delete-offsets", groups.streams, "--topic", groups.words, "--yes"),
        ("delete-groups", groups.streams, "--yes"),
    ):
        groups.kgctl(*line, code=5)
    groups.wait(groups.streams, "Stable", 0)


@pytest.fixture(scope="module")
def empty(groups: Groups) -> Groups:
    """The group without its members, and one record more in each partition; keep these tests behind those with members."""
    groups.members.stop(["streams-1", "streams-2"])
    groups.fill(groups.words, 3)
    groups.wait(groups.streams, "Empty", 3)
    return groups


def test_kafka_s_tool_for_consumers_is_played_without_members(empty: Groups) -> None:
    compare_lines(empty, "streams", beside_kafka.LINES)


@pytest.mark.parametrize("target", [*beside_kafka.TARGETS, *beside_kafka.SHIFTED], ids=" ".join)
def test_a_reset_plans_what_kafka_s_tool_plans(empty: Groups, target: tuple[str, ...]) -> None:
    beside_kafka.test_a_streams_group_s_reset_plans_what_kafka_s_tool_plans(empty, target)


@pytest.mark.parametrize("told", WITHOUT_MEMBERS, ids=name_of)
def test_without_members(empty: Groups, told: Told) -> None:
    told(empty)


@pytest.mark.parametrize("change", beside_kafka.CHANGES)
def test_internal_topics_are_deleted_as_by_kafka_s_tool(empty: Groups, tmp_path: Path, change: str) -> None:
    beside_kafka.test_internal_topics_are_deleted_as_by_kafka_s_tool(empty, tmp_path, change)
