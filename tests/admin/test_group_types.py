"""Share groups and streams groups beside ``kafka-share-groups.sh`` and ``kafka-streams-groups.sh``, on groups that Java made.

A share group with two `KafkaShareConsumer`, and a word count with two instances of Kafka Streams; thirty records each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kgctl.model.values import timeline_hash_map_order
from tests.support.kafka import KafkaBroker, create_topic, kcg_rows, run_kafka_tool, run_kcg, unique
from tests.support.kafka.group_types import SHARE_GROUPS, STREAMS_GROUPS, GroupMembers
from tests.support.kafka.kgctl import run_kgctl, run_line
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

CONFIGS = "kafka.admin.ConfigCommand"
RECORDS = 30
TEXT = b"the quick brown fox"


@dataclass
class Groups:
    """The groups, their topics and their members' process."""

    bootstrap: str
    members: GroupMembers
    share: str
    jobs: str
    streams: str
    words: str
    counts: str

    def kgctl(self, *arguments: str, code: int | None = 0) -> Any:
        return run_kgctl(self.bootstrap, *arguments, code=code).data

    def tool(self, tool: str, *arguments: str) -> str:
        return run_kafka_tool(tool, ["--bootstrap-server", self.bootstrap, *arguments]).stdout

    def rows(self, tool: str, *arguments: str) -> list[dict[str, str]]:
        return kcg_rows(self.tool(tool, *arguments))

    def fill(self, topic: str, records: int = RECORDS) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(records):
            producer.produce(topic, TEXT, key=b"k%d" % number, partition=number % 3)
        producer.flush(PATIENCE_S)

    def members_of(self, group: str) -> int:
        """How many it has; none also while Kafka has no such group yet."""
        return len(self.kgctl("describe", "group", group, "--members", code=None))

    def wait(self, group: str, state: str, lag: int | None) -> None:
        """Until it is so; None: whatever its lag."""

        def is_so() -> bool:
            listed = {row["group"]: row for row in self.kgctl("list", "groups", "--lag")}
            return group in listed and listed[group]["state"] == state and lag in (None, listed[group]["lag"])

        wait_until(is_so, f"{group} is {state} with a lag of {lag}")


@pytest.fixture(scope="module")
def groups(kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    bootstrap, folder = kafka_broker.bootstrap, tmp_path_factory.mktemp("streams")
    jobs, words, counts = (create_topic(bootstrap, unique(name), 3) for name in ("jobs", "words", "counts"))
    with GroupMembers(bootstrap) as members:
        made = Groups(bootstrap, members, unique("share"), jobs, _told_in_one_order(words), words, counts)
        earliest = ("--add-config", "share.auto.offset.reset=earliest")
        made.tool(CONFIGS, "--alter", "--entity-type", "groups", "--entity-name", made.share, *earliest)
        for name in ("share-1", "share-2"):
            members.share(name, made.share, jobs)
        for name in ("streams-1", "streams-2"):
            members.streams(name, made.streams, words, counts, folder / name)
        wait_until(lambda: made.members_of(made.streams) == 2, "both instances are there")
        wait_until(lambda: made.members_of(made.share) == 2, "both consumers are there")
        made.fill(jobs)
        made.fill(words)
        made.wait(made.share, "Stable", 0)
        wait_until(lambda: _read(made) == RECORDS * 5, "all words are counted")
        made.wait(made.streams, "Stable", 0)
        yield made


def _told_in_one_order(words: str) -> str:
    """An application whose topic between does not fall into one slot of the coordinator's map with the topic that it reads.

    Which of two such topics comes first is told by which had the first commit, and kgctl keeps commits by name.
    """
    while True:
        app = unique("app")
        topics = (words, f"{app}-words-repartition")
        if timeline_hash_map_order(topics) == timeline_hash_map_order(topics[::-1]):
            return app


def _read(groups: Groups) -> int:
    """The records of the source, and the words of the topic between, that are committed as read."""
    return sum(row["current_offset"] or 0 for row in groups.kgctl("describe", "group", groups.streams))


def shown(value: object) -> str:
    return "-" if value is None else str(value)


def test_a_share_group_s_start_offsets_and_lag_are_those_of_kafka_s_tool(groups: Groups) -> None:
    rows = groups.kgctl("describe", "group", groups.share)
    theirs = groups.rows(SHARE_GROUPS, "--describe", "--group", groups.share, "--verbose")

    assert len(rows) == 3
    assert [
        {
            "GROUP": row["group"],
            "TOPIC": row["topic"],
            "PARTITION": str(row["partition"]),
            "LEADER-EPOCH": shown(row["leader_epoch"]),
            "START-OFFSET": shown(row["current_offset"]),
            "LAG": shown(row["lag"]),
        }
        for row in rows
    ] == theirs


def test_a_share_group_s_members_are_those_of_kafka_s_tool(groups: Groups) -> None:
    rows = groups.kgctl("describe", "group", groups.share, "--members")
    theirs = groups.rows(SHARE_GROUPS, "--describe", "--group", groups.share, "--members", "--verbose")

    assert sorted(
        (row["group"], row["consumer_id"], row["host"], row["client_id"], str(row["partitions"]), str(row["member_epoch"]))
        for row in rows
    ) == sorted(
        tuple(row[name] for name in ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", "MEMBER-EPOCH"))
        for row in theirs
    )
    assert {row["consumer_id"]: row["assignment"] for row in rows} == {row["CONSUMER-ID"]: row["ASSIGNMENT"] for row in theirs}


@pytest.mark.parametrize(
    ("tool", "epoch"), [(SHARE_GROUPS, "ASSIGNMENT-EPOCH"), (STREAMS_GROUPS, "TARGET-ASSIGNMENT-EPOCH")], ids=["share", "streams"]
)
def test_a_group_s_state_and_epochs_are_those_of_kafka_s_tool(groups: Groups, tool: str, epoch: str) -> None:
    group = groups.share if tool is SHARE_GROUPS else groups.streams
    (row,) = groups.kgctl("describe", "group", group, "--state")
    (theirs,) = groups.rows(tool, "--describe", "--group", group, "--state", "--verbose")

    coordinator, number = theirs.pop("COORDINATOR (ID)").split()
    assert (coordinator, number) == (row["coordinator"], f"({row['coordinator_id']})")
    assert theirs == {
        "GROUP": row["group"],
        "STATE": row["state"],
        "GROUP-EPOCH": str(row["group_epoch"]),
        epoch: str(row["target_assignment_epoch"]),
        "#MEMBERS": str(row["members"]),
    }


def test_a_streams_group_s_offsets_and_lag_are_those_of_kafka_s_tool(groups: Groups) -> None:
    rows = groups.kgctl("describe", "group", groups.streams)
    theirs = groups.rows(STREAMS_GROUPS, "--describe", "--group", groups.streams, "--verbose")

    assert len(rows) == 6
    assert [
        {
            "GROUP": row["group"],
            "TOPIC": row["topic"],
            "PARTITION": str(row["partition"]),
            "CURRENT-OFFSET": shown(row["current_offset"]),
            "LEADER-EPOCH": shown(row["leader_epoch"]),
            "LOG-END-OFFSET": shown(row["log_end_offset"]),
            "OFFSET-LAG": shown(row["lag"]),
        }
        for row in rows
    ] == sorted(theirs, key=lambda row: (row["TOPIC"], row["PARTITION"]))


KINDS = ("active", "standby", "warmup", "target_active", "target_standby", "target_warmup")


def _tasks(row: dict[str, Any]) -> str:
    """The tasks of a member as the tool writes them."""
    told = []
    for kind in KINDS:
        if tasks := row[f"{kind}_tasks"]:
            inner = (each.replace(":", ":[", 1) for each in tasks.split(";"))
            told.append(f"{kind.upper().replace('_', '-')}: {' '.join(f'{each}];' for each in inner)}")
    return " ".join(told)


def test_a_streams_group_s_members_tasks_and_epochs_are_those_of_kafka_s_tool(groups: Groups) -> None:
    rows = groups.kgctl("describe", "group", groups.streams, "--members")
    theirs = groups.rows(STREAMS_GROUPS, "--describe", "--group", groups.streams, "--members", "--verbose")

    ours = [
        {
            "GROUP": row["group"],
            "TARGET-ASSIGNMENT-EPOCH": str(row["target_assignment_epoch"]),
            "TOPOLOGY-EPOCH": str(row["topology_epoch"]),
            "MEMBER": row["consumer_id"],
            "MEMBER-PROTOCOL": "streams" if row["upgraded"] is None else "mixed",
            "MEMBER-EPOCH": str(row["member_epoch"]),
            "PROCESS": row["process"],
            "CLIENT-ID": row["client_id"],
            "ASSIGNMENTS": _tasks(row),
        }
        for row in rows
    ]
    assert len(ours) == 2
    assert ours == sorted(theirs, key=lambda row: row["MEMBER"])


def test_a_streams_group_s_topology_has_its_topics(groups: Groups) -> None:
    rows = groups.kgctl("describe", "group", groups.streams, "--topology")

    between, changes = f"{groups.streams}-words-repartition", f"{groups.streams}-counts-changelog"
    common = {"group": groups.streams, "topology_epoch": 0}
    names = ("subtopology", "source_topics", "repartition_source_topics", "repartition_sink_topics", "changelog_topics")
    assert rows == [
        {**common, **dict(zip(names, ("0", [groups.words], [], [between], []), strict=True))},
        {**common, **dict(zip(names, ("1", [], [between], [], [changes]), strict=True))},
    ]
    groups.kgctl("describe", "group", groups.share, "--topology", code=4)


@pytest.mark.parametrize(("kind", "tool"), [("share", SHARE_GROUPS), ("streams", STREAMS_GROUPS)])
def test_all_groups_of_a_type_are_those_of_kafka_s_tool(groups: Groups, kind: str, tool: str) -> None:
    rows = groups.kgctl("describe", "group", "--all-groups", "--type", kind, "--state")

    assert {row["group"] for row in rows} == set(groups.tool(tool, "--list").split())
    assert {groups.share, groups.streams}.isdisjoint(
        row["group"] for row in run_kgctl(groups.bootstrap, "describe", "group", "--all-groups", "--state", code=None).data or ()
    )


def test_limits_are_held_against_the_lag_of_every_type(groups: Groups) -> None:
    for group in (groups.share, groups.streams):
        for command in (("describe", "group", group), ("list", "groups", "--match", f"^{group}$")):
            groups.kgctl(*command, "--fail-if-lag-over", "0", "--fail-if-flagged")


def test_groups_are_listed_with_type_state_and_lag(groups: Groups) -> None:
    for tool, group, kind in ((SHARE_GROUPS, groups.share, "share"), (STREAMS_GROUPS, groups.streams, "streams")):
        rows = {row["group"]: row for row in groups.kgctl("list", "groups", "--type", kind, "--lag")}
        theirs = {row["GROUP"]: row["STATE"] for row in groups.rows(tool, "--list", "--state")}

        assert {name: row["state"] for name, row in rows.items()} == theirs
        assert (rows[group]["type"], rows[group]["lag"], rows[group]["flags"]) == (kind, 0, [])


def test_top_and_peek_know_groups_of_every_type(groups: Groups) -> None:
    for group, topic in ((groups.share, groups.jobs), (groups.streams, groups.words)):
        (row,) = groups.kgctl("top", group, "--iterations", "2", "--interval", "100ms")
        assert (row["state"], row["lag"], row["verdict"]) == ("Stable", 0, "OK")
        read = groups.kgctl("peek", group, "--topic", f"{topic}:0", "--before", "1")
        assert {(each["topic"], each["value"]) for each in read} <= {(topic, TEXT.decode())}
    assert groups.kgctl("diff-offsets", groups.share, groups.share) == []


def test_nothing_is_changed_while_there_are_members(groups: Groups) -> None:
    for group, topic, tool in (
        (groups.share, groups.jobs, SHARE_GROUPS),
        (groups.streams, groups.words, STREAMS_GROUPS),
    ):
        for line in (
            ("reset-offsets", group, "--topic", topic, "--to-earliest", "--execute"),
            ("delete-offsets", group, "--topic", topic, "--yes"),
            ("delete-groups", group, "--yes"),
        ):
            before = groups.rows(tool, "--describe", "--group", group, "--verbose")
            groups.kgctl(*line, code=5)
            assert groups.rows(tool, "--describe", "--group", group, "--verbose") == before


LINES = [
    *("--describe", "--describe --members", "--describe --state", "--describe --offsets --verbose"),
    "--reset-offsets --all-topics --to-earliest --dry-run",
    "--reset-offsets --topic TOPIC --to-earliest --dry-run",
]
"""For kafka-consumer-groups.sh, which has groups of these types for none of its own."""


Told = Callable[[Groups], None]
"""A test of this module that others have, too, with groups of their own."""


def name_of(told: Told) -> str:
    return told.__name__.removeprefix("test_")


def compare_lines(groups: Groups, kind: str, lines: Sequence[str]) -> None:
    group, topic = (groups.share, groups.jobs) if kind == "share" else (groups.streams, groups.words)
    for line in lines:
        words = ["--bootstrap-server", groups.bootstrap, *line.replace("TOPIC", topic).split(), "--group", group]
        theirs, ours = run_kcg(words), run_line(["kafka-consumer-groups", *words], code=None)
        assert (line, ours.code, ours.out) == (line, theirs.returncode, theirs.stdout)


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_kafka_s_tool_for_consumers_is_played_to_the_letter(groups: Groups, kind: str) -> None:
    compare_lines(groups, kind, [*LINES, "--delete", "--delete-offsets --topic TOPIC"])


@pytest.fixture(scope="module")
def empty(groups: Groups) -> Groups:
    """The groups without their members, and one record more in each partition; keep these tests behind those with members."""
    groups.members.stop(["share-1", "share-2", "streams-1", "streams-2"])
    groups.fill(groups.jobs, 3)
    groups.fill(groups.words, 3)
    for group in (groups.share, groups.streams):
        groups.wait(group, "Empty", 3)
    return groups


def test_limits_do_not_hold_for_what_is_left_to_read(empty: Groups) -> None:
    for group in (empty.share, empty.streams):
        for command in (
            ("describe", "group", group),
            ("list", "groups", "--match", f"^{group}$"),
            ("top", group, "--iterations", "1"),
        ):
            for limit, code in (("2", 6), ("3", 0)):
                run_kgctl(empty.bootstrap, *command, "--fail-if-lag-over", limit, code=code)
            run_kgctl(empty.bootstrap, *command, "--fail-if-time-lag-over", "0s", code=6)


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_kafka_s_tool_for_consumers_is_played_without_members_too(empty: Groups, kind: str) -> None:
    before = starts(empty)
    more = ["--delete-offsets --topic TOPIC", "--reset-offsets --topic TOPIC --to-earliest --execute"] if kind == "share" else []
    compare_lines(empty, kind, [*LINES, *more])
    assert starts(empty) == before


Row = tuple[str, int, int]


def _planned(rows: list[dict[str, Any]]) -> list[Row]:
    return [(row["topic"], row["partition"], row["new_offset"]) for row in rows]


def _theirs(rows: list[dict[str, str]]) -> list[Row]:
    return sorted((row["TOPIC"], int(row["PARTITION"]), int(row["NEW-OFFSET"])) for row in rows)


def starts(groups: Groups) -> list[tuple[str, str, str, str]]:
    """What Kafka's tool tells of the share group."""
    rows = groups.rows(SHARE_GROUPS, "--describe", "--group", groups.share)
    return [(row["TOPIC"], row["PARTITION"], row["START-OFFSET"], row["LAG"]) for row in rows]


TARGETS = (("--to-earliest",), ("--to-latest",), ("--to-datetime", "2020-01-01T00:00:00.000"))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[0])
def test_a_share_group_s_reset_plans_what_kafka_s_tool_plans(empty: Groups, target: tuple[str, ...]) -> None:
    rows = empty.kgctl("reset-offsets", empty.share, "--topic", empty.jobs, *target)
    scope = ("--reset-offsets", "--group", empty.share, "--topic", empty.jobs)
    theirs = empty.rows(SHARE_GROUPS, *scope, *target, "--dry-run")

    assert len(rows) == 3
    assert _planned(rows) == _theirs(theirs)


SHIFTED = (("--to-offset", "5"), ("--to-offset", "5000"), ("--shift-by", "-2"), ("--by-duration", "PT1H"), ("--to-current",))


@pytest.mark.parametrize("target", [*TARGETS, *SHIFTED], ids=" ".join)
def test_a_streams_group_s_reset_plans_what_kafka_s_tool_plans(empty: Groups, target: tuple[str, ...]) -> None:
    theirs = empty.rows(STREAMS_GROUPS, "--reset-offsets", "--group", empty.streams, "--all-input-topics", *target, "--dry-run")

    for scope in (("--all-topics",), ("--topic", empty.words)):
        rows = empty.kgctl("reset-offsets", empty.streams, *scope, *target)
        assert _planned(rows) == _theirs(theirs)
        assert {topic for topic, _, _ in _planned(rows)} == {empty.words}


def test_a_topic_that_is_not_part_of_a_streams_group_is_refused(empty: Groups) -> None:
    line = ("--reset-offsets", "--group", empty.streams, "--input-topic", empty.jobs, "--to-earliest", "--execute")
    assert f"One or more topics are not part of the group '{empty.streams}'." in empty.tool(STREAMS_GROUPS, *line)

    for mode in ((), ("--execute",)):
        rows = empty.kgctl("reset-offsets", empty.streams, "--topic", empty.jobs, "--to-earliest", *mode, code=4)
        assert {row["result"] for row in rows} == {"failed"}


def test_a_streams_group_s_reset_and_its_undo_are_seen_by_kafka_s_tool(empty: Groups) -> None:
    def committed() -> list[Row]:
        scope = ("--reset-offsets", "--group", empty.streams, "--all-input-topics", "--to-current", "--dry-run")
        return _theirs(empty.rows(STREAMS_GROUPS, *scope))

    before = committed()
    assert [offset for _, _, offset in before] == [10, 10, 10]
    empty.kgctl("reset-offsets", empty.streams, "--all-topics", "--to-earliest", "--execute")
    assert [offset for _, _, offset in committed()] == [0, 0, 0]
    empty.kgctl("undo", "last", "--execute")
    assert committed() == before
    empty.kgctl("delete-offsets", empty.streams, "--topic", f"{empty.words}:0", "--yes")
    assert committed() == before[1:]
    empty.kgctl("undo", "last", "--execute")
    assert committed() == before


def test_a_share_group_s_changes_and_their_undo_are_seen_by_kafka_s_tool(empty: Groups) -> None:
    jobs, share = empty.jobs, empty.share
    at_start = [(jobs, str(number), "0", "11") for number in range(3)]
    at_end = [(jobs, str(number), "11", "0") for number in range(3)]

    empty.kgctl("reset-offsets", share, "--all-topics", "--to-earliest", "--execute")
    assert starts(empty) == at_start
    rows = empty.kgctl("reset-offsets", share, "--all-topics", "--to-earliest", "--execute")
    assert {row["result"] for row in rows} == {"unchanged"}
    empty.kgctl("reset-offsets", share, "--topic", jobs, "--to-latest", "--execute")
    assert starts(empty) == at_end
    empty.kgctl("undo", "last", "--execute")
    assert starts(empty) == at_start

    rows = empty.kgctl("delete-offsets", share, "--topic", f"{jobs}:0", "--yes", code=1)
    assert [row["error"] for row in rows] == ["INVALID_REQUEST"]
    assert starts(empty) == at_start
    empty.kgctl("delete-offsets", share, "--topic", jobs, "--yes")
    assert starts(empty) == []
    empty.kgctl("undo", "last", "--execute")
    assert starts(empty) == at_start

    empty.kgctl("delete-groups", share, "--yes")
    assert share not in empty.tool(SHARE_GROUPS, "--list").split()
    empty.kgctl("undo", "last", "--execute")
    assert starts(empty) == at_start


def test_what_is_acknowledged_past_a_start_offset_is_said_to_be_forgotten_and_is(empty: Groups) -> None:
    """The consumers acknowledge all, and the start offsets come after: then a reset to where they are does something."""
    empty.members.share("share-3", empty.share, empty.jobs)
    empty.wait(empty.share, "Stable", 0)
    empty.members.stop(["share-3"])
    empty.wait(empty.share, "Empty", 0)
    (_, _, start, _), *_ = starts(empty)

    line = ("reset-offsets", empty.share, "--topic", empty.jobs, "--to-offset", start)
    told = "which records past {} are acknowledged is forgotten, and no undo brings that back"
    for mode, result in (((), "planned"), (("--execute",), "reset")):
        rows = empty.kgctl(*line, *mode)
        is_ahead = [row["new_offset"] < 11 for row in rows]
        assert [row["result"] for row in rows] == [result if ahead else "unchanged" for ahead in is_ahead]
        assert [row["note"] for row in rows] == [told.format(start) if ahead else None for ahead in is_ahead]
    assert [(each[2], each[3]) for each in starts(empty)] == [(start, str(11 - int(start)))] * 3


CHANGES = {
    "reset": (
        ("reset-offsets", "--all-topics", "--to-earliest", "--execute"),
        ("--reset-offsets", "--all-input-topics", "--to-earliest", "--execute"),
    ),
    "delete": (("delete-groups",), ("--delete",)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_internal_topics_are_deleted_as_by_kafka_s_tool(empty: Groups, tmp_path: Path, change: str) -> None:
    """Two applications, one for each tool."""
    ours, theirs = unique("ours"), unique("also")
    suffixes = {"words-repartition", "counts-changelog"}
    for name in (ours, theirs):
        empty.members.streams(name, name, empty.words, empty.counts, tmp_path / name)

    def internal(group: str) -> set[str]:
        found = AdminClient({"bootstrap.servers": empty.bootstrap}).list_topics(timeout=PATIENCE_S).topics
        return {topic.removeprefix(f"{group}-") for topic in found if topic.startswith(f"{group}-")}

    for name in (ours, theirs):
        wait_until(lambda name=name: internal(name) == suffixes, f"{name} has its topics")  # type: ignore[misc]
        empty.wait(name, "Stable", 0)
    empty.members.stop([ours, theirs])
    for name in (ours, theirs):
        empty.wait(name, "Empty", None)  # what it had written for itself and not read yet when it was stopped stays
    line, kafkas = CHANGES[change]
    empty.kgctl(line[0], ours, *line[1:], "--delete-all-internal-topics", "--yes")
    empty.tool(STREAMS_GROUPS, *kafkas, "--group", theirs, "--delete-all-internal-topics")
    for name in (ours, theirs):
        wait_until(lambda name=name: internal(name) == set(), f"the topics of {name} are gone")  # type: ignore[misc]
    left = empty.tool(STREAMS_GROUPS, "--list").split()
    assert (ours in left, theirs in left) == ((change == "reset",) * 2)
