"""Frames out of a stream of bytes."""

from __future__ import annotations

import random

import pytest

from kgctl.serde.frames import FrameReader, FrameTooLarge, MalformedFrame, frame

SIZES = (0, 1, 2, 126, 127, 128, 16_383, 16_384, 70_000)


def test_frames_come_out_whole_however_the_stream_is_cut() -> None:
    rng = random.Random(1)
    payloads = [rng.randbytes(size) for size in SIZES]
    stream = b"".join(map(frame, payloads))
    for _ in range(200):
        cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(40)))
        reader = FrameReader(100_000)
        received = [
            payload
            for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
            for payload in reader.receive(stream[start:end])
        ]

        assert received == payloads
        assert reader.pending_bytes == 0


def test_a_frame_byte_by_byte_appears_with_its_last_byte() -> None:
    reader = FrameReader(10)
    stream = frame(b"abc")

    assert [reader.receive(stream[i : i + 1]) for i in range(len(stream))] == [[], [], [], [], [], [], [b"abc"]]


def test_a_length_above_the_limit_is_refused_before_its_bytes_arrive() -> None:
    reader = FrameReader(10)
    reader.receive(frame(b"0123456789"))
    with pytest.raises(FrameTooLarge, match="11 bytes, the limit is 10"):
        reader.receive(b"\x00\x00\x00\x0b")


def test_a_negative_length_is_malformed() -> None:
    with pytest.raises(MalformedFrame, match="-1 bytes"):
        FrameReader(10).receive(b"\xff\xff\xff\xff")
