"""Records of share and streams groups, as the history reads them."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.serde.coordinator_records import RecordDecodeError, UnknownValueVersionError
from kgctl.serde.epoch_groups import SCHEMAS, GroupRecord, interpreted, interpreted_key
from tests.support.pipeline.epoch_groups import RECORDS


@pytest.mark.parametrize(("key", "value", "key_found", "value_found"), RECORDS)
def test_records_are_read_as_those_of_the_consumer_protocol(key: str, value: str, key_found: Any, value_found: Any) -> None:
    record_type, raw = int(key[:4], 16), bytes.fromhex(key)
    assert interpreted(record_type, raw, bytes.fromhex(value)) == GroupRecord(key_found, value_found)
    assert interpreted(record_type, raw, None) == GroupRecord(key_found, None)


def test_every_type_is_here() -> None:
    assert {int(key[:4], 16) for key, *_ in RECORDS} == set(SCHEMAS)


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, value, *_ in RECORDS if not key.startswith("0017")])
def test_what_ends_early_is_damaged(key: str, value: str) -> None:
    raw, whole = bytes.fromhex(key), bytes.fromhex(value)
    for end in range(len(whole)):
        with pytest.raises(RecordDecodeError):
            interpreted(raw[1], raw, whole[:end])
    for end in range(2, len(raw)):
        with pytest.raises(RecordDecodeError):
            interpreted_key(raw[:end])
    with pytest.raises(UnknownValueVersionError):
        interpreted(raw[1], raw, b"\x00\x01" + whole[2:])
