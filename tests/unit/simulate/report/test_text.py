"""The summary in a terminal."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from kgctl.simulate.report.outcome import Expectation, Lane, Mark, Outcome, Replicas, RunPicture, VariantOutcome
from kgctl.simulate.report.text import (
    gantt_lines,
    junit_xml,
    markdown_text,
    summary_lines,
    summary_text,
)
from tests.support.simulate.outcomes import SECOND, failing, outcome, picture, segments, spread


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

    assert lines[-4:] == [
        " PASS cooperative: max_gap < 3s               2.5s",
        " FAIL eager: max_gap < 3s                     observed 3.2s with seed 2 (of orders-0)",
        " WARN eager: moves <= moves_min | spread > 1  observed 12 with seed 2",
        f"replay: {failing().failures[0].replay}",
    ]


def test_hints_are_left_out_where_the_terminal_is_narrow() -> None:
    lines = summary_lines(outcome(), 50)

    assert all(len(line) <= 50 for line in lines)
    assert lines[1:3] == ["3 seeds, worst shown", "                   eager   cooperative"]


def test_watched_and_ranked_checks_show_the_unit_of_their_metric() -> None:
    checks = [
        Expectation(check, "eager", passed=True, observed=2.5, seed=1) for check in ("always: max_gap < 3s", "p95: max_gap < 3s")
    ]
    lines = summary_lines(replace(outcome(), expectations=tuple(checks)), 100)

    assert [line.split()[-1] for line in lines if line.startswith(" PASS")] == ["2.5s", "2.5s"]


def test_single_variant_and_seed_need_no_heading_of_names() -> None:
    only = Outcome("one", "", "0.5.0", "", (7,), {"default": VariantOutcome({"moves": spread(3)})})

    assert summary_text(only) == "one\n                         seed 7\npartitions moved   3\n"


def test_a_variant_called_default_has_its_name_beside_others() -> None:
    both = replace(
        outcome(), variants={"default": VariantOutcome({"moves": spread(3)}), "all": VariantOutcome({"moves": spread(4)})}
    )

    assert summary_lines(both)[1] == "                   default   all     3 seeds, worst shown"
    assert "| default | all |" in markdown_text(both)


def test_variants_that_do_not_fit_beside_each_other_stand_below() -> None:
    names = ("größe", "日本語", "third-of-three")
    three = replace(outcome(), variants={name: VariantOutcome({"moves": spread(3)}) for name in names}, expectations=())

    assert (
        summary_text(three, 40)
        == """\
tiny   Who waits for a restart?
3 seeds, worst shown
                   größe   日本語
partitions moved       3        3

                   third-of-three
partitions moved                3
"""
    )


def test_what_held_in_some_seeds_alone_is_no_proof_for_all() -> None:
    many = replace(outcome(), seeds=tuple(range(1, 21)))
    first, *others = many.expectations
    ranked = replace(many, expectations=(replace(first, check="p50: max_gap < 3s", held_in=11), *others))
    assert "held in some of 20 seeds: p50: max_gap < 3s in 11\n" in summary_text(ranked)
    of_means = replace(many, expectations=(replace(first, check="mean: max_gap < 3s", held_in=0), *others))
    assert "held in" not in summary_text(of_means)


def test_many_seeds_say_how_sure_one_can_be() -> None:
    many = replace(outcome(), seeds=tuple(range(1, 21)))

    assert "held in 20 of 20 seeds; --runs 60 would show, with 95% confidence, that fewer than 5% break it\n" in summary_text(
        many
    )
    enough = replace(outcome(), seeds=tuple(range(1, 101)))
    assert "held in 100 of 100 seeds: with 95% confidence, fewer than 3% of all break it\n" in summary_text(enough)


def test_failing_run_shows_table_verdicts_and_replay() -> None:
    assert (
        markdown_text(failing())
        == """\
### ❌ tiny

Who waits for a restart?

|  | eager | cooperative |  |
| --- | --: | --: | --- |
| rebalances | 2 | 2 |  |
| unavailable p\\*s | 7,689 | 2.2 | partition-seconds without a consumer |
| longest gap | 3.2s | 3.2s | one partition, nobody |
| partitions moved | 12 | 4 | lower bound 4 |
| moves\\_min | 4 | 4 |  |
| collateral p\\*s | 6,400 | 0 | of partitions that did not move |

|  | expectation | observed |
| --- | --- | --- |
| ✅ | <code>cooperative.collateral == 0</code> | 0 (eager 6,400) |
| ✅ | <code>max_gap &lt; 15s</code> | 3.2s |
| ✅ | <code>cooperative: max_gap &lt; 3s</code> | 2.5s |
| ❌ | <code>eager: max_gap &lt; 3s</code> | observed 3.2s with seed 2 (of orders-0) |
| ⚠️ | <code>eager: moves &lt;= moves_min &#124; spread &gt; 1</code> | observed 12 with seed 2 |

Replay:

```console
kgctl simulate run tiny.yaml --variant eager --seed 2 --check 'max_gap < 3s'   # kgctl 0.5.0, digest 9f3a61c0
```

<sub>kgctl 0.5.0, 3 seeds, worst shown, digest <code>9f3a61c09f3a61c0</code></sub>
"""
    )


def test_text_of_the_file_cannot_become_markup() -> None:
    text = markdown_text(replace(outcome(), scenario="a|b", question="<img src=x>\n# `x` [y](z)"))

    assert text.startswith("### ✅ a\\|b\n\n&lt;img src=x> \\# \\`x\\` \\[y\\](z)\n\n")


def test_lanes_show_owners_gaps_and_double_owners() -> None:
    assert gantt_lines(picture(), 50, title="eager") == [
        "eager, seed 1",
        "          0s        10s       20s       30s",
        "events              v",
        "orders-0  aaaaaaaaaaa··bbbbbbbbbbbb·aaaaaaaaaaaaaa",
        "orders-1  bbbbbbbbbbb··bbbbbbbbbbb!bbbbbbbbbbbbbbb",
        "v 10s restart app/0",
        "a app-0  b app-1",
    ]


def test_events_of_the_picture_are_told_in_words_in_three_lines_at_most() -> None:
    marks = [Mark(second * SECOND, f"restart app/{second}") for second in range(9)]
    lines = gantt_lines(replace(picture(), marks=(Mark(0, "app-0 goes"), *marks, Mark(9 * SECOND, "app-0 starts"))), 50)
    assert lines[5:-1] == [
        "v 0s restart app/0, 1s restart app/1, 2s restart",
        "  app/2, 3s restart app/3, 4s restart app/4, 5s",
        "  restart app/5, 6s restart app/6, 7s restart",
        "  ...",
    ]


def test_pods_of_an_autoscaler_are_bars_above_the_lanes() -> None:
    pods = Replicas("app", ((0, 2), (10 * SECOND, 8), (20 * SECOND, 1), (30 * SECOND, 0)), ())
    lines = gantt_lines(replace(picture(), replicas=(pods,)), 50)
    assert lines[3] == "pods      ▂▂▂▂▂▂▂▂▂▂██████████▁▁▁▁▁▁▁▁▁▁"
    assert lines[-3] == "pods of app: 0 to 8, █ = 8"


def test_short_gap_in_a_slice_makes_its_letter_a_capital() -> None:
    lane = Lane("t", 0, segments((14, "m-0"), (15, "?rebalance"), (100, "m-0")))

    assert gantt_lines(RunPicture(1, 0, 100 * SECOND, (lane,)), 28)[2] == "t-0     aaAaaaaaaaaaaaaaaaaa"


def test_partition_that_comes_later_leaves_the_time_before_blank() -> None:
    lane = Lane("t", 0, segments((40, "m-0"))[0:1])
    later = Lane("t", 1, tuple(each for each in segments((20, ""), (40, "m-0")) if each.owners))

    assert gantt_lines(RunPicture(1, 0, 40 * SECOND, (lane, later)), 28)[2:4] == [
        "t-0     aaaaaaaaaaaaaaaaaaaa",
        "t-1               aaaaaaaaaa",
    ]


def test_of_many_partitions_those_without_a_consumer_for_longest_are_shown() -> None:
    lanes = tuple(Lane("t", i, segments((i, "?boot"), (40, f"m-{i}"))) for i in range(1, 31))

    lines = gantt_lines(RunPicture(1, 0, 40 * SECOND, lanes), 60, max_lanes=3)

    assert [line.split()[0] for line in lines[2:5]] == ["t-28", "t-29", "t-30"]
    assert lines[5] == "(27 more partitions, with shorter gaps)"


def test_long_legend_is_cut_and_says_that_letters_repeat() -> None:
    lanes = tuple(Lane("t", i, segments((40, f"consumer-{i}"))) for i in range(30))

    legend = gantt_lines(RunPicture(1, 0, 40 * SECOND, lanes), 60, max_lanes=30)[-1]

    assert legend == "a consumer-0  b consumer-1  c consumer-2  ... (letters repeat)"


def test_nothing_to_draw_draws_nothing() -> None:
    assert gantt_lines(RunPicture(1, 0, 0, picture().lanes)) == []
    assert gantt_lines(RunPicture(1, 0, 5, ())) == []


def test_failure_has_what_was_observed_and_its_replay() -> None:
    suite = ET.fromstring(junit_xml(failing())).find("testsuite")
    assert suite is not None

    found = [
        (case.get("classname"), case.get("name"), [(each.tag, each.text) for each in case]) for case in suite.iter("testcase")
    ]

    replay = failing().failures[0].replay
    assert suite.attrib == {"name": "tiny", "tests": "6", "failures": "1", "errors": "0", "skipped": "0", "time": "0"}
    assert found == [
        ("tiny.cooperative", "cooperative.collateral == 0", []),
        ("tiny.eager", "max_gap < 15s", []),
        ("tiny.cooperative", "max_gap < 15s", []),
        (
            "tiny.eager",
            "max_gap < 3s",
            [
                (
                    "failure",
                    "max_gap < 3s does not hold in variant eager\nobserved 3.2s with seed 2\nof orders-0\n" + f"replay: {replay}",
                )
            ],
        ),
        ("tiny.cooperative", "max_gap < 3s", []),
        (
            "tiny.eager",
            "moves <= moves_min | spread > 1",
            [
                (
                    "system-out",
                    "warning: moves <= moves_min | spread > 1 does not hold in variant eager\n"
                    f"observed 12 with seed 2\nreplay: {replay}",
                )
            ],
        ),
    ]


def test_document_says_which_run_it_is() -> None:
    found = {each.get("name"): each.get("value") for each in ET.fromstring(junit_xml(outcome())).iter("property")}

    assert found == {"question": "Who waits for a restart?", "kgctl": "0.5.0", "digest": "9f3a61c0" * 8, "seeds": "1,2,3"}


def test_letters_that_xml_cannot_hold_are_replaced() -> None:
    suite = ET.fromstring(junit_xml(replace(outcome(), scenario="a\x00b\x1b"))).find("testsuite")

    assert suite is not None
    assert suite.get("name") == "a\ufffdb\ufffd"


CUT = "stopped at the time limit: 1 of 9 seeds were run in every variant"


def test_what_a_limit_has_left_out_is_green_in_no_report() -> None:
    cut = replace(outcome(), expectations=(), notes=(CUT,), stopped=CUT)
    assert markdown_text(cut).startswith("### ❌ tiny\n")
    assert markdown_text(replace(cut, stopped="")).startswith("### ✅ tiny\n")
    suite = ET.fromstring(junit_xml(cut)).find("testsuite")
    assert suite is not None
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["1", "0", "1"]
    assert [error.get("message") for error in suite.iter("error")] == [CUT]
