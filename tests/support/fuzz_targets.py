"""What reads bytes and texts of strangers, by name: each takes any bytes, and raises nothing but what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from kgctl.admin.connect import load_config_file
from kgctl.admin.notation import parse_offset_file
from kgctl.admin.properties import load_command_config
from kgctl.admin.times import parse_duration_ms, parse_instant_ms
from kgctl.admin.topic_scopes import parse_topic_scopes
from kgctl.errors import KgctlError
from kgctl.serde.consumer_protocol import decode_assignment, decode_subscription
from kgctl.serde.coordinator_records import RecordDecodeError, decode_record
from kgctl.serde.frames import FrameReader, MalformedMessage, UnsupportedVersion
from kgctl.serde.messages import decode_request, decode_response
from kgctl.serde.record_batch import CorruptBatchError, check_batch, iterate_batches, parse_header
from kgctl.serde.share_state_records import decode_record as decode_state_record
from kgctl.server.operator import MalformedOperation, _parse
from kgctl.server.service import default_registry
from kgctl.simulate.assign.groups import read_groups
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.sources import read_source
from kgctl.storage.batches import UnpackedTooLargeError, check_records, first_at_or_after, import_segments
from kgctl.storage.folder import memory_folder
from kgctl.yaml_files import FileError

_SPECS = default_registry().specs()


def frames(data: bytes) -> None:
    """Frames of a connection, and the requests in them."""
    with suppress(MalformedMessage, UnsupportedVersion):
        for payload in FrameReader(1 << 20).receive(data):
            decode_request(payload)


def requests(data: bytes) -> None:
    """A request of any API."""
    with suppress(MalformedMessage, UnsupportedVersion):
        decode_request(data)


def responses(data: bytes) -> None:
    """A response of any API, as a client reads it."""
    spec = _SPECS[(data[0] if data else 0) % len(_SPECS)]
    version = spec.min_version + (data[1] if len(data) > 1 else 0) % (spec.max_version - spec.min_version + 1)
    with suppress(MalformedMessage, UnsupportedVersion):
        decode_response(spec.key, version, data[2:])


def operations(data: bytes) -> None:
    """What an operator asks."""
    with suppress(MalformedOperation):
        _parse(data)


def members(data: bytes) -> None:
    """Subscriptions and assignments."""
    for read in (decode_subscription, decode_assignment):
        with suppress(ValueError):
            read(data)


def records(data: bytes) -> None:
    """Records of the coordinator's log."""
    middle = len(data) // 2
    for key, value in ((data, None), (data[:middle], data[middle:])):
        with suppress(RecordDecodeError):
            decode_record(key, value)


def state_records(data: bytes) -> None:
    """Records of the share coordinator's log."""
    middle = len(data) // 2
    for kind in (b"", b"\0\0", b"\0\1"):
        for key, value in ((kind + data, None), (kind + data[:middle], data[middle:])):
            with suppress(RecordDecodeError):
                decode_state_record(key, value)


def batches(data: bytes) -> None:
    """Record batches."""
    with suppress(CorruptBatchError, UnpackedTooLargeError):
        header = parse_header(data)
        first_at_or_after(data, header, 1, 0)
        check_records(data, header)
    with suppress(CorruptBatchError):
        check_batch(data)
    with suppress(CorruptBatchError):
        list(iterate_batches(data))


def segments(data: bytes) -> None:
    """Segment files of a broker."""
    with TemporaryDirectory() as where:
        source = Path(where) / "__consumer_offsets-0"
        source.mkdir()
        (source / "00000000000000000000.log").write_bytes(data)
        with suppress(KgctlError):
            import_segments(Path(where), memory_folder(1).record_log)


def _in_a_file(data: bytes, name: str, read: Callable[[Path], object]) -> None:
    with TemporaryDirectory() as where:
        path = Path(where) / name
        path.write_bytes(data)
        with suppress(KgctlError, FileError):
            read(path)


def properties(data: bytes) -> None:
    """A Java client's settings."""
    _in_a_file(data, "client.properties", load_command_config)


def config_files(data: bytes) -> None:
    """kgctl's own configuration."""
    _in_a_file(data, "config.yaml", load_config_file)


def offset_files(data: bytes) -> None:
    """Plans, backups, exports: CSV, JSON, YAML."""
    with suppress(KgctlError):
        parse_offset_file(data.decode("utf-8", "replace"), "plan.csv", ())


def scenarios(data: bytes) -> None:
    """Scenario files."""
    _in_a_file(data, "scenario.yaml", lambda path: load(read_source(str(path))))


def group_files(data: bytes) -> None:
    """Files of groups for `simulate assign`: YAML, JSON, JSON lines."""
    for name in ("groups.yaml", "groups.json", "groups.jsonl"):
        _in_a_file(data, name, lambda path: list(read_groups([str(path)], StringIO(), lambda _: None)))


def words(data: bytes) -> None:
    """Values of flags: times, spans, topics with partitions."""
    text = data.decode("utf-8", "replace")
    for read in (parse_instant_ms, parse_duration_ms, lambda each: parse_topic_scopes([each])):
        with suppress(KgctlError):
            read(text)


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    each.__name__: each
    for each in (
        *(frames, requests, responses, operations, members, records, state_records, batches, segments),
        *(properties, config_files, offset_files, scenarios, group_files, words),
    )
}
