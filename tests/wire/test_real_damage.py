"""Full disks, connections that are cut, processes that stand still or are killed: what was acknowledged stays, others go on."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.frames import frame
from kgctl.serde.messages import encode_request
from kgctl.serde.record_batch import Record, build_batch
from kgctl.server.background import BackgroundServer
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import FAST_GROUPS, ServeFactory, ServeProcess
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.proxy import Proxy
from tests.support.wire.raw_client import ConnectionClosed, RawClient

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, LIST_GROUPS = 0, 1, 2, 3, 8, 9, 16
CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 19, 20, 21, 22, 24, 25, 26
CREATE_PARTITIONS, INCREMENTAL_ALTER_CONFIGS = 37, 44
STORAGE, NOT_COORDINATOR, UNKNOWN = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR, 3
GROUP_RESOURCE = 32
Answer = Callable[[RawClient], Any]
GONE = (ConnectionClosed, OSError)
GROUPS = [f"g{number}" for number in range(40)]


def commit_values(group: str, offset: int, metadata: str = "") -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": metadata}
    topics = [{"name": "t", "partitions": [partition]}]
    return {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}


def commit(raw: RawClient, group: str, offset: int, metadata: str = "") -> int:
    return int(raw.call(OFFSET_COMMIT, 8, commit_values(group, offset, metadata)).topics[0].partitions[0].error_code)


def committed(raw: RawClient, groups: list[str]) -> dict[str, int]:
    """Each group's offset; -1 for none."""
    asked = [{"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]} for group in groups]
    found = raw.call(OFFSET_FETCH, 8, {"groups": asked, "require_stable": False}).groups
    return {group.group_id: group.topics[0].partitions[0].committed_offset for group in found}


def produce(raw: RawClient) -> int:
    batch = build_batch([Record(0, 1, None, os.urandom(20_000))])
    data = [{"name": "t", "partition_data": [{"index": 0, "records": batch}]}]
    values = {"transactional_id": None, "acks": -1, "timeout_ms": 1_000, "topic_data": data}
    return int(raw.call(PRODUCE, 9, values).responses[0].partition_responses[0].error_code)


def end_offset(raw: RawClient) -> int:
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    return int(
        raw.call(LIST_OFFSETS, 4, {"replica_id": -1, "isolation_level": 0, "topics": topics}).topics[0].partitions[0].offset
    )


def writes(producer: dict[str, Any]) -> dict[str, tuple[Answer, int]]:
    """Each request that writes a file, and its answer where nothing can be written."""
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    records = [{"name": "t", "partitions": [{"partition_index": 0, "offset": 1}]}]
    configs = [{"name": "consumer.session.timeout.ms", "config_operation": 0, "value": "50000"}]
    resources = [{"resource_type": GROUP_RESOURCE, "resource_name": "g", "configs": configs}]
    begun = {f"v3_and_below_{name}": value for name, value in producer.items()}
    added = {**begun, "v3_and_below_topics": [{"name": "t", "partitions": [0]}]}
    newcomer = {"transactional_id": "new", "transaction_timeout_ms": 1_000, "producer_id": -1, "producer_epoch": -1}
    return {
        "produce": (produce, STORAGE),
        "create": (lambda raw: raw.call(CREATE_TOPICS, 7, {"topics": [topic], "timeout_ms": 1}).topics[0].error_code, STORAGE),
        "grow": (
            lambda raw: (
                raw.call(CREATE_PARTITIONS, 1, {"topics": [{"name": "t", "count": 9, "assignments": None}], "timeout_ms": 1})
                .results[0]
                .error_code
            ),
            STORAGE,
        ),
        "delete": (
            lambda raw: raw.call(DELETE_TOPICS, 5, {"topic_names": ["u"], "timeout_ms": 1}).responses[0].error_code,
            STORAGE,
        ),
        "delete records": (
            lambda raw: raw.call(DELETE_RECORDS, 1, {"topics": records}).topics[0].partitions[0].error_code,
            STORAGE,
        ),
        "alter": (
            lambda raw: raw.call(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources}).responses[0].error_code,
            STORAGE,
        ),
        "made by metadata": (
            lambda raw: [
                raw.call(METADATA, 9, {"topics": [{"name": "auto"}], "allow_auto_topic_creation": True}).topics[0].error_code
                for _ in range(2)  # the answer that makes it does not know it yet
            ][-1],
            UNKNOWN,
        ),
        "new producer": (lambda raw: raw.call(INIT_PRODUCER_ID, 4, newcomer).error_code, NOT_COORDINATOR),
        "add partitions": (
            lambda raw: (
                raw.call(ADD_PARTITIONS, 3, added).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            NOT_COORDINATOR,
        ),
        "add offsets": (lambda raw: raw.call(ADD_OFFSETS, 3, {**producer, "group_id": "g"}).error_code, NOT_COORDINATOR),
        "end": (lambda raw: raw.call(END_TXN, 3, {**producer, "committed": True}).error_code, NOT_COORDINATOR),
    }


def limit_files(server: ServeProcess, most_bytes: int) -> None:
    """From now on nothing behind so many bytes of a file can be written; what is before can."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))


def begin_transaction(raw: RawClient) -> dict[str, Any]:
    """A producer whose transaction has a partition."""
    asked = {"transactional_id": "tx", "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    made = raw.call(INIT_PRODUCER_ID, 4, asked)
    producer = {"transactional_id": "tx", "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
    assert raw.call(ADD_OFFSETS, 3, {**producer, "group_id": "first"}).error_code == 0
    return producer


def test_a_full_disk_refuses_each_write_with_kafkas_code_and_nothing_else(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve({"t": 1, "u": 1}, {}, tmp_path / "data")
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as witness:
        assert (produce(raw), commit(raw, "g", 5)) == (0, 0)
        asked = writes(begin_transaction(raw))
        member = ClassicMember(witness, "w", ["t"])
        member.join()
        limit_files(server, 0)
        assert {name: int(ask(raw)) for name, (ask, _) in asked.items()} == {name: int(code) for name, (_, code) in asked.items()}
        assert (end_offset(raw), committed(raw, ["g"]), member.heartbeat()) == (1, {"g": 5}, 0)
        limit_files(server, resource.RLIM_INFINITY)
        assert {name: int(ask(raw)) for name, (ask, _) in asked.items() if name != "end"} == dict.fromkeys(
            [name for name in asked if name != "end"], 0
        )
        assert (int(asked["end"][0](raw)), commit(raw, "g", 6)) == (0, 0)
    code, errors = server.terminate()
    assert (code, "Traceback" in errors, errors.count("cannot write")) == (
        0,
        False,
        len(errors.splitlines()) - errors.count("again"),
    )


@pytest.mark.parametrize(
    "room", [100_000, *(pytest.param(room, marks=pytest.mark.deep) for room in (0, 30_000, 300_000, 1 << 20))]
)
def test_commits_on_a_full_disk_are_refused_and_no_acknowledged_one_is_lost(
    tmp_path: Path, kgctl_serve: ServeFactory, room: int
) -> None:
    server = kgctl_serve({"t": 1}, data=tmp_path / "data")
    acknowledged: dict[str, int] = {}
    refused = 0
    limit_files(server, room)
    with RawClient(server.bootstrap) as raw:
        for number in range(5_000):
            code = commit(raw, f"g{number % 40}", number, "m" * 2_000)
            if code == 0:
                acknowledged[f"g{number % 40}"] = number
            assert code in (0, NOT_COORDINATOR)
            refused += code != 0
            if refused == 100:
                break
        assert refused == 100
        assert {group: offset for group, offset in committed(raw, GROUPS).items() if offset != -1} == acknowledged
        limit_files(server, resource.RLIM_INFINITY)
        wait_until(lambda: commit(raw, "g0", 9_999) == 0, "the disk is back")
        acknowledged["g0"] = 9_999
    server.kill()
    again = kgctl_serve(data=tmp_path / "data")
    with RawClient(again.bootstrap) as raw:
        assert {group: offset for group, offset in committed(raw, GROUPS).items() if offset != -1} == acknowledged


def cut_everywhere() -> list[tuple[str, int]]:
    """Each place of a commit's frame, and of its answer's."""
    request = len(encode_request(OFFSET_COMMIT, 8, 1, "raw", commit_values("g", 1))) + 4
    return [(way, place) for way, size in (("cut_requests", request), ("cut_answers", 30)) for place in range(1, size)]


@pytest.mark.parametrize("with_reset", [False, True])
def test_a_connection_that_is_cut_in_a_frame_harms_nobody(with_reset: bool) -> None:
    with BackgroundServer(topics={"t": 1}) as server, RawClient(server.bootstrap) as witness:
        for number, (way, place) in enumerate(cut_everywhere()):
            proxy = Proxy(server.bootstrap, with_reset=with_reset, **{way: place})
            with proxy, RawClient(proxy.address) as raw, pytest.raises(GONE):
                commit_twice(raw, number)
            found = committed(witness, ["g"])["g"]
            assert found in ((number, number - 1) if way == "cut_requests" else (number,)) or found == -1
            assert commit(witness, "g", number) == 0
        server.server.services.runtime.core.check()


def commit_twice(raw: RawClient, offset: int) -> None:
    """The second one finds the end of a connection that was cut behind the first."""
    for _ in range(2):
        commit(raw, "g", offset)


def test_a_connection_that_brings_a_byte_at_a_time_is_answered() -> None:
    with (
        BackgroundServer(topics={"t": 1}) as server,
        Proxy(server.bootstrap, delay_s=0.0005, piece_bytes=1) as proxy,
        RawClient(proxy.address) as raw,
    ):
        assert commit(raw, "g", 3) == 0
        assert committed(raw, ["g"]) == {"g": 3}


def test_clients_that_never_read_and_half_open_ones_keep_nobody_waiting() -> None:
    """Answers that nobody takes, half a frame, a connection without a word: twenty of each."""
    with BackgroundServer(topics={"t": 1}) as server:
        idle = [RawClient(server.bootstrap) for _ in range(60)]
        for raw in idle[:20]:
            for _ in range(50):
                raw.send(METADATA, 9, {"topics": None})
        for raw in idle[20:40]:
            raw.socket.sendall(b"\0\0\1\0abc")
        with RawClient(server.bootstrap) as other:
            assert [commit(other, "g", number) for number in range(50)] == [0] * 50
        for raw in idle:
            raw.close()


STOPS_ITSELF = """
import os, signal, socket, sys
frame = sys.stdin.buffer.read()
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(frame[:int(sys.argv[2])])
os.kill(os.getpid(), signal.SIGSTOP)
connection.sendall(frame[int(sys.argv[2]):])
sys.exit(len(connection.recv(4)) != 4)
"""


@pytest.mark.parametrize(("size", "at"), [(0, 30), (4_000, 3_000), (30_000, 20_000)])
def test_a_client_that_stands_still_in_the_middle_of_a_frame_keeps_nobody_waiting(size: int, at: int) -> None:
    sent = frame(encode_request(OFFSET_COMMIT, 8, 1, "raw", commit_values("stopped", 3, "m" * size)))
    with BackgroundServer(topics={"t": 1}, config=FAST_GROUPS) as server, RawClient(server.bootstrap) as other:
        member = ClassicMember(other, "w", ["t"])
        member.join()
        command = [sys.executable, "-S", "-c", STOPS_ITSELF, server.bootstrap.rpartition(":")[2], str(at)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as client:
            assert client.stdin is not None
            client.stdin.write(sent)
            client.stdin.close()
            assert os.WIFSTOPPED(os.waitpid(client.pid, os.WUNTRACED)[1])
            assert [commit(other, "g", number) for number in range(20)] == [0] * 20
            assert (member.heartbeat(), committed(other, ["stopped"])) == (0, {"stopped": -1})
            client.send_signal(signal.SIGCONT)
            assert client.wait(PATIENCE_S) == 0
        assert committed(other, ["stopped"]) == {"stopped": 3 if size <= 4_096 else -1}


def test_a_server_that_stood_still_goes_on_with_its_members(tmp_path: Path, kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve({"t": 1}, data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        member = ClassicMember(raw, "g", ["t"])
        member.join()
        server.process.send_signal(signal.SIGSTOP)
        other.send_payload(encode_request(OFFSET_COMMIT, 8, 77, "raw", commit_values("h", 4)))
        server.process.send_signal(signal.SIGCONT)
        other.receive()
        assert (member.heartbeat(), committed(raw, ["h"])) == (0, {"h": 4})
    assert server.terminate() == (0, "")


@pytest.mark.parametrize("kills", [1, pytest.param(20, marks=pytest.mark.deep)])
@pytest.mark.timeout(1_800)
def test_no_acknowledged_commit_is_lost_by_kills_under_load(tmp_path: Path, kgctl_serve: ServeFactory, kills: int) -> None:
    rng = random.Random(kills)
    acknowledged: dict[str, int] = {}
    for _ in range(kills):
        server = kgctl_serve({"t": 1}, data=tmp_path / "data")
        with RawClient(server.bootstrap) as raw:
            found = committed(raw, sorted(acknowledged)) if acknowledged else {}
            assert all(found[group] >= offset for group, offset in acknowledged.items())
        enough = threading.Event()
        threads = [
            threading.Thread(target=commit_on, args=(server.bootstrap, f"g{number}", acknowledged, enough, rng.randint(30, 300)))
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        enough.wait()
        server.kill()
        for thread in threads:
            thread.join()
    server = kgctl_serve(data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw:
        found = committed(raw, sorted(acknowledged))
    assert len(found) == 8
    assert all(found[group] >= offset for group, offset in acknowledged.items())


def commit_on(address: str, group: str, acknowledged: dict[str, int], enough: threading.Event, at_least: int) -> None:
    """Commit ascending offsets until the server is gone; ``enough`` is set when that may be."""
    number = acknowledged.get(group, 0)
    try:
        with RawClient(address) as raw:
            for count in range(1_000_000):
                number += 1
                assert commit(raw, group, number) == 0
                acknowledged[group] = number
                if count == at_least:
                    enough.set()
    except GONE:
        enough.set()
