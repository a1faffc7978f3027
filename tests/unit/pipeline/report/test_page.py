"""The page, as data and as text."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kgctl.admin.times import format_instant
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.report import figures
from kgctl.pipeline.report import page as contents
from kgctl.pipeline.report.figures import GroupOverview, as_data
from kgctl.pipeline.report.page import Asked, Content, ListedReset, html_page
from tests.support.pipeline.example import END_AT, example_tables, minute
from tests.support.pipeline.gold import commit, run, write_gold


def test_overview_has_the_worst_group_first(example: Content) -> None:
    assert example.overview == [
        GroupOverview("payments", "REWIND", 3, 5195, 1, 36, 94, 2_820_000, "staging"),
        GroupOverview("audit", "OK", 0, 0, 0, 1, 49, 1_470_000, "staging"),
    ]
    assert [each.group for each in example.figures] == ["payments", "audit"]
    assert example.notes == []


def test_figures_of_a_group(example: Content) -> None:
    data = as_data(example.figures[0])

    begins, ends, statuses = zip(*data["health"], strict=True)
    assert (begins[0], ends[:-1], ends[-1]) == (minute(0), begins[1:], minute(60) + 1)
    assert (begins[-1], statuses[0], statuses[-1]) == (minute(40), "OK", "REWIND")
    assert all(one != other for one, other in pairwise(statuses))
    assert data["rebalances"] == [
        [minute(0), minute(0) + 3004, "generation 1: member joined, 1 member, 1 joined, 3004 ms"],
        [minute(20), minute(20) + 2150, "generation 2: member joined, 2 members, 1 joined, at least 2150 ms"],
        [minute(35), minute(35) + 41, "generation 3: member left, 1 member, 1 left, at least 41 ms"],
    ]
    assert data["members"] == [(minute(0), 1), (minute(20), 2), (minute(35), 1)]
    ((at_ms, text, row_id),) = data["resets"]
    assert (at_ms, text) == (minute(40), "orders-0: 70 to 0 (-70): went back")
    assert [each.row_id for each in example.resets] == [row_id]
    assert [line["topic"] for line in data["lag"]] == ["orders"]
    assert data["lag"][0]["points"][-1] == (minute(60), 122)
    assert data["rate"][0]["points"][0] == (minute(5), 30)
    assert (data["rate_ms"], data["notes"]) == (60_000, [])


def test_stretch_of_time_begins_with_what_held(history: History) -> None:
    (payments,) = contents.content([contents.Asked(history, ["payments"])], minute(30), minute(38), format_instant).figures

    data = as_data(payments)
    (held,) = data["health"]
    assert held[:2] == [minute(30), minute(38)]
    assert data["members"][-2:] == [(minute(30), 2), (minute(35), 1)]
    assert [text for _, _, text in data["rebalances"]] == ["generation 3: member left, 1 member, 1 left, at least 41 ms"]
    assert data["resets"] == []


def test_stretch_shorter_than_a_window_has_what_held(history: History) -> None:
    made = contents.content([contents.Asked(history)], minute(40) + 20_000, minute(40) + 30_000, format_instant)

    assert [(each.group, each.status) for each in made.overview] == [("payments", "REWIND")]
    assert as_data(made.figures[0])["health"] == [[minute(40) + 20_000, minute(40) + 30_000, "REWIND"]]


def test_group_that_was_idle_is_there_if_it_was_named(history: History) -> None:
    made = contents.content([contents.Asked(history, ["audit"])], minute(50), minute(51), format_instant)

    assert made.overview == [GroupOverview("audit", None, 0, None, 0, 0, None, None, "staging")]
    assert as_data(made.figures[0])["health"] == [[minute(50), minute(51), "unknown"]]


def test_what_is_left_out_is_said(history: History, example: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MOST_GROUPS", 1)
    monkeypatch.setattr(figures, "MOST_MARKS", 1)
    monkeypatch.setattr(figures, "MOST_WINDOWS", 7)

    made = contents.content([contents.Asked(history)], minute(0), minute(END_AT) + 1, format_instant)

    assert made.notes == ["Charts are there for 1 of 2 groups, those that were worst; --group chooses others."]
    assert made.figures[0].notes == [
        "commit rate: averaged over 9 minutes",
        f"stretches of health: the 1 longest of {len(example.figures[0].health)} are drawn",
        "rebalances: the 1 longest of 3 are drawn",
    ]
    assert sum(value or 0 for _, value in made.figures[0].rate[0].points) == 30 * 10 + 20


def test_lag_that_is_not_known_is_said_and_not_drawn(tmp_path: Path) -> None:
    row = {"group": "g", "topic": "t", "partition": 0, "time_ms": 5, "committed_offset": 7, "kind": "commit"}
    write_gold(tmp_path, {"offset_commits": [commit("g", "t", 0, 7, 5, 0)], "lag": [row], "coverage": [run(0, 0, 5, 5)]})

    (drawn,) = contents.content([contents.Asked(History.open(tmp_path), ["g"])], 0, 10, format_instant).figures

    assert (drawn.lag, drawn.notes) == ([], ["lag: not known of t in that time, as the log end was not sampled"])


def test_page_says_it_without_any_script(example: Content) -> None:
    frame = without_scripts(html_page(example))

    assert "2026-03-02T08:00:00.000Z to 2026-03-02T09:00:00.000Z, cluster staging" in frame
    link = '<a href="#cluster=staging&amp;group=payments">payments</a>'
    assert f'<td>{link}</td><td class="">REWIND</td><td class="figure">3</td>' in frame
    assert '<td class="">payments: orders-0: 70 to 0 (-70): went back</td>' in frame
    assert "<code>kgctl reset-offsets payments --to-history 2026-03-02T08:39:59.999Z</code>" in frame
    assert re.findall(r"https?:|\bsrc=|\bhref=\"[^#\"]|@import|url\(", frame) == []


def test_page_says_when_a_group_was_behind_and_why(example: Content) -> None:
    frame = without_scripts(html_page(example))

    _, payments = example.spells
    assert payments.said == (
        "2026-03-02T08:35:00.000Z 1 rebalance, at least 0.041 s together (member left); 1 member, 2 before",
        "2026-03-02T08:40:00.000Z reset of orders: 1 partition by -70 records (went back)",
    )
    assert f"<td>payments: {payments.text}</td><td>{'<br>'.join(payments.said)}</td>" in frame
    assert payments.text == "94 records of one partition, 2,820.0 s, still is"
    assert '<a href="#behind">behind</a>' in frame
    assert "behind" not in without_scripts(html_page(replace(example, spells=[])))


def test_of_a_stretch_without_a_cause_it_is_said_what_was_looked_for(history: History) -> None:
    (told,) = contents.content([contents.Asked(history, ["audit"])], minute(0), minute(40), format_instant).spells
    assert told.said == ("2026-03-02T08:02:00.000Z it committed nothing more",)
    assert told.text == "49 records of one partition, 1,470.0 s, for 1,440.0 s, then it is not known"


def test_names_cannot_become_markup(example: Content) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    named = replace(
        example,
        clusters=[evil, "other"],
        overview=[replace(example.overview[0], group=evil)],
        figures=[replace(example.figures[0], group=evil)],
        resets=[ListedReset(evil, evil, evil, 0, evil, evil, evil)],
        notes=[evil],
    )

    page = html_page(named)

    assert "<img" not in without_scripts(page)
    assert page.count(evil) == 0


def test_several_clusters_are_one_page(tmp_path: Path) -> None:
    for cluster in ("east", "west"):
        write_gold(tmp_path / "w", example_tables(), cluster=cluster)
    asked = [contents.Asked(History.open(tmp_path / "w", cluster)) for cluster in ("east", "west")]
    made = contents.content(asked, minute(0), minute(END_AT) + 1, format_instant)

    assert [(each.cluster, each.group) for each in made.overview] == [
        ("east", "payments"),
        ("west", "payments"),
        ("east", "audit"),
        ("west", "audit"),
    ]
    assert [(each.cluster, each.at_ms) for each in made.resets] == [("east", minute(40)), ("west", minute(40))]
    frame = without_scripts(html_page(made))
    assert ", clusters east, west</p>" in frame
    assert '<td>west</td><td><a href="#cluster=west&amp;group=payments">payments</a></td>' in frame
    assert "--to-history 2026-03-02T08:39:59.999Z --history-cluster west</code>" in frame
    assert "<option>east / audit</option>" in frame
    assert len(set(re.findall(r'<tr id="(reset-[^"]+)"', frame))) == 2


def test_nothing_known_needs_no_charts(example: Content) -> None:
    assert "<script" not in html_page(replace(example, overview=[], figures=[], resets=[]))


def test_names_hide_nothing_and_turn_nothing_round(example: Content) -> None:
    name = "pay'\u202e\x1bments"
    undo = contents.undo_command(name, "2026-03-02T08:39:00Z")
    assert undo == r"kgctl reset-offsets $'pay\'\u202e\u001bments' --to-history 2026-03-02T08:39:00Z"
    page = without_scripts(html_page(replace(example, overview=[GroupOverview(name, "OK", 0, 0, 0, 0, 0, 0, "c1")])))
    assert r"pay&#x27;\u202e\u001bments" in page
    assert not {"\u202e", "\x1b"} & set(page)


def without_scripts(page: str) -> str:
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def reset(group: str, number: int) -> dict[str, object]:
    return {
        "group": group,
        "topic": "t",
        "partition": 0,
        "time_ms": minute(number),
        "offset_before": 50_000 - number,
        "offset_after": 0,
        "kind": "backward",
        "records": number - 50_000,
        "log_offset": number,
        "evidence": "went_back",
    }


def test_the_list_of_resets_is_the_last_of_each_group(tmp_path: Path) -> None:
    """Not of those that are drawn, which moved most; a flood in one group leaves the others' on the page."""
    count, end = 27_826, minute(30_000)
    rows = [*(reset("g", number) for number in range(count)), reset("other", 3)]
    health = {
        "window_start_ms": minute(0),
        "window_ms": 60_000,
        "rebalances": 0,
        "commits": 1,
        "stalled_partitions": 0,
        "past_end": 0,
        "below_start": 0,
    }
    write_gold(
        tmp_path,
        {
            "resets": rows,
            "group_health": [{**health, "group": "g", "resets": count}, {**health, "group": "other", "resets": 1}],
            "offset_commits": [commit(group, "t", 0, 1, minute(0), 0) for group in ("g", "other")],
            "coverage": [run(0, 9, minute(0), end)],
        },
    )

    made = contents.content([Asked(History.open(tmp_path))], minute(0), end, format_instant)

    assert [(len(each.resets), len(each.marks)) for each in made.figures] == [(count, figures.MOST_MARKS), (1, 1)]
    assert [(each.group, each.text) for each in made.resets] == [
        ("other", "t-0: 49997 to 0 (-49997): went back"),
        *(("g", f"t-0: {50_000 - number} to 0 ({number - 50_000:+}): went back") for number in range(count - 200, count)),
    ]
    assert made.notes == ["Of g the last 200 of 27826 resets are listed; all of them: kgctl history resets g"]
