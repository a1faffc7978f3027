"""``kgctl kafka-consumer-groups`` beside Kafka's own tool: what both print is the same, line by line, and so are exit codes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kgctl.admin.connect import connect
from tests.cli.harness import Cli
from tests.support.kafka import KafkaBroker, commit, committed, create_topic, produce, run_kcg, unique
from tests.support.kafka.consumers import joined

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

RECORDS = 100
FIRST_MS = (time.time_ns() // 60_000_000_000 - 200) * 60_000
"""When the first records of a topic are written; one a minute follows."""
AT = f"{datetime.fromtimestamp(FIRST_MS / 1000, UTC) + timedelta(minutes=17):%Y-%m-%dT%H:%M:00.000}"
"""In no test's name: processes that collect in different minutes would not agree on what tests there are."""


@dataclass
class Both:
    """A line for both tools. ``group`` has commits and no members; ``twin`` is like it."""

    cli: Cli
    bootstrap: str
    topic: str
    group: str
    twin: str

    def theirs(self, line: str) -> tuple[int, list[str]]:
        ran = run_kcg(self._words(line, self.group))
        return ran.returncode, self._lines(ran.stdout, self.group)

    def ours(self, line: str, *, twin: bool = False) -> tuple[int, list[str]]:
        group = self.twin if twin else self.group
        ran = self.cli.run(["kafka-consumer-groups", *self._words(line, group)])
        return ran.code, self._lines(ran.out, group)

    def compare(self, line: str, *, twin: bool = False) -> list[str]:
        """Return what both print."""
        theirs, ours = self.theirs(line), self.ours(line, twin=twin)
        assert ours == theirs
        return ours[1]

    def _words(self, line: str, group: str) -> Sequence[str]:
        words = line.replace("GROUP", group).replace("TOPIC", self.topic).replace(" AT", f" {AT}").split()
        return ["--bootstrap-server", self.bootstrap, *words]

    def _lines(self, text: str, group: str) -> list[str]:
        return text.replace(group, "GROUP").split("\n")


@pytest.fixture(scope="module")
def topic(kafka_broker: KafkaBroker) -> str:
    name = create_topic(kafka_broker.bootstrap, unique("orders"), 14)
    produce(kafka_broker.bootstrap, name, dict.fromkeys(range(13), RECORDS), timestamp_ms=FIRST_MS, step_ms=60_000)
    return name


@pytest.fixture
def both(kafka_broker: KafkaBroker, topic: str, tmp_path: Path) -> Both:
    cli = Cli(tmp_path)
    cli.connect = connect
    group = unique("payments")
    twin = group.replace("payments", "paymenty")  # as long as the other, and as unique
    for name in (group, twin):
        commit(kafka_broker.bootstrap, name, {(topic, number): 7 * number for number in range(12)} | {(topic, 3): 150})
    return Both(cli, kafka_broker.bootstrap, topic, group, twin)


LOOKS = [
    "--describe --group GROUP",
    "--describe --group GROUP --offsets --verbose",
    "--describe --group GROUP --members",
    "--describe --group GROUP --members --verbose",
    "--describe --group GROUP --state",
    "--describe --group=GROUP --state --verbose --timeout 9000",
]


@pytest.mark.parametrize("line", LOOKS)
def test_a_group_without_members(both: Both, line: str) -> None:
    assert len(both.compare(line)) > 1


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members(both: Both, protocol: str) -> None:
    settings = {} if protocol == "classic" else {"group.protocol": "consumer"}
    with joined(both.bootstrap, both.group, both.topic, {"one": 7, "two": 7}, **settings):
        for line in LOOKS:  # members stand in the order of the broker's answer there, and by id here
            theirs, ours = both.theirs(line), both.ours(line)
            assert (ours[0], sorted(ours[1])) == (theirs[0], sorted(theirs[1]))
        refused = both.compare("--reset-offsets --group GROUP --all-topics --to-earliest --execute")
        assert "can only be reset if" in refused[1]
        both.compare("--delete --group GROUP")
        both.compare("--delete-offsets --group GROUP --topic TOPIC:0")


@pytest.mark.parametrize(
    "line",
    [
        "--describe --group nosuch",
        "--describe --group GROUP --group nosuch",
        "--reset-offsets --group GROUP --topic nosuch --to-latest",
        "--reset-offsets --group GROUP --topic TOPIC:99 --to-latest",
        "--delete --group nosuch",
        "--delete-offsets --group nosuch --topic TOPIC:1",
        "--delete-offsets --group GROUP --topic nosuch",
        "--reset-offsets --group GROUP --topic TOPIC:13 --to-datetime 2031-01-01T00:00:00.000",
        "--list --state nonsense",
        "--describe",
        "--describe --group GROUP --members --state",
        "--reset-offsets --group GROUP --all-topics --to-latest --to-earliest",
        "--reset-offsets --group GROUP --topic TOPIC:13 --shift-by 1",
        "--reset-offsets --group GROUP --topic TOPIC:x --shift-by 1",
        "--reset-offsets --group GROUP --all-topics --to-latest --dry-run --execute",
        "--delete --group GROUP --topic TOPIC",
        "--nonsense",
        "--list --describe --group GROUP",
    ],
)
def test_what_cannot_be_is_told_in_the_same_words(both: Both, line: str) -> None:
    both.compare(line)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("--topic TOPIC --to-earliest", 0),
        ("--topic TOPIC:0,1,2,12 --to-latest", RECORDS),
        ("--all-topics --to-current", 0),
        ("--all-topics --to-offset 40", 40),
        ("--topic TOPIC:0 --to-offset 999", RECORDS),
        ("--all-topics --shift-by -5", 0),
        ("--all-topics --to-datetime AT", 17),
        ("--all-topics --by-duration P3650D", 0),
        ("--topic TOPIC:13 --topic TOPIC:0 --to-datetime 2031-01-01T00:00:00.000+02:00", RECORDS),
    ],
)
def test_a_reset(both: Both, line: str, first: int) -> None:
    reset = f"--reset-offsets --group GROUP {line}"
    both.compare(f"{reset} --dry-run")
    both.compare(f"{reset} --export")
    assert committed(both.bootstrap, both.group)[both.topic, 0] == 0
    both.compare(f"{reset} --execute", twin=True)
    found = [committed(both.bootstrap, group) for group in (both.group, both.twin)]
    assert found[0] == found[1]
    assert found[0][both.topic, 0] == first


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--to-latest", "One of the reset scopes should be defined: --all-topics, --topic."),
        ("--all-topics", "Option '[reset-offsets]' requires one of the following scenarios: "),
    ],
)
def test_what_is_found_wrong_late(both: Both, line: str, said: str) -> None:
    """In the JVM of the tests Kafka's tool does not get to its exit code there."""
    ran = both.cli.run(
        f"kafka-consumer-groups --bootstrap-server {both.bootstrap} --reset-offsets --group {both.group} {line}".split()
    )
    assert (ran.code, ran.out, said in ran.err) == (1, "", True)


def test_a_reset_is_saved_for_undo(both: Both) -> None:
    commit(both.bootstrap, both.group, {(both.topic, 3): 50})  # inside of the log
    before = committed(both.bootstrap, both.group)
    both.ours("--reset-offsets --group GROUP --all-topics --to-latest --execute")
    assert committed(both.bootstrap, both.group) != before
    ran = both.cli(f"undo last --execute --yes --bootstrap-server {both.bootstrap}")
    assert (ran.code, committed(both.bootstrap, both.group)) == (0, before), ran.err


def test_a_file_of_offsets(both: Both, tmp_path: Path) -> None:
    code, lines = both.theirs("--reset-offsets --group GROUP --all-topics --to-offset 40 --export --dry-run")
    path = tmp_path / "plan.csv"
    path.write_text("\n".join(line for line in lines if line) + "\n")
    assert code == 0
    both.compare(f"--reset-offsets --group GROUP --from-file {path}")
    both.compare(f"--reset-offsets --group GROUP --from-file {path} --execute", twin=True)
    assert set(committed(both.bootstrap, both.twin).values()) == {40}


def test_deletions(both: Both) -> None:
    both.compare("--delete-offsets --group GROUP --topic TOPIC:0,1 --topic TOPIC:11", twin=True)
    both.compare("--delete-offsets --group GROUP --topic TOPIC", twin=True)
    commit(both.bootstrap, both.group, {(both.topic, 0): 1})
    commit(both.bootstrap, both.twin, {(both.topic, 0): 1})
    both.compare("--delete --group GROUP", twin=True)
    assert committed(both.bootstrap, both.twin) == {}


def test_lists(both: Both) -> None:
    for line in ("--list", "--list --state", "--list --type", "--list --state empty --type classic"):
        theirs, ours = both.theirs(line), both.ours(line)
        assert (ours[0], sorted(ours[1])) == (theirs[0], sorted(theirs[1]))
        assert any("GROUP" in each for each in ours[1])


@pytest.mark.parametrize("regex", ["^orders-.*", "a[", "(a", "a**", "(?=a)", "x{2,1}"])
def test_regular_expressions(both: Both, regex: str) -> None:
    both.compare(f"--validate-regex {regex}")


def test_all_groups_are_described_in_order(both: Both) -> None:
    line = "--describe --all-groups --state"
    heads = [[each for each in lines if each.startswith("GROUP ")] for _, lines in (both.theirs(line), both.ours(line))]
    assert heads[0] == heads[1]
    assert len(heads[0]) > 2
