"""``kgctl history report``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgctl.extras import install_line
from kgctl.pipeline.builds.run import build
from kgctl.pipeline.engines import LocalEngine
from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.warehouses import LOG, add, built_whole


def test_page_is_written_and_groups_are_summed_up(cli: Cli) -> None:
    page = cli.folder / "history.html"

    ran = cli(f"history report payments --html {page} --from 2026-03-02T08:10:00Z --to 2026-03-02T08:50:00Z")

    assert (ran.code, ran.err) == (0, f"written: {page}\n")
    assert ran.out == (
        "GROUP     STATUS  REBALANCES  REBALANCE-MS  RESETS  COMMITS  MAX-LAG  MAX-LAG-MS\n"
        "payments  REWIND           2          2191       1       24       84     2520000\n"
    )
    text = page.read_text()
    assert "<h1>History of payments</h1>" in text
    assert "vegaEmbed" in text


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("", 2, "Missing option '--html'"),
        ("--html nosuch/history.html", 2, "nosuch/history.html: there is no folder "),
        ("--html .", 2, ". is a folder; name a file"),
        ("--html -", 2, "- would be a file of this name: stdout has the result; name a file"),
        ("--html a.html --from soon", 2, "--from: cannot read 'soon' as a time"),
        ("nosuch --html a.html", 4, "group 'nosuch' is not in the history of cluster 'staging'"),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(cli: Cli, line: str, code: int, message: str) -> None:
    ran = cli(f"history report {line}")

    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


@pytest.mark.parametrize("span", ["--from 2026-05-01", "--from 2026-05-01 --to 2026-05-02", "--to 2026-03-02T08:00:00Z"])
def test_a_time_of_which_nothing_was_collected_has_no_page_of_zeros(cli: Cli, span: str) -> None:
    page = cli.folder / "history.html"
    cli.now_ms = minute(200_000)
    ran = cli(f"history report payments --html {page} {span}")
    collected = "collected from 2026-03-02T08:00:00.000Z to 2026-03-02T09:00:00.000Z"
    assert (ran.code, ran.out, ran.err) == (4, "", f"kgctl: {collected}: what happened outside of that is not known\n")
    assert not page.exists()


def test_how_far_the_collection_reaches_is_told(cli: Cli) -> None:
    cli.now_ms = minute(90)
    ran = cli(f"history report payments --html {cli.folder / 'a.html'} --from 2026-03-02T08:50:00Z")
    assert "Collected up to 2026-03-02T09:00:00.000Z: what came later is not known.\n" in ran.err


def test_missing_library_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)

    ran = cli(f"history report --html {cli.folder / 'a.html'}")

    assert (ran.code, ran.err) == (2, f"kgctl: --html needs vl_convert: {install_line('html')}\n")


def test_rows_of_several_clusters_name_theirs(cli: Cli, tmp_path: Path) -> None:
    warehouse = built_whole(tmp_path / "w")
    add(warehouse, "c2", LOG[0])
    assert build(warehouse, ["c2"], lambda _: LocalEngine(1)).failed == []

    ran = cli(f"history report --warehouse {tmp_path / 'w'} --html {tmp_path / 'page.html'}")

    head, *rows = ran.out.splitlines()
    assert (ran.code, head.split()[:2]) == (0, ["CLUSTER", "GROUP"])
    assert {row.split()[0] for row in rows} == {"c1", "c2"}
