"""Batches at the limits of Produce, and what is no records: answered as Apache Kafka answers, field by field."""

from __future__ import annotations

import gzip
import re
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google_crc32c import value as crc32c

from kgctl.model.error_codes import ErrorCode
from kgctl.serde.record_batch import Record, build_batch, check_batch, iterate_batches
from kgctl.server.background import BackgroundServer
from kgctl.storage import batches
from tests.support.kafka import KafkaBroker, create_topic, unique
from tests.support.members import wait_until
from tests.support.wire.raw_client import RawClient

PRODUCE, FETCH, VERSION = 0, 1, 9
DELETE_RECORDS = 21
MOST_BYTES = 1_048_588
NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
GZIP, LOG_APPEND_TIME, CONTROL = 1, 8, 0x20
_HEADER = struct.Struct(">hiqqqhii")
_CRC_ENDS = 21
PLAIN = build_batch([Record(number, 1_000 + number, b"k", b"value") for number in range(3)])
BODY = PLAIN[_CRC_ENDS + _HEADER.size :]


def changed(batch: bytes = PLAIN, *, body: bytes | None = None, **fields: Any) -> bytes:
    """The batch with other fields or another body, and the checksum that belongs to it."""
    names = ("attributes", "last_delta", "base_ms", "newest_ms", "producer_id", "producer_epoch", "sequence", "count")
    values = dict(zip(names, _HEADER.unpack_from(batch, _CRC_ENDS), strict=True)) | fields
    rest = _HEADER.pack(*values.values()) + (batch[_CRC_ENDS + _HEADER.size :] if body is None else body)
    return struct.pack(">qiibI", 0, 9 + len(rest), -1, 2, crc32c(rest)) + rest


def zipped(body: bytes = BODY, **fields: Any) -> bytes:
    return changed(body=gzip.compress(body), attributes=GZIP, **fields)


def of_size(size: int) -> bytes:
    """One record in a batch of so many bytes."""
    empty = len(build_batch([Record(0, 1_000, None, bytes(MOST_BYTES - 1_000))])) - (MOST_BYTES - 1_000)
    return build_batch([Record(0, 1_000, None, bytes(size - empty))])


CASES = {
    "as large as may be": of_size(MOST_BYTES),
    "a byte larger": of_size(MOST_BYTES + 1),
    "two megabytes, compressed": zipped(build_batch([Record(0, 1_000, b"k", bytes(2_000_000))])[61:], count=1, last_delta=0),
    "one more counted": changed(count=4),
    "one fewer counted": changed(count=2),
    "none counted": changed(count=0),
    "a negative count": changed(count=-1),
    "as many as can be counted": changed(count=2**31 - 1),
    "one more counted and numbered": changed(count=4, last_delta=3),
    "one fewer counted and numbered": changed(count=2, last_delta=1),
    "one more, compressed": zipped(count=4, last_delta=3),
    "one fewer, compressed": zipped(count=2, last_delta=1),
    "a gap": changed(last_delta=5),
    "no records": changed(body=b"", count=0, last_delta=-1),
    "rubbish behind": changed(body=BODY + b"xx"),
    "rubbish behind, compressed": zipped(BODY + b"xx"),
    "rubbish behind what is compressed": changed(body=gzip.compress(BODY) + b"xx", attributes=GZIP),
    "compressed and cut off": changed(body=gzip.compress(BODY)[:-9], attributes=GZIP),
    "not compressed": changed(body=b"hello", attributes=GZIP),
    "a codec that there is not": changed(attributes=5),
    "a control batch": changed(attributes=CONTROL),
    "its time is the log's": changed(attributes=LOG_APPEND_TIME),
    "no newest time": changed(newest_ms=-1),
    "one of a year to come": build_batch([Record(number, 2**45 * (number == 1), b"k", b"v") for number in range(3)]),
    "before 1970": changed(base_ms=-5, newest_ms=-3),
    "two batches": PLAIN + PLAIN,
    "nothing": b"",
    "cut off": PLAIN[:-3],
    "a flipped bit": PLAIN[:-1] + bytes((PLAIN[-1] ^ 1,)),
    "a flipped bit in the count": PLAIN[:57] + bytes((PLAIN[57] ^ 0x80,)) + PLAIN[58:],
}


YEAR_MS = 365 * 86_400_000


def made_ago(ms: int) -> bytes:
    now_ms = int(time.time() * 1000)
    return build_batch([Record(number, now_ms - ms, b"k", b"v") for number in range(3)])


def keyless(count: int) -> bytes:
    return build_batch([Record(number, 1_000 + number, None, b"v") for number in range(count)])


BY_THE_TOPIC: dict[str, tuple[dict[str, str], Callable[[], bytes]]] = {
    "the log's own time": ({"message.timestamp.type": "LogAppendTime"}, lambda: made_ago(YEAR_MS)),
    "the log's own time, of one of a year to come": ({"message.timestamp.type": "LogAppendTime"}, lambda: made_ago(-YEAR_MS)),
    "the log's own time, compressed": ({"message.timestamp.type": "LogAppendTime"}, lambda: zipped(made_ago(9)[61:])),
    "an hour ago": ({"message.timestamp.before.max.ms": "60000"}, lambda: made_ago(3_600_000)),
    "just now": ({"message.timestamp.before.max.ms": "60000"}, lambda: made_ago(1_000)),
    "without a time": ({"message.timestamp.before.max.ms": "60000"}, lambda: changed(base_ms=-1, newest_ms=-1, body=BODY)),
    "ten minutes ahead": ({"message.timestamp.after.max.ms": "60000"}, lambda: made_ago(-600_000)),
    "two hours ahead": ({"message.timestamp.after.max.ms": "9000000"}, lambda: made_ago(-7_200_000)),
    "too large for its topic": ({"max.message.bytes": "100"}, lambda: PLAIN + b""),
    "without keys in a topic that is compacted": ({"cleanup.policy": "compact"}, lambda: keyless(5)),
    "without keys, compressed": ({"cleanup.policy": "delete,compact"}, lambda: zipped(keyless(2)[61:], count=2, last_delta=1)),
    "without keys and too late": (
        {"cleanup.policy": "compact", "message.timestamp.before.max.ms": "60000"},
        lambda: build_batch([Record(number, 1_000, None, b"v") for number in range(2)]),
    ),
    "one without a key, one too late": (
        {"cleanup.policy": "compact", "message.timestamp.before.max.ms": "60000"},
        lambda: build_batch([Record(0, 1_000, b"k", b"v"), Record(1, 1_000, None, b"v")]),
    ),
    "with keys in a topic that is compacted": ({"cleanup.policy": "compact"}, lambda: made_ago(1_000)),
    "just small enough": ({"max.message.bytes": str(len(PLAIN))}, lambda: PLAIN),
}
"""What a topic's own settings decide: the settings, and a batch."""


@pytest.fixture(scope="module")
def server() -> Iterator[BackgroundServer]:
    with BackgroundServer() as running:
        yield running


def answer_to(raw: RawClient, topic: str, batch: bytes) -> Any:
    """What is said to the batch, once the topic is known everywhere."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    values = {"transactional_id": None, "acks": -1, "timeout_ms": 30_000, "topic_data": data}
    found: list[Any] = []

    def is_known() -> bool:
        found.append(raw.call(PRODUCE, VERSION, values).responses[0].partition_responses[0])
        return found[-1].error_code not in NOT_YET

    wait_until(is_known, "the topic has a leader")
    return found[-1]


def answers(bootstrap: str) -> dict[str, str]:
    """What is said to each case, each to a topic of its own; times are left out."""
    said = {}
    with RawClient(bootstrap) as raw:
        for name, batch in CASES.items():
            topic = unique("produced")
            create_topic(bootstrap, topic, 1)
            said[name] = re.sub(r"within \[-\d+, \d+\]", "within [...]", repr(answer_to(raw, topic, batch)))
    return said


def answers_by_the_topic(bootstrap: str) -> dict[str, str]:
    """What is said to each case, and what is read then; times of now are left out."""
    said = {}
    with RawClient(bootstrap) as raw:
        for name, (config, batch) in BY_THE_TOPIC.items():
            topic = create_topic(bootstrap, unique("decided"), 1, config=config)
            found = answer_to(raw, topic, batch())
            asked = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
            values = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [{"topic": topic, "partitions": asked}]}
            read = bytes(raw.call(FETCH, 11, {**values, "isolation_level": 0}).responses[0].partitions[0].records or b"")
            kept = [(check_batch(read[at:]).is_log_append_time, header.record_count) for at, header in iterate_batches(read)]
            newest = [abs(header.max_timestamp_ms - time.time() * 1000) < 60_000 for _, header in iterate_batches(read)]
            said[name] = re.sub(r"\d{12,}", "...", repr(found).replace(topic, "TOPIC")) + f" {kept} {newest}"
    return said


@pytest.mark.kafka
def test_a_topic_s_own_settings_decide_as_in_kafka(server: BackgroundServer, kafka_broker: KafkaBroker) -> None:
    assert answers_by_the_topic(server.bootstrap) == answers_by_the_topic(kafka_broker.bootstrap)


@pytest.mark.kafka
def test_the_limits_are_those_of_kafka(server: BackgroundServer, kafka_broker: KafkaBroker) -> None:
    assert answers(server.bootstrap) == answers(kafka_broker.bootstrap)


def test_what_unpacks_to_too_much_is_too_large(server: BackgroundServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka unpacks whatever comes; here the memory and time of one batch have a bound."""
    monkeypatch.setattr(batches, "MAX_UNPACKED_BYTES", 1_000_000)
    create_topic(server.bootstrap, "bomb", 1)
    batch = zipped(build_batch([Record(0, 1_000, b"k", bytes(1_100_000))])[61:], count=1, last_delta=0)
    with RawClient(server.bootstrap) as raw:
        assert answer_to(raw, "bomb", batch).error_code is ErrorCode.MESSAGE_TOO_LARGE


def test_records_are_deleted_by_the_leader_alone() -> None:
    """kafkajs' own test of it passes on Apache Kafka: another broker is not the one to ask."""
    entry = {"name": "t", "partitions": [{"partition_index": 0, "offset": 0}]}
    with BackgroundServer(topics={"t": 1}, brokers=2) as server:
        answers = []
        for address in server.bootstrap.split(","):
            with RawClient(address) as raw:
                body = raw.call(DELETE_RECORDS, 2, {"topics": [entry], "timeout_ms": 9_000})
                answers.append(body.topics[0].partitions[0].error_code.name)
    assert sorted(answers) == ["NONE", "NOT_LEADER_OR_FOLLOWER"]
