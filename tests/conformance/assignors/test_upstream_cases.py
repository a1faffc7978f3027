"""Hand-made cases of Kafka's and kafka-go's own test suites, and some answers of Kafka's classes (``source`` says which)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import GroupAssignment, GroupSpec, MemberSpec, TopicSpec
from kgctl.assignors.sticky import CooperativeStickyAssignor, StickyAssignment
from kgctl.simulate.assign.groups import parse_document

CASES_FILE = Path(__file__).parent / "assignors.yaml"
NAMES = {
    "server-uniform": "uniform",
    "kafkago-range": "kafka-go:range",
    "kafkago-roundrobin": "kafka-go:roundrobin",
    "kafkago-rackaffinity": "rack-affinity",
}


def _cases(*, zones: bool) -> list[Any]:
    cases = yaml.load(CASES_FILE.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [pytest.param(case, id=case["id"]) for case in cases if ("member_zones" in case["given"]) == zones]


def _split(partitions: list[str]) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for text in partitions:
        topic, _, number = text.rpartition("-")
        owned.setdefault(topic, []).append(int(number))
    return owned


def _group(given: Mapping[str, Any], name: str) -> GroupSpec:
    members = {}
    for entry in given["members"]:
        member = {key: value for key, value in entry.items() if key in {"topics", "rack", "generation"}}
        if "owned" in entry:
            member["owned"] = _split(entry["owned"])
        members[entry["id"]] = member | ({"instance_id": entry["instance"]} if "instance" in entry else {})
    return parse_document({"topics": dict(given["topics"]), "members": members}, 1).group(name)


def _names(name: str, group: GroupSpec, *, in_order: bool) -> tuple[dict[str, list[str]], dict[str, str] | None]:
    assignor = get_assignor(name)
    transferring = None
    assignment = assignor.assign(group)
    assert isinstance(assignment, GroupAssignment)
    aim = assignor.two_phases(group)[0] if isinstance(assignor, CooperativeStickyAssignor) else assignment
    if isinstance(aim, StickyAssignment) and aim.transferring is not None:
        transferring = {str(aim.space.partition(number)): member for number, member in aim.transferring.items()}
    listed = {member: [str(partition) for partition in assignment.partitions(member)] for member in assignment}
    return {member: found if in_order else sorted(found) for member, found in listed.items()}, transferring


@pytest.mark.parametrize("case", _cases(zones=False))
def test_upstream_case_gives_the_expected_assignment(case: dict[str, Any]) -> None:
    expected, given = case["expect"], case["given"]
    name = NAMES.get(given["assignor"], given["assignor"])
    in_order = expected["order"] == "list"

    assignment, transferring = _names(name, _group(given, name), in_order=in_order)

    assert assignment == {m: found if in_order else sorted(found) for m, found in expected["assignment"].items()}
    if expected.get("transferring") is not None:
        assert transferring == expected["transferring"]


@pytest.mark.parametrize("case", _cases(zones=True))
def test_kafka_go_rack_affinity_case_gives_the_expected_counts(case: dict[str, Any]) -> None:
    member_zones, leader_zones = case["given"]["member_zones"], case["given"]["partition_leader_zones"]
    zone_of = {f"{zone}-{number}": zone for zone, count in member_zones.items() for number in range(count)}
    racks = tuple((zone,) for zone, count in leader_zones.items() for _ in range(count))
    group = GroupSpec(
        {"t": TopicSpec(len(racks), racks)}, [MemberSpec(member, ("t",), rack=zone) for member, zone in zone_of.items()]
    )

    assignment = get_assignor("rack-affinity").assign(group)

    counts: dict[str, dict[str, int]] = {}
    for member, topics in assignment.items():
        for partition in topics.get("t", ()):
            zones = counts.setdefault(zone_of[member], {})
            zones[racks[partition][0]] = zones.get(racks[partition][0], 0) + 1
    assert counts == case["expect"]["per_zone_counts"]
