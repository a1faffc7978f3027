"""Every command of kgctl, in one list. A module is imported when its command runs, so that the others cost nothing at start-up.

To add a command: a function of its name, marked by `kgctl.cli.report.shows`, in a module of its family's folder; one line here;
a section with a runnable example in its page of the manual (`kgctl.cli.manual`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

from kgctl.cli.options import ALL, OUTPUT
from kgctl.cli.report import Shown
from kgctl.model.values import frozen_in_order


@frozen_in_order
class CommandSpec:
    """One command: its words, the module below `kgctl.cli` that has its function, called by the same words, its page of the
    manual, its line in the help, and the shared options it takes.

    A command that is not ``long_lived`` runs without the search for reference cycles: it ends before that could free anything,
    and with 100,000 rows the search takes longer than the rest.
    """

    path: str
    module: str
    page: str
    summary: str
    shared: tuple[str, ...] = ALL
    aliases: tuple[str, ...] = ()
    long_lived: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.path.split(" "))

    @property
    def function(self) -> Callable[..., Any]:
        """Import and return what runs it."""
        found: Callable[..., Any] = getattr(import_module(f"kgctl.cli.{self.module}"), re.sub(r"\W", "_", self.path))
        return found

    @property
    def shown(self) -> Shown:
        shown: Shown = self.function.shown  # type: ignore[attr-defined]
        return shown


def _below(family: str, *specs: CommandSpec) -> Iterator[CommandSpec]:
    """The commands of a family, whose word, and folder, stand before their own."""
    return (replace(spec, path=f"{family} {spec.path}", module=f"{family}.{spec.module}") for spec in specs)


COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec(
        "list groups", "groups.list_groups", "groups", "List consumer groups, with their lag if asked.", aliases=("group",)
    ),
    CommandSpec(
        "describe group",
        "groups.describe_group",
        "groups",
        "Show offsets and lag, members, or state of groups.",
        aliases=("groups",),
    ),
    CommandSpec("peek", "groups.peek", "groups", "Show the records around committed offsets: read last, and read next."),
    CommandSpec("top", "groups.top", "top", "Watch groups: lag, rates, time to drain.", long_lived=True),
    CommandSpec("reset-offsets", "groups.reset_offsets", "resets", "Move committed offsets; a dry run unless --execute."),
    CommandSpec("diff-offsets", "groups.diff_offsets", "resets", "Compare committed offsets: of groups, of files, or both."),
    CommandSpec("undo", "groups.undo", "resets", "Bring back what a reset or a deletion took away."),
    CommandSpec("delete-groups", "groups.deletions", "groups", "Delete groups with all their offsets."),
    CommandSpec("delete-offsets", "groups.deletions", "groups", "Delete committed offsets of topics or partitions."),
    CommandSpec("remove-members", "groups.remove_members", "groups", "Make members leave a group."),
    CommandSpec(
        "migrate-offsets", "groups.migrate_offsets", "zookeeper", "Copy offsets of groups in ZooKeeper into groups on Kafka."
    ),
    CommandSpec(
        "kafka-consumer-groups",
        "kafka_tool.command",
        "other-tools",
        "Do what a line of kafka-consumer-groups.sh does.",
        (),
        aliases=("kafka-consumer-groups.sh",),
    ),
    CommandSpec(
        "validate-regex", "groups.validate_regex", "groups", "Say whether brokers take a regular expression of topics.", OUTPUT
    ),
    CommandSpec("context list", "context", "clusters", "List the contexts of the config file.", OUTPUT),
    CommandSpec("context use", "context", "clusters", "Make a context the current one.", OUTPUT),
    CommandSpec("context show", "context", "clusters", "Show what a context amounts to.", OUTPUT),
    CommandSpec("context current", "context", "clusters", "Show which context is the current one.", OUTPUT),
    CommandSpec("context trust", "context", "clusters", "Look at a project's .kgctl.yml, and trust it.", OUTPUT),
    CommandSpec("context add", "context", "clusters", "Keep the options of a cluster under a name."),
    CommandSpec("context set", "context", "clusters", "Change settings of a context."),
    CommandSpec("context delete", "context", "clusters", "Take a context out of the config file.", OUTPUT),
    CommandSpec("completion", "completion", "completion", "Print the completion script of a shell.", ()),
    *_below(
        "simulate",
        CommandSpec("assign", "assign", "assignors", "Who would get which partitions, by Kafka's own assignors."),
        CommandSpec("run", "run", "simulate", "Run a scenario over its variants and seeds; expectations decide."),
        CommandSpec("check", "check", "simulate", "Check a scenario without running it."),
        CommandSpec("compare", "compare", "simulate", "Run two variants with the same seeds and show what differs."),
        CommandSpec("sweep", "sweep", "sweeps", "Run a scenario over a grid of parameters, here or on Spark.", long_lived=True),
        CommandSpec(
            "explain",
            "why",
            "simulate",
            "Why a run comes out as it does: its worst moment, and what each cause was worth.",
            long_lived=True,
        ),
        CommandSpec("shrink", "why", "simulate", "The smallest scenario in which an expectation still fails.", long_lived=True),
        CommandSpec("init", "scenarios", "simulate", "Write a first scenario, best from a group that there is."),
        CommandSpec("list", "scenarios", "simulate", "List the built-in scenarios, with the question each answers.", OUTPUT),
        CommandSpec("show", "scenarios", "simulate", "Print a built-in scenario.", OUTPUT),
        CommandSpec("schema", "scenarios", "scenario-files", "Print the JSON Schema of scenario files.", OUTPUT),
    ),
    *_below(
        "history",
        CommandSpec(
            "collect", "collect", "history", "Collect the records of __consumer_offsets, live or from files.", long_lived=True
        ),
        CommandSpec(
            "build", "build", "history", "Make the tables of the history from what was collected.", OUTPUT, long_lived=True
        ),
        CommandSpec("offsets", "questions", "history", "What groups had committed at a moment of the past.", OUTPUT),
        CommandSpec("lag", "questions", "history", "The lag of groups in the past, in records and in time.", OUTPUT),
        CommandSpec("watch", "watch", "watch", "Collect and build on and on; alerts, a webhook, metrics.", long_lived=True),
        CommandSpec("rebalances", "questions", "history", "The generations of groups: when, how long, who and why.", OUTPUT),
        CommandSpec("resets", "questions", "history", "Jumps of committed offsets that reading does not explain.", OUTPUT),
        CommandSpec("health", "questions", "history", "How groups were: status, members, rebalances, lag.", OUTPUT),
        CommandSpec(
            "forecast", "forecast", "history", "When groups will have caught up, and how often that held before.", OUTPUT
        ),
        CommandSpec("slo", "objectives", "history", "Whether groups kept to an objective over weeks, minute by minute.", OUTPUT),
        CommandSpec("fleet", "objectives", "history", "How the groups of all clusters are, by cluster or by team.", OUTPUT),
        CommandSpec("sql", "questions", "tables", "Ask the tables of the history in SQL.", OUTPUT),
        CommandSpec("prune", "retention", "history", "Thin what was collected long ago.", OUTPUT),
        CommandSpec("forget", "retention", "history", "Take a cluster out of the history.", OUTPUT),
        CommandSpec("calibrate", "calibrate", "history", "Simulate what a group did, and what settings fit it best.", OUTPUT),
        CommandSpec("report", "report", "history", "Write the history of groups as one HTML page.", OUTPUT),
        CommandSpec("dbt", "export", "tables", "Write a project of dbt on the tables.", OUTPUT),
        CommandSpec("grafana", "export", "watch", "Write a board of Grafana for what watch measures.", OUTPUT),
    ),
    CommandSpec("manual", "manual", "commands", "Show the manual: a page, or the list of pages.", OUTPUT),
    CommandSpec(
        "serve", "serve.run", "serve", "Run a coordinator that Kafka clients talk to; no broker needed.", (), long_lived=True
    ),
    CommandSpec("serve status", "serve.control", "serve", "How a running server is doing: groups, rebalances, delays."),
    CommandSpec("serve commits", "serve.control", "data-folder", "Who committed which offset when, from a data folder.", OUTPUT),
    CommandSpec("serve complete-rebalance", "serve.control", "serve", "End a rebalance without the members it waits for."),
    CommandSpec("demo", "demo", "commands", "Try kgctl on a coordinator of its own: no broker needed.", (), long_lived=True),
)

FAMILIES = {
    "list": ("groups", "List what a cluster has."),
    "describe": ("groups", "Show one thing in full."),
    "context": ("clusters", "Named clusters: list them, choose one."),
    "simulate": ("simulate", "Rehearse what would happen to a group; nothing is touched."),
    "history": ("history", "What happened to groups: collect it, ask it, undo with it."),
}
"""First words that have further words behind them, with their page of the manual and their line in the help."""
