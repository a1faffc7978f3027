"""The reader on kgctl's own connection, against a broker that answers what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest

from kgctl.errors import AuthError, BrokerError, KgctlError, NotFoundError, RefusedError, UnreachableError, UnsupportedError
from kgctl.pipeline.sources.live import OFFSETS_TOPIC, LogOffsetRow, WireReader, open_reader
from kgctl.serde.messages import DecodedRequest
from kgctl.wire.connection import FETCH, LIST_OFFSETS, METADATA
from tests.support.fake_broker import CLOSE, FakeBroker
from tests.support.patience import PATIENCE_MS
from tests.support.pipeline.segments import rows, segment

TOPIC_ID = UUID(int=0xABCDEF)
FIVE = [segment([4], first_offset=4 * number) for number in range(5)]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as fake:
        fake.handlers[METADATA] = lambda request: layout(fake, request)
        fake.handlers[LIST_OFFSETS] = bounds
        yield fake


@pytest.fixture
def reader(broker: FakeBroker) -> Iterator[WireReader]:
    made = WireReader({"bootstrap.servers": broker.address}, PATIENCE_MS)
    yield made
    made.close()


def layout(broker: FakeBroker, request: DecodedRequest) -> dict[str, Any]:
    asked = [topic.name for topic in request.body.topics] if request.body.topics is not None else [OFFSETS_TOPIC, "t"]
    partition = {"leader_id": 1, "replica_nodes": [1], "isr_nodes": [1], "offline_replicas": []}
    topics = [
        {"name": name, "topic_id": TOPIC_ID, "partitions": [{**partition, "partition_index": number} for number in range(2)]}
        for name in asked
    ]
    brokers = [{"node_id": 1, "host": "127.0.0.1", "port": broker.port}]
    return {"brokers": brokers, "cluster_id": "the-cluster", "controller_id": 1, "topics": topics}


def bounds(request: DecodedRequest) -> dict[str, Any]:
    """Partition 1 has an error; the start is 3, the end 20."""
    topics = []
    for topic in request.body.topics:
        partitions = []
        for each in topic.partitions:
            code = 0 if each.partition_index == 0 else 29
            offset = 3 if each.timestamp == -2 else 20
            partitions.append({"partition_index": each.partition_index, "error_code": code, "offset": offset})
        topics.append({"name": topic.name, "partitions": partitions})
    return {"topics": topics}


def answering(records: bytes, *, error: int = 0, high_watermark: int = 20) -> Any:
    def answer(request: DecodedRequest) -> dict[str, Any]:
        partitions = [
            {"partition_index": each.partition, "error_code": error, "high_watermark": high_watermark, "records": records}
            for topic in request.body.topics
            for each in topic.partitions
        ]
        return {"responses": [{"topic": OFFSETS_TOPIC, "partitions": partitions}]}

    return answer


def test_bounds_ids_and_errors(reader: WireReader) -> None:
    state = reader.log_state()
    assert (state.cluster_id, state.log_id, state.bounds) == ("the-cluster", "AAAAAAAAAAAAAAAAAKvN7w", {0: (3, 20)})
    assert [type(error) for error in state.errors.values()] == [AuthError]
    assert state.errors[1].message == "__consumer_offsets-1: TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("highest", [4, 5, 11, 12])
def test_a_batch_comes_whole_and_what_was_read_already_is_left_out(broker: FakeBroker, reader: WireReader, highest: int) -> None:
    broker.versions[FETCH] = (4, highest)
    broker.handlers[FETCH] = answering(FIVE[1] + FIVE[2] + FIVE[3][:50])
    parts, errors = reader.fetch({0: 6}, 0)
    part = parts[0]
    assert [offset for offset, *_ in rows(part.table)] == [6, 7, 8, 9, 10, 11]
    assert (part.next_offset, part.damaged, errors) == (12, [], {})
    (asked,) = broker.asked(FETCH)
    assert [(each.partition, each.fetch_offset) for each in asked.topics[0].partitions] == [(0, 6)]


def test_nothing_new(broker: FakeBroker, reader: WireReader) -> None:
    broker.handlers[FETCH] = answering(b"")
    parts, _ = reader.fetch({0: 20}, 0)
    assert (parts[0].table.num_rows, parts[0].next_offset) == (0, 20)


def test_damage_that_comes_alone_is_passed(broker: FakeBroker, reader: WireReader) -> None:
    """A broker gives it again each time it is asked for the same offset."""
    broken = bytearray(FIVE[2])
    broken[-1] ^= 1
    broker.handlers[FETCH] = answering(bytes(broken))
    parts, _ = reader.fetch({0: 8}, 0)
    assert (parts[0].table.num_rows, parts[0].next_offset, len(parts[0].damaged)) == (0, 12, 1)


@pytest.mark.parametrize(("code", "kind"), [(1, RefusedError), (29, AuthError), (56, BrokerError), (3, NotFoundError)])
def test_errors_of_a_partition(
    broker: FakeBroker, reader: WireReader, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[KgctlError]
) -> None:
    monkeypatch.setattr("kgctl.wire.asking._LEADER_PATIENCE", 0.0)  # errors that pass are not waited for
    broker.handlers[FETCH] = answering(b"", error=code)
    parts, errors = reader.fetch({0: 8, 1: 9}, 0)
    assert (parts, [type(error) for error in errors.values()]) == ({}, [kind, kind])
    assert errors[1].partition == 1


def test_log_offsets_of_topics(broker: FakeBroker, reader: WireReader) -> None:
    found, errors = reader.log_offsets(["t"])
    assert found == [LogOffsetRow("t", 0, 3, 20), LogOffsetRow("t", 1, None, None)]
    assert [error.message for error in errors] == ["t-1: TOPIC_AUTHORIZATION_FAILED"]
    assert {row.topic for row in reader.log_offsets(None)[0]} == {"t", OFFSETS_TOPIC}
    assert reader.log_offsets([]) == ([], [])


def test_topics_that_cannot_be_sampled_are_named_but_for_deleted_ones(broker: FakeBroker, reader: WireReader) -> None:
    codes = {"gone": 3, "hidden": 29, "t": 0}

    def answer(request: DecodedRequest) -> dict[str, Any]:
        found = layout(broker, request)
        topics = [{**topic, "error_code": code} for topic in found["topics"] if (code := codes[topic["name"]]) == 0]
        others = [
            {"name": name, "topic_id": TOPIC_ID, "error_code": code, "partitions": []} for name, code in codes.items() if code
        ]
        return {**found, "topics": [*topics, *others]}

    broker.handlers[METADATA] = answer
    rows, errors = reader.log_offsets(["t", "gone", "hidden"])
    assert {row.topic for row in rows} == {"t"}
    assert [error.message for error in errors] == ["hidden: TOPIC_AUTHORIZATION_FAILED", "t-1: TOPIC_AUTHORIZATION_FAILED"]


@pytest.mark.parametrize(("code", "kind"), [(3, NotFoundError), (29, AuthError), (5, BrokerError)])
def test_a_topic_that_is_not_to_be_had(broker: FakeBroker, reader: WireReader, code: int, kind: type[KgctlError]) -> None:
    def answer(request: DecodedRequest) -> dict[str, Any]:
        found = layout(broker, request)
        return {**found, "topics": [{**topic, "error_code": code, "partitions": []} for topic in found["topics"]]}

    broker.handlers[METADATA] = answer
    with pytest.raises(kind, match=OFFSETS_TOPIC):
        reader.log_state()


def test_a_broker_that_hangs_up(broker: FakeBroker, reader: WireReader) -> None:
    broker.handlers[FETCH] = lambda _: CLOSE
    with closing(WireReader({"bootstrap.servers": broker.address}, 500)) as hasty, pytest.raises(UnreachableError):
        hasty.fetch({0: 8}, 0)


GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def test_who_reads() -> None:
    kerberos = {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(UnsupportedError, match="the SASL mechanism GSSAPI: use --reader confluent"):
        open_reader(kerberos, 1_000, "wire")
    reader, why = open_reader({"bootstrap.servers": "a:1"}, 1_000)
    assert (type(reader), why) == (WireReader, None)
    tokens = {**kerberos, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.grant.type": GRANT}
    reader, why = open_reader(tokens, 1_000)
    reader.close()
    assert (type(reader).__name__, why) == ("ConfluentReader", f"sasl.oauthbearer.grant.type {GRANT}")
