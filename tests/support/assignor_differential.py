"""One document to Kafka's assignors and to kgctl's, and what differs.

``python -m tests.support.assignor_differential 20000`` asks about that many groups of either kind. A difference is shrunk to a
small group and kept as a golden file, with Kafka's answer; the golden files are replayed by tests/golden/test_assignors.py.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from kgctl.assignors import get_assignor
from kgctl.assignors.spec import AssignorError
from kgctl.simulate.assign.groups import parse_document
from tests.support.assignor_strategies import client_documents, server_documents
from tests.support.java_assignors import SOURCES, JavaAssignors
from tests.support.maven import compile_java, digest

CLIENT_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
SERVER_ASSIGNORS = ("uniform", "server-range")
GOLDEN = Path(__file__).parents[1] / "golden" / "assignors"
FAILS = "Kafka's assignor throws"

Answer = str | dict[str, dict[str, list[int]]]


def own_answer(document: Mapping[str, Any], name: str) -> Answer:
    """kgctl's answer, as plain values."""
    try:
        assignment = get_assignor(name).assign(parse_document(document, 1).group(name))
    except AssignorError:
        return FAILS
    return plain(assignment)


def plain(assignment: Mapping[str, Mapping[str, Any]]) -> Answer:
    """An assignment with partitions once and ascending, topics without any left out."""
    return {
        member: {topic: sorted(set(partitions)) for topic, partitions in sorted(topics.items()) if partitions}
        for member, topics in sorted(assignment.items())
    }


def kafkas_answers(java: JavaAssignors, document: Mapping[str, Any]) -> dict[str, Answer]:
    """Kafka's answer for each of the document's assignors."""
    return {name: FAILS if "error" in answer else plain(answer) for name, answer in java.answer(document).items()}


def differences(java: JavaAssignors, document: Mapping[str, Any]) -> list[tuple[str, Answer, Answer]]:
    """Assignors that answer differently: name, Kafka's answer, kgctl's."""
    answers = {name: (answer, own_answer(document, name)) for name, answer in kafkas_answers(java, document).items()}
    return [(name, theirs, ours) for name, (theirs, ours) in answers.items() if theirs != ours]


def keep(document: Mapping[str, Any], expected: Mapping[str, Answer]) -> Path:
    """Writes a golden file: a document and what Kafka answers."""
    text = json.dumps({"input": document, "expected": expected}, indent=1, ensure_ascii=False) + "\n"
    path = GOLDEN / f"{digest(text)[:10]}.json"
    path.write_text(text, encoding="utf-8")
    return path


def ask_many(java: JavaAssignors, documents: SearchStrategy[dict[str, Any]], examples: int, start: int) -> Counter[str]:
    """Asks about many groups; how many per assignor, and how many of them made Kafka's assignor throw."""
    asked: Counter[str] = Counter()
    last: list[dict[str, Any]] = []

    @seed(start)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(documents)
    def ask(document: dict[str, Any]) -> None:
        for name, answer in kafkas_answers(java, document).items():
            asked[name] += 1
            asked[f"{name}, which throws"] += answer == FAILS
            if own_answer(document, name) != answer:
                last[:] = [document]
                raise AssertionError(name)

    try:
        ask()
    except AssertionError as error:
        asked[f"{error} DIFFERS"] += 1
        print("kept as", keep(last[0], kafkas_answers(java, last[0])))
    return asked


def main() -> None:
    """The deep run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    java = JavaAssignors(compile_java(SOURCES / "pom.xml", sorted(SOURCES.glob("*.java"))))
    for documents in (client_documents(CLIENT_ASSIGNORS), server_documents()):
        for what, count in ask_many(java, documents, options.examples, options.seed).items():
            print(f"{count:8} {what}")
    java.close()


if __name__ == "__main__":
    main()
