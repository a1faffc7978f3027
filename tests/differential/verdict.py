"""What differs between Kafka's coordinator and the core over one sequence: field by field, and records byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.profile import Profile
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.serde.coordinator_records import decode_record, encode_record, older_value
from kgctl.serde.partition_metadata import decode_partition_metadata
from tests.conformance.comparison import differences
from tests.conformance.world import World
from tests.differential.oracle import Expectations

Place = tuple[int, int | None]
Bytes = tuple[str, str | None]
"""Key and value in hex, None for a tombstone; for the end of a transaction "marker" and how it ends."""

_PARTITION_METADATA = "0004"
_UNORDERED = {"leave", "delete_topic"}
"""In these Kafka goes through hash sets of whole objects, whose order nothing determines."""


def verdict(case: dict[str, Any], expected: Expectations, world: World | None = None) -> list[str]:
    """What differs, one line each. ``world`` is what the core did over the case, if that is known already."""
    judged = {**case, "expect": without_bytes(expected)}
    if world is None:
        world = World(judged)
        world.run()
    return [*differences(judged, world), *_records(case, expected, world), *_calls(expected, world)]


def _calls(expected: Expectations, world: World) -> Iterator[str]:
    """Calls that are not the same, or not in the same order, of topics and partitions too."""
    theirs = [(entry["at"], entry["call"]) for entry in expected if "call" in entry]
    for number in range(max(len(theirs), len(world.elsewhere.made))):
        wanted, got = theirs[number : number + 1], world.elsewhere.made[number : number + 1]
        if wanted != got:
            yield f"call {number}: {got}, expected {wanted}"
            return


def _records(case: dict[str, Any], expected: Expectations, world: World) -> Iterator[str]:
    """Records that are not the same to the byte, or do not stand in the same order."""
    theirs: dict[Place, list[Bytes]] = {}
    profile = world.driver.config.profile
    for entry in expected:
        if "records" in entry:
            theirs.setdefault((entry["at"], entry.get("step")), []).extend(map(_kafkas, entry["records"]))
    unordered = {step["step"] for step in case["steps"] if step["op"] in _UNORDERED}
    for place, wanted in theirs.items():
        got = [_own(entry, profile) for entry in world.appended.get(place, [])]
        in_any_order = place[1] in unordered
        pairs = zip(*(sorted(each, key=str) if in_any_order else each for each in (wanted, got)), strict=False)
        for their, our in pairs:
            if their != our and not _name_the_same_topics(their, our):
                yield f"bytes at {place[0]} of step {place[1]}: {_shown(our)}, expected {_shown(their)}"
                break


def _decoded(record: Bytes) -> Any:
    return decode_record(bytes.fromhex(record[0]), None if record[1] is None else bytes.fromhex(record[1]))


def _shown(record: Bytes) -> str:
    return f"{record} {'' if record[0] == 'marker' else _decoded(record)}"


def _kafkas(record: dict[str, Any]) -> Bytes:
    return ("marker", record["result"]) if record["type"] == "marker" else (record["key_hex"], record["value_hex"])


def _own(entry: AppendRecord, profile: Profile) -> Bytes:
    if isinstance(entry.record, TransactionMarker):
        return ("marker", "commit" if entry.record.committed else "abort")
    key, value = encode_record(entry.record)
    if not profile.keeps_topic_ids:
        value = older_value(key, value)
    return (key.hex(), None if value is None else value.hex())


def _name_the_same_topics(their: Bytes, our: Bytes) -> bool:
    """Whether both are records of a group's topics, as before 4.1, that differ in their order alone: a hash map decides it."""
    if their[0] != our[0] or not their[0].startswith(_PARTITION_METADATA) or their[1] is None or our[1] is None:
        return False
    return set(decode_partition_metadata(bytes.fromhex(their[1]))) == set(decode_partition_metadata(bytes.fromhex(our[1])))


def without_bytes(expected: Expectations) -> Expectations:
    """The expectations as a case of the conformance tests has them."""
    return [
        {**entry, "records": [_without_hex(record) for record in entry["records"]]} if "records" in entry else entry
        for entry in expected
    ]


def _without_hex(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if not key.endswith("_hex")}
