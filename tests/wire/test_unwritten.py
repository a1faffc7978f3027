"""What cannot be written: each request that writes is told so and changes nothing, others notice nothing, and it works again."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.model.error_codes import ErrorCode
from kgctl.server import upkeep
from kgctl.server.background import BackgroundServer
from kgctl.storage import sqlite
from tests.support.members import wait_until
from tests.support.serve import FAST_GROUPS
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import RawClient

OFFSET_COMMIT, OFFSET_FETCH, LIST_GROUPS, DELETE_GROUPS = 8, 9, 16, 42
INIT_PRODUCER_ID, ADD_OFFSETS, END_TXN, TXN_OFFSET_COMMIT, OFFSET_DELETE, CONSUMER_HEARTBEAT = 22, 25, 26, 28, 47, 68
UNWRITTEN = int(ErrorCode.NOT_COORDINATOR)
WELL = 0


def topics_of(offset: int) -> list[dict[str, Any]]:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1, "committed_metadata": ""}
    return [{"name": "t", "partitions": [partition]}]


def commit(raw: RawClient, group: str, offset: int) -> int:
    values = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics_of(offset)}
    return int(raw.call(OFFSET_COMMIT, 8, values).topics[0].partitions[0].error_code)


def committed(raw: RawClient, group: str) -> int:
    asked = [{"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}]

    def fetch() -> Any:
        return raw.call(OFFSET_FETCH, 8, {"groups": asked, "require_stable": False}).groups[0]

    assert once_rebuilt(lambda: int(fetch().error_code)) == WELL
    return int(fetch().topics[0].partitions[0].committed_offset)


def once_rebuilt(ask: Callable[[], int]) -> int:
    """The code of an answer that is no longer that of a group which is being rebuilt from its log."""
    codes: list[int] = []

    def is_answered() -> bool:
        codes.append(ask())
        return codes[-1] != UNWRITTEN

    wait_until(is_answered, "the group is rebuilt")
    return codes[-1]


def delete(raw: RawClient, group: str) -> int:
    return int(raw.call(DELETE_GROUPS, 1, {"groups_names": [group]}).results[0].error_code)


def delete_offset(raw: RawClient, group: str) -> int:
    topics = [{"name": "t", "partitions": [{"partition_index": 0}]}]
    answer = raw.call(OFFSET_DELETE, 0, {"group_id": group, "topics": topics})
    return int(answer.error_code or answer.topics[0].partitions[0].error_code)


def consumer_heartbeat(raw: RawClient, member_id: str, epoch: int) -> Any:
    values = {
        "group_id": "k",
        "member_id": member_id,
        "member_epoch": epoch,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 60_000 if epoch == 0 else -1,
        "server_assignor": None,
        "subscribed_topic_names": ["t"] if epoch == 0 else None,
        "topic_partitions": [] if epoch == 0 else None,
    }
    return raw.call(CONSUMER_HEARTBEAT, 0, values)


def join_at_once(member: ClassicMember) -> int:
    """Join and sync; the code of the one that is refused."""
    answer = member.raw.call(11, 3, member._join())
    member.member_id, member.generation_id = answer.member_id or member.member_id, answer.generation_id
    return int(answer.error_code) or member.sync()


def groups(raw: RawClient) -> set[str]:
    return {group.group_id for group in raw.call(LIST_GROUPS, 0, {}).groups}


class Producer:
    """A transactional one."""

    def __init__(self, raw: RawClient) -> None:
        self.raw = raw
        asked = {"transactional_id": "tx", "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
        made = raw.call(INIT_PRODUCER_ID, 4, asked)
        self.names = {"transactional_id": "tx", "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}

    def add(self, group: str) -> int:
        return int(self.raw.call(ADD_OFFSETS, 3, {**self.names, "group_id": group}).error_code)

    def commit(self, group: str, offset: int) -> int:
        values = {**self.names, "group_id": group, "generation_id": -1, "member_id": "", "group_instance_id": None}
        answer = self.raw.call(TXN_OFFSET_COMMIT, 3, {**values, "topics": topics_of(offset)})
        return int(answer.topics[0].partitions[0].error_code)

    def end(self) -> int:
        return int(self.raw.call(END_TXN, 3, {**self.names, "committed": True}).error_code)


@contextmanager
def read_only(server: BackgroundServer, folder: Path) -> Iterator[None]:
    """A file that can no longer be written."""
    database = server.server.folder.record_log._database  # type: ignore[attr-defined]
    del folder
    database.rows("PRAGMA query_only = 1")
    try:
        yield
    finally:
        database.rows("PRAGMA query_only = 0")


@contextmanager
def locked(server: BackgroundServer, folder: Path) -> Iterator[None]:
    """Another program writes, and does not come to an end."""
    del server
    other = sqlite3.connect(folder / "coordinator.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def full(server: BackgroundServer, folder: Path) -> Iterator[None]:
    """Nothing behind what the files have now can be written."""
    del server
    size = max((folder / name).stat().st_size for name in ("coordinator.db", "coordinator.db-wal"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def durable(server: BackgroundServer) -> tuple[object, object]:
    """What the server has in memory, and what its log makes of an empty coordinator."""

    async def found() -> tuple[object, object]:
        again = GroupCoordinator(CoordinatorConfig(), str)
        for stored in server.server.folder.record_log.read():
            again.replay(stored.decode(), producer_id=stored.producer_id)
        return server.server.services.runtime.core.durable(), again.durable()

    return server.run(found())


@pytest.mark.parametrize("fault", [full, read_only, locked], ids=lambda fault: str(fault.__name__))
def test_what_cannot_be_written_is_told_changes_nothing_and_harms_nobody(
    fault: Callable[[BackgroundServer, Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sqlite, "LOCKED_S", 0.05)
    config = {**FAST_GROUPS, "group.consumer.assignors": "range"}
    with (
        BackgroundServer(topics={"t": 2}, config=config, data=tmp_path) as server,
        RawClient(server.bootstrap) as raw,
        RawClient(server.bootstrap) as other,
        RawClient(server.bootstrap) as third,
    ):
        witness, leaver, joiner = (
            ClassicMember(other, "w", ["t"]),
            ClassicMember(third, "c", ["t"]),
            ClassicMember(raw, "j", ["t"]),
        )
        witness.join()
        leaver.join()
        joined = consumer_heartbeat(raw, "", 0)
        consumer = (joined.member_id, joined.member_epoch)
        producer = Producer(raw)
        assert (producer.add("p"), producer.commit("p", 7), commit(raw, "g", 5), commit(raw, "h", 5)) == (0, 0, 0, 0)
        before = durable(server)
        assert before[0] == before[1]

        with fault(server, tmp_path):
            told = {
                "commit": commit(raw, "g", 6),
                "first commit": commit(raw, "new", 6),
                "delete": delete(raw, "h"),
                "delete offset": delete_offset(raw, "h"),
                "join": join_at_once(joiner),
                "leave": leaver.leave(),
                "consumer joins": consumer_heartbeat(raw, "", 0).error_code,
                "in a transaction": producer.commit("p", 8),
            }
            assert told == dict.fromkeys(told, UNWRITTEN)
            assert (witness.heartbeat(), once_rebuilt(leaver.heartbeat)) == (WELL, WELL)
            assert once_rebuilt(lambda: int(consumer_heartbeat(raw, *consumer).error_code)) == WELL
            assert [committed(raw, name) for name in ("g", "h", "new", "p")] == [5, 5, -1, -1]
            assert groups(raw) >= {"g", "h", "w", "c", "k"}
            assert "new" not in groups(raw)
            assert durable(server) == before

        wait_until(lambda: commit(raw, "g", 6) == WELL, "commits are taken again")
        again = (lambda: producer.commit("p", 8), lambda: commit(raw, "new", 6), lambda: delete(raw, "h"), leaver.leave)
        assert [once_rebuilt(ask) for ask in again] == [WELL] * 4
        joiner.join()
        witness.heartbeat()
        assert once_rebuilt(lambda: int(consumer_heartbeat(raw, *consumer).error_code)) == WELL
        assert producer.end() == WELL
        assert [committed(raw, name) for name in ("g", "new", "p")] == [6, 6, 8]
        memory, log = durable(server)
        assert memory == log
        server.server.services.runtime.core.check()
    assert "can be written again" in caplog.text
    assert caplog.text.count("cannot write to the log") < 5


def test_the_end_of_a_transaction_that_cannot_be_written_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "INTERVAL_S", 0.05)
    with BackgroundServer(topics={"t": 2}, data=tmp_path) as server, RawClient(server.bootstrap) as raw:
        producer = Producer(raw)
        assert (producer.add("p"), producer.commit("p", 7)) == (0, 0)
        with read_only(server, tmp_path):
            assert producer.end() == WELL
            assert producer.add("p") == int(ErrorCode.CONCURRENT_TRANSACTIONS)
            assert committed(raw, "p") == -1
        wait_until(lambda: producer.add("p") == WELL, "the markers are written")
        assert committed(raw, "p") == 7
        memory, log = durable(server)
        assert memory == log


def test_one_that_writes_and_others_that_cannot_are_told_apart(tmp_path: Path) -> None:
    """A record that the log cannot take is its own group's affair, though others are written with it."""
    with BackgroundServer(topics={"t": 2}, data=tmp_path) as server, RawClient(server.bootstrap) as raw:
        log = server.server.folder.record_log
        append = log.append

        def refuse_one(effects: Any, now_ms: int) -> None:
            if any(effect.record.key.group == "bad" for effect in effects):
                raise OverflowError("too large")
            append(effects, now_ms)

        log.append = refuse_one  # type: ignore[method-assign]
        names = [f"g{number}" for number in range(20)]
        with RawClient(server.bootstrap) as other:
            for name in (*names[:10], "bad", *names[10:]):
                values = {"group_id": name, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics_of(3)}
                other.send(OFFSET_COMMIT, 8, values)
            for _ in range(21):
                other.receive()
        assert [committed(raw, name) for name in names] == [3] * 20
        assert commit(raw, "bad", 3) == UNWRITTEN
        assert groups(raw) == set(names)
        assert durable(server)[0] == durable(server)[1]
