"""A member's copy of the metadata."""

from __future__ import annotations

from itertools import count
from random import Random  # the seeded source that members are handed

from kgctl.member.api import MemberIdentity, NetworkError, RefreshMetadata
from kgctl.member.config import MemberConfig
from kgctl.member.runtime import METADATA, MemberConnection, MemberTopics, Runtime
from kgctl.model.groups import TopicPartition
from tests.support.coordinator_harness import image_of

MINUTE_US = 60_000_000


def topics_of(*, pattern: str | None = None) -> tuple[MemberTopics, Runtime]:
    identity = MemberIdentity(name="m", group_id="g", topics=() if pattern else ("a", "b", "a"), pattern=pattern)
    runtime = Runtime(identity, MemberConfig(metadata_max_age_ms=60_000), Random(1), lambda _p, _t: {})
    return MemberTopics(runtime, MemberConnection(runtime, count(1), lambda: None)), runtime


def test_refresh_is_asked_for_once_and_again_when_the_answer_is_too_old() -> None:
    topics, runtime = topics_of()
    topics.refresh()
    topics.refresh()
    assert runtime.take_actions() == [RefreshMetadata(1)]
    topics.take(image_of({"a": 2}))

    assert runtime.deadlines.at(METADATA) == MINUTE_US
    topics.refresh()
    assert runtime.take_actions() == [RefreshMetadata(2)]


def test_failed_refresh_is_tried_again_soon() -> None:
    topics, runtime = topics_of()
    topics.refresh()
    topics._connection.answer(1, NetworkError(1))

    assert runtime.deadlines.at(METADATA) == 100_000
    assert topics.image is None


def test_pattern_is_matched_against_whole_names() -> None:
    topics, _ = topics_of(pattern="a|bc")
    assert not topics.is_ready
    topics.take(image_of({"bc": 1, "abc": 1, "a": 1}))

    assert topics.is_ready
    assert topics.subscription == ("a", "bc")


def test_snapshot_holds_only_what_was_asked_for_and_exists() -> None:
    topics, _ = topics_of()
    topics.take(image_of({"a": 2, "c": 3}))

    assert topics.snapshot(["c", "a", "a", "z"]) == (("a", 2, ()), ("c", 3, ()))
    assert topics.subscription == ("a", "b")
    assert topics.has_all([TopicPartition("a", 1)])
    assert not topics.has_all([TopicPartition("a", 2)])


def test_skipped_refreshes_keep_their_phase() -> None:
    topics, runtime = topics_of()
    topics.take(image_of({}))

    assert topics.skip_refreshes(MINUTE_US) == 0
    assert topics.skip_refreshes(3 * MINUTE_US + 1) == 3
    assert runtime.deadlines.at(METADATA) == 4 * MINUTE_US
