"""StreamsGroupHeartbeat, as Kafka's coordinator does it; the differential has the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupState
from kgctl.model.requests import UpdateGroupConfig
from kgctl.model.streams_records import UserEndpoint
from kgctl.model.streams_requests import TaskOffset
from kgctl.model.streams_results import EndpointPartitions, StreamsGroupHeartbeatResult
from kgctl.model.streams_topology import CreatableTopic, DeclaredSubtopology, StreamsStatus, StreamsTopology, TopicInfo
from tests.unit.coordinator.streams.tasks import AT_ONCE, PLAIN, STATEFUL, TOPICS, WITH_LOG, Streams, ids

DELAYED = (StreamsStatus.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
HOME = UserEndpoint("h", 40_000)


def answer(member_id: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResult:
    """What a heartbeat is answered that is not refused."""
    said: dict[str, Any] = {"member_id": member_id, "member_epoch": epoch, "heartbeat_interval_ms": 5_000, "status": ()}
    return StreamsGroupHeartbeatResult(**{**said, **fields})


def tasks(*active: int, standby: tuple[int, ...] = ()) -> dict[str, Any]:
    """The tasks in an answer."""
    return {"active_tasks": ids(*active), "standby_tasks": ids(*standby), "warmup_tasks": ()}


def test_the_first_member_gets_all_tasks() -> None:
    streams = Streams()

    assert streams.beat("m") == answer("m", 2, **tasks(0, 1, 2, 3))
    assert streams.beat("m", 2) == answer("m", 2)
    assert streams.state.group_state is GroupState.STABLE


def test_a_second_member_waits_until_the_first_has_given_tasks_up() -> None:
    streams = Streams()
    streams.beat("m")

    assert streams.beat("n") == answer("n", 3, **tasks())
    assert streams.owns("m", ids(0, 1, 2, 3)) == answer("m", 2, **tasks(0, 1))
    assert streams.beat("n", 3) == answer("n", 3)
    assert streams.state.group_state == "Reconciling"
    assert streams.owns("m", ids(0, 1, 3)) == answer("m", 2)
    assert streams.owns("m", ids(0, 1)) == answer("m", 3)
    assert streams.beat("n", 3) == answer("n", 3, **tasks(2, 3))
    assert streams.state.group_state == "Stable"


def test_tasks_that_are_given_up_at_once_make_no_detour() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")

    assert streams.owns("m", ids(0, 1)) == answer("m", 3, **tasks(0, 1))


def test_who_leaves_makes_room() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")

    assert streams.beat("m", -1) == StreamsGroupHeartbeatResult(member_id="m", member_epoch=-1, status=())
    assert streams.beat("n", 3) == answer("n", 4, **tasks(0, 1, 2, 3))
    streams.beat("n", -1)
    assert streams.state.group_state is GroupState.EMPTY


def test_those_who_join_a_new_group_wait_for_each_other() -> None:
    streams = Streams({"group.streams.assignment.interval.ms": "0"})

    assert streams.beat("m") == answer("m", 1, status=(DELAYED,), **tasks())
    assert streams.beat("n") == answer("n", 1, status=(DELAYED,), **tasks())
    streams.harness.sleep_ms(2_999)
    assert streams.beat("m", 1) == answer("m", 1, status=(DELAYED,))
    assert streams.state.group_state is GroupState.ASSIGNING
    streams.harness.sleep_ms(1)
    assert streams.state.assignment_epoch == 3
    assert streams.beat("m", 1) == answer("m", 3, **tasks(1, 3))
    assert streams.beat("n", 1) == answer("n", 3, **tasks(0, 2))


def test_a_group_that_nobody_has_come_back_to_gets_its_target_from_a_heartbeat() -> None:
    """What the first heartbeat lays out is lost with the group object that its records replace."""
    streams = Streams({})
    streams.beat("m")
    streams.harness.sleep_ms(3_000)

    assert streams.state.assignment_epoch == 1
    assert streams.beat("m", 1) == answer("m", 2, **tasks(0, 1, 2, 3))


def test_between_two_targets_is_an_interval() -> None:
    streams = Streams({"group.streams.initial.rebalance.delay.ms": "0"})
    streams.beat("m")
    delayed = (StreamsStatus.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")

    assert streams.beat("n") == answer("n", 2, status=(delayed,), **tasks())
    streams.harness.sleep_ms(1_000)
    assert streams.beat("n", 2) == answer("n", 3)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"instance_id": "i"}, "Static membership is not yet supported."),
        ({"member_id": " ", "instance_id": "i"}, "Static membership is not yet supported."),
        ({"task_offsets": ()}, "TaskOffsets are not supported yet."),
        ({"task_end_offsets": (TaskOffset("0", 0, 1),)}, "TaskEndOffsets are not supported yet."),
        ({"warmup_tasks": ids(0)}, "WarmupTasks are not supported yet."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"active_tasks": ids(0)}, "ActiveTasks must be empty when (re-)joining."),
        ({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining."),
        ({"standby_tasks": None}, "StandbyTasks must be empty when (re-)joining."),
        ({"warmup_tasks": None}, "WarmupTasks must be empty when (re-)joining."),
        ({"topology": None}, "Topology must be non-null when (re-)joining."),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"member_epoch": 1}, "Topology can only be provided when (re-)joining."),
        ({"member_epoch": 1, "topology": None, "active_tasks": None}, "If one task-type is non-null, all must be non-null."),
        (
            {"topology": StreamsTopology(0, (DeclaredSubtopology("0", source_topic_regex=("a.*",)),))},
            "Regular expressions for source topics are not supported yet.",
        ),
    ],
)
def test_what_contradicts_itself_or_is_not_there_yet_is_refused(said: dict[str, Any], message: str) -> None:
    streams = Streams()

    assert streams.beat("m", **said) == StreamsGroupHeartbeatResult(error=ErrorCode.INVALID_REQUEST, error_message=message)
    assert streams.harness.log == []


def test_the_number_of_a_changelogs_partitions_is_not_the_members_to_say() -> None:
    streams = Streams()
    wrong = StreamsTopology(0, (DeclaredSubtopology("0", ("a",), state_changelog_topics=(TopicInfo("log", 5),)),))

    assert streams.beat("m", topology=wrong) == StreamsGroupHeartbeatResult(
        error=ErrorCode.STREAMS_INVALID_TOPOLOGY,
        error_message="Changelog topic log must have an undefined partition count, but it is set to 5.",
    )


@pytest.mark.parametrize(
    ("topology", "error", "message"),
    [
        (replace(PLAIN, epoch=1), ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."),
        (STATEFUL, ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet."),
        (StreamsTopology(0, PLAIN.subtopologies * 2), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (replace(PLAIN, epoch=-1), ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_all_members_run_the_same(topology: StreamsTopology, error: ErrorCode, message: str | None) -> None:
    streams = Streams()
    streams.beat("m")

    assert streams.beat("n", topology=topology) == StreamsGroupHeartbeatResult(error=error, error_message=message)


def test_who_runs_what_is_outdated_is_told_so() -> None:
    streams = Streams()
    streams.beat("m", topology=replace(PLAIN, epoch=3))
    stale = (StreamsStatus.STALE_TOPOLOGY, "The member's topology epoch 0 is behind the group's topology epoch 3.")

    assert streams.beat("n") == answer("n", 3, status=(stale,), **tasks())


def test_internal_topics_that_are_missing_are_to_be_made() -> None:
    streams = Streams(topology=STATEFUL)
    missing = {
        "status": ((StreamsStatus.MISSING_INTERNAL_TOPICS, "Internal topics are missing: log"),),
        "creatable_topics": (CreatableTopic("log", 4),),
    }

    assert streams.beat("m") == answer("m", 2, **missing, **tasks())
    assert streams.state.group_state is GroupState.NOT_READY
    assert streams.harness.list_groups(states=["not_ready"]) == [("g", "streams", "NotReady", "streams")]
    assert streams.harness.list_groups(states=["NotReady"]) == []
    streams.change_topics(**WITH_LOG)
    assert streams.beat("m", 2) == answer("m", 3, **tasks(0, 1, 2, 3))
    streams.change_topics(**TOPICS)
    assert streams.beat("m", 3) == answer("m", 3, **missing, **tasks())
    assert streams.owns("m", ()) == answer("m", 4, **missing)


def test_a_source_that_is_missing_leaves_nothing_to_run() -> None:
    streams = Streams(topology=StreamsTopology(0, (DeclaredSubtopology("0", ("gone",)),)))

    assert streams.beat("m") == answer(
        "m", 2, status=((StreamsStatus.MISSING_SOURCE_TOPICS, "Source topics gone are missing."),), **tasks()
    )


def test_a_topic_that_grows_makes_a_new_target() -> None:
    streams = Streams()
    streams.beat("m")
    streams.change_topics(a=5, b=2)

    assert streams.beat("m", 2) == answer("m", 3, **tasks(0, 1, 2, 3, 4))


def test_standby_tasks_are_where_the_active_one_is_not() -> None:
    streams = Streams({**AT_ONCE, "group.streams.num.standby.replicas": "1"}, STATEFUL, WITH_LOG)
    streams.beat("m")
    streams.beat("n")
    streams.owns("m", ids(0, 1))
    streams.beat("n", 3)

    assert streams.beat("m", 3) == answer("m", 3, **tasks(0, 1, standby=(2, 3)))
    assert {member.member_id: member.assigned.standby for member in streams.state.members.values()} == {
        "m": {"0": {2: 0, 3: 0}},
        "n": {"0": {0: 0, 1: 0}},
    }


def test_a_setting_of_the_group_makes_a_new_target() -> None:
    streams = Streams(topology=STATEFUL, topics=WITH_LOG)
    streams.beat("m")
    streams.harness.send(UpdateGroupConfig, group_id="g", config={"streams.num.standby.replicas": "1"})

    assert streams.beat("m", 2) == answer("m", 3)
    assert streams.state.last_assignment_configs == {"num.standby.replicas": "1"}


@pytest.mark.parametrize(
    ("owned", "message"),
    [
        (ids(0, key="7"), "Subtopology 7 does not exist in the topology."),
        (ids(0, 4), "Task 4 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
        (ids(-1), "Task -1 for subtopology 0 is invalid. Number of tasks for this subtopology: 4"),
    ],
)
def test_tasks_that_there_are_not_are_nobodys(owned: Any, message: str) -> None:
    streams = Streams()
    streams.beat("m")

    refused = StreamsGroupHeartbeatResult(error=ErrorCode.INVALID_REQUEST, error_message=message)
    assert streams.owns("m", owned) == refused


def test_an_epoch_that_is_not_the_members_is_refused() -> None:
    streams = Streams()
    streams.beat("m")
    known = "than the one known by the group coordinator (2). The member must abandon all its partitions and rejoin."

    for epoch, relation in ((3, "greater"), (1, "smaller")):
        message = f"The streams group member has a {relation} member epoch ({epoch}) {known}"
        assert streams.beat("m", epoch) == StreamsGroupHeartbeatResult(error=ErrorCode.FENCED_MEMBER_EPOCH, error_message=message)
    message = "Member ghost is not a member of group g."
    refused = StreamsGroupHeartbeatResult(error=ErrorCode.UNKNOWN_MEMBER_ID, error_message=message)
    assert streams.beat("ghost", 1) == refused
    assert streams.beat("ghost", -1) == refused


def test_the_epoch_before_is_taken_of_who_has_nothing_that_is_not_its_own() -> None:
    streams = Streams()
    streams.beat("m")
    streams.change_topics(a=5, b=2)
    streams.beat("m", 2)

    own = {"standby_tasks": (), "warmup_tasks": ()}
    assert streams.beat("m", 2, active_tasks=ids(0, 4), **own).member_epoch == 3
    assert streams.beat("m", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert streams.beat("m", 2, active_tasks=ids(0, 9), **own).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert streams.beat("m", 2, active_tasks=ids(0), standby_tasks=ids(0), warmup_tasks=()).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_groups_that_are_not_there_or_are_others() -> None:
    streams = Streams()
    streams.harness.stable_group(group="k")

    def refused(message: str) -> StreamsGroupHeartbeatResult:
        return StreamsGroupHeartbeatResult(error=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)

    assert streams.beat("m", 1) == refused("Streams group g not found.")
    assert streams.beat("m", -1) == refused("Group g not found.")
    for epoch in (0, 1, -1):
        assert streams.beat("m", epoch, group_id="k") == refused("Group k is not a streams group.")


def test_an_empty_classic_group_gives_way() -> None:
    streams = Streams()
    streams.harness.commit({"a-0": 1}, group="g")

    assert streams.beat("m").member_epoch == 2
    assert streams.harness.list_groups() == [("g", "streams", "Stable", "streams")]


def test_a_full_group_takes_nobody_not_even_who_starts_over() -> None:
    streams = Streams({**AT_ONCE, "group.streams.max.size": "1"})
    streams.beat("m")
    full = StreamsGroupHeartbeatResult(
        error=ErrorCode.GROUP_MAX_SIZE_REACHED, error_message="The streams group has reached its maximum capacity of 1 members."
    )

    assert streams.beat("n") == full
    assert streams.beat("m") == full
    assert streams.beat("m", 2) == answer("m", 2)


def test_what_is_at_the_endpoints_is_told_who_knows_an_older_epoch() -> None:
    streams = Streams()
    there = EndpointPartitions(HOME, (("a", (0, 1, 2, 3)),))
    first = streams.beat("m", user_endpoint=HOME)

    assert first == answer("m", 2, **tasks(0, 1, 2, 3), partitions_by_user_endpoint=(there,))
    assert streams.beat("m", 2) == answer("m", 2)
    streams.beat("m", user_endpoint=HOME)
    assert streams.beat("m", 2) == answer("m", 2, endpoint_information_epoch=1, partitions_by_user_endpoint=(there,))
    assert streams.beat("m", 2, endpoint_information_epoch=1) == answer("m", 2, endpoint_information_epoch=1)


def test_endpoints_are_remembered_until_the_member_or_the_topology_changes() -> None:
    """A topic that the image has lost is not missed while the answer is there already; before 4.3 it is."""
    for version, error in (("4.3", ErrorCode.NONE), ("4.2", ErrorCode.UNKNOWN_SERVER_ERROR)):
        config = {"group.streams.initial.rebalance.delay.ms": "0", "kgctl.broker.version": version}
        streams = Streams(config)
        streams.beat("m", user_endpoint=HOME)
        streams.beat("m", user_endpoint=HOME)
        streams.harness.sleep_ms(1_000)
        streams.beat("m", 2, rack_id="r")
        streams.beat("m", 3)
        shard = streams.harness.driver.coordinator.shard
        shard.image = replace(shard.image, topics={})

        assert streams.beat("m", 3).error is error


def test_one_member_ends_the_application() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    words = "encountered a fatal error and requested a shutdown for the entire application."
    over = ((StreamsStatus.SHUTDOWN_APPLICATION, f"Streams group member m {words}"),)

    assert streams.beat("m", -1, shutdown_application=True).status == ()
    assert streams.beat("n", 3, shutdown_application=True).status == over
    streams.beat("n", -1)
    assert streams.beat("n").status == ()


def test_a_beat_that_says_something_new_bumps_the_epoch() -> None:
    streams = Streams()
    streams.beat("m")

    news: tuple[dict[str, Any], ...] = (
        {"rack_id": "r"},
        {"process_id": "q"},
        {"client_tags": (("z", "1"), ("a", "2"))},
        {"user_endpoint": HOME},
    )
    for number, said in enumerate(news):
        assert streams.beat("m", 2 + number, **said).member_epoch == 3 + number
        assert streams.beat("m", 3 + number, **said).member_epoch == 3 + number
    assert dict(streams.member("m").client_tags) == {"a": "2", "z": "1"}


def test_a_tag_or_subtopology_that_is_named_twice_fails_as_in_kafka() -> None:
    streams = Streams()
    streams.beat("m")

    refused = StreamsGroupHeartbeatResult(error=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert streams.beat("m", 2, client_tags=(("z", "1"), ("z", "2"))) == refused
    streams.beat("n")
    assert streams.owns("m", (*ids(0), *ids(1))) == refused


def test_a_member_that_has_given_tasks_up_and_has_to_give_up_others_goes_on_by_one_epoch() -> None:
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 2)
    for member_id in ("o", "p"):
        streams.beat(member_id)

    assert streams.owns("m", ids(0, 1)) == answer("m", 3, **tasks(0))
    assert streams.member("m").pending_revocation.active == {"0": {1: 2}}
    commit = {"a-1": 7}
    assert streams.harness.commit(commit, "m", 2, version=9, group="g") == {"a-1": ErrorCode.NONE}
    assert streams.harness.commit(commit, "m", 1, version=9, group="g") == {"a-1": ErrorCode.STALE_MEMBER_EPOCH}
    assert streams.owns("m", ids(0)) == answer("m", 5)


def test_a_process_gives_its_copy_up_before_it_processes_the_task() -> None:
    streams = Streams({**AT_ONCE, "group.streams.num.standby.replicas": "1"}, STATEFUL, WITH_LOG)
    streams.beat("m")
    streams.beat("n")
    streams.owns("m", ids(0, 1))
    streams.beat("n", 3)
    streams.beat("m", 3)
    streams.beat("n", -1)

    assert streams.owns("m", ids(0, 1), standby_tasks=ids(2, 3)) == answer("m", 3, **tasks(0, 1))
    assert streams.owns("m", ids(0, 1)) == answer("m", 4)
    assert streams.beat("m", 4) == answer("m", 4, **tasks(0, 1, 2, 3))


def test_those_who_have_waited_for_each_other_get_standby_tasks_too() -> None:
    config = {"group.streams.assignment.interval.ms": "0", "group.streams.num.standby.replicas": "1"}
    streams = Streams(config, STATEFUL, WITH_LOG)
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 1)
    streams.harness.sleep_ms(3_000)

    assert [sorted(target.standby["0"]) for target in streams.state.targets.values()] == [[0, 2], [1, 3]]


def test_endpoints_are_told_anew_when_topics_have_changed() -> None:
    """Of a topic with fewer partitions than there are tasks, all are told."""
    streams = Streams(topology=StreamsTopology(0, (DeclaredSubtopology("0", ("a", "b")),)))
    streams.beat("m", user_endpoint=HOME)
    streams.beat("m", user_endpoint=HOME)
    streams.beat("m", 2, rack_id="r")
    before = streams.beat("m", 3).partitions_by_user_endpoint
    assert before == (EndpointPartitions(HOME, (("a", (0, 1, 2, 3)), ("b", (0, 1)))),)
    streams.change_topics(a=4, b=3)

    after = streams.beat("m", 3).partitions_by_user_endpoint
    assert after == (EndpointPartitions(HOME, (("a", (0, 1, 2, 3)), ("b", (0, 1, 2)))),)


def test_a_group_of_4_2_begins_at_epoch_0_and_its_targets_have_no_time() -> None:
    streams = Streams({"kgctl.broker.version": "4.2"})

    assert streams.beat("m") == answer("m", 1, status=(DELAYED,), **tasks())
    assert (streams.state.group_epoch, streams.state.assignment_epoch) == (2, 0)
    streams.harness.sleep_ms(3_000)
    assert streams.beat("m", 1) == answer("m", 2, **tasks(0, 1, 2, 3))
    assert streams.beat("n") == answer("n", 3, **tasks())
    assert streams.state.assignment_timestamp_ms == 0
