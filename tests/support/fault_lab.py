"""A fault at each step of a change: an admin whose calls can be met by one, and what the cluster has afterwards beside what was
told.

A step is a call of the admin: those that read for the plan, those that carry it out, those that read back. A fault acts at one
step, before the call or after it (when the cluster has done what was asked, and the answer is lost).
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kgctl.admin import AltersManyGroups, GroupAdmin, LimitsTime, PartitionResults
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin

Key = tuple[str, ...]
"""What tells a row from the others: its group, with topic and partition, or with a member."""

OLD, NEW, FOREIGN = 7, 3, 5
"""The offsets that groups begin with, that a change commits, and that another operator commits."""

BEFORE, AFTER = "before", "after"

CALLS = (
    *("sight", "list_groups", "describe_groups", "list_committed_offsets", "list_log_offsets", "list_offsets_at", "list_topics"),
    *("topic_ids", "alter_offsets", "delete_offsets", "delete_groups", "remove_members"),
)


class Killed(BaseException):
    """The process is no more: nothing after this point runs."""


@contextmanager
def disk_full_at(size: int) -> Iterator[None]:
    """No file can grow beyond ``size`` bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass
class Steps:
    """Counts the calls of an admin, and does ``act`` at the step ``at``, on the side ``when``; ``names`` are the calls so far."""

    at: int = 0
    when: str = BEFORE
    act: Callable[[], object] = lambda: None
    names: list[str] = field(default_factory=list)

    def begin(self, name: str) -> None:
        self.names.append(name)
        if (len(self.names), BEFORE) == (self.at, self.when):
            self.act()

    def end(self) -> None:
        if (len(self.names), AFTER) == (self.at, self.when):
            self.act()


def stepped(admin: GroupAdmin, steps: Steps) -> GroupAdmin:
    """The admin, each of whose calls is a step."""

    def counted(name: str) -> Callable[..., Any]:
        def call(_: object, *given: Any, **named: Any) -> Any:
            steps.begin(name)
            found = getattr(admin, name)(*given, **named)
            steps.end()
            return found

        return call

    def alter_offsets_of(
        _: object, wanted: Mapping[str, Mapping[TopicPartition, OffsetAndMetadata]]
    ) -> Iterator[tuple[str, PartitionResults[None]]]:
        assert isinstance(admin, AltersManyGroups)
        steps.begin("alter_offsets_of")
        yield from admin.alter_offsets_of(wanted)
        steps.end()

    methods: dict[str, Any] = {name: counted(name) for name in CALLS}
    methods |= {
        "timeout_ms": getattr(admin, "timeout_ms", 0),
        "cluster_id": lambda _: admin.cluster_id(),
        "close": lambda _: admin.close(),
        "__enter__": lambda self: self,
        "__exit__": lambda _, *__: admin.close(),
    }
    if isinstance(admin, LimitsTime):
        methods["limit"] = property(lambda _: admin.limit, lambda _, limit: setattr(admin, "limit", limit))
    if isinstance(admin, AltersManyGroups):
        methods["alter_offsets_of"] = alter_offsets_of
    made: GroupAdmin = type("SteppedAdmin", (), methods)()
    return made


@dataclass(frozen=True)
class Scene:
    """Groups without members and with commits on all partitions of a topic, and one group whose members can be removed."""

    topic: str
    groups: tuple[str, ...]
    manned: str = ""


State = Mapping[Key, object]
Look = Callable[[GroupAdmin, Scene], State]


def commits(admin: GroupAdmin, scene: Scene) -> State:
    """Group, topic and partition -> what is committed."""
    found = admin.list_committed_offsets(scene.groups)
    assert not found.errors, found.errors
    return {
        (group, partition.topic, str(partition.partition)): commit.offset
        for group, of_group in found.values.items()
        for partition, commit in of_group.items()
        if commit.offset >= 0
    }


def presence(admin: GroupAdmin, scene: Scene) -> State:
    """Group -> whether it is there; a group that is not has no entry."""
    listed = admin.list_groups()
    assert not listed.unreachable
    return {(group,): True for group in scene.groups if group in listed.values}


def members(admin: GroupAdmin, scene: Scene) -> State:
    """Group and member -> whether the group has it; one that it has not has no entry."""
    described = admin.describe_groups([scene.manned]).values
    return {
        (scene.manned, one.group_instance_id or one.member_id): True
        for description in described.values()
        for one in description.members
    }


def zookeeper(scene: Scene) -> FakeGroupAdmin:
    """What is migrated from: the same groups, with `NEW` committed on both partitions."""
    admin = FakeGroupAdmin()
    for group in scene.groups:
        admin.group(group, {TopicPartition(scene.topic, number): NEW for number in (0, 1)})
    return admin


@dataclass(frozen=True)
class Change:
    """A command line that changes a cluster, and how its rows are compared with the cluster.

    ``done`` is the word of a row that was changed, ``look`` reads the cluster, ``target`` is what a changed row has then (None
    for nothing). ``first`` is a line that prepares it and is run without a fault. What migrates reads `zookeeper`, too.
    """

    name: str
    line: str
    done: str
    look: Look = commits
    target: int | None = None
    start: int | None = OLD
    first: str = ""


CHANGES = (
    Change("reset-named", "reset-offsets GROUPS --topic TOPIC --to-offset 3 --execute", "reset", target=NEW),
    Change("reset-matched", "reset-offsets --match MATCH --all-topics --to-offset 3 --execute --yes", "reset", target=NEW),
    Change(
        "reset-planned",
        "reset-offsets --plan FOLDER/plan --execute",
        "reset",
        target=NEW,
        first="reset-offsets GROUPS --topic TOPIC --to-offset 3 --plan-out FOLDER/plan",
    ),
    Change(
        "undo-reset",
        "undo FOLDER/undo.csv --execute",
        "reset",
        target=OLD,
        start=NEW,
        first="reset-offsets GROUPS --topic TOPIC --to-offset 3 --execute --backup FOLDER/undo.csv",
    ),
    Change(
        "undo-delete-offsets",
        "undo FOLDER/undo.csv --execute",
        "reset",
        target=OLD,
        start=None,
        first="delete-offsets GROUPS --topic TOPIC --yes --backup FOLDER/undo.csv",
    ),
    Change("delete-offsets", "delete-offsets GROUPS --topic TOPIC --yes", "deleted"),
    Change("delete-groups", "delete-groups GROUPS --yes", "deleted", look=presence),
    Change(
        "migrate-offsets",
        "migrate-offsets --zookeeper zk:2181 --bootstrap-server ADDRESS GROUPS --execute",
        "reset",
        target=NEW,
    ),
    Change("remove-members", "remove-members MANNED --all --yes", "removed", look=members),
)


def argv(line: str, scene: Scene, folder: object, address: str = "fake:9092") -> list[str]:
    """The words of a line of `CHANGES`, with what is in capitals filled in."""
    match = "^(" + "|".join(scene.groups) + ")$"
    words = {
        "GROUPS": list(scene.groups),
        "TOPIC": [scene.topic],
        "MATCH": [match],
        "MANNED": [scene.manned],
        "ADDRESS": [address],
    }
    return [piece for word in line.split() for piece in words.get(word, [word.replace("FOLDER", str(folder))])]


@dataclass(frozen=True)
class Told:
    """What kgctl said: its exit code and its envelope."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    def results(self) -> dict[Key, str]:
        """Row -> what became of it."""
        return {_key(row): row["result"] for row in self.document["data"]}


def _key(row: Mapping[str, Any]) -> Key:
    if "partition" in row:
        return row["group"], row["topic"], str(row["partition"])
    if "consumer_id" in row:
        return row["group"], row["group_instance_id"] or row["consumer_id"]
    return (row["group"],)


UNTOUCHED = {"failed", "refused", "not-tried", "unchanged", "planned", "deletable", "removable", "missing"}


def lies(told: Told, change: Change, before: State, after: State, others: Sequence[object] = ()) -> list[str]:
    """What was told that is not so. ``others`` are values that somebody else gave to rows: they may be found everywhere."""
    found = []
    for key, result in told.results().items():
        was, has = before.get(key), after.get(key)
        may_be = [*others]
        if result in (change.done, "deleted", "unknown"):
            may_be.append(change.target)
        if result == "unknown" or result in UNTOUCHED:
            may_be.append(was)
        if has not in may_be:
            found.append(f"{key}: told {result}, was {was}, has {has}")
    missing = [key for key in before if key not in told.results() and before.get(key) != after.get(key) and not others]
    return [*found, *(f"{key}: not told, was {before[key]}, has {after.get(key)}" for key in missing), *wrong_code(told, change)]


def wrong_code(told: Told, change: Change) -> list[str]:
    """An exit code, or a status, that does not go with the rows."""
    results = set(told.results().values())
    document = told.document
    is_changed = bool(results & {change.done, "moved", "unknown"})
    is_whole = bool(results) and results <= {change.done, "unchanged"} and not document["errors"]
    found = [] if document["exit_code"] == told.code else [f"envelope says {document['exit_code']}, exit code {told.code}"]
    if told.code == 0 and not is_whole:
        found.append(f"exit 0 with {results} and {document['errors']}")
    if told.code == 7 and is_changed:
        found.append("exit 7 though something was, or may have been, changed")
    if told.code not in (0, 3, 130, 143) and change.done in results:
        found.append(f"exit {told.code} though something was changed")
    if is_changed and document["status"] == "error":
        found.append("status error though something was, or may have been, changed")
    if "Traceback" in told.err or "internal error" in told.err:
        found.append(told.err)
    return found
