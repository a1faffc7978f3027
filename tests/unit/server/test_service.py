"""Whole servers, in a thread."""

from __future__ import annotations

import gc
import json
import socket
from pathlib import Path

import pytest

from kgctl.errors import KgctlError, RefusedError, StorageError, UsageError
from kgctl.server.background import BackgroundServer
from kgctl.server.config import FILE_NAME
from tests.support.members import wait_until
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import ConnectionClosed, RawClient

METADATA, FIND_COORDINATOR, LIST_GROUPS, DESCRIBE_GROUPS, LIST_OFFSETS = 3, 10, 16, 15, 2
DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
GROUP_RESOURCE = 32


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(KgctlError, match=f"cannot listen on 127.0.0.1:{port}"), BackgroundServer(port=port):
            pass


def test_a_folder_in_use_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    with BackgroundServer(data=tmp_path / "data"), pytest.raises(RefusedError), BackgroundServer(data=tmp_path / "data"):
        pass
    with BackgroundServer(data=tmp_path / "data") as again:
        assert again.bootstrap.startswith("127.0.0.1:")


def test_a_bad_config_opens_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError), BackgroundServer(config={"nosuch": "1"}, data=tmp_path / "data"):
        pass

    assert not (tmp_path / "data").exists()


def test_topics_that_are_there_are_kept_and_grown(tmp_path: Path) -> None:
    for wanted, expected in (({"a": 2}, 2), ({"a": 1}, 2), ({}, 2), ({"a": 3}, 3)):
        with BackgroundServer(topics=wanted, data=tmp_path) as server, RawClient(server.bootstrap) as raw:
            (topic,) = raw.call(METADATA, 9, {"topics": [{"name": "a"}]}).topics

            assert len(topic.partitions) == expected


def test_a_log_that_can_neither_be_written_nor_read_ends_the_server_without_an_answer(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="disk gone"):
        commit_without_a_disk(BackgroundServer(topics={"t": 1}, data=tmp_path))


def commit_without_a_disk(server: BackgroundServer) -> None:
    with server, RawClient(server.bootstrap) as raw:
        log = server.server.folder.record_log
        log.append = log.read = _disk_is_gone  # type: ignore[method-assign,assignment]
        partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
        raw.send(8, 8, {"group_id": "g", "topics": [{"name": "t", "partitions": [partition]}]})
        with pytest.raises(ConnectionClosed):
            raw.receive()


def _disk_is_gone(*_: object, **__: object) -> None:
    raise StorageError("disk gone")


def test_status_tells_whom_a_rebalance_waits_for() -> None:
    config = {"group.initial.rebalance.delay.ms": "0"}
    with BackgroundServer(config=config) as server, RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        first = ClassicMember(raw, "g", ["t"])
        first.join(3)
        ClassicMember(other, "g", ["t"]).send_join(3)

        async def told() -> str:
            return json.dumps(server.server.describe())

        wait_until(lambda: json.loads(server.run(told()))["rebalances"] != [], "the join has been read")
        found = json.loads(server.run(told()))
        (rebalance,) = found["rebalances"]

    assert found["groups"] == [{"type": "classic", "state": "PreparingRebalance", "count": 1}]
    assert (rebalance["group_id"], rebalance["waiting_for"]) == ("g", "join")
    assert [member["member_id"] for member in rebalance["awaited"]] == [first.member_id]


def test_group_settings_are_altered_checked_and_kept(tmp_path: Path) -> None:
    def alter(raw: RawClient, **values: str) -> int:
        configs = [{"name": name.replace("_", "."), "config_operation": 0, "value": value} for name, value in values.items()]
        resources = [{"resource_type": GROUP_RESOURCE, "resource_name": "g", "configs": configs}]
        return int(raw.call(INCREMENTAL_ALTER_CONFIGS, 1, {"resources": resources}).responses[0].error_code)

    def session_timeout(raw: RawClient) -> tuple[str, int]:
        resources = [
            {"resource_type": GROUP_RESOURCE, "resource_name": "g", "configuration_keys": ["consumer.session.timeout.ms"]}
        ]
        (config,) = raw.call(DESCRIBE_CONFIGS, 4, {"resources": resources}).results[0].configs
        return config.value, config.config_source

    with BackgroundServer(data=tmp_path) as server, RawClient(server.bootstrap) as raw:
        assert session_timeout(raw) == ("45000", 5)
        assert alter(raw, consumer_session_timeout_ms="50000") == 0
        assert alter(raw, consumer_session_timeout_ms="1") == 40
        assert alter(raw, nosuch="1") == 40
    assert json.loads((tmp_path / FILE_NAME).read_text())["data"] == {"g": {"consumer.session.timeout.ms": "50000"}}
    with BackgroundServer(data=tmp_path) as server, RawClient(server.bootstrap) as raw:
        assert session_timeout(raw) == ("50000", 8)


def test_several_brokers_share_groups_and_partitions_and_one_can_stop() -> None:
    groups = [f"g{number}" for number in range(12)]
    config = {"group.initial.rebalance.delay.ms": "0"}
    with BackgroundServer(topics={"t": 6}, config=config, brokers=3) as server:
        addresses = server.bootstrap.split(",")
        connections = [RawClient(address) for address in addresses]
        found = {group: connections[0].call(FIND_COORDINATOR, 3, {"key": group, "key_type": 0}).node_id for group in groups}
        for group, node_id in found.items():
            for number, raw in enumerate(connections, start=1):
                error = ClassicMember(raw, group, ["t"]).heartbeat()

                assert error == (25 if number == node_id else 16)
            ClassicMember(connections[node_id - 1], group, ["t"]).join(3)
        listed = {
            number: [group.group_id for group in raw.call(LIST_GROUPS, 4).groups]
            for number, raw in enumerate(connections, start=1)
        }

        assert {group: number for number, ids in listed.items() for group in ids} == found
        assert len(set(found.values())) == 3

        server.run(server.server.stop_broker(2))
        with pytest.raises(ConnectionClosed):
            connections[1].call(LIST_GROUPS, 4)
        metadata = connections[0].call(METADATA, 9, {"topics": [{"name": "t"}]})

        assert [broker.node_id for broker in metadata.brokers] == [1, 3]
        assert sorted({int(partition.error_code) for partition in metadata.topics[0].partitions}) == [0, 5]

        server.run(server.server.start_broker(2))
        with RawClient(addresses[1]) as again:
            assert [group.group_id for group in again.call(LIST_GROUPS, 4).groups] == listed[2]
        for raw in connections:
            raw.close()


def test_who_connects_while_the_server_ends_is_not_left_open(recwarn: pytest.WarningsRecorder) -> None:
    for _ in range(5):
        with BackgroundServer() as server:
            raw = RawClient(server.bootstrap)
        raw.close()
        gc.collect()

    assert [str(one.message) for one in recwarn if "unclosed" in str(one.message)] == []


@pytest.mark.parametrize(("version", "there"), [("4.2", False), ("4.3", True)])
def test_groups_have_the_settings_of_the_broker_s_version(version: str, *, there: bool) -> None:
    asked = {"resource_type": GROUP_RESOURCE, "resource_name": "g", "configuration_keys": None}
    with BackgroundServer(config={"kgctl.broker.version": version}) as server, RawClient(server.bootstrap) as raw:
        found = raw.call(DESCRIBE_CONFIGS, 4, {"resources": [asked], "include_synonyms": False, "include_documentation": False})
    names = {each.name for each in found.results[0].configs}
    assert ("streams.assignment.interval.ms" in names, "streams.session.timeout.ms" in names) == (there, True)
