"""What an expression is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Number:
    """A number in the unit of the metrics: seconds, records a second, bytes, shares of 1. ``unit`` says which was written."""

    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that a metric may have as its value, as ``Stable``."""

    text: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric, with its filters as they are written; ``variant`` None: of the variant that is looked at."""

    name: str
    filters: tuple[str, ...] = ()
    variant: str | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """One of Kafka's settings, as the scenario has it; times are in seconds."""

    name: str
    variant: str | None = None


@dataclass(frozen=True, slots=True)
class Negative:
    """Minus."""

    of: Node


@dataclass(frozen=True, slots=True)
class Not:
    """Logical not."""

    of: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * /``, a comparison, ``and`` or ``or``."""

    op: str
    left: Node
    right: Node


Node: TypeAlias = "Number | Word | Metric | Setting | Negative | Not | Binary"

COMPARISONS = ("<", "<=", "==", "!=", ">=", ">")


def is_logical(node: Node) -> bool:
    """Whether the expression is true or false, rather than a number."""
    return isinstance(node, Not) or (isinstance(node, Binary) and node.op in (*COMPARISONS, "and", "or"))


def metrics_of(node: Node) -> tuple[Metric, ...]:
    """Every metric in it, from left to right."""
    if isinstance(node, Metric):
        return (node,)
    if isinstance(node, Negative | Not):
        return metrics_of(node.of)
    if isinstance(node, Binary):
        return (*metrics_of(node.left), *metrics_of(node.right))
    return ()


def variants_of(node: Node) -> tuple[str, ...]:
    """The variants that it names, each once."""
    if isinstance(node, Metric | Setting):
        return (node.variant,) if node.variant is not None else ()
    if isinstance(node, Negative | Not):
        return variants_of(node.of)
    if isinstance(node, Binary):
        return tuple(dict.fromkeys((*variants_of(node.left), *variants_of(node.right))))
    return ()
