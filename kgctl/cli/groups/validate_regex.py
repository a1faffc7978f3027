"""``kgctl validate-regex``."""

from __future__ import annotations

from typing import Annotated

from kgctl.cli.columns import TOPIC
from kgctl.cli.options import TopicOptions
from kgctl.cli.parameters import argument
from kgctl.cli.report import BOOL, Column, Report, Row, shows
from kgctl.errors import UsageError

COLUMNS = (
    TOPIC,
    Column("matches", "whether the regular expression matches the topic", BOOL),
)


@shows(COLUMNS, examples="kgctl validate-regex '^orders-[a-z]+$' --topic orders-eu --topic orders-2")
def validate_regex(
    regex: Annotated[str, argument("REGEX", "What a consumer would subscribe by.", show_default=False)],
    *,
    topic: TopicOptions = None,
) -> Report:
    """Say whether brokers take a regular expression that consumers subscribe by, and which of the topics named match it.

    Consumers of the new protocol send the expression to the coordinator, which reads it as RE2/J does: lookahead and
    backreferences are refused, and the whole name of a topic must match. Nothing is contacted.
    """
    from kgctl.coordinator.re2 import RegexSyntaxError, compiled

    try:
        pattern = compiled(regex)
    except RegexSyntaxError as error:
        raise UsageError(f"brokers refuse the regular expression {regex!r}: {error}") from None
    rows: list[Row] = [{"topic": name, "matches": pattern.matches(name)} for name in topic or ()]
    return Report(COLUMNS, rows, (), (f"Brokers take the regular expression {regex!r}.",), ("topic",))
