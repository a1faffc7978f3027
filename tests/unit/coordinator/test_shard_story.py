"""A group's last events."""

from __future__ import annotations

from kgctl.coordinator.shard import GroupStory
from kgctl.model.requests import Heartbeat


def test_a_story_has_one_line_an_event() -> None:
    story = GroupStory()
    story.note("g", 5, "rebalance starts", 3)
    story.note("g", 7, "stable")
    story.note("g", 9, "request", Heartbeat(request_id=1, group_id="g", generation_id=3, member_id="m"))
    story.note("h", 9, "elsewhere")

    assert story.of("g") == (
        "5 ms: rebalance starts 3",
        "7 ms: stable",
        "9 ms: request Heartbeat(generation_id=3, member_id='m')",
    )


def test_a_story_is_bounded_and_can_be_forgotten() -> None:
    story = GroupStory()
    for time_ms in range(100):
        story.note("g", time_ms, "event")

    assert len(story.of("g")) == 40
    assert story.of("g")[-1] == "99 ms: event"
    story.forget("g")
    assert story.of("g") == ()
    story.forget("g")
