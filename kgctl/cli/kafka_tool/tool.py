"""How kafka-consumer-groups.sh speaks: what goes where, and what it says of a failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Self, TypeVar

from kgctl.admin import GroupAdmin, GroupResults, ItemError
from kgctl.cli.environment import Environment
from kgctl.cli.kafka_tool.java import exception_of, message_of
from kgctl.cli.kafka_tool.options import ToolOptions
from kgctl.cli.session import Session
from kgctl.model.error_codes import ErrorCode
from kgctl.model.values import frozen_in_order

T = TypeVar("T")


class ToolFailed(Exception):  # noqa: N818 - a word of Kafka's tool, which ends with 0 all the same
    """What the tool says after "failed due to"."""

    @classmethod
    def of(cls, error: ItemError, *, wrapped: bool = False) -> Self:
        """``wrapped``: Java says the exception's name, too."""
        message = message_of(error.code, error.message)
        return cls(exception_of(error.code, message) if wrapped else message)

    @classmethod
    def unknown_topic(cls) -> Self:
        """The topic of a partition is not there."""
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return cls(f"java.util.concurrent.ExecutionException: {exception_of(code, message_of(code))}")


def raise_for(errors: Iterable[ItemError], *, wrapped: bool = False) -> None:
    """Raise `ToolFailed` of the first error, where there is one."""
    for error in errors:
        raise ToolFailed.of(error, wrapped=wrapped)


def value_or_raise(results: GroupResults[T], group_id: str) -> T:
    raise_for(results.errors.values(), wrapped=True)
    return results.values[group_id]


@frozen_in_order
class Tool:
    """A line that is carried out: what it asks, of which cluster. It writes to stdout and stderr as it goes."""

    session: Session
    options: ToolOptions
    admin: GroupAdmin

    def write(self, text: str) -> None:
        self.session.environment.stdout.write(text)

    def say(self, *lines: str) -> None:
        self.write("".join(f"{line}\n" for line in lines))

    def table(self, rows: Iterable[Iterable[str]], widths: Sequence[int]) -> None:
        """Lines of cells, each as wide as is said; what is behind these widths stands as it is."""
        for row in rows:
            self.write("\n" + " ".join(cell.ljust(width) for cell, width in zip(row, chain(widths, repeat(0)), strict=False)))
        self.say("")

    def error(self, message: str) -> None:
        """On stdout, as there."""
        say_error(self.session.environment, message)

    def warn(self, *lines: str) -> None:
        self.session.environment.stdout.flush()
        self.session.environment.tell("".join(f"{line}\n" for line in lines))


def say_error(environment: Environment, message: str) -> None:
    """Say what went wrong, on stdout, as Kafka's tool does."""
    environment.stdout.write(f"\nError: {message}\n")
