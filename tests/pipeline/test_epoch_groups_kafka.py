"""The history of a share group and of a streams group that Java made, beside what the broker says of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka import KafkaBroker, create_topic, unique
from tests.support.kafka.group_types import GroupMembers
from tests.support.kafka.kgctl import run_kgctl
from tests.support.members import wait_until
from tests.support.pipeline.commands import run_history

pytestmark = [pytest.mark.kafka, pytest.mark.needs("javac")]

CLUSTER = "c"
OPEN = 'SELECT topic, partition, member_id FROM assignments WHERE "group" = \'{}\' AND "to" IS NULL ORDER BY ALL'
MEMBERS = 'SELECT member_id, client_id, client_host FROM members WHERE "group" = \'{}\' AND "to" IS NULL ORDER BY ALL'
Row = dict[str, Any]


@dataclass
class Past:
    bootstrap: str
    warehouse: Path
    members: GroupMembers
    share: str
    streams: str
    jobs: str

    def history(self, group: str) -> list[Row]:
        """The group's generations, after another build."""
        run_history("collect", self.warehouse, "--cluster", CLUSTER, "--bootstrap-server", self.bootstrap, "--once")
        run_history("build", self.warehouse, "--engine", "local")
        found: list[Row] = run_history("rebalances", self.warehouse, "--group", group)
        return sorted(found, key=lambda row: int(row["generation"]))

    def rows(self, question: str, group: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in run_history("sql", self.warehouse, question.format(group))]

    def members_of(self, group: str) -> list[Row]:
        found: list[Row] | None = run_kgctl(self.bootstrap, "describe", "group", group, "--members", code=None).data
        return found or []

    def wait(self, group: str, members: int) -> None:
        """Until there are so many members, each with what the group's epoch gives it."""

        def is_so() -> bool:
            reached = [row["member_epoch"] for row in self.members_of(group)]
            return len(reached) == members and set(reached) <= {self.epoch(group)}

        wait_until(is_so, f"{group} is calm with {members} members")

    def epoch(self, group: str) -> int:
        (row,) = run_kgctl(self.bootstrap, "describe", "group", group, "--state").data
        return int(row["group_epoch"])


@pytest.fixture(scope="module")
def past(kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    bootstrap, folder = kafka_broker.bootstrap, tmp_path_factory.mktemp("epochs")
    jobs, words, counts = (create_topic(bootstrap, unique(name), 3) for name in ("jobs", "words", "counts"))
    with GroupMembers(bootstrap) as members:
        made = Past(bootstrap, folder / "w", members, unique("share"), unique("app"), jobs)
        for number in (1, 2):
            members.share(f"share-{number}", made.share, jobs)
            members.streams(f"streams-{number}", made.streams, words, counts, folder / f"streams-{number}")
            made.wait(made.share, number)
            made.wait(made.streams, number)
        yield made


TOLD = ("generation", "type", "members", "joined", "left", "cause")
BEGUN = [(2, 1, 1, 0, "member_joined"), (3, 1, 0, 0, "partitions_changed"), (4, 2, 1, 0, "member_joined")]
"""The first member's generation; the one at which the group's own topics are there, which only then can be assigned; the second
member's."""


@pytest.mark.parametrize("kind", ["share", "streams"])
def test_generations_members_and_what_they_have_are_those_of_the_broker(past: Past, kind: str) -> None:
    group = past.share if kind == "share" else past.streams
    assert_told(past, group, kind, BEGUN)
    past.members.stop([f"{kind}-1"])
    past.wait(group, 1)
    assert_told(past, group, kind, [*BEGUN, (5, 1, 0, 1, "member_left")])
    past.members.stop([f"{kind}-2"])
    past.wait(group, 0)
    assert_told(past, group, kind, [*BEGUN, (5, 1, 0, 1, "member_left"), (6, 0, 0, 1, "group_emptied")])
    assert run_history("sql", past.warehouse, "SELECT reason FROM undecoded") == []


def assert_told(past: Past, group: str, kind: str, generations: list[tuple[Any, ...]]) -> None:
    found, members = past.history(group), past.members_of(group)
    assert [tuple(row[name] for name in TOLD) for row in found] == [(number, kind, *rest) for number, *rest in generations]
    assert all(row["stable"] is not None for row in found[2:]), "and the first ones, unless the next came before they were stable"
    assert found[-1]["generation"] == past.epoch(group)
    assert past.rows(MEMBERS, group) == sorted((each["consumer_id"], each["client_id"], each["host"]) for each in members)
    assert past.rows(OPEN, group) == sorted(had for each in members for had in owned(each, kind))


def owned(member: Row, kind: str) -> Iterator[tuple[str, int, str]]:
    """What a member has by ``describe``: ``topic:0,2;other:1``, of a streams group its active tasks."""
    shares = member["assignment"] if kind == "share" else member["active_tasks"]
    for share in (shares or "").split(";") if shares else ():
        name, _, numbers = share.rpartition(":")
        for number in numbers.split(","):
            yield name, int(number), member["consumer_id"]
