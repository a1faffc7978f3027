"""StreamsGroupDescribe."""

from __future__ import annotations

from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.streams_records import UserEndpoint
from kgctl.model.streams_results import StreamsAssignment, StreamsGroupDescribedGroup, StreamsGroupDescribedMember
from kgctl.model.streams_topology import DeclaredSubtopology, StreamsTopology, TopicInfo
from tests.unit.coordinator.streams.tasks import AT_ONCE, STATEFUL, WITH_LOG, Streams, ids


def test_a_group_is_described_with_what_members_have_and_should_have() -> None:
    streams = Streams({**AT_ONCE, "group.streams.num.standby.replicas": "1"}, STATEFUL, WITH_LOG)
    streams.beat("m", rack_id="r", user_endpoint=UserEndpoint("h", 1), client_tags=(("z", "1"), ("a", "2")))
    streams.beat("n")
    streams.owns("m", ids(0, 1))

    described = StreamsTopology(0, (DeclaredSubtopology("0", ("a",), state_changelog_topics=(TopicInfo("log", 4),)),))
    common: dict[str, Any] = {"client_host": "/127.0.0.1", "topology_epoch": 0}
    assert streams.describe() == (
        StreamsGroupDescribedGroup(
            group_id="g",
            state="Reconciling",
            group_epoch=3,
            assignment_epoch=3,
            topology=described,
            members=(
                StreamsGroupDescribedMember(
                    member_id="m",
                    member_epoch=3,
                    rack_id="r",
                    process_id="p-m",
                    user_endpoint=UserEndpoint("h", 1),
                    client_tags=(("a", "2"), ("z", "1")),
                    assignment=StreamsAssignment(ids(0, 1)),
                    target_assignment=StreamsAssignment(ids(0, 1), ids(2, 3)),
                    **common,
                ),
                StreamsGroupDescribedMember(
                    member_id="n",
                    member_epoch=3,
                    process_id="p-n",
                    assignment=StreamsAssignment((), ids(0, 1)),
                    target_assignment=StreamsAssignment(ids(2, 3), ids(0, 1)),
                    **common,
                ),
            ),
        ),
    )


def test_a_topology_that_is_not_laid_out_is_described_as_it_was_declared() -> None:
    """So is one that has been laid out since the last record: who describes reads what the log says."""
    streams = Streams(topology=STATEFUL)
    streams.beat("m")
    assert streams.describe()[0].topology == STATEFUL
    streams.change_topics(**WITH_LOG)
    streams.beat("m", 2)
    laid_out = streams.describe()[0].topology
    streams.harness.driver.reload()

    streams.beat("m", 3)

    assert streams.state.configured is not None
    assert streams.describe()[0].topology == STATEFUL
    streams.harness.commit({"a-0": 1}, group="other")
    assert streams.describe()[0].topology == laid_out != STATEFUL


def test_groups_that_are_none_and_ids_that_are_none() -> None:
    streams = Streams()
    streams.beat("m")
    streams.harness.stable_group(group="k")

    def missing(group_id: str, message: str) -> StreamsGroupDescribedGroup:
        return StreamsGroupDescribedGroup(group_id=group_id, error=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)

    described = streams.describe("x", "", "k", "g")
    assert described[:3] == (
        StreamsGroupDescribedGroup(group_id="", error=ErrorCode.INVALID_GROUP_ID),
        missing("x", "Group x not found."),
        missing("k", "Group k is not a streams group."),
    )
    assert (described[3].group_id, described[3].error) == ("g", ErrorCode.NONE)
