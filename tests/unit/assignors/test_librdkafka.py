"""librdkafka:cooperative-sticky where the answers that are kept have no example; a leader of librdkafka was asked for it."""

from __future__ import annotations

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import GroupSpec, MemberSpec, TopicSpec


def test_who_owns_partitions_of_a_topic_that_is_gone_keeps_them_racks_or_none() -> None:
    topics = {"t": TopicSpec(4, (("a",), ("b",), ("a",), ("b",)))}
    members = [
        MemberSpec("m0", ("t",), {"t": [0], "gone": [0, 1]}, 5, "a"),
        MemberSpec("m1", ("t",), {"t": [1]}, 5, "b"),
    ]
    found = get_assignor("librdkafka:cooperative-sticky").assign(GroupSpec(topics, members))
    assert dict(found) == {"m0": {"gone": [0, 1], "t": [0, 2]}, "m1": {"t": [1, 3]}}
