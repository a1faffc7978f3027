"""``--timeout`` is for all that a command asks, and for all of a change that is lost; one that goes well is not cut off."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.admin import PartitionResults
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.wire import CALLS_SHARE, LOOKS_SHARE, Deadline
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli, example_cluster


class Limited(FakeGroupAdmin):
    """Notes which limit looking and changing have."""

    timeout_ms = 5_000

    def __init__(self, like: FakeGroupAdmin) -> None:
        super().__init__()
        self.__dict__.update(like.__dict__)
        self.limit: Deadline | None = None
        self.looks: list[Deadline | None] = []
        self.deeds: list[Deadline | None] = []

    def list_topics(self, topics: object = None) -> Mapping[str, int]:
        self.looks.append(self.limit)
        return super().list_topics(topics)  # type: ignore[arg-type]

    def list_log_offsets(self, partitions: object, *, read_committed: bool = False) -> PartitionResults:  # type: ignore[type-arg]
        self.looks.append(self.limit)
        return super().list_log_offsets(partitions, read_committed=read_committed)  # type: ignore[arg-type]

    def alter_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> PartitionResults[None]:
        self.deeds.append(self.limit)
        return super().alter_offsets(group_id, offsets)


def test_a_look_has_one_limit_and_a_deed_another(cli: Cli) -> None:
    limited = cli.admin = Limited(example_cluster())
    cli("describe group g1")
    (limit, again) = limited.looks
    assert (limit is again, limit and limit.timeout_ms) == (True, 5_000)

    assert cli("reset-offsets g1 --topic t1 --to-latest --execute").code == 0
    assert (limited.looks[2] not in (None, limit), limited.looks[2]) == (True, limited.looks[3])
    (deed,) = limited.deeds
    assert (deed not in (None, limit, limited.looks[2]), deed and deed.timeout_ms) == (True, 4_000)


def test_the_look_of_a_change_keeps_more_for_what_is_to_follow(cli: Cli) -> None:
    limited = cli.admin = Limited(example_cluster())
    for line, share in (("describe group g1", CALLS_SHARE), ("reset-offsets g1 --topic t1 --to-latest", LOOKS_SHARE)):
        limited.looks.clear()
        cli(line)
        assert {limit and limit.share for limit in limited.looks} == {share}


def test_each_look_of_top_has_its_own(cli: Cli) -> None:
    limited = cli.admin = Limited(example_cluster())
    cli("top --iterations 2")
    assert len({id(limit) for limit in limited.looks}) == len(limited.looks) == 2
