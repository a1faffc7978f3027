"""The summary in a terminal."""

from __future__ import annotations

from dataclasses import replace

from kgctl.simulate.report.outcome import Expectation, Outcome, VariantOutcome
from kgctl.simulate.report.text import FAIL, PASS, REPLAY, WARN, summary_lines, summary_text
from tests.support.simulate.outcomes import failing, outcome, spread


def test_variants_stand_side_by_side_with_the_worst_of_the_seeds() -> None:
    assert (
        summary_text(outcome(), 100)
        == """\
tiny   Who waits for a restart?
                   eager   cooperative     3 seeds, worst shown
rebalances             2             2
unavailable p*s    7,689           2.2     partition-seconds without a consumer
longest gap         3.2s          3.2s     one partition, nobody
partitions moved      12             4     lower bound 4
collateral p*s     6,400             0     of partitions that did not move
 PASS cooperative.collateral == 0  0 (eager 6,400)
 PASS max_gap < 15s                3.2s
"""
    )


def test_failure_tells_what_was_seen_and_ends_with_the_command_that_replays_it() -> None:
    lines = summary_lines(failing(), 100)

    assert [(line.kind, line.text) for line in lines if line.kind in {PASS, WARN, FAIL, REPLAY}][2:] == [
        (PASS, " PASS cooperative: max_gap < 3s               2.5s"),
        (FAIL, " FAIL eager: max_gap < 3s                     observed 3.2s with seed 2 (of orders-0)"),
        (WARN, " WARN eager: moves <= moves_min | spread > 1  observed 12 with seed 2"),
        (REPLAY, f"replay: {failing().failures[0].replay}"),
    ]
    assert lines[-1].kind == REPLAY


def test_hints_are_left_out_where_the_terminal_is_narrow() -> None:
    lines = summary_lines(outcome(), 50)

    assert all(len(line.text) <= 50 for line in lines)
    assert [line.text for line in lines][1:3] == ["3 seeds, worst shown", "                   eager   cooperative"]


def test_watched_and_ranked_checks_show_the_unit_of_their_metric() -> None:
    checks = [
        Expectation(check, "eager", passed=True, observed=2.5, seed=1) for check in ("always: max_gap < 3s", "p95: max_gap < 3s")
    ]
    lines = summary_lines(replace(outcome(), expectations=tuple(checks)), 100)

    assert [line.text.split()[-1] for line in lines if line.kind == PASS] == ["2.5s", "2.5s"]


def test_single_variant_and_seed_need_no_heading_of_names() -> None:
    only = Outcome("one", "", "0.5.0", "", (7,), {"default": VariantOutcome({"moves": spread(3)})})

    assert summary_text(only) == "one\n                         seed 7\npartitions moved   3\n"


def test_many_seeds_say_how_sure_one_can_be() -> None:
    many = replace(outcome(), seeds=tuple(range(1, 21)))

    assert "held in 20 of 20 seeds: with 95% confidence, fewer than 15% of all seeds break it\n" in summary_text(many)
