"""What differs between Kafka's coordinator and the core over one sequence: field by field, and records byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kgctl.coordinator.effects import AppendRecord
from kgctl.model.records import TransactionMarker
from kgctl.serde.coordinator_records import encode_record
from tests.conformance.comparison import differences
from tests.conformance.world import World

Expectations = list[dict[str, Any]]


def verdict(case: dict[str, Any], expected: Expectations) -> list[str]:
    """One line for each difference; the core is run anew."""
    judged = {**case, "expect": without_bytes(expected)}
    world = World(judged)
    world.run()
    return [*differences(judged, world), *_bytes_that_differ(case, expected, world)]


def _bytes_that_differ(case: dict[str, Any], expected: Expectations, world: World) -> Iterator[str]:
    """Records that are not the same to the byte, or not in the same order."""
    theirs: dict[tuple[int, int | None], list[tuple[str, ...]]] = {}
    for entry in expected:
        if "records" in entry:
            theirs.setdefault((entry["at"], entry.get("step")), []).extend(map(_kafkas, entry["records"]))
    unordered = {step["step"] for step in case["steps"] if step["op"] in _UNORDERED}
    for place, wanted in theirs.items():
        got = [_own(entry) for entry in world.appended.get(place, [])]
        pairs = zip(sorted(wanted), sorted(got), strict=False) if place[1] in unordered else zip(wanted, got, strict=False)
        for their, our in pairs:
            if their[:2] != our[:2]:
                yield f"bytes at {place[0]} of step {place[1]}: {our}, expected {their}"
                break


_UNORDERED = {"leave", "delete_topic"}
"""In these Kafka goes through hash sets of whole objects, whose order nothing determines."""


def _kafkas(record: dict[str, Any]) -> tuple[str, ...]:
    if record["type"] == "marker":
        return ("marker", record["result"], "")
    return (record["key_hex"], record["value_hex"] or "tombstone", f"{record['type']} {record.get('member', '')}")


def _own(entry: AppendRecord) -> tuple[str, ...]:
    if isinstance(entry.record, TransactionMarker):
        return ("marker", "commit" if entry.record.committed else "abort", "")
    key, value = encode_record(entry.record)
    return (key.hex(), "tombstone" if value is None else value.hex(), str(entry.record))


def without_bytes(expected: Expectations) -> Expectations:
    """The expectations as a case of the conformance tests has them."""
    return [
        {**entry, "records": [_without_hex(record) for record in entry["records"]]} if "records" in entry else entry
        for entry in expected
    ]


def _without_hex(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if not key.endswith("_hex")}
