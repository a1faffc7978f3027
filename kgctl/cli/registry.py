"""Every command of kgctl, in one list. A module is imported when its command runs, so that the others cost nothing at start-up.

To add a command: a module in its family's folder with ``register(app)``, which calls ``app.command()`` on one function; one line
here; its words in the manual.
"""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.cli.options import ALL, OUTPUT


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """One command: its words, the module below `kgctl.cli` that has it, its line in the help, and the shared options it takes.

    ``module`` may name the function that registers it behind a colon; else that is ``register``.

    A command that is not ``long_lived`` runs without the search for reference cycles: it ends before that could free anything,
    and with 100,000 rows the search takes longer than the rest.
    """

    path: str
    module: str
    summary: str
    shared: tuple[str, ...] = ALL
    aliases: tuple[str, ...] = ()
    long_lived: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The command's name, word by word."""
        return tuple(self.path.split(" "))


COMMANDS: tuple[CommandSpec, ...] = (
    CommandSpec("list groups", "groups.list_groups", "List consumer groups, with their lag if asked.", aliases=("group",)),
    CommandSpec(
        "describe group", "groups.describe_group", "Show offsets and lag, members, or state of groups.", aliases=("groups",)
    ),
    CommandSpec("reset-offsets", "groups.reset_offsets", "Move committed offsets; a dry run unless --execute."),
    CommandSpec("delete-groups", "groups.delete_groups", "Delete groups with all their offsets."),
    CommandSpec("delete-offsets", "groups.delete_offsets", "Delete committed offsets of topics or partitions."),
    CommandSpec("remove-members", "groups.remove_members", "Make members leave a group."),
    CommandSpec("context list", "context.commands:register_list", "List the contexts of the config file.", OUTPUT),
    CommandSpec("context use", "context.commands:register_use", "Make a context the current one.", OUTPUT),
    CommandSpec("context show", "context.commands:register_show", "Show what a context amounts to.", OUTPUT),
    CommandSpec("simulate assign", "simulate.assign", "Who would get which partitions, by Kafka's own assignors."),
    CommandSpec("simulate run", "simulate.run", "Run a scenario over its variants and seeds; expectations decide.", OUTPUT),
    CommandSpec("simulate check", "simulate.check", "Check a scenario without running it.", OUTPUT),
    CommandSpec("simulate compare", "simulate.compare", "Run two variants with the same seeds and show what differs.", OUTPUT),
    CommandSpec(
        "simulate sweep",
        "simulate.sweep",
        "Run a scenario over a grid of parameters, here or on Spark.",
        OUTPUT,
        long_lived=True,
    ),
    CommandSpec("simulate init", "simulate.init", "Write a first scenario, best from a group that there is."),
    CommandSpec("simulate list", "simulate.list", "List the built-in scenarios, with the question each answers.", OUTPUT),
    CommandSpec("simulate show", "simulate.show", "Print a built-in scenario.", OUTPUT),
    CommandSpec("simulate schema", "simulate.schema", "Print the JSON Schema of scenario files.", OUTPUT),
    CommandSpec(
        "history collect",
        "commands.history.collect",
        "Collect the records of __consumer_offsets, live or from files.",
        long_lived=True,
    ),
    CommandSpec("history build", "commands.history.build", "Make the tables of the history from what was collected.", OUTPUT),
    CommandSpec("history offsets", "commands.history.offsets", "What groups had committed at a moment of the past.", OUTPUT),
    CommandSpec("history lag", "commands.history.lag", "The lag of groups in the past, in records and in time.", OUTPUT),
    CommandSpec(
        "history rebalances", "commands.history.rebalances", "The generations of groups: when, how long, who and why.", OUTPUT
    ),
    CommandSpec("history resets", "commands.history.resets", "Jumps of committed offsets that reading does not explain.", OUTPUT),
    CommandSpec("history health", "commands.history.health", "How groups were: status, members, rebalances, lag.", OUTPUT),
    CommandSpec("history report", "commands.history.report", "Write the history of groups as one HTML page.", OUTPUT),
    CommandSpec(
        "serve", "commands.serve", "Run a coordinator that Kafka clients talk to; no broker needed.", (), long_lived=True
    ),
    CommandSpec("demo", "demo", "Try kgctl on a coordinator of its own: no broker needed.", (), long_lived=True),
)

FAMILIES = {
    "list": "List what a cluster has.",
    "describe": "Show one thing in full.",
    "context": "Named clusters: list them, choose one.",
    "simulate": "Rehearse what would happen to a group; nothing is touched.",
    "history": "What happened to groups: collect it, ask it, undo with it.",
}
"""First words that have further words behind them, with their line in the help."""
