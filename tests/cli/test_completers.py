"""Completion of groups, topics and contexts, in process."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from typer._click.shell_completion import get_completion_class
from typer._completion_classes import completion_init

from kgctl.cli.completion import (
    COMPLETION_TIMEOUT_MS,
    complete_contexts,
    complete_groups,
    complete_history_groups,
    complete_topics,
)
from kgctl.cli.environment import Environment
from kgctl.cli.registry import COMMANDS
from kgctl.cli.session import Session
from kgctl.cli.tree import LazyCommand, build_tree
from kgctl.errors import UnreachableError
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli
from tests.support.pipeline.example import example_history


@pytest.fixture
def ctx(cli: Cli) -> Any:
    session = Session(Environment(variables=cli.variables, connect=cli._connect))
    root = SimpleNamespace(params={"timeout": "5", "properties": None}, parent=None, obj=session)
    return SimpleNamespace(params={"bootstrap_server": "a:1", "groups": []}, parent=root, obj=session)


def test_names_that_begin_like_what_was_typed(ctx: Any) -> None:
    assert complete_groups(ctx, [], "") == ["g1", "g2", "g3"]
    assert complete_groups(ctx, [], "g2") == ["g2"]
    assert complete_topics(ctx, [], "t") == ["t1", "t2"]


def test_flags_given_so_far_are_used_with_a_short_limit(ctx: Any, cli: Cli) -> None:
    complete_groups(ctx, [], "")
    assert (cli.settings[0].bootstrap, cli.settings[0].timeout_ms) == ("a:1", COMPLETION_TIMEOUT_MS)


def test_names_that_a_shell_could_evaluate_are_left_out(ctx: Any, cluster: FakeGroupAdmin) -> None:
    for name in ("$(reboot)", "a b", "back\\slash", "quote'"):
        cluster.group(name)
    assert complete_groups(ctx, [], "") == ["g1", "g2", "g3"]


def test_names_may_have_any_letters(ctx: Any, cluster: FakeGroupAdmin) -> None:
    for name in ("grüße-☃", "支付", "wide\u2003space", "right\u202eto-left"):
        cluster.group(name)
    assert complete_groups(ctx, [], "") == ["g1", "g2", "g3", "grüße-☃", "支付"]


def test_failures_complete_to_nothing(ctx: Any, cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.failure = RuntimeError("anything")
    assert complete_groups(ctx, [], "") == []
    cli.connect_failure = UnreachableError("down")
    assert complete_topics(ctx, [], "") == []


def test_contexts(ctx: Any, cli: Cli) -> None:
    assert complete_contexts(ctx, [], "") == []
    (cli.folder / "config.yaml").write_text("contexts: {desk: {}, lab: {}}")
    assert complete_contexts(ctx, [], "d") == ["desk"]
    (cli.folder / "config.yaml").write_text("{")
    assert complete_contexts(ctx, [], "") == []


def test_groups_of_the_history(ctx: Any, cli: Cli) -> None:
    assert complete_history_groups(ctx, [], "") == []
    example_history(cli.folder / "warehouse")
    assert complete_history_groups(ctx, [], "p") == ["payments"]
    ctx.params["cluster"] = "nosuch"
    assert complete_history_groups(ctx, [], "p") == []


LINES = {
    "reset-offsets g3 --topic ": ["t2"],
    "reset-offsets --group g3 --topic ": ["t2"],
    "reset-offsets g1 --topic t1:": ["t1:0", "t1:1", "t1:2"],
    "delete-offsets g1 --topic=t1:2": ["t1:2"],
    "remove-members g2 --member c": ["c1-uuid", "c2-uuid"],
    "remove-members g2 --reason x --instance ": ["i1"],
    "remove-members g1 --instance ": [],
    "describe group --members g": ["g1", "g2", "g3"],
    "list groups --state St": ["Stable"],
    "list groups --type cl": ["classic"],
    "list groups --sort n": ["name"],
    "describe group g1 --sort l": ["lag"],
    "describe group g1 --lag-mode r": ["read-committed"],
    "top --fail-if-verdict st": ["stall", "stop"],
    "list groups -o y": ["yaml"],
    "--timeout 5s list groups -o cs": ["csv"],
    "list groups --sort lag --sort name --state St": ["Stable"],
}
"""A line as it is typed -> what a Tab offers."""


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_completed_by_what_stands_before(ctx: Any, line: str) -> None:
    """The whole line is parsed, as a shell asks for it: the groups that it names choose topics and members."""
    *words, incomplete = line.split(" ")
    if incomplete.startswith("--") and "=" in incomplete:
        name, _, incomplete = incomplete.partition("=")
        words.append(name)
    assert _offered(ctx, words, incomplete) == LINES[line]


def _offered(ctx: Any, words: list[str], incomplete: str) -> list[str]:
    completion_init()
    kind = get_completion_class("bash")
    assert kind is not None
    offered = kind(build_tree(), {"obj": ctx.obj}, "kgctl", "_KGCTL_COMPLETE").get_completions(words, incomplete)
    return [item.value for item in offered if item.value]


def _completed_lines() -> Iterator[list[str]]:
    """The words before each option's value and each argument that names are offered for."""
    for spec in COMMANDS:
        before = [*spec.words, *["g2"] * (spec.path == "remove-members")]  # it offers the members of the group that is named
        arguments = 0
        for param in LazyCommand(spec).real.params:
            is_argument = param.param_type_name == "argument"
            if param._custom_shell_complete is not None:
                yield [*spec.words, *["g1"] * arguments] if is_argument else [*before, max(param.opts, key=len)]
            arguments += is_argument


def test_every_completer_finds_what_is_there(ctx: Any, cli: Cli) -> None:
    """One that fails offers nothing, and says nothing."""
    (cli.folder / "config.yaml").write_text("contexts: {desk: {}}")
    example_history(cli.folder / "warehouse")
    lines = list(_completed_lines())
    assert len(lines) > len(COMMANDS)
    assert [line for line in lines if not _offered(ctx, line, "")] == []
