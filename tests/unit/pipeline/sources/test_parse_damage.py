"""Damage of every kind: named, counted, and never at the cost of a good batch."""

from __future__ import annotations

import struct

import pytest
from google_crc32c import value as crc32c
from hypothesis import given
from hypothesis import strategies as st

from kgctl.pipeline.sources.parse import parse_log
from kgctl.serde.record_batch import HEADER_BYTES, build_batch
from tests.support.pipeline.segments import CODECS, commit_like, compressed, message, rows, segment

FIVE = [segment([4], first_offset=4 * number) for number in range(5)]


def with_checksum(batch: bytes) -> bytes:
    """The batch with a checksum that is right."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


@given(st.integers(0, 4), st.integers(0, len(FIVE[0]) - 1), st.integers(1, 255))
def test_one_changed_byte_costs_at_most_its_own_batch(number: int, place: int, change: int) -> None:
    batches = list(FIVE)
    broken = bytearray(batches[number])
    broken[place] ^= change
    batches[number] = bytes(broken)
    parsed = parse_log(b"".join(batches), 0)
    found = {offset for offset, *_ in rows(parsed.table())}
    others = {offset for offset in range(20) if offset // 4 != number}
    if 8 <= place < 12 or place >= 16:
        lost = parsed.torn > 0 if number == 4 and not parsed.damaged else parsed.damaged != []
        assert (found, lost) == (others, True)
        assert sum(damage.size for damage in parsed.damaged) + parsed.torn == len(FIVE[0])
    else:  # base offset and leader epoch are not under the checksum
        assert others <= found
        assert parsed.damaged == []


@given(st.binary(max_size=300), st.integers(0, 5))
def test_rubbish_between_batches(rubbish: bytes, place: int) -> None:
    data = b"".join([*FIVE[:place], rubbish, *FIVE[place:]])
    parsed = parse_log(data, 0)
    assert [offset for offset, *_ in rows(parsed.table())] == list(range(20))
    lost = sum(damage.size for damage in parsed.damaged) + parsed.torn
    assert lost == len(rubbish) or (lost == 0 and place == 5 and not any(rubbish))


@given(st.binary(max_size=2_000))
def test_any_bytes_at_all(data: bytes) -> None:
    parsed = parse_log(data, 0)
    assert parsed.records == 0
    assert sum(damage.size for damage in parsed.damaged) + parsed.torn == len(data) or not any(data)


@given(st.data())
def test_any_payload_with_a_right_checksum(data: st.DataObject) -> None:
    """A producer that writes nonsense and signs it: its batch is kept aside, its neighbours are read."""
    payload = data.draw(st.binary(max_size=120))
    codec = data.draw(st.sampled_from([*CODECS.values(), 5, 7]))
    count = data.draw(st.integers(-2, 40) | st.just(2**31 - 1))
    head = bytearray(FIVE[2][:HEADER_BYTES])
    struct.pack_into(">i", head, 8, len(payload) + 49)
    struct.pack_into(">h", head, 21, codec)
    struct.pack_into(">i", head, 57, count)
    nonsense = with_checksum(bytes(head) + payload)
    parsed = parse_log(FIVE[0] + FIVE[1] + nonsense + FIVE[3], 0)
    parsed.table().validate(full=True)
    found = rows(parsed.table())
    expected = [tuple(commit_like(offset))[:4] for offset in range(20)]
    assert (found[:8], found[len(found) - 4 :]) == (expected[:8], expected[12:16])
    if parsed.damaged:
        (damage,) = parsed.damaged
        assert (damage.position, damage.size, len(found)) == (len(FIVE[0]) * 2, len(nonsense), 12)


@pytest.mark.parametrize("codec", [name for name in CODECS if name != "none"])
def test_compressed_data_that_cannot_be_read(codec: str) -> None:
    good = compressed(FIVE[1], codec)
    cut = bytearray(good[: len(good) - 12])
    struct.pack_into(">i", cut, 8, len(cut) - 12)
    parsed = parse_log(FIVE[0] + with_checksum(bytes(cut)) + FIVE[2], 0)
    assert [offset for offset, *_ in rows(parsed.table())] == [0, 1, 2, 3, 8, 9, 10, 11]
    (damage,) = parsed.damaged
    assert (damage.base_offset, damage.records, damage.data) == (4, 4, with_checksum(bytes(cut)))


def test_damage_is_described() -> None:
    newer = bytearray(FIVE[1])
    newer[16] = 3
    broken = bytearray(FIVE[3])
    broken[-1] ^= 1
    parsed = parse_log(b"".join([FIVE[0], bytes(newer), FIVE[2], bytes(broken), FIVE[4]]), 0)
    size = len(FIVE[0])
    assert [damage.describe() for damage in parsed.damaged] == [
        f"at byte {size}: a record batch of format 3; formats up to 2 can be read ({size} bytes)",
        f"at byte {3 * size}: wrong checksum ({size} bytes, 4 records from offset 12)",
    ]


def test_two_damaged_batches_in_a_row_are_two() -> None:
    broken = [bytearray(batch) for batch in FIVE[1:3]]
    for batch in broken:
        batch[70] ^= 0x40
    parsed = parse_log(FIVE[0] + b"".join(map(bytes, broken)) + FIVE[3], 0)
    assert [(damage.base_offset, damage.records) for damage in parsed.damaged] == [(4, 4), (8, 4)]


def test_a_damaged_message_of_an_old_format_costs_itself() -> None:
    messages = [message(offset, b"k" * 40, b"v" * 40, timestamp_ms=9) for offset in range(3)]
    broken = messages[1][:-1] + b"w"
    parsed = parse_log(messages[0] + broken + messages[2] + segment([1], first_offset=3), 0)
    assert sorted(offset for offset, *_ in rows(parsed.table())) == [0, 2, 3]
    assert [(damage.position, damage.size, damage.reason) for damage in parsed.damaged] == [
        (len(messages[0]), len(broken), "a damaged message of format 1")
    ]


@pytest.mark.parametrize("left", [8, 11, 17, 60, 61, 62, 100])
def test_a_torn_end_is_no_damage(left: int) -> None:
    parsed = parse_log(b"".join([*FIVE[:4], FIVE[4][:left]]), 0)
    assert (parsed.damaged, parsed.torn, parsed.records) == ([], left, 16)


def test_room_that_was_not_written_yet_is_no_damage() -> None:
    parsed = parse_log(b"".join(FIVE) + bytes(100_000), 0)
    assert (parsed.damaged, parsed.torn, parsed.records) == ([], 0, 20)


def test_much_damage_is_passed_in_one_go() -> None:
    """Every other of 2,000 batches is broken."""
    batches = [bytearray(build_batch([commit_like(offset)])) for offset in range(2_000)]
    for batch in batches[::2]:
        batch[-1] ^= 1
    parsed = parse_log(b"".join(map(bytes, batches)), 0)
    assert (parsed.records, len(parsed.damaged)) == (1_000, 1_000)
