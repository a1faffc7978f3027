"""Lines of other tools, typed as they stand, are answered with kgctl's."""

from __future__ import annotations

import pytest

from tests.cli.harness import Cli


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("groups", "type: kgctl list groups"),
        ("get groups", "type: kgctl list groups"),
        ("describe payments", "type: kgctl describe group payments"),
        ("list payments", "type: kgctl list groups"),
        ("--list", "type: kgctl list groups"),
        ("--bootstrap-server a:1 --list", "type: kgctl list groups --bootstrap-server a:1"),
        ("--describe --group g --members", "type: kgctl describe group --group g --members"),
        ("--group g --reset-offsets --to-earliest", "type: kgctl reset-offsets --group g --to-earliest"),
        ("--delete --group g", "type: kgctl delete-groups --group g"),
        ("restore", "type: kgctl undo"),
        ("lst", "did you mean 'list'?"),
    ],
)
def test_line_of_another_tool(cli: Cli, line: str, told: str) -> None:
    ran = cli(line)
    assert (ran.code, told in ran.err, cli.settings) == (2, True, []), ran.err


@pytest.mark.parametrize("line", ["delete", "delete-group", "reset", "reset-offset", "remove", "delet-groups", "migrate"])
def test_nothing_destructive_is_suggested(cli: Cli, line: str) -> None:
    ran = cli(line)
    suggested = ran.err.partition("did you mean")[2] + ran.err.partition("type:")[2]
    assert (ran.code, [name for name in ("delete", "reset", "remove", "migrate") if name in suggested]) == (2, []), ran.err


def test_kafkas_milliseconds_are_refused(cli: Cli) -> None:
    ran = cli("list groups --timeout 5000")
    told = "kgctl: --timeout 5000 counts seconds, unlike in Kafka's tools: write 5000ms, or 5000s if that is meant\n"
    assert (ran.code, ran.err) == (2, told)
    assert cli("list groups --timeout 5000ms").code == 0
