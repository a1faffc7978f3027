"""``kgctl kafka-consumer-groups``: a line of kafka-consumer-groups.sh, as it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from kgctl.cli.kafka_tool import changes, describe
from kgctl.cli.kafka_tool.options import DEFAULT_TIMEOUT_MS, ToolOptions, WrongUse, parsed
from kgctl.cli.kafka_tool.tool import Tool, ToolFailed, say_error
from kgctl.cli.parameters import argument
from kgctl.cli.report import shows
from kgctl.cli.session import Session
from kgctl.cli.settings import Flags
from kgctl.coordinator.re2 import RegexSyntaxError, compiled
from kgctl.errors import KgctlError

EXAMPLES = """
kgctl kafka-consumer-groups --bootstrap-server broker1:9092 --describe --group payments
alias kafka-consumer-groups.sh='kgctl kafka-consumer-groups'
"""
ACTIONS: Mapping[str, Callable[[Tool], None]] = {
    "list": describe.list_groups,
    "describe": describe.describe_groups,
    "delete": changes.delete_groups,
    "reset-offsets": changes.reset_offsets,
    "delete-offsets": changes.delete_offsets,
}
AS_THEY_STAND = {"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False}


@shows(examples=EXAMPLES, parsing=AS_THEY_STAND)
def kafka_consumer_groups(
    session: Session,
    words: Annotated[list[str] | None, argument("OPTIONS OF KAFKA'S TOOL", "As kafka-consumer-groups.sh takes them.")] = None,
) -> int:
    """Do what a line of kafka-consumer-groups.sh does, and print what it prints: its columns, its messages, its exit codes.

    For runbooks that are to move in one step: most failures end with 0, as there, and are told on stdout. --list, --describe,
    --reset-offsets, --delete, --delete-offsets and --validate-regex, with all their options. What a change takes away is saved
    besides (kgctl undo). New runbooks are better off with kgctl's own commands.
    """
    try:
        options = parsed(words or ())
        if options.action == "validate-regex":
            session.environment.stdout.write(_validated(options.value("validate-regex") or ""))
            return 0
        return _run(session, options)
    except WrongUse as error:
        session.notice(f"{error}\n(kgctl kafka-consumer-groups --help; Kafka's tool prints its options here)")
        return 1


def _run(session: Session, options: ToolOptions) -> int:
    milliseconds = options.value("timeout") or DEFAULT_TIMEOUT_MS
    servers, config = options.value("bootstrap-server"), options.value("command-config")
    session.flags = Flags(bootstrap_server=servers, command_config=config, timeout=f"{milliseconds}ms")
    try:
        with session.connect() as admin:
            session.end_limit()
            ACTIONS[options.action](Tool(session, options, admin))
    except (ToolFailed, KgctlError) as error:
        why = error.message if isinstance(error, KgctlError) else error
        say_error(session.environment, f"Executing consumer group command failed due to {why}")
    return 0


def _validated(regex: str) -> str:
    try:
        compiled(regex)
    except RegexSyntaxError as error:
        return f"The regular expression `{regex}` is invalid: {error}.\n"
    return f"The regular expression `{regex}` is valid.\n"
