"""What a name in an expression may stand for: a metric, a Kafka setting, a state; each may have a variant before it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kgctl.simulate.scenario.expressions.nodes import Metric, Node, Setting, Word
from kgctl.simulate.scenario.expressions.tokens import ExpressionError
from kgctl.simulate.scenario.wording import did_you_mean

STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Assigning", "Reconciling")


@dataclass(frozen=True, slots=True)
class Names:
    """The names that are known where an expression stands."""

    metrics: Collection[str]
    settings: Collection[str]
    variants: tuple[str, ...] = ()

    def resolve(self, name: str, filters: tuple[str, ...] | None, at: int) -> Node:
        """What a name stands for.

        Raises:
            ExpressionError: nothing; with what is near.
        """
        head, dot, rest = name.partition(".")
        variant = head if dot and head in self.variants else None
        bare = rest if variant is not None else name
        if bare in self.metrics:
            return Metric(bare, filters or (), variant, at)
        if bare in self.settings and filters is None:
            return Setting(bare, variant)
        if name in STATES and filters is None:
            return Word(name)
        raise ExpressionError(self._unknown(name, head if dot else "", rest, bare), at)

    def _unknown(self, name: str, head: str, rest: str, bare: str) -> str:
        if head and rest in self.metrics and bare == name:
            return f"there is no variant {head!r}{did_you_mean(head, self.variants, list_up_to=8)}"
        if "-" in bare and all(part in self.metrics for part in bare.split("-")):
            return f"{name!r} is one name; write spaces around a minus"
        known = [*self.metrics, *STATES] if "." not in bare else [*self.settings, *self.metrics]
        return f"unknown metric {name!r}{did_you_mean(bare, known)}"
