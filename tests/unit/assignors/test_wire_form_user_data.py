"""The sticky assignors' user data, byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kgctl.assignors.spec import StickyClaim
from kgctl.assignors.wire_form import decode_cooperative, decode_sticky, encode_cooperative, encode_sticky

OWNED = {"a": [2], "t": [0, 1]}
NEW = bytes.fromhex("00000002000161000000010000000200017400000002000000000000000100000005")
OLD = NEW[:-4]


def test_sticky_user_data_is_kafkas_bytes() -> None:
    assert encode_sticky(OWNED, 5) == NEW
    assert encode_sticky(OWNED, None) == OLD
    assert encode_sticky({}, 6) == bytes.fromhex("0000000000000006")


def _named(claim: StickyClaim) -> Mapping[str, Sequence[int]]:
    return claim.owned if isinstance(claim.owned, Mapping) else claim.owned.by_topic()


@pytest.mark.parametrize(
    ("data", "claim"),
    [
        (None, StickyClaim()),
        (b"", StickyClaim()),
        (NEW, StickyClaim(OWNED, 5)),
        (NEW + b"more", StickyClaim(OWNED, 5)),
        (OLD, StickyClaim(OWNED)),
        (OLD + b"\x00", StickyClaim(OWNED)),
        (b"\x00", StickyClaim(generation=-1)),
        (b"\xff\xff\xff\xff", StickyClaim(generation=-1)),
        (b"\x7f\xff\xff\xff\x00\x00", StickyClaim(generation=-1)),
        (b"\x00\x00\x00\x01\x00\x09abc\x00", StickyClaim(generation=-1)),
        (b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x05\x00", StickyClaim(generation=-1)),
        (b"\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff\x00", StickyClaim(generation=-1)),
    ],
)
def test_sticky_user_data_is_read_as_kafka_reads_it(data: bytes | None, claim: StickyClaim) -> None:
    found = decode_sticky(data)

    assert (_named(found), found.generation) == (_named(claim), claim.generation)


def test_a_topic_that_stands_twice_is_read_as_one() -> None:
    twice = b"\x00\x00\x00\x02" + 2 * b"\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x07"

    assert _named(decode_sticky(twice)) == {"a": [7, 7]}


@pytest.mark.parametrize(
    ("data", "generation"),
    [(None, None), (b"", -1), (b"\x00\x00", -1), (b"\x00\x00\x00\x05", 5), (b"\x00\x00\x00\x05xx", 5), (StickyClaim({}, 3), 3)],
)
def test_cooperative_user_data_is_read_as_kafka_reads_it(data: bytes | StickyClaim | None, generation: int | None) -> None:
    assert decode_cooperative(data) == generation


def test_cooperative_user_data_is_four_bytes() -> None:
    assert (encode_cooperative(-1), encode_cooperative(5)) == (b"\xff\xff\xff\xff", b"\x00\x00\x00\x05")
