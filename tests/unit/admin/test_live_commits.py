"""The quick reader of OffsetFetch's answers and the general one say the same of every answer, and of every damaged one."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from kgctl.admin import live
from kgctl.serde.frames import MalformedMessage
from kgctl.serde.messages import decode_response, encode_response
from kgctl.wire.asking import Failure

OFFSET_FETCH = 9
VERSIONS = (8, 9)
METADATA = ("", "", "", "\0", "note", "ä" * 80, None)
ERRORS = (0, 0, 0, 0, 0, 0, 0, 14, 30)


def partition(rng: random.Random, number: int, metadata: str | None) -> dict[str, Any]:
    return {
        "partition_index": number,
        "committed_offset": rng.choice((-1, 0, 5, 2**62)),
        "committed_leader_epoch": rng.choice((-1, 0, 7)),
        "metadata": rng.choice(METADATA) if rng.random() < 0.1 else metadata,
        "error_code": rng.choice(ERRORS) if rng.random() < 0.1 else 0,
    }


def answer(rng: random.Random, version: int) -> bytes:
    groups = []
    for group in range(rng.randrange(4)):
        topics = []
        for topic in rng.sample(("b", "a", "a-long-name" * 20, "c"), rng.randrange(4)):
            metadata, numbers = rng.choice(METADATA), rng.sample(range(300), rng.choice((0, 1, 3, 200)))
            topics.append({"name": topic, "partitions": [partition(rng, number, metadata) for number in numbers]})
        groups.append({"group_id": f"group-{group}", "topics": topics, "error_code": rng.choice(ERRORS)})
    return encode_response(OFFSET_FETCH, version, rng.randrange(2**31), {"throttle_time_ms": 3, "groups": groups})


def generally(version: int, payload: bytes) -> object:
    correlation_id, response = decode_response(OFFSET_FETCH, version, payload)
    return correlation_id, {group.group_id: live._committed(group) for group in response.groups}


def result(read: Any, version: int, payload: bytes) -> object:
    try:
        correlation_id, found = read(version, payload)
    except MalformedMessage:
        return MalformedMessage
    # the order counts too: rows are shown in it
    return correlation_id, [(group, v if isinstance(v, Failure) else list(v.items())) for group, v in found.items()]


def quickly(version: int, payload: bytes) -> object:
    return live._read_commits(OFFSET_FETCH, version, payload)


def is_plain(payload: bytes) -> bool:
    try:
        return live._plain_commits(payload) is not None
    except (IndexError, struct.error):
        return False


@pytest.mark.parametrize("version", VERSIONS)
def test_both_readers_say_the_same(version: int) -> None:
    rng = random.Random(version)
    plain = 0
    for _ in range(300):
        payload = answer(rng, version)
        assert result(quickly, version, payload) == result(generally, version, payload)
        plain += is_plain(payload)
    assert 20 < plain < 280  # neither way is left out


@pytest.mark.parametrize("version", VERSIONS)
def test_both_readers_say_the_same_of_damaged_bytes(version: int) -> None:
    rng = random.Random(version)
    for _ in range(300):
        payload = bytearray(answer(rng, version))
        for _ in range(rng.randrange(1, 4)):
            payload[rng.randrange(len(payload))] = rng.randrange(256)
        damaged = bytes(payload[: rng.choice((len(payload), rng.randrange(len(payload))))])
        assert result(quickly, version, damaged) == result(generally, version, damaged)


def test_commits_as_librdkafka_and_java_write_them_are_read_quickly() -> None:
    for metadata in ("", "\0"):
        rows = [{"partition_index": n, "committed_offset": n, "metadata": metadata, "error_code": 0} for n in (2, 10, 1)]
        group = {"group_id": "g", "topics": [{"name": "t", "partitions": rows}], "error_code": 0}
        found = live._plain_commits(encode_response(OFFSET_FETCH, 8, 1, {"throttle_time_ms": 0, "groups": [group]}))
        assert found is not None
        assert [(p.partition, commit.offset, commit.metadata) for p, commit in found["g"].items()] == [
            (1, 1, ""),
            (2, 2, ""),
            (10, 10, ""),
        ]
