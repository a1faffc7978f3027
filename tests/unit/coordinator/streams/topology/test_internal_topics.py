"""Topologies against the topics of a cluster; tests/differential/streams has thousands more from Kafka itself."""

from __future__ import annotations

from uuid import UUID

import pytest

from kgctl.assignors.task_spec import SubtopologySize
from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.topology.configured import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    TopicConfigurationProblem,
    partitions_of_tasks,
    sizes,
)
from kgctl.coordinator.streams.topology.internal_topics import configure_topics
from kgctl.coordinator.streams.topology.known import known_topology
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.model.streams_topology import (
    CopartitionGroup,
    CreatableTopic,
    DeclaredSubtopology,
    StreamsStatus,
    StreamsTopology,
    TopicInfo,
)

COMPACT = (("cleanup.policy", "compact"),)
COUNTED = DeclaredSubtopology(
    "1", repartition_source_topics=(TopicInfo("app-r"),), state_changelog_topics=(TopicInfo("app-c", 0, 3, COMPACT),)
)
SPLIT = DeclaredSubtopology("0", source_topics=("lines",), repartition_sink_topics=("app-r",))
JOINED = DeclaredSubtopology("0", ("a", "b"), copartition_groups=(CopartitionGroup((0, 1)),))


def configured(*subtopologies: DeclaredSubtopology, **topics: int) -> ConfiguredTopology:
    return configure_topics(known_topology(StreamsTopology(7, subtopologies)), image(**topics), 42)


def image(**topics: int) -> MetadataImage:
    named = {name.replace("_", "-"): count for name, count in topics.items()}
    return MetadataImage({name: TopicMetadata(name, UUID(int=1), count) for name, count in named.items()})


LAID_OUT = {
    "0": ConfiguredSubtopology(6, ("lines",), {}, ("app-r",), {}),
    "1": ConfiguredSubtopology(6, (), {"app-r": TopicInfo("app-r", 6)}, (), {"app-c": TopicInfo("app-c", 6, 3, COMPACT)}),
}


def test_topics_that_are_missing_are_to_be_made_with_the_numbers_that_follow() -> None:
    problem = TopicConfigurationProblem(StreamsStatus.MISSING_INTERNAL_TOPICS, "Internal topics are missing: app-c, app-r")
    create = (CreatableTopic("app-c", 6, 3, COMPACT), CreatableTopic("app-r", 6, -1))

    assert configured(COUNTED, SPLIT, lines=6) == ConfiguredTopology(7, 42, LAID_OUT, create, problem)


def test_a_topology_is_ready_when_all_topics_are_there() -> None:
    found = configured(COUNTED, SPLIT, lines=6, app_r=6, app_c=6)

    assert (found, found.is_ready) == (ConfiguredTopology(7, 42, LAID_OUT), True)
    assert sizes(LAID_OUT) == (SubtopologySize("0", 6, is_stateful=False), SubtopologySize("1", 6, is_stateful=True))


@pytest.mark.parametrize(
    ("subtopologies", "topics", "problem"),
    [
        ((COUNTED, SPLIT), {}, ("MISSING_SOURCE_TOPICS", "Source topics lines are missing.")),
        (
            (DeclaredSubtopology("0", ("e", "d", "c", "b", "a")),),
            {"c": 1},
            ("MISSING_SOURCE_TOPICS", "Source topics a, b, d and 1 additional topics are missing."),
        ),
        (
            (COUNTED, SPLIT),
            {"lines": 6, "app_r": 4},
            (
                "INCORRECTLY_PARTITIONED_TOPICS",
                "Existing topic app-r has different number of partitions: expected 6, found 4",
            ),
        ),
        (
            (JOINED,),
            {"a": 1, "b": 2},
            ("INCORRECTLY_PARTITIONED_TOPICS", "Following topics do not have the same number of partitions: [{a=1, b=2}]"),
        ),
    ],
)
def test_topics_that_are_not_as_they_must_be_are_told(
    subtopologies: tuple[DeclaredSubtopology, ...], topics: dict[str, int], problem: tuple[str, str]
) -> None:
    found = configured(*subtopologies, **topics)

    assert found == ConfiguredTopology(7, 42, None, (), TopicConfigurationProblem(StreamsStatus[problem[0]], problem[1]))
    assert found.described() == ()


@pytest.mark.parametrize(
    ("subtopologies", "error"),
    [
        ((COUNTED,), ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ((DeclaredSubtopology("0"),), ErrorCode.STREAMS_INVALID_TOPOLOGY),
        ((SPLIT, SPLIT), ErrorCode.UNKNOWN_SERVER_ERROR),
        ((DeclaredSubtopology("0", ("lines",), copartition_groups=(CopartitionGroup((-1,)),)),), ErrorCode.UNKNOWN_SERVER_ERROR),
        ((DeclaredSubtopology("0", ("lines",), (), (TopicInfo("a b"),)),), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_topologies_that_cannot_be_are_refused(subtopologies: tuple[DeclaredSubtopology, ...], error: ErrorCode) -> None:
    with pytest.raises(Refusal) as refusal:
        configured(*subtopologies, lines=2)

    assert refusal.value.error is error


def test_endpoints_are_told_with_the_partitions_of_their_tasks() -> None:
    assert partitions_of_tasks({"1": [2, 0, 1], "0": [3]}, LAID_OUT, image(lines=6, app_r=2)) == (
        ("app-r", (0, 1)),
        ("lines", (3,)),
    )
    with pytest.raises(Refusal):
        partitions_of_tasks({"0": [0]}, LAID_OUT, image())
