"""Bytes that nobody meant: frames, records, segment files, subscriptions, assignments. Nothing may crash, hang or blow up."""

from __future__ import annotations

import random
import socket
import struct
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.errors import KgctlError
from kgctl.serde.consumer_protocol import decode_assignment, decode_subscription
from kgctl.serde.coordinator_records import RecordDecodeError, decode_record
from kgctl.serde.messages import encode_request
from kgctl.serde.record_batch import CorruptBatchError, Record, build_batch, check_batch, parse_header
from kgctl.serde.schemas import load_plan
from kgctl.server.background import BackgroundServer
from kgctl.server.service import default_registry
from kgctl.storage.batches import UnpackedTooLargeError, check_records, import_segments
from kgctl.storage.folder import memory_folder
from tests.support.fuzz_targets import TARGETS
from tests.support.patience import PATIENCE_S
from tests.support.wire.messages import random_values
from tests.support.wire.raw_client import RawClient

FRAMES = 1_500
DEEP_FRAMES = 2_000_000
LIST_GROUPS = 16
GOOD = build_batch([Record(n, n, b"key", b"value" * n) for n in range(5)])


@pytest.fixture
def server() -> Iterator[BackgroundServer]:
    config = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}
    with BackgroundServer(topics={"t": 2}, config=config) as running:
        yield running


def damaged(payload: bytes, rng: random.Random) -> bytes:
    """The payload with some bytes cut off, altered, doubled or added."""
    data = bytearray(payload)
    for _ in range(rng.randrange(4)):
        position = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                del data[position:]
            case 1:
                data[position : position + 1] = rng.randbytes(1)
            case 2:
                data[position:position] = rng.choice((b"\x7f\xff\xff\xff", b"\xff" * 5 + b"\x0f", b"\x80" * 9, rng.randbytes(3)))
            case _:
                data += data[position : position + 40]
    return bytes(data)


def throw(server: BackgroundServer, frames: int, seed: int) -> None:
    """Damaged frames of every API, over a new connection whenever one is closed; nobody else may notice."""
    rng = random.Random(seed)
    specs = default_registry().specs()
    host, _, port = server.bootstrap.rpartition(":")
    with RawClient(server.bootstrap) as witness:
        connection = socket.create_connection((host, int(port)))
        for number in range(frames):
            spec = rng.choice(specs)
            version = rng.randint(spec.min_version, spec.max_version)
            payload = encode_request(spec.key, version, number, "f", random_values(load_plan(spec.key, version, "request"), rng))
            payload = damaged(payload, rng) if rng.random() < 0.9 else rng.randbytes(rng.randrange(200))
            try:
                connection.sendall(struct.pack(">i", len(payload)) + payload)
                connection.setblocking(False)
                while connection.recv(1 << 20):
                    pass
                raise ConnectionResetError
            except BlockingIOError:
                connection.setblocking(True)
            except OSError:
                connection.close()
                connection = socket.create_connection((host, int(port)))
            if number % 500 == 0:
                assert witness.call(LIST_GROUPS, 4).error_code == 0
        connection.close()
        witness.socket.settimeout(PATIENCE_S)
        assert witness.call(LIST_GROUPS, 4).error_code == 0
    server.server.services.runtime.core.check()


def test_frames_that_nobody_meant(server: BackgroundServer) -> None:
    throw(server, FRAMES, 1)


@pytest.mark.deep
@pytest.mark.timeout(21_600)
def test_two_million_frames(server: BackgroundServer) -> None:
    throw(server, DEEP_FRAMES, 2)


ALPHABET = "abgtopicsmembers0123456789:=,-[]{}'\"#&*!|>%@\\ \t\n\r\ufeff\x00é"


@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=25)
@given(data=st.binary(max_size=200) | st.text(ALPHABET, max_size=120).map(str.encode))
def test_no_bytes_break_what_reads_them(name: str, data: bytes) -> None:
    TARGETS[name](data)


DIGITS = b"1" * 5_000
EXTREMES = (
    *(b"[" * 20_000, b'{"a":' * 20_000, b"- " * 5_000, b"\0" * 5_000, b"\xff" * 5_000),
    *(template % DIGITS for template in (b"%s", b"[%s]", b'{"id": %s}', b"topics: {t: %s}", b"a=%s", b"t,%s,0", b"id: 0x%s")),
    *(template % DIGITS for template in (b'[{"topic": "t", "partition": %s, "offset": 1}]', b"t:%s", b"2026-01-%s", b"%sms")),
)


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_depth_and_no_number_breaks_what_reads_them(name: str) -> None:
    for data in EXTREMES:
        TARGETS[name](data)


@pytest.mark.deep
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("name", sorted(TARGETS))
@settings(max_examples=20_000)
@given(data=st.binary(max_size=2_000) | st.text(ALPHABET, max_size=500).map(str.encode))
def test_no_bytes_break_what_reads_them_in_a_long_search(name: str, data: bytes) -> None:
    TARGETS[name](data)


@given(st.binary(max_size=200))
def test_no_bytes_break_what_reads_records_and_members(data: bytes) -> None:
    for read in (decode_subscription, decode_assignment):
        with suppress(ValueError):
            read(data)
    for key in (data, b"\0\1" + data, b"\0\2" + data, b"\0\3" + data):
        for value in (None, data):
            with suppress(RecordDecodeError):
                decode_record(key, value)


@given(st.integers(0, len(GOOD) - 1), st.binary(min_size=1, max_size=9))
def test_no_altered_batch_breaks_what_checks_it(position: int, patch: bytes) -> None:
    batch = GOOD[:position] + patch + GOOD[position + len(patch) :]
    tracemalloc.start()
    try:
        header = parse_header(batch)
        check_records(batch, header)
        check_batch(batch)
    except (CorruptBatchError, UnpackedTooLargeError):
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 10_000_000


@given(data=st.binary(max_size=300), position=st.integers(0, len(GOOD)))
def test_no_segment_file_breaks_the_import(tmp_path_factory: pytest.TempPathFactory, data: bytes, position: int) -> None:
    source = tmp_path_factory.mktemp("segments") / "__consumer_offsets-0"
    source.mkdir()
    (source / "00000000000000000000.log").write_bytes(GOOD[:position] + data)
    log = memory_folder(1).record_log
    try:
        import_segments(Path(source), log)
    except KgctlError:
        assert list(log.read()) == []
