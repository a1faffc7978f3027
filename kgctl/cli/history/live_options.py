"""What the options of a live collection say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgctl.admin.plan.times import parse_duration_ms
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.pipeline.collect.live import Plan

_SHORTEST_SAMPLE_MS = 1_000
_DEFAULT_SAMPLE_MS = 10_000


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """``given`` are the flags that were given: none of them goes with files."""

    once: bool
    for_ms: int | None
    sample_every_ms: int
    all_topics: bool
    reader: str
    given: tuple[str, ...]

    def refuse_with(self, flag: str) -> None:
        """Raise `UsageError` where one was given although ``flag`` says that files are read."""
        if self.given:
            raise UsageError(f"{self.given[0]} is for a live cluster, and {flag} reads files")

    def plan(self) -> Plan:
        """As the collector takes it."""
        from kgctl.pipeline.collect.live import Plan

        return Plan(
            once=self.once,
            for_s=None if self.for_ms is None else self.for_ms / 1000,
            sample_every_s=self.sample_every_ms / 1000,
            all_topics=self.all_topics,
        )


def live_options(*, once: bool, for_: str | None, sample_every: str | None, all_topics: bool, reader: str) -> LiveOptions:
    """Read them. Raises `UsageError` for what is no span of time, and for ``--once`` with ``--for``."""
    flags = {
        "--once": once,
        "--for": for_ is not None,
        "--sample-every": sample_every is not None,
        "--all-topics": all_topics,
        "--reader": reader != "auto",
    }
    if once and for_ is not None:
        raise UsageError("--once and --for exclude each other")
    every_ms = _DEFAULT_SAMPLE_MS if sample_every is None else _span_ms("--sample-every", sample_every)
    if every_ms < _SHORTEST_SAMPLE_MS:
        raise UsageError(f"--sample-every {sample_every}: the shortest is 1s")
    for_ms = None if for_ is None else _span_ms("--for", for_)
    return LiveOptions(once, for_ms, every_ms, all_topics, reader, tuple(flag for flag, is_given in flags.items() if is_given))


def _span_ms(flag: str, text: str) -> int:
    try:
        found = parse_duration_ms(text)
    except UsageError as error:
        raise UsageError(f"{flag}: {error.message}") from None
    if found <= 0:
        raise UsageError(f"{flag} {text} must be more than zero")
    return found
