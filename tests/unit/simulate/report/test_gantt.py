"""The picture in a terminal."""

from __future__ import annotations

from dataclasses import replace

from kgctl.simulate.report.gantt import gantt_lines
from kgctl.simulate.report.outcome import Lane, Picture, Replicas
from tests.support.simulate.outcomes import SECOND, picture, segments


def test_lanes_show_owners_gaps_and_double_owners() -> None:
    assert gantt_lines(picture(), 50, title="eager") == [
        "eager, seed 1",
        "          0s        10s       20s       30s",
        "events              v",
        "orders-0  aaaaaaaaaaa··bbbbbbbbbbbb·aaaaaaaaaaaaaa",
        "orders-1  bbbbbbbbbbb··bbbbbbbbbbb!bbbbbbbbbbbbbbb",
        "a app-0  b app-1",
    ]


def test_pods_of_an_autoscaler_are_bars_above_the_lanes() -> None:
    pods = Replicas("app", ((0, 2), (10 * SECOND, 8), (20 * SECOND, 1), (30 * SECOND, 0)), ())
    lines = gantt_lines(replace(picture(), replicas=(pods,)), 50)
    assert lines[3] == "pods      ▂▂▂▂▂▂▂▂▂▂██████████▁▁▁▁▁▁▁▁▁▁"
    assert lines[-2] == "pods of app: 0 to 8, █ = 8"


def test_short_gap_in_a_slice_makes_its_letter_a_capital() -> None:
    lane = Lane("t", 0, segments((14, "m-0"), (15, "?rebalance"), (100, "m-0")))

    assert gantt_lines(Picture(1, 0, 100 * SECOND, (lane,)), 28)[2] == "t-0     aaAaaaaaaaaaaaaaaaaa"


def test_partition_that_comes_later_leaves_the_time_before_blank() -> None:
    lane = Lane("t", 0, segments((40, "m-0"))[0:1])
    later = Lane("t", 1, tuple(each for each in segments((20, ""), (40, "m-0")) if each.owners))

    assert gantt_lines(Picture(1, 0, 40 * SECOND, (lane, later)), 28)[2:4] == [
        "t-0     aaaaaaaaaaaaaaaaaaaa",
        "t-1               aaaaaaaaaa",
    ]


def test_of_many_partitions_those_without_a_consumer_for_longest_are_shown() -> None:
    lanes = tuple(Lane("t", i, segments((i, "?boot"), (40, f"m-{i}"))) for i in range(1, 31))

    lines = gantt_lines(Picture(1, 0, 40 * SECOND, lanes), 60, max_lanes=3)

    assert [line.split()[0] for line in lines[2:5]] == ["t-28", "t-29", "t-30"]
    assert lines[5] == "(27 more partitions, with shorter gaps)"


def test_long_legend_is_cut_and_says_that_letters_repeat() -> None:
    lanes = tuple(Lane("t", i, segments((40, f"consumer-{i}"))) for i in range(30))

    legend = gantt_lines(Picture(1, 0, 40 * SECOND, lanes), 60, max_lanes=30)[-1]

    assert legend == "a consumer-0  b consumer-1  c consumer-2  ... (letters repeat)"


def test_nothing_to_draw_draws_nothing() -> None:
    assert gantt_lines(Picture(1, 0, 0, picture().lanes)) == []
    assert gantt_lines(Picture(1, 0, 5, ())) == []
