"""Commits and fetches of members of streams groups."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from tests.unit.coordinator.streams.tasks import AT_ONCE, Streams, ids


def two_members() -> Streams:
    """m has a-0 and a-1 since epoch 2 and has to give a-2 and a-3 up; n waits for them at epoch 3."""
    streams = Streams()
    streams.beat("m")
    streams.beat("n")
    streams.beat("m", 2)
    return streams


def test_a_member_commits_at_its_epoch() -> None:
    streams = two_members()

    assert streams.harness.commit({"a-0": 1, "b-7": 1}, "m", 2, version=9, group="g") == {
        "a-0": ErrorCode.NONE,
        "b-7": ErrorCode.NONE,
    }
    for epoch in (1, 3):
        assert streams.harness.commit({"a-0": 1}, "m", epoch, version=9, group="g") == {"a-0": ErrorCode.STALE_MEMBER_EPOCH}
    assert streams.harness.commit({"a-0": 1}, "x", 2, version=9, group="g") == {"a-0": ErrorCode.UNKNOWN_MEMBER_ID}
    assert streams.harness.commit({"a-0": 1}, "m", 2, version=8, group="g") == {"a-0": ErrorCode.UNSUPPORTED_VERSION}


def test_with_an_older_epoch_it_commits_what_it_has_had_since() -> None:
    streams = two_members()
    streams.owns("m", ids(0, 1))
    assert streams.member("m").member_epoch == 3

    def commit(epoch: int, *partitions: str) -> set[ErrorCode]:
        offsets = dict.fromkeys(partitions, 1)
        return set(streams.harness.commit(offsets, "m", epoch, version=9, group="g").values())

    assert commit(2, "a-0", "a-1") == {ErrorCode.NONE}
    assert commit(1, "a-0") == {ErrorCode.STALE_MEMBER_EPOCH}
    assert commit(2, "a-0", "a-2") == {ErrorCode.STALE_MEMBER_EPOCH}
    assert commit(2, "a-0", "b-0") == {ErrorCode.STALE_MEMBER_EPOCH}


def test_what_it_still_has_to_give_up_counts_as_well() -> None:
    streams = two_members()
    streams.change_topics(a=5, b=2)
    streams.owns("m", ids(0, 1, 2, 3))
    member = streams.member("m")
    assert sorted(member.pending_revocation.active["0"]) == [2, 3]

    assert streams.harness.commit({"a-3": 1}, "m", 2, version=9, group="g") == {"a-3": ErrorCode.NONE}


def test_from_outside_anybody_commits_while_there_is_no_member() -> None:
    streams = two_members()
    assert streams.harness.commit({"a-0": 1}, group="g") == {"a-0": ErrorCode.UNKNOWN_MEMBER_ID}
    for member_id in ("m", "n"):
        streams.beat(member_id, -1)

    assert streams.harness.commit({"a-0": 1}, group="g") == {"a-0": ErrorCode.NONE}


def test_a_member_fetches_at_its_epoch() -> None:
    streams = two_members()

    def error(member_id: str | None, epoch: int) -> ErrorCode:
        return streams.harness.fetch("a-0", group="g", member_id=member_id, member_epoch=epoch).error

    assert [error("m", 2), error("m", 3), error("x", 2), error(None, -1)] == [
        ErrorCode.NONE,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]


def test_offsets_of_what_is_read_stay() -> None:
    streams = Streams({**AT_ONCE, "offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "10000"})
    streams.beat("m")
    streams.harness.commit({"a-0": 1, "b-0": 1}, "m", 2, version=9, group="g")

    deleted = streams.harness.delete_offsets("a-0", "b-1", group="g").partitions
    assert [error for _, error in deleted] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    for _ in range(4):
        streams.harness.sleep_ms(20_000)
        streams.beat("m", 2)
    assert [str(at) for at, _ in streams.harness.driver.coordinator.shard.offsets.of_group("g")] == ["a-0"]
    streams.beat("m", -1)
    streams.harness.sleep_ms(20_000)
    assert streams.harness.any_group("g") is None
