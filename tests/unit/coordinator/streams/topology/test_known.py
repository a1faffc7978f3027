"""A topology as the coordinator keeps it: Java's order within, a sorted one for those who ask."""

from __future__ import annotations

from kgctl.coordinator.streams.topology.known import known_topology
from kgctl.model.streams_topology import CopartitionGroup, DeclaredSubtopology, StreamsTopology, TopicInfo

FIRST = DeclaredSubtopology(
    "10",
    ("orders", "clicks"),
    (),
    (TopicInfo("z"), TopicInfo("c")),
    ("s2", "s1"),
    (TopicInfo("r", 3),),
    (CopartitionGroup((0, 1)),),
)
SECOND = DeclaredSubtopology("9", ("orders",))
KNOWN = known_topology(StreamsTopology(3, (FIRST, SECOND)))


def test_topics_stand_in_javas_order() -> None:
    assert (list(KNOWN.subtopologies), KNOWN.required_topics()) == (["9", "10"], ["r", "c", "clicks", "orders", "z"])
    assert KNOWN.source_topic_map() == {"orders": FIRST, "clicks": FIRST, "r": FIRST}


def test_it_is_described_sorted_and_without_copartition_groups() -> None:
    assert KNOWN.described() == (
        DeclaredSubtopology("10", ("clicks", "orders"), (), (TopicInfo("c"), TopicInfo("z")), ("s1", "s2"), (TopicInfo("r", 3),)),
        SECOND,
    )
