"""Many questions to Kafka's classes and to the core: python -m tests.differential.streams.search topology 5000

Prints how many were asked, what they reached and what differs. Number N of a seed is always the same question, or group.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.differential.choices import Choice
from tests.differential.java_partner import JavaFailedError, JavaPartner
from tests.differential.streams.applications import (
    application_answer,
    application_reached,
    application_rounds,
    user_data_answer,
    user_data_questions,
)
from tests.differential.streams.groups import task_answer, task_rounds, tasks_reached
from tests.differential.streams.topologies import topology_answer, topology_question, topology_reached

SOURCES = Path(__file__).parents[2] / "java" / "streams_tasks"
MAIN = "org.apache.kafka.coordinator.group.streams.Oracle"
RECORDED = Path(__file__).parents[2] / "conformance" / "cases" / "streams_tasks_generated.jsonl.gz"
"""Questions with what Kafka answers, for those who have no Java (``--record``)."""
Question = dict[str, Any]
Answer = dict[str, Any]


class Kind(NamedTuple):
    """What is asked: how questions are made, what the core answers, and what an answer shows that was reached."""

    questions: Callable[[Choice], Iterable[Question]]
    answer: Callable[[Question], Answer]
    reached: Callable[[Question, Answer], Iterable[str]]


KINDS = {
    "topology": Kind(lambda choice: [topology_question(choice)], topology_answer, lambda _, answer: topology_reached(answer)),
    "tasks": Kind(task_rounds, task_answer, tasks_reached),
    "classic": Kind(application_rounds, application_answer, application_reached),
    "user_data": Kind(user_data_questions, user_data_answer, lambda question, _: [f"version {question['version']}"]),
}


def kafka_streams_tasks() -> JavaPartner:
    """Kafka's own classes."""
    return JavaPartner(SOURCES, MAIN)


def generated(kind: str, seed: int, number: int) -> Iterator[Question]:
    """Yield the questions of one number of a seed."""
    yield from KINDS[kind].questions(Choice(random.Random(f"{kind}/{seed}/{number}").randint))


def run(kafka: JavaPartner, kind: str, count: int, seed: int, first: int = 0) -> tuple[Counter[str], list[str]]:
    """So many numbers: what they reached, and what differs."""
    reached: Counter[str] = Counter()
    differing = []
    for number in range(first, first + count):
        for question in generated(kind, seed, number):
            reached["asked"] += 1
            try:
                expected = kafka.ask(question)
            except JavaFailedError as failure:
                differing.append(f"{number}: Kafka cannot answer: {failure}")
                break
            reached.update(KINDS[kind].reached(question, expected))
            found = differences(KINDS[kind].answer(question), expected)
            if found:
                differing.append(f"{number}: {found}")
                break
    return reached, differing


def differences(own: Answer, expected: Answer) -> list[str]:
    """What differs, part by part."""
    return [
        f"{part}: {own.get(part)}, expected {expected.get(part)}"
        for part in {**own, **expected}
        if own.get(part) != expected.get(part)
    ]


def record(kafka: JavaPartner, count: int, seed: int, file: Path) -> None:
    """Write the questions of so many numbers of each kind, and more of those that are short, with what Kafka answers."""
    with gzip.GzipFile(file, "wb", mtime=0) as packed:
        for kind in KINDS:
            for number in range(count * (5 if kind == "topology" else 1)):
                for question in generated(kind, seed, number):
                    line = json.dumps(
                        {"id": f"{kind}/{seed}/{number}", **question, "expect": kafka.ask(question)}, separators=(",", ":")
                    )
                    packed.write(f"{line}\n".encode())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.streams.search", description=__doc__)
    parser.add_argument("kind", choices=[*KINDS, "all"])
    parser.add_argument("examples", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with this number of the seed's questions")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the questions with what Kafka answers, packed")
    options = parser.parse_args()
    kafka = kafka_streams_tasks()
    if options.record is not None:
        record(kafka, options.examples, options.seed, options.record)
        return 0
    reached, differing = run(kafka, options.kind, options.examples, options.seed, options.first)
    kafka.close()
    print(*(f"{count:8} {what}" for what, count in sorted(reached.items())), *differing[:5], sep="\n")
    print(f"{options.examples} of seed {options.seed}, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
