"""Topologies that members of streams groups declare, as steps write them."""

from __future__ import annotations

from typing import Any

Topology = dict[str, Any]
Topic = list[Any]


def _topic(name: str, partitions: int = 0, replication_factor: int = 0, *configs: list[str]) -> Topic:
    return [name, partitions, replication_factor, list(configs)]


def _sub(key: str, sources: list[str], **more: Any) -> Topology:
    return {"id": key, "sources": sources, "changelogs": [], "repartitions": [], "copartitioned": [], **more}


_STORE = _topic("C1", 0, 1, ["cleanup.policy", "compact"], ["min.insync.replicas", "1"])
SHAPES: tuple[list[Topology], ...] = (
    [_sub("0", ["T1"])],
    [_sub("0", ["T1"], changelogs=[_topic("C1")])],
    [_sub("0", ["T1"], sinks=["R1"]), _sub("1", [], repartitions=[_topic("R1")], changelogs=[_STORE])],
    [_sub("0", ["T1", "T2"], changelogs=[_topic("C1"), _topic("C2")], copartitioned=[[[0, 1], []]])],
    [
        _sub("0", ["T1"], sinks=["R1"]),
        _sub("1", ["T2"], repartitions=[_topic("R1")], changelogs=[_STORE], copartitioned=[[[0], [0]]]),
    ],
    [_sub("0", ["T3", "T1"], changelogs=[_STORE]), _sub("1", ["T2"])],
    [_sub("0", ["T2"], sinks=["R1"]), _sub("1", [], repartitions=[_topic("R1", 3, 2)], changelogs=[_topic("C1")])],
    [
        _sub("0", ["T1"], sinks=["R1"]),
        _sub("1", [], repartitions=[_topic("R1")], sinks=["R2"], changelogs=[_topic("C1")]),
        _sub("2", [], repartitions=[_topic("R2")], changelogs=[_topic("C2")]),
    ],
    [_sub(f"{number}", ["T1" if number % 2 else "T3"]) for number in range(14)],
    [_sub("Aa", ["T3"], changelogs=[_topic("C1")]), _sub("BB", ["T1"], changelogs=[_topic("C2")])],
)
"""Subtopologies of applications. "Aa" and "BB" have the same hash in Java."""
READY = tuple(shape for shape in SHAPES if not any(each["changelogs"] or each["repartitions"] for each in shape))
"""Those without topics of their own."""
WRONG: tuple[Topology, ...] = (
    {"epoch": 0, "subtopologies": [_sub("0", ["T1"]), _sub("0", ["T2"])]},
    {"epoch": -1, "subtopologies": [_sub("0", ["T1"])]},
    {"epoch": 0, "subtopologies": [_sub("0", ["T1"], changelogs=[_topic("C1", 5)])]},
    {"epoch": 0, "subtopologies": [_sub("0", ["T1"], regex=["T.*"])]},
    {"epoch": 0, "subtopologies": [_sub("0", ["T1"], sinks=["R9"])]},
    {"epoch": 0, "subtopologies": [_sub("0", [], repartitions=[_topic("R1")])]},
    {"epoch": 0, "subtopologies": [_sub("0", [])]},
    {"epoch": 0, "subtopologies": []},
    {"epoch": 0, "subtopologies": [_sub("0", ["gone"])]},
    {"epoch": 0, "subtopologies": [_sub("0", ["T1"], copartitioned=[[[4], []]])]},
)
INTERNAL = ("C1", "C2", "R1", "R2")
"""The topics that an application makes for itself."""
