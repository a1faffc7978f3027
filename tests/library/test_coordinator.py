"""A coordinator inside one's own process: members that wait, offsets in a storage of one's own, groups to look at."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import kgctl
from kgctl import AsyncCoordinator, Coordinator, decode_assignment
from kgctl.errors import (
    BrokerError,
    ClosedError,
    CommitError,
    NotFoundError,
    StorageError,
    TimedOutError,
    UsageError,
    UserCodeError,
)
from kgctl.library.group_info import MemberPhase
from kgctl.model.groups import ConsumerAssignment, ConsumerSubscription, GroupState, OffsetAndMetadata, TopicPartition
from kgctl.model.requests import EndTransaction, JoinGroup, JoinProtocol, OffsetCommitPartition, TxnOffsetCommit
from kgctl.serde.consumer_protocol import encode_assignment, encode_subscription
from kgctl.storage.folder import MemoryOffsetStorage, OffsetStorage, SqliteOffsetStorage, StoredOffset
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.storage import is_open

QUICK = {"group.initial.rebalance.delay.ms": "0"}
JOINS: dict[str, Any] = {
    "protocol_type": "consumer",
    "session_timeout_ms": 45_000,
    "rebalance_timeout_ms": 45_000,
    "protocols": (JoinProtocol(name="range", metadata=encode_subscription(ConsumerSubscription(topics=("orders",)))),),
}

HERE = __name__
PLACE = r"tests/library/test_coordinator\.py:\d+"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(QUICK, topics={"orders": 4}) as running:
        yield running


def test_a_member_joins_syncs_commits_and_leaves(coordinator: Coordinator) -> None:
    joined = coordinator.join("g", ["orders"], client_id="app")
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (1, joined.member_id, "range")
    assert joined.member_id.startswith("app-")
    assignment = coordinator.assign("g")
    assert assignment == {joined.member_id: {"orders": (0, 1, 2, 3)}}
    mine = coordinator.sync("g", joined, assignment)
    assert decode_assignment(mine) == {"orders": (0, 1, 2, 3)}
    coordinator.heartbeat("g", 1, joined.member_id)
    coordinator.commit(
        "g", {("orders", 0): 0, ("orders", 1): OffsetAndMetadata(7, "note")}, generation_id=1, member_id=joined.member_id
    )
    assert coordinator.fetch("g") == {
        TopicPartition("orders", 0): OffsetAndMetadata(0),
        TopicPartition("orders", 1): OffsetAndMetadata(7, "note"),
    }
    assert coordinator.fetch("g", [("orders", 2)]) == {}
    coordinator.leave("g", joined.member_id)
    assert coordinator.group("g").state is GroupState.EMPTY


def test_a_coordinator_is_of_the_version_that_is_asked_for() -> None:
    """4.2 has no interval between assignments."""
    interval = {"group.consumer.assignment.interval.ms": "5"}
    with Coordinator(interval, broker_version="4.3"):
        pass
    with pytest.raises(UsageError, match=r"in Kafka 4\.2; it came with 4\.3"):
        Coordinator(interval, broker_version="4.2")
    with pytest.raises(UsageError, match="unknown broker version '5'"):
        Coordinator(broker_version="5")


def test_a_group_can_be_looked_at(coordinator: Coordinator) -> None:
    joined = coordinator.join("g", ["orders"], client_id="app", group_instance_id="pod-0", session_timeout_ms=9_000)
    coordinator.sync("g", joined, coordinator.assign("g"))
    info = coordinator.group("g")
    (member,) = info.members
    assert (info.state, info.generation_id, info.leader, info.protocol_type) == (
        GroupState.STABLE, 1, joined.member_id, "consumer",
    )  # fmt: skip
    assert (member.state, member.session_timeout_ms, member.group_instance_id) == (MemberPhase.STABLE, 9_000, "pod-0")
    assert (member.subscription, member.assignment) == (("orders",), {"orders": (0, 1, 2, 3)})
    assert member.last_heartbeat_ms is None
    coordinator.heartbeat("g", 1, joined.member_id, group_instance_id="pod-0")
    (after,) = coordinator.group("g").members
    assert info.created_ms is not None
    assert after.last_heartbeat_ms is not None
    assert info.created_ms <= after.last_heartbeat_ms
    assert coordinator.list_groups() == ("g",)
    assert coordinator.statistics().members == {"classic": 1}


def test_what_the_leader_wrote_can_be_looked_at(coordinator: Coordinator) -> None:
    joined = coordinator.join("g", ["orders"])
    assert [(member.assignment_version, member.user_data) for member in coordinator.group("g").members] == [(None, None)]
    written = encode_assignment(ConsumerAssignment((TopicPartition("orders", 2),), user_data=b"zone-a", version=1))
    coordinator.sync("g", joined, {joined.member_id: written})
    (member,) = coordinator.group("g").members
    assert (member.assignment, member.assignment_version, member.user_data) == ({"orders": (2,)}, 1, b"zone-a")


def test_commits_are_held_against_their_logs(coordinator: Coordinator) -> None:
    coordinator.commit("g", {("orders", 0): 5, ("orders", 1): 5, ("orders", 2): 5})
    coordinator.validate("g", {("orders", 0): (0, 5), ("orders", 1): (5, 9), ("orders", 3): (8, 9)})
    with pytest.raises(CommitError, match=r"outside of the log: orders-0, orders-1$") as caught:
        coordinator.validate("g", {("orders", 0): (0, 4), ("orders", 1): (6, 9), ("orders", 2): (0, 9)})
    assert caught.value.code == "OFFSET_OUT_OF_RANGE"
    assert set(caught.value.errors) == {("orders", 0), ("orders", 1)}


def test_bytes_that_are_no_assignment() -> None:
    with pytest.raises(UsageError, match="3 bytes are no assignment"):
        decode_assignment(b"abc")


def test_a_group_whose_members_say_what_nobody_reads(coordinator: Coordinator) -> None:
    joined = coordinator.join("g", protocols={"own": b"?"})
    coordinator.sync("g", joined, {joined.member_id: b"!"})
    (member,) = coordinator.group("g").members
    assert (member.subscription, dict(member.assignment), coordinator.group("g").subscribed_topics) == ((), {}, ())


def test_a_rebalance_waits_and_can_be_completed(coordinator: Coordinator) -> None:
    first = coordinator.join("g", ["orders"], client_id="silent")
    coordinator.sync("g", first, coordinator.assign("g"))
    joined: list[Any] = []
    thread = threading.Thread(target=lambda: joined.append(coordinator.join("g", ["orders"], client_id="new")))
    thread.start()
    wait_until(lambda: coordinator.group("g").state is GroupState.PREPARING_REBALANCE, "the second member waits")
    with pytest.raises(BrokerError, match="REBALANCE_IN_PROGRESS"):
        coordinator.heartbeat("g", 1, first.member_id)
    status = coordinator.rebalance_status("g")
    assert status is not None
    assert [each.member_id for each in status.awaited] == [first.member_id]
    coordinator.complete_rebalance("g")
    thread.join(PATIENCE_S)
    assert joined[0].generation_id == 2
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        coordinator.heartbeat("g", 1, first.member_id)


def test_a_silent_member_is_put_out_by_the_clock() -> None:
    config = {**QUICK, "group.min.session.timeout.ms": "1"}
    with Coordinator(config, topics={"orders": 1}) as coordinator:
        joined = coordinator.join("g", ["orders"], session_timeout_ms=1_500)
        coordinator.sync("g", joined, coordinator.assign("g"))
        wait_until(lambda: coordinator.group("g").state is GroupState.EMPTY, "its session is over")


def test_any_number_of_coroutines_may_wait() -> None:
    count = 40

    async def member(members: AsyncCoordinator, number: int) -> dict[str, tuple[int, ...]]:
        joined = await members.join("g", ["orders"], client_id=f"app-{number}")
        plan = members.coordinator.assign("g", {"orders": count}) if joined.members else None
        return decode_assignment(await members.sync("g", joined, plan))

    async def run(coordinator: Coordinator) -> list[dict[str, tuple[int, ...]]]:
        members = AsyncCoordinator(coordinator)
        return await asyncio.gather(*(member(members, number) for number in range(count)))

    with Coordinator({"group.initial.rebalance.delay.ms": "300"}) as coordinator:
        assignments = asyncio.run(run(coordinator))
    assert sorted(each["orders"] for each in assignments) == [(number,) for number in range(count)]


class JsonFileStorage:
    """A storage of one's own, as the manual shows one: a JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, group_id: str, offsets: Any) -> None:
        everything = self._read()
        group = everything.setdefault(group_id, {})
        group |= {f"{topic}:{partition}": stored.as_dict() for (topic, partition), stored in offsets.items()}
        self._path.write_text(json.dumps(everything))

    def load(self, group_id: str) -> dict[TopicPartition, StoredOffset]:
        found = {}
        for name, fields in self._read().get(group_id, {}).items():
            topic, _, partition = name.rpartition(":")
            found[TopicPartition(topic, int(partition))] = StoredOffset.from_dict(fields)
        return found

    def delete(self, group_id: str, partitions: Sequence[TopicPartition] | None = None) -> None:
        everything = self._read()
        group = everything.pop(group_id, {})
        gone = set(group) if partitions is None else {f"{topic}:{partition}" for topic, partition in partitions}
        left = {name: fields for name, fields in group.items() if name not in gone}
        if left:
            everything[group_id] = left
        self._path.write_text(json.dumps(everything))

    def list(self) -> Iterable[str]:
        return self._read()

    def _read(self) -> dict[str, Any]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}


STORAGES: dict[str, Callable[[Path], OffsetStorage]] = {
    "memory": lambda _: MemoryOffsetStorage(),
    "sqlite": lambda folder: SqliteOffsetStorage(folder / "offsets.db"),
    "own": lambda folder: JsonFileStorage(folder / "offsets.json"),
}


@pytest.mark.parametrize("kind", STORAGES)
def test_offsets_survive_the_coordinator(tmp_path: Path, kind: str) -> None:
    storage = STORAGES[kind](tmp_path)
    with Coordinator(QUICK, storage) as first:
        first.commit("g", {("orders", 0): 0, ("orders", 1): OffsetAndMetadata(9, "é", 4), ("clicks", 0): 3})
        first.commit("other", {("orders", 0): 1})
        first.forget_offsets("g", [("clicks", 0)])
    with Coordinator(QUICK, storage) as second:
        assert second.fetch("g") == {
            TopicPartition("orders", 0): OffsetAndMetadata(0),
            TopicPartition("orders", 1): OffsetAndMetadata(9, "é", 4),
        }
        second.delete_group("g")
        assert list(storage.list()) == ["other"]
    if isinstance(storage, SqliteOffsetStorage):
        storage.close()


def test_a_commit_is_acknowledged_only_when_it_is_stored() -> None:
    class Failing(MemoryOffsetStorage):
        def save(self, group_id: str, offsets: Any) -> None:
            raise OSError("the store is away")

    with Coordinator(QUICK, Failing()) as coordinator:
        with pytest.raises(StorageError, match="the store is away"):
            coordinator.commit("g", {("orders", 0): 1})
        assert coordinator.list_groups() == ("g",)  # and it goes on


def test_sqlite_that_cannot_be_used_is_named(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    with pytest.raises(StorageError, match="no-such-folder"):
        SqliteOffsetStorage(tmp_path / "no-such-folder" / "offsets.db")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at by SQLite" * 40)
    with pytest.raises(StorageError, match="not a database"):
        SqliteOffsetStorage(tmp_path / "text.db")
    assert [is_open(each) for each in connections] == [False]


def test_what_cannot_work_says_what_to_do(coordinator: Coordinator) -> None:
    with pytest.raises(NotFoundError, match="join first"):
        coordinator.assign("nobody")
    with pytest.raises(NotFoundError):
        coordinator.group("nobody")
    with pytest.raises(UsageError, match=r"did you mean group\.max\.size"):
        Coordinator({"group.max.sice": "1"})
    coordinator.close()
    coordinator.close()
    for late in (coordinator.fetch, coordinator.group, coordinator.rebalance_status):
        with pytest.raises(ClosedError, match="make a new one on the same storage"):
            late("g")
    with pytest.raises(ClosedError):
        coordinator.statistics()


def test_a_join_that_waits_too_long_says_who_waits(coordinator: Coordinator) -> None:
    coordinator.join("g", ["orders"])
    with pytest.raises(
        TimedOutError, match=r"no answer within 0\.01 s; member 'app-.*' is in the group: ask again, or let it leave"
    ):
        coordinator.join("g", ["orders"], client_id="app", timeout_ms=10)
    assert [member.client_id for member in coordinator.group("g").members] == ["kgctl", "app"]


def test_who_waits_no_longer_stops_nobody(coordinator: Coordinator) -> None:
    """A task that is cancelled takes its future along; the answer that comes later is for nobody."""

    async def wait_in_vain() -> None:
        joining = asyncio.create_task(AsyncCoordinator(coordinator).join("g", ["orders"], client_id="late"))
        while "late" not in {member.client_id for member in coordinator.group("g").members}:
            await asyncio.sleep(0)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining

    coordinator.join("g", ["orders"])
    asyncio.run(wait_in_vain())
    coordinator.complete_rebalance("g")
    found = coordinator.group("g")
    assert (found.generation_id, [member.client_id for member in found.members]) == (2, ["late"])


def test_what_a_type_checker_would_have_found() -> None:
    with kgctl.Coordinator(topics={"orders": 1}) as coordinator:
        with pytest.raises(UsageError, match=r"topics is a list of names: \['orders'\]"):
            coordinator.join("payments", "orders")
        with pytest.raises(UsageError, match="orders-0: an offset is a number from 0 on, not 'x'"):
            coordinator.commit("payments", cast("Any", {("orders", 0): "x"}))
    with pytest.raises(UsageError, match=r"members is a list of names: \['a'\]"):
        kgctl.assign("range", topics={"orders": 1}, members="a")


def test_settings_can_be_read() -> None:
    with Coordinator({"group.max.size": "7"}) as coordinator:
        assert coordinator.config["group.max.size"] == 7
        assert coordinator.config["group.min.session.timeout.ms"] == 6_000


def test_the_commit_log_says_who_committed_what() -> None:
    with Coordinator(QUICK, clock_ms=lambda: 5) as coordinator:
        joined = coordinator.join("g", ["orders"])
        coordinator.sync("g", joined, {joined.member_id: {"orders": [0]}})
        coordinator.commit("g", {("orders", 0): 7}, generation_id=1, member_id=joined.member_id)
        coordinator.commit("other", {("orders", 0): OffsetAndMetadata(9, "note")})
        coordinator.forget_offsets("other")
        assert [(each.offset, each.timestamp_ms, each.member_id) for each in coordinator.commit_log("g")] == [
            (7, 5, joined.member_id)
        ]
        assert [(each.group, each.offset, each.metadata) for each in coordinator.commit_log()] == [
            ("g", 7, ""),
            ("other", 9, "note"),
            ("other", None, ""),
        ]
        assert (coordinator.group("g").session_timeout_ms, coordinator.group("g").rebalance_timeout_ms) == (45_000, 300_000)
        assert coordinator.group("other").session_timeout_ms is None


@pytest.mark.parametrize(("committed", "stored"), [(True, {("orders", 0): 7}), (False, {})])
def test_a_storage_gets_a_transaction_s_offsets_when_it_is_committed(committed: bool, stored: dict[Any, int]) -> None:
    storage = MemoryOffsetStorage()
    with Coordinator(QUICK, storage) as coordinator:
        of = {"producer_id": 1, "producer_epoch": 0}
        partition = OffsetCommitPartition(topic="orders", partition=0, offset=7)
        coordinator.ask(TxnOffsetCommit, group_id="g", partitions=(partition,), **of).result()
        assert storage.load("g") == {}
        coordinator.ask(EndTransaction, committed=committed, **of).result()
        assert {each: found.offset for each, found in storage.load("g").items()} == stored


class Unreadable(MemoryOffsetStorage):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def list(self) -> list[str]:
        return ["g"]

    def load(self, group_id: str) -> Any:
        return json.loads(self.answer) if isinstance(self.answer, str) else self.answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            "{no json",
            rf"the offset storage {HERE}:\S+, load\(\) failed \(.*{PLACE}\): JSONDecodeError: ",
        ),
        (
            {"orders": 5},
            rf"the offset storage {HERE}:\S+ has 'orders': 5 for group 'g', which is no commit",
        ),
        (
            {("orders", 0): 5},
            rf"the offset storage {HERE}:\S+ has \('orders', 0\): 5 for group 'g', which is no commit",
        ),
    ],
)
def test_a_storage_that_cannot_be_read(answer: Any, words: str) -> None:
    with pytest.raises(StorageError, match=words) as caught:
        Coordinator(QUICK, Unreadable(answer))
    assert isinstance(caught.value.__cause__, json.JSONDecodeError) == isinstance(answer, str)


def hashed(client_id: str, client_host: str) -> str:
    return f"{client_id}-{client_host.strip('/')}"


def test_an_id_that_is_in_use_is_that_member_s_who_joins_again() -> None:
    with Coordinator(QUICK, member_id=hashed, topics={"orders": 1}) as coordinator:
        first = coordinator.join("g", ["orders"], client_id="app")
        coordinator.sync("g", first, coordinator.assign("g"))
        again = coordinator.join("g", ["orders"], client_id="app")
        assert (first.member_id, again.member_id, again.generation_id) == ("app-127.0.0.1", "app-127.0.0.1", 2)
        coordinator.sync("g", again, coordinator.assign("g"))
        elsewhere = coordinator.ask(JoinGroup, group_id="g", client_id="app", client_host="/10.0.0.1", **JOINS).result()
        assert (elsewhere.error.name, elsewhere.member_id) == ("MEMBER_ID_REQUIRED", "app-10.0.0.1")
        assert [member.member_id for member in coordinator.group("g").members] == ["app-127.0.0.1"]
        coordinator.heartbeat("g", 2, "app-127.0.0.1")


def test_static_members_have_ids_of_their_instances() -> None:
    with Coordinator(QUICK, member_id=hashed, topics={"orders": 1}) as coordinator:
        for _ in range(2):
            joined = coordinator.join("g", ["orders"], client_id="app", group_instance_id="pod-0")
            assert joined.member_id == "pod-0-127.0.0.1"


def boom(client_id: str, client_host: str) -> str:
    raise ValueError("boom")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (boom, r"member_id failed \(.*tests/library/test_coordinator\.py:\d+\): ValueError: boom"),
        (
            lambda client_id, client_host: 7,
            rf"member_id \(.*{PLACE}\) answers 7 for 'app', not a text of 1 to 32767 bytes",
        ),
        (lambda client_id, client_host: "", rf"member_id \(.*{PLACE}\) answers '' for 'app', not a text of 1 to 32767 bytes"),
    ],
)
def test_a_maker_of_ids_that_fails(make: Any, words: str) -> None:
    with Coordinator(QUICK, member_id=make) as coordinator:
        with pytest.raises(UserCodeError, match=words):
            coordinator.join("g", ["orders"], client_id="app")
        assert coordinator.list_groups() == ()


def test_a_maker_of_the_client_id_alone_still_does() -> None:
    with pytest.warns(DeprecationWarning, match="takes a function of client id and client host"):
        coordinator = Coordinator(QUICK, member_id=cast("Any", lambda client_id: f"m-{client_id}"))
    with coordinator:
        assert coordinator.join("g", ["orders"], client_id="app").member_id == "m-app"
