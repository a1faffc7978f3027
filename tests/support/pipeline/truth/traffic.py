"""An hour of many groups in some seconds: clients of every kind commit in turn, and a book is kept."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tests.support.kafka.data import create_topic, produce, unique
from tests.support.kafka.kgctl import run_kgctl
from tests.support.pipeline.truth.clients import Administrator, Alone, Committer, KafkaPython, Members, Transactional
from tests.support.pipeline.truth.ledger import Ledger

PARTITIONS = 4
RECORDS = 500


def drive(bootstrap: str, rounds: int, *, seed: int = 7, transactions: bool = True) -> tuple[Ledger, str]:
    """Let the groups commit ``rounds`` times; the book, and the topic."""
    chance = random.Random(seed)
    ledger, topic = Ledger(), create_topic(bootstrap, unique("truth"), PARTITIONS)
    produce(bootstrap, topic, dict.fromkeys(range(PARTITIONS), RECORDS))
    with ExitStack() as stack:
        alone = Alone(stack, ledger, bootstrap, unique("alone"), topic)
        groups: list[Committer] = [
            alone,
            Members(stack, ledger, bootstrap, unique("classic"), topic, PARTITIONS),
            Members(stack, ledger, bootstrap, unique("consumer"), topic, PARTITIONS, group_protocol="consumer"),
            KafkaPython(stack, ledger, bootstrap, unique("python"), topic),
            stack.enter_context(Administrator(ledger, bootstrap, unique("admin"), topic)),
        ]
        if transactions:
            groups.append(Transactional(stack, ledger, bootstrap, unique("exactly-once"), topic))
        for number in range(rounds):
            _one_round(chance, number, groups)
            if number % 5 == 4:
                _delete(bootstrap, ledger, alone.group, topic, chance.randrange(PARTITIONS))
    return ledger, topic


def _one_round(chance: random.Random, number: int, groups: Sequence[Committer]) -> None:
    for group in chance.sample(list(groups), len(groups)):
        chosen = chance.sample(range(PARTITIONS), chance.randint(1, PARTITIONS))
        metadata = chance.choice(["", f"round {number}", "grün"])
        group.commit({partition: (chance.randint(0, RECORDS), metadata) for partition in chosen})
        time.sleep(chance.uniform(0.002, 0.02))  # so that there are times between two commits


def _delete(bootstrap: str, ledger: Ledger, group: str, topic: str, partition: int) -> None:
    if ledger.entries[group, topic, partition] and ledger.entries[group, topic, partition][-1].commit is not None:
        with ledger.changing(group, {(topic, partition): None}):
            run_kgctl(bootstrap, "delete-offsets", group, "--topic", f"{topic}:{partition}", "--yes")
