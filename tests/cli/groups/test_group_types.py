"""Share and streams groups as the commands show and choose them."""

from __future__ import annotations

import pytest

from kgctl.model.groups import GroupState, GroupType, MemberDescription, StartOffset, TopicPartition
from kgctl.model.streams import StreamsTasks, Subtopology, Topology
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli

TASKS = StreamsTasks("p-1", 3, {"0": (0, 1)}, {"1": (0,)}, {}, {"0": (0, 1)}, {}, {"1": (0,)})
TOPOLOGY = Topology(3, (Subtopology("0", ("t1",), (), ("between",)), Subtopology("1", (), ("between",), (), ("changes",))))


@pytest.fixture
def cluster(cluster: FakeGroupAdmin) -> FakeGroupAdmin:
    member = MemberDescription("m-1", "c-1", "/h", assignment={"t1": (0, 1)}, member_epoch=4, tasks=TASKS)
    cluster.group("app", {TopicPartition("t1", 0): 100}, [member], type=GroupType.STREAMS, topology=TOPOLOGY)
    cluster.group("jobs", {TopicPartition("t1", 0): StartOffset(40, records_left=0)}, type=GroupType.SHARE)
    return cluster


def test_members_of_a_streams_group_have_tasks(cli: Cli) -> None:
    (row,) = cli("describe group app --members -o json").data

    tasks = {key: value for key, value in row.items() if key.endswith("_tasks")}
    assert (row["process"], row["topology_epoch"]) == ("p-1", 3)
    assert {key: value for key, value in tasks.items() if value} == {
        "active_tasks": "0:0,1",
        "standby_tasks": "1:0",
        "target_active_tasks": "0:0,1",
        "target_warmup_tasks": "1:0",
    }
    assert set(tasks) == {
        f"{kind}_tasks" for kind in ("active", "standby", "warmup", "target_active", "target_standby", "target_warmup")
    }


def test_its_topology_is_a_row_a_subtopology(cli: Cli) -> None:
    assert [list(row.values()) for row in cli("describe group app --topology -o json").data] == [
        ["app", 3, "0", ["t1"], [], ["between"], []],
        ["app", 3, "1", [], ["between"], [], ["changes"]],
    ]


def test_a_group_without_a_topology_is_told_apart_from_one_whose_topology_nobody_knows(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("new", type=GroupType.STREAMS, topology=Topology(1), state=GroupState.NOT_READY)
    ran = cli("describe group jobs new --topology")
    assert (ran.code, ran.err.splitlines()) == (
        4,
        [
            "kgctl: group 'jobs' is a share group: only streams groups have a topology",
            "kgctl: the topology of group 'new' is not known (NotReady): it is not initialised, or a topic that it reads is "
            "missing or has the wrong number of partitions",
        ],
    )


@pytest.mark.parametrize(
    "command",
    [
        "describe group",
        "reset-offsets --all-topics --to-latest",
        "delete-groups --dry-run",
        "delete-offsets --topic t1 --dry-run",
    ],
)
def test_groups_of_these_types_are_chosen_by_type_or_by_name(cli: Cli, command: str) -> None:
    def groups(line: str) -> set[str]:
        return {row["group"] for row in cli(f"{line} -o json").data}

    assert groups(f"{command} --all-groups").isdisjoint({"app", "jobs"})
    assert groups(f"{command} --all-groups --type share,streams") == {"app", "jobs"}
    assert groups(f"{command} --match o --type share") == {"jobs"}
    assert cli(f"{command} jobs --type share").code == 2
    assert cli(f"{command} --all-groups --type zookeeper").code == 4


def test_what_may_be_read_already_has_no_time(cli: Cli, cluster: FakeGroupAdmin) -> None:
    place = TopicPartition("t1", 0)
    for left, is_known in ((60, True), (59, False)):
        cluster.groups["jobs"].offsets[place] = StartOffset(40, records_left=left)
        (row, *_) = cli("describe group jobs --topic t1:0 --time-lag --next-record -o json").data
        assert (row["lag"], row["time_lag_s"] is not None) == (left, is_known)
        says = "is" if is_known else "may be"
        ran = cli("describe group jobs --topic t1:0 --fail-if-time-lag-over 1s")
        assert (ran.code, f"its next record {says} older than 1 s" in ran.err) == (6, True)
