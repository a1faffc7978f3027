"""What the generated sequences reach: requests with their answers, states and their changes, timers, records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.world import World

Case = dict[str, Any]
Expectations = list[dict[str, Any]]
ABSENT = "none"


@dataclass
class Coverage:
    """How often each thing was seen: ``seen[kind][what]``."""

    seen: dict[str, Counter[str]] = field(default_factory=dict)

    def see(self, case: Case, expected: Expectations, world: World) -> None:
        """Count what a sequence has reached, by what Kafka says."""
        operations = {step["step"]: _operation(step) for step in case["steps"]}
        for entry in expected:
            if "reply" in entry:
                self._count("answers", {f"{operations[entry['step']]}: {error}" for error in _errors(entry["reply"])})
            for record in entry.get("records", ()):
                self._count("records", [record["type"] + (" tombstone" if record.get("value", 0) is None else "")])
        self._see_groups(case, expected)
        self._count("timers", world.driver.fired)
        self._count("settings", list(case["given"].get("config", {})))

    def _see_groups(self, case: Case, expected: Expectations) -> None:
        groups: dict[str, dict[str, Any]] = {}
        if "group" in case["given"]:
            groups["g"] = {"type": "classic", "state": "Stable"}
        steps = iter(case["steps"])
        step = next(steps)
        for entry in sorted((entry for entry in expected if "group" in entry), key=lambda entry: int(entry["at"])):
            while step is not None and step["at"] <= entry["at"]:
                self._see_step(step, groups)
                step = next(steps, None)
            self._see_change(groups.get(entry.get("id", "g"), {}), entry["group"])
            groups[entry.get("id", "g")] = entry["group"]
        while step is not None:
            self._see_step(step, groups)
            step = next(steps, None)

    def _see_step(self, step: Case, groups: dict[str, dict[str, Any]]) -> None:
        self._count("requests to groups", [f"{step['op']} to {_state(groups.get(step.get('group', 'g'), {}))}"])

    def _see_change(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        if _state(before) != _state(after):
            self._count("changes of groups", [f"{_state(before)} -> {_state(after)}"])
        known = {member["id"]: member for member in before.get("details", ())}
        for member in after.get("details", ()):
            old = known.get(member["id"])
            if old is not None and old.get("state") != member.get("state"):
                self._count("changes of members", [f"{old.get('state', 'classic')} -> {member.get('state', 'classic')}"])

    def _count(self, kind: str, what: Iterator[str] | Any) -> None:
        self.seen.setdefault(kind, Counter()).update(what)

    def table(self) -> str:
        """All of it, a line for each thing."""
        lines = []
        for kind, counts in self.seen.items():
            lines.append(f"{kind}:")
            lines.extend(f"{count:9} {what}" for what, count in sorted(counts.items()))
        return "\n".join(lines)


def _operation(step: Case) -> str:
    """Heartbeats of the consumer protocol by what they are for."""
    if step["op"] not in ("cg_heartbeat", "share_heartbeat", "streams_heartbeat"):
        return str(step["op"])
    epoch = step["epoch"]
    return f"{step['op']} {epoch if epoch <= 0 else 'n'}{' static' if 'instance' in step else ''}"


def _errors(reply: Any) -> Iterator[str]:
    """Every error code in an answer."""
    if isinstance(reply, dict):
        for key, value in reply.items():
            if key == "error":
                yield value
            elif key in ("partitions", "groups") and isinstance(value, dict):
                yield from value.values()
            elif key in ("members", "groups"):
                yield from (found for item in value for found in _errors(item))


def _state(group: dict[str, Any]) -> str:
    return f"{group['type']} {group.get('state', '')}".strip() if group.get("exists", bool(group)) else ABSENT
