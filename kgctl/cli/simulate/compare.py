"""``kgctl simulate compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, NamedTuple

from kgctl.cli.parameters import argument, flag
from kgctl.cli.report import NUMBER, WHOLE, Column, Report, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate import running
from kgctl.cli.simulate.running import METRIC
from kgctl.errors import ExpectationError, KgctlError, UsageError
from kgctl.simulate.scenario.vocabulary import Identity

if TYPE_CHECKING:
    from kgctl.cli.simulate.running import RunOptions
    from kgctl.simulate.batch.comparison import MetricDifference
    from kgctl.simulate.batch.judge import RunValues
    from kgctl.simulate.scenario.load import LoadedFile, Variant


class ComparedMetric(NamedTuple):
    """A row: a metric of both."""

    pair: ComparedPair
    of: MetricDifference


def _told(figure: float) -> float | None:
    from kgctl.simulate.batch.outcome import number

    return number(figure, 3)


COLUMNS = (
    Column("a", "the first variant, or scenario", read="pair.a"),
    Column("b", "the one that is compared with it", read="pair.b"),
    METRIC.of("of.metric"),
    Column("verdict", "better, worse, equal or unclear: b, as seen from a", read="of.verdict", shown=str),
    Column("a_mean", "the mean of a over the seeds", NUMBER, read="of.a", shown=_told),
    Column("b_mean", "that of b", NUMBER, read="of.b", shown=_told),
    Column("difference", "b minus a, the mean over the seeds; null: never ends", NUMBER, read="of.difference", shown=_told),
    Column("low", "where its 95 % interval begins", NUMBER, header="LOW-95", read="of.low", shown=_told),
    Column("high", "where that ends", NUMBER, header="HIGH-95", read="of.high", shown=_told),
    Column("a_better", "in how many seeds a is better", WHOLE, read="of.a_better"),
    Column("b_better", "in how many seeds b is better", WHOLE, read="of.b_better"),
    Column("seeds", "how many seeds both were run with", WHOLE, read="of.seeds"),
)


@shows(COLUMNS, examples="kgctl simulate compare rolling-restart:eager rolling-restart:cooperative --runs 10")
def simulate_compare(
    session: Session,
    a: Annotated[str, argument("A", "A scenario file or a built-in's name; with :VARIANT, one variant.", show_default=False)],
    b: Annotated[str | None, argument("B", "What to hold beside it; without B, the other variants of A.")] = None,
    *,
    seed: running.Seed = None,
    runs: running.Runs = None,
    settings: running.Settings = None,
    identity: running.Who = Identity.POD,
    jobs: running.Jobs = None,
    time_limit: running.TimeLimit = None,
    everything: Annotated[bool, flag("--all", "Metrics that are equal in every seed, too.")] = False,
    fail_if_worse: running.FailIfWorse = None,
) -> Report:
    """Run two scenarios or variants with the same seeds and say which is better, and what differs, seed by seed.

    Better or worse is what the 95% interval of the mean difference leaves no doubt about.
    """
    from kgctl.simulate.batch.comparison import FEW_SEEDS, decided_by

    how = running.RunOptions(seed=seed, runs=runs, jobs=jobs, time_limit=time_limit, identity=identity)
    how.time_limit_s()
    asked = decided_by(fail_if_worse or (), "--fail-if-worse")
    pairs, sides = _pairs(session, a, b, settings, how)
    rows = [
        ComparedMetric(pair, each)
        for pair in pairs
        for each in pair.found
        if everything or each.a_better or each.b_better or each.difference
    ]
    errors: list[KgctlError] = []
    if not any(pair.found for pair in pairs):
        errors.append(KgctlError("the time limit left nothing to compare", code="LIMIT"))
    elif stopped := next(filter(None, (pair.stopped for pair in pairs)), ""):
        errors.append(KgctlError(stopped, code="LIMIT"))
    errors += _worse(pairs, asked, [name for name in fail_if_worse or () if name != "any"])
    verdicts = [text for pair in pairs if pair.found for text in pair.verdict()]
    for text in (*(line for side in sides.items() for line in _odd(*side)), *verdicts):
        session.notice(text)  # before the table
    errors += _troubles(sides)
    seeds = max((each.seeds for pair in pairs for each in pair.found), default=FEW_SEEDS)
    if seeds < FEW_SEEDS:
        session.notice(f"{seeds} seed{'s' * (seeds > 1)} may say little about others: --runs {4 * FEW_SEEDS}")
    notices = []
    if not rows and not errors:
        notices.append("no metric differs in any seed; --all shows them")
    # of a part of the seeds nothing is settled
    return Report(COLUMNS, rows, errors, notices, ("a", "b", "metric"), something_done=False)


@dataclass(frozen=True)
class ComparedPair:
    """B as seen from A. ``other``: what only one of them rehearses; the variants of one file are meant to differ so.

    ``runs``: of A and of B, by seed; ``asked``: with how many seeds.
    """

    a: str
    b: str
    runs: Sequence[Mapping[int, RunValues]]
    other: str
    asked: int
    is_one_file: bool

    @cached_property
    def found(self) -> Sequence[MetricDifference]:
        from kgctl.simulate.batch.comparison import differences

        return differences(*self.runs)

    @property
    def stopped(self) -> str:
        """That the time limit has left seeds out; "" where it has not."""
        both = len(self.runs[0].keys() & self.runs[1].keys())
        return f"stopped at the time limit: {both} of {self.asked} seeds were run on both sides" if both < self.asked else ""

    @property
    def is_one_question(self) -> bool:
        return self.is_one_file or not self.other

    def verdict(self) -> Iterator[str]:
        """Which is better; of two questions, that they are two."""
        from kgctl.simulate.batch.comparison import SAME_NAME, no_verdict, verdict_text

        if not self.is_one_question:
            yield f"{no_verdict(self.a, self.b, self.other)}; {SAME_NAME}"
            return
        yield verdict_text(self.a, self.b, self.found)
        if self.other:
            yield f"they do not rehearse the same: {self.other}"


def _worse(pairs: Sequence[ComparedPair], asked: Sequence[str], named: Sequence[str]) -> list[KgctlError]:
    """What is worse of what is asked about, and what cannot be compared: what is ``named`` and not known, and two questions."""
    from kgctl.simulate.batch.comparison import Comparison, with_size

    found: list[KgctlError] = []
    for pair in pairs:
        a, b, differences = pair.a, pair.b, pair.found
        if asked and not pair.is_one_question:
            found.append(ExpectationError(f"{b} cannot be held beside {a}: they are not the same question"))
        worse = (each for each in differences if each.metric in asked and each.verdict is Comparison.WORSE)
        found += [ExpectationError(f"{b} is worse than {a}: {with_size(each)}") for each in worse]
        known = {each.metric for each in differences}
        missing = [name for name in named if name not in known] if differences else []
        found += [
            ExpectationError(f"{name} cannot be compared: {a} and {b} have no seed in which both know it") for name in missing
        ]
    return found


def _pairs(
    session: Session, a: str, b: str | None, settings: list[str] | None, how: RunOptions
) -> tuple[list[ComparedPair], dict[str, Mapping[int, RunValues]]]:
    """What is compared with what, with the differences, and the runs of each side."""
    from kgctl.simulate.batch.comparison import unlike
    from kgctl.simulate.scenario.schema import question_of
    from kgctl.simulate.scenario.vocabulary import did_you_mean

    def load(name: str, variant: str | None) -> LoadedFile:
        return running.load_scenario(session, name, settings=settings, variants=[variant] if variant else None, checks=())

    left_file, left_variant = _parts(a)
    if b is None:
        loaded = load(left_file, None)
        names = loaded.variant_names
        if len(names) < 2:
            raise UsageError(f"{a} has no variants to compare; name another scenario as B")
        first = left_variant or names[0]
        if first not in names:
            raise UsageError(f"there is no variant {first!r}{did_you_mean(first, names, list_up_to=20)}")
        seeds = how.seeds(loaded)
        runs, is_one_file = _run(session, loaded, how, seeds), True
        sides = [(each.name, runs[each.name], question_of(each.scenario)) for each in loaded.variants]
        sides.sort(key=lambda side: side[0] != first)
    else:
        left, right = load(left_file, left_variant), load(*_parts(b))
        meant = [(name, each, _only(each, name)) for each, name in ((left, a), (right, b))]  # before anything runs
        seeds, is_one_file = how.seeds(left), left.source == right.source
        sides = [(name, _run(session, each, how, seeds)[one.name], question_of(one.scenario)) for name, each, one in meant]
    (first, before, happens), *others = sides
    pairs = [
        ComparedPair(first, name, (before, now), unlike(first, name, happens, also), len(seeds), is_one_file)
        for name, now, also in others
    ]
    return pairs, {name: by_seed for name, by_seed, _ in sides}


def _troubles(sides: Mapping[str, Mapping[int, RunValues]]) -> Iterator[KgctlError]:
    found = [each for by_seed in sides.values() for values in by_seed.values() for each in values.troubles]
    if found:
        yield ExpectationError(f"{found[0].text}; {running.how_to_allow({each.kind for each in found})}")


def _odd(name: str, by_seed: Mapping[int, RunValues]) -> Iterator[str]:
    """What went wrong in a variant, each kind once: as it was with the first seed that has it; and what never happened."""
    from kgctl.simulate.batch.outcome import never_happened

    first: dict[tuple[bool, str], str] = {}
    for seed, values in by_seed.items():
        for each in (*values.troubles, *values.allowed):
            told = f"{'allowed:' if each.is_allowed else 'FAIL'} {name}: {each.text} (seed {seed})"
            first.setdefault((each.is_allowed, each.kind), told)
    yield from (first[key] for key in sorted(first, key=itemgetter(0)))
    for check, why in never_happened([values.left_out for values in by_seed.values()]):
        yield f"WARN {name}: {check}: {why}"


def _parts(text: str) -> tuple[str, str | None]:
    """File and variant. ``builtin:NAME`` has a colon of its own."""
    prefix = "builtin:" if text.startswith("builtin:") else ""
    name, _, variant = text.removeprefix(prefix).rpartition(":")
    return (f"{prefix}{name}", variant) if name else (text, None)


def _run(session: Session, loaded: LoadedFile, how: RunOptions, seeds: list[int]) -> dict[str, dict[int, RunValues]]:
    runs: dict[str, dict[int, RunValues]] = {variant.name: {} for variant in loaded.variants}
    for values in running.run_scenario(session, loaded, how, seeds):
        runs[values.variant][values.seed] = values
    return runs


def _only(loaded: LoadedFile, name: str) -> Variant:
    if len(loaded.variants) > 1:
        names = [variant.name for variant in loaded.variants]
        raise UsageError(f"{name} has several variants; say which, as {loaded.source}:{names[0]} (there are {', '.join(names)})")
    return loaded.variants[0]
