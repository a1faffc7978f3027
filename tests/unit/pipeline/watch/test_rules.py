"""Rules: how they are read, and what they find in a morning of two groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.admin.times import parse_duration_ms
from kgctl.errors import UsageError
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.series import gone
from kgctl.pipeline.watch.rules import RULES, Rule, WatchPicture, parse_rule
from tests.support.pipeline.example import example_history, minute, past_end
from tests.support.pipeline.gold import HOME, commit, run, write_gold


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch") / "warehouse"
    example_history(folder)
    return folder


def rule(text: str) -> Rule:
    return parse_rule(text, parse_duration_ms)


def test_reading() -> None:
    assert rule("lag > 1_000  for 5m on pay*, audit") == Rule(
        "lag > 1_000 for 5m on pay*, audit", "lag", 1000, hold_ms=300_000, groups=("pay*", "audit")
    )
    assert rule("rebalances>3 in 1h") == Rule("rebalances>3 in 1h", "rebalances", 3, span_ms=3_600_000)
    assert rule("reset").span_ms == 3_600_000
    assert rule("time-lag > 90s").limit == 90_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lagg > 3", "did you mean lag?"),
        ("lag", "needs limit: write lag > N"),
        ("stopped > 3", "takes no limit"),
        ("lag > many", "'many' is not a number of records"),
        ("lag > -1", "'-1' is not a number of records"),
        ("time-lag > 5q", "cannot read '5q' as a duration"),
        ("lag > 5 in 3m", "takes no `in`"),
        ("reset in 8d", "the longest `in` is 7d"),
        ("lag above 3", "cannot read the rule"),
        ("", "cannot read the rule"),
        ("stopped on a,", "the rule 'stopped on a,': a group after `on` has no name"),
    ],
)
def test_what_is_no_rule(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        rule(text)


def found(warehouse: Path, text: str, at: float) -> list[tuple[str, int | None, bool]]:
    picture = WatchPicture(History.open(warehouse), minute(at))
    return [(each.group, each.partition, each.is_unknown) for each in rule(text).findings(picture)]


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("lag > 91", 41, [("payments", None, False)]),
        ("lag > 92", 41, []),
        ("partition-lag > 10", 41, [("payments", 0, False)]),
        ("time-lag > 41m", 41, [("payments", None, False)]),
        ("time-lag > 42m", 41, []),
        ("catch-up > 1h", 41, [("payments", None, True)]),
        ("reset in 10m", 41, [("payments", 0, False)]),
        ("reset in 10m", 51, []),
        ("rebalances > 1 in 20m", 36, [("payments", None, False)]),
        ("rebalances > 1 in 10m", 36, []),
        ("unmeasured", 41, []),
        ("unmeasured on payments", 90, [("payments", number, False) for number in range(3)]),
        ("lag > 5", 90, [("payments", None, True)]),
        ("lag > 5 on audit", 41, [("audit", None, True)]),
        ("lag > 5 on au*", 41, []),
        ("empty", 41, []),
        ("reset", 63, [("payments", 0, False)]),
        ("reset in 10m", 90, [("payments", None, True)]),
        ("rebalances > 9", 90, [("payments", None, True)]),
        ("empty on pay*", 90, [("payments", None, True)]),
        ("gone on payments,nosuch", 90, [("payments", None, True), ("nosuch", None, True)]),
        ("reset on nosuch", 55, [("nosuch", None, True)]),
        ("reset on nosuch*", 55, []),
    ],
)
def test_what_is_found(warehouse: Path, text: str, at: float, expected: list[tuple[str, int | None, bool]]) -> None:
    assert found(warehouse, text, at) == expected


@pytest.mark.parametrize(
    ("text", "told"), [("lag > 9 on pam*,pay*", ["pam*"]), ("reset in 10m on pam*", ["pam*"]), ("gone on au*", [])]
)
def test_a_look_that_is_the_only_one_tells_patterns_that_are_no_groups(warehouse: Path, text: str, told: list[str]) -> None:
    picture = WatchPicture(History.open(warehouse), minute(55))
    unknown = [each for each in rule(text).findings(picture, is_patient=False) if each.summary.startswith("no group is")]
    assert [(each.group, each.is_unknown) for each in unknown] == [(name, True) for name in told]


TEXTS = [name + {"count": " > 1", "time": " > 1m"}.get(kind.limit, "") for name, kind in RULES.items()]


def test_a_rule_is_about_what_happens_to_groups_or_finds_those_that_are_behind() -> None:
    """As `kgctl.pipeline.answers.causes` has it, which is asked why: a commit out of the log's range is behind, at either end."""
    assert {name for name, kind in RULES.items() if kind.is_behind == bool(kind.of_events)} == {"unmeasured"}


@pytest.mark.parametrize("text", TEXTS)
def test_every_rule_can_be_judged_of_an_empty_time(warehouse: Path, text: str) -> None:
    assert found(warehouse, text, -60) == []


@pytest.mark.parametrize("text", TEXTS)
def test_every_rule_tells_that_nobody_collects_any_more(warehouse: Path, text: str) -> None:
    """Of what is not known nothing is taken for well: "unmeasured" says it as what it is about."""
    told = {(group, is_unknown) for group, _, is_unknown in found(warehouse, text, 90)}
    assert ("payments", text != "unmeasured") in told


@pytest.mark.parametrize("text", TEXTS)
def test_every_rule_tells_of_a_group_that_is_named_and_not_known(warehouse: Path, text: str) -> None:
    assert found(warehouse, f"{text} on nosuch", 41) == [("nosuch", None, True)]


def test_group_that_never_had_a_member_is_gone_with_its_last_commit(tmp_path: Path) -> None:
    commits = [
        *(commit(group, "t", number, 5, minute(number), number) for number, group in enumerate(("simple", "half", "back"))),
        commit("half", "t", 7, 5, minute(3), 3),
        *(commit(group, "t", number, None, minute(10), 10 + number) for number, group in enumerate(("simple", "half", "back"))),
        commit("back", "t", 2, 6, minute(30), 30),
    ]
    write_gold(tmp_path, {"offset_commits": commits, "coverage": [run(0, 40, minute(0), minute(9))]})

    asked = (("gone", 9), ("gone", 20), ("gone", 40), ("gone in 5m", 20))
    seen = [sorted(each[0] for each in found(tmp_path, text, at)) for text, at in asked]

    assert seen == [[], ["back", "simple"], ["simple"], []]


def generation(at: float, log_offset: int, cause: str, members: int) -> dict[str, object]:
    row = {
        "group": "g",
        "type": "classic",
        "protocol_type": "consumer",
        "generation_id": 1,
        "time_ms": minute(at),
        "started_ms": minute(at),
    }
    row |= {"members": members, "members_joined": [], "members_left": [], "cause": cause, "log_offset": log_offset}
    return row | dict.fromkeys(("stable_ms", "duration_ms", "assignor", "leader"))


def test_group_that_is_back_by_the_log_is_not_gone_by_a_clock_that_is_behind(tmp_path: Path) -> None:
    """The next leader of the partition of `__consumer_offsets` says an earlier time: the place in the log decides."""
    rows = [generation(20, 1, "member_joined", 1), generation(30, 3, "group_deleted", 0), generation(28, 4, "member_joined", 1)]
    commits = [commit("g", "t", 0, offset, minute(at), place) for at, place, offset in ((21, 2, 5), (30, 3, None), (29, 5, 6))]
    write_gold(tmp_path, {"generations": rows, "offset_commits": commits, "coverage": [run(0, 40, minute(0), minute(31))]})

    assert found(tmp_path, "gone", 31) == []
    assert gone(History.open(tmp_path), None, minute(31)) == {}


def test_records_of_a_clock_that_is_ahead_are_no_collection_of_today(tmp_path: Path) -> None:
    there = [generation(20, 1, "member_joined", 1)]
    write_gold(tmp_path, {"generations": there, "coverage": [run(0, 40, minute(0), minute(30))]})
    ahead = {"offset_commits": [commit("far", "t", 0, 5, minute(200), 2)], "coverage": [run(0, 40, minute(120), minute(200))]}
    write_gold(tmp_path, ahead, partition=HOME + 1)

    assert found(tmp_path, "reset on g", 31) == []
    assert found(tmp_path, "reset on g", 60) == [("g", None, True)]


@pytest.mark.parametrize(
    ("text", "at", "is_told"),
    [
        ("reset in 30m", 60, True),
        ("rebalances > 0 in 30m", 60, True),
        ("reset in 10m", 60, False),
        ("reset in 30m", 80, False),
        ("reset in 30m on other", 60, False),
        ("gone in 30m", 60, False),
        ("empty", 60, False),
    ],
)
def test_what_happened_in_a_hole_of_the_collection_is_not_known(tmp_path: Path, text: str, at: int, is_told: bool) -> None:
    """Records of minutes 30 to 45 were compacted away while nobody collected; of another partition all are there."""
    runs = [run(0, 40, minute(0), minute(30)), run(90, 140, minute(45), minute(at))]
    write_gold(tmp_path, {"generations": [generation(20, 1, "member_joined", 1)], "coverage": runs})
    other = generation(20, 1, "member_joined", 1) | {"group": "other"}
    whole = {"generations": [other], "coverage": [run(0, 40, minute(0), minute(at))]}
    write_gold(tmp_path, whole, partition=HOME + 1)

    picture = WatchPicture(History.open(tmp_path), minute(at))
    told = [(each.group, each.summary.partition(": ")[2], each.is_unknown) for each in rule(text).findings(picture)]
    assert told == ([("g", "records of 15 min were not collected", True)] if is_told else [])


@pytest.mark.parametrize("text", ["lag > 5", "reset", "lag > 5 on pay*"])
def test_a_cluster_of_which_nothing_is_known_and_that_nobody_collects_is_no_pass(tmp_path: Path, text: str) -> None:
    write_gold(tmp_path, {"coverage": [run(0, 40, minute(0), minute(30))]})

    assert found(tmp_path, text, 31) == []
    assert found(tmp_path, text, 60) == [("*", None, True)]


def test_a_commit_past_the_end_hides_nothing_that_others_have_to_read(tmp_path: Path) -> None:
    write_gold(tmp_path, past_end(minute(40)))

    asked = ("lag > 7712", "lag > 7713", "lag > 7713 on other", "partition-lag > 7713", "past-end", "time-lag > 1m")
    assert [found(tmp_path, text, 41) for text in asked] == [
        [("g", None, False)],
        [("g", None, True)],
        [],
        [("g", 0, True)],
        [("g", 0, False)],
        [("g", None, True)],
    ]
