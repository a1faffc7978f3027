"""Compares what was seen with what a case expects. Written cases name only what they mean, recorded ones everything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.conformance.world import GIVEN, Case, World


def differences(case: Case, world: World) -> Iterator[str]:
    """One line for each thing that is not as expected."""
    for entry in case["expect"]:
        if "step" in entry and "records" not in entry:
            yield from _compare_reply(entry, world)
        elif "member" in entry:
            yield from _compare_member(entry, world)
        elif "group" in entry and "end" not in case:
            yield from _compare_state(entry, world)
    if "end" in case:
        yield from _compare_groups(case, world)
        yield from _compare_offsets(case, world)
        yield from _compare_records(case, world)


def _compare_reply(entry: dict[str, Any], world: World) -> Iterator[str]:
    at, reply = world.replies.get(entry["step"], (None, None))
    where = f"step {entry['step']}"
    if "no_reply" in entry:
        if reply is not None:
            yield f"{where}: answered at {at} with {reply}, expected no answer"
    elif "pending_at" in entry:
        if at is not None and at <= entry["pending_at"]:
            yield f"{where}: answered at {at}, expected to be parked at {entry['pending_at']}"
    elif reply is None:
        yield f"{where}: not answered, expected {entry['reply']}"
    elif "at" in entry and at != entry["at"]:
        yield f"{where}: answered at {at}, expected at {entry['at']}"
    elif not agrees(entry["reply"], reply):
        yield f"{where}: answered {reply}, expected {entry['reply']}"


def _compare_state(entry: dict[str, Any], world: World) -> Iterator[str]:
    seen = _at(world.groups.get(entry.get("id", "g"), []), entry["at"], {"exists": False})
    if not agrees(entry["group"], seen):
        yield f"group at {entry['at']}: {seen}, expected {entry['group']}"


def _compare_member(entry: dict[str, Any], world: World) -> Iterator[str]:
    group = _at(world.groups.get(entry.get("id", "g"), []), entry["at"], {"details": []})
    members = {detail["id"]: detail for detail in group["details"]}
    seen = dict(members.get(entry["member"]["id"], {}))
    for key in ("assigned", "revoking"):
        seen[key] = sorted(seen.get(key, {}))
    if not agrees(entry["member"], seen):
        yield f"member at {entry['at']}: {seen}, expected {entry['member']}"


def _at(changes: list[tuple[int, Any]], time: int, before: Any) -> Any:
    return next((value for at, value in reversed(changes) if at <= time), before)


def _compare_groups(case: Case, world: World) -> Iterator[str]:
    """Every change of every group."""
    expected: dict[str, list[tuple[int, Any]]] = {}
    for entry in case["expect"]:
        if "group" in entry:
            expected.setdefault(entry.get("id", "g"), []).append((entry["at"], entry["group"]))
    for group_id in sorted({*world.groups, *expected}):
        seen = _changes(world.groups.get(group_id, []), {"exists": False})
        yield from _compare_changes(f"group {group_id}", sorted(expected.get(group_id, []), key=_time), seen)


def _compare_offsets(case: Case, world: World) -> Iterator[str]:
    expected: dict[str, list[tuple[int, Any]]] = {}
    for entry in case["expect"]:
        if "offsets" in entry:
            expected.setdefault(entry.get("id", "g"), []).append((entry["at"], entry["offsets"]))
    for group_id in sorted({*world.offsets, *expected}):
        seen = _changes(world.offsets.get(group_id, []), {})
        yield from _compare_changes(f"offsets of {group_id}", sorted(expected.get(group_id, []), key=_time), seen)


def _time(change: tuple[int, Any]) -> int:
    return change[0]


def _changes(seen: list[tuple[int, Any]], absent: Any) -> list[tuple[int, Any]]:
    """Without the view that the case starts with, or the one of a group that came and went in one instant."""
    return seen[1:] if seen and (seen[0][0] == GIVEN or seen[0][1] == absent) else seen


def _compare_changes(what: str, expected: list[tuple[int, Any]], seen: list[tuple[int, Any]]) -> Iterator[str]:
    for index in range(max(len(expected), len(seen))):
        wanted = expected[index] if index < len(expected) else None
        got = seen[index] if index < len(seen) else None
        if wanted is None or got is None or wanted[0] != got[0] or canonical(wanted[1]) != canonical(got[1]):
            yield f"{what}: {got}, expected {wanted}"
            return


def _compare_records(case: Case, world: World) -> Iterator[str]:
    expected: dict[tuple[int, int | None], list[dict[str, Any]]] = {}
    for entry in case["expect"]:
        if "records" in entry:
            expected.setdefault((entry["at"], entry.get("step")), []).extend(map(_without_version, entry["records"]))
    for place in sorted({*expected, *world.records}, key=lambda place: (place[0], place[1] or 0)):
        wanted, got = expected.get(place, []), world.records.get(place, [])
        if sorted(map(canonical, wanted)) != sorted(map(canonical, got)):
            yield f"records at {place[0]} of step {place[1]}: {got}, expected {wanted}"


def _without_version(record: dict[str, Any]) -> dict[str, Any]:
    if record["type"] != "ConsumerGroupRegularExpression" or record["value"] is None:
        return record
    return {**record, "value": {key: value for key, value in record["value"].items() if key != "version"}}


def agrees(expected: Any, seen: Any) -> bool:
    """Whether all that is expected is there; lists are compared as sets, what is not named is not looked at."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        return all(key in seen and agrees(value, seen[key]) for key, value in expected.items())
    if isinstance(expected, list) and isinstance(seen, list) and any(isinstance(item, dict) for item in expected):
        return len(expected) == len(seen) and all(map(agrees, expected, seen))
    return canonical(expected) == canonical(seen)


def canonical(value: Any) -> str:
    """The same text for values that are the same but for order."""
    return json.dumps(_sorted(value), sort_keys=True)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value
