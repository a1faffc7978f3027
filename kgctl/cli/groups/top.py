"""``kgctl top``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Annotated

from kgctl.admin import GroupAdmin, Sight
from kgctl.admin.group_rates import WORST_LAST, GroupRate, RateWatch, Verdict, take_sample
from kgctl.admin.group_view import is_consumer_group
from kgctl.admin.times import format_instant
from kgctl.cli.columns import FLAGS, GROUP, LAG, STATE, rounded
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.frames import Frames, is_shown_in_frames, parse_interval_ms
from kgctl.cli.groups.thresholds import UNKNOWN_LAG, Scope, Thresholds, hidden, judge_listed
from kgctl.cli.options import GroupArguments, GroupOptions, merged_groups
from kgctl.cli.parameters import flag, option
from kgctl.cli.report import NUMBER, Column, Report, shows
from kgctl.cli.selection import KindFilter, NameFilter, parse_name, parse_names, told_lag
from kgctl.cli.session import NamedCluster, Session
from kgctl.errors import ExpectationError, KgctlError, NotFoundError, UsageError, plural
from kgctl.extras import install_line, is_there
from kgctl.model.groups import GroupListing

COLUMNS = (
    GROUP.of("group_id"),
    STATE.of("state"),
    LAG.of("lag"),
    Column(
        "consumed_per_s",
        "what the group reads, over the looks so far",
        NUMBER,
        "records/s",
        header="READ/S",
        read=rounded("consumed_per_s", 1),
    ),
    Column(
        "produced_per_s",
        "what is written, over the looks so far",
        NUMBER,
        "records/s",
        header="WRITTEN/S",
        read=rounded("produced_per_s", 1),
    ),
    Column(
        "drain_s",
        "until nothing is left to read at these rates; null where that is never",
        NUMBER,
        "s",
        header="DRAIN-S",
        read=rounded("drain_s", 1),
    ),
    Column(
        "verdict",
        "how the group does (`kgctl manual top`)",
        read=lambda one: None if one.verdict is Verdict.UNKNOWN else one.verdict.value,
    ),
    FLAGS.of("flags"),
)
EXAMPLES = """
kgctl top
kgctl top --match '^payments' --interval 2s --sort drain
kgctl top --iterations 2 --interval 10s -o csv
kgctl top --state stable --iterations 3 --fail-if-verdict stall
"""
_LAST = float("inf")
SORTS: dict[str, Callable[[GroupRate], tuple[float, str]]] = {
    "lag": lambda one: (-one.lag if one.lag is not None else -_LAST if one.flags else _LAST, one.group_id),
    "name": lambda one: (0, one.group_id),
    "rate": lambda one: (-one.consumed_per_s if one.consumed_per_s is not None else _LAST, one.group_id),
    "drain": lambda one: (-one.drain_s if one.drain_s is not None else (-_LAST if one.lag else _LAST), one.group_id),
    "verdict": lambda one: (-WORST_LAST.index(one.verdict), one.group_id),
}


_VERDICTS = {verdict.value.lower(): verdict for verdict in Verdict if verdict is not Verdict.UNKNOWN}


@dataclass(frozen=True)
class TopLimits(Thresholds):
    """A block of options: what does not hold after the last look."""

    fail_if_verdict: Annotated[
        list[str] | None,
        option("VERDICT,...", "Exit with 6 if a group has this verdict: stall,stop.", complete=_VERDICTS),
    ] = None

    def __post_init__(self) -> None:
        _ = self.verdicts
        super().__post_init__()

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(_VERDICTS[name] for name in parse_names("--fail-if-verdict", self.fail_if_verdict or (), tuple(_VERDICTS)))

    def __bool__(self) -> bool:
        return bool(self.verdicts) or super().__bool__()


@shows(COLUMNS, examples=EXAMPLES)
def top(
    session: Session,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    names: NameFilter,
    interval: Annotated[str, option("SPAN", "How often to look: 5s, 1m.")] = "5s",
    iterations: Annotated[int | None, option("N", "End after N looks.", min=1)] = None,
    sort: Annotated[str, option("KEY", "By lag, name, rate, drain or verdict.", complete=SORTS)] = "lag",
    plain: Annotated[bool, flag("--plain", "Frames of text, as without a terminal.")] = False,
    kinds: KindFilter,
    limits: TopLimits,
) -> Report | int:
    """Watch groups: lag, records read and written a second, time until nothing is left to read, and a verdict by Burrow's rules.

    OK: it keeps up. WARN: lag grows all the time. STALL: it has members, and its offsets do not move. STOP: it has none,
    and there is something to read. REWIND: its offsets went back. LOST: a commit lies outside of its log, where no consumer
    can go on. The column FLAGS says why a lag is unknown, as in `describe group`.
    With --iterations the --fail-if options hold groups against limits at the last look.
    On a terminal it is a live view (keys: s sorts, / filters, q ends); else frames of text, or rows after the last look with -o.
    """
    wanted = merged_groups(groups, group)
    interval_ms = parse_interval_ms(interval)
    sort_key = parse_name("--sort", sort, tuple(SORTS))
    if limits and iterations is None:
        raise UsageError("--fail-if options need --iterations N: they are about the last look")

    def passes(listing: GroupListing) -> bool:
        is_of_kind = bool(wanted or kinds.types) or is_consumer_group(listing)
        return is_of_kind and names(listing.group_id) and kinds(listing)

    is_table = is_shown_in_frames(session, iterations)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        look = TopLook(session, admin, wanted, passes, sort_key)
        if (
            is_table
            and not plain
            and iterations is None
            and session.environment.stdout_is_terminal
            and look.finds_something()
            and live_view(look, cluster, interval_ms)
        ):
            return 0
        return _frames(look, cluster, interval_ms, iterations, limits).run()


class TopLook:
    """Looks at the groups again and again; ``rates`` is what the looks so far say, chosen and sorted."""

    def __init__(
        self, session: Session, admin: GroupAdmin, wanted: Sequence[str], passes: Callable[[GroupListing], bool], sort: str
    ) -> None:
        self.sort = sort
        self.filter = ""
        self.errors: tuple[KgctlError, ...] = ()
        self.at_ms = 0
        self.session = session
        self._admin = admin
        self._wanted = wanted
        self._passes = passes
        self._listings: Sequence[GroupListing] = ()
        self._left_out: Sequence[str] = ()
        self._watch = RateWatch()

    def take(self) -> None:
        """Look once more. Raises KgctlError where the cluster cannot be asked."""
        self.session.begin_look()
        sample = take_sample(self._admin, self._wanted, self._passes, self.session.environment.now_ms())
        self.errors, self.at_ms, self._listings = sample.errors, sample.at_ms, tuple(sample.listings.values())
        self._left_out = sample.left_out
        self._watch.add(sample)

    def finds_something(self) -> bool:
        """Look for the first time: False where none of the groups that are wanted is there."""
        self.take()
        return bool(self._watch.rates()) or not self._wanted

    def rates(self) -> list[GroupRate]:
        shown = [one for one in self._watch.rates() if self.filter in one.group_id]
        return sorted(shown, key=SORTS[self.sort])

    def left_out(self) -> list[str]:
        """What to say where groups are named that do not pass the filters."""
        names = ", ".join(map(repr, self._left_out))
        return [f"--match, --exclude, --state and --type leave out at present: {names}"] if names else []

    @cached_property
    def _sight(self) -> Sight:
        return self._admin.sight()

    def unseen(self) -> list[str]:
        """What the last look may lack for want of a right."""
        group_ids, scope = [one.group_id for one in self._listings], Scope(names_groups=bool(self._wanted))
        return [error.message for error in hidden(self._sight, group_ids, scope)]

    def judged(self, report: Report, limits: TopLimits) -> Report:
        """The report of the last look, held against the limits.

        Raises:
            NotFoundError: there is nothing that they could hold for.
        """
        if not self._listings and not report.errors:
            raise NotFoundError("no group matches: there is nothing that the limits could hold for")
        judgement = judge_listed(
            self._admin, self._listings, limits, self.session.environment.now_ms(), Scope(names_groups=bool(self._wanted))
        )
        told = {error.group for error in judgement.errors}
        bad, unknown = list(self._bad(limits)), [error for error in self._undecided(limits) if error.group not in told]
        notices = [f"{error.message} (allowed)" for error in unknown if limits.allow_unknown]
        more = bad if limits.allow_unknown else [*bad, *unknown]
        errors = [*judgement.beside(report.errors), *more]
        code = judgement.exit_code or (ExitCode.EXPECTATION if more else None)
        return replace(report, errors=errors, notices=(*judgement.notices, *notices), fixed_exit_code=code)

    def _bad(self, limits: TopLimits) -> Iterator[KgctlError]:
        """A verdict counts that a worse one of another partition hides."""
        for one in self.rates():
            if found := one.verdicts.intersection(limits.verdicts):
                worst = max(found, key=WORST_LAST.index)
                yield ExpectationError(f"group {one.group_id!r}: {worst.value}", group=one.group_id)

    def _undecided(self, limits: TopLimits) -> Iterator[KgctlError]:
        for one in self.rates():
            if limits.verdicts and Verdict.UNKNOWN in one.verdicts:
                why = f"group {one.group_id!r}: no verdict yet: STALL and STOP take three looks, others two"
                yield ExpectationError(why, code=UNKNOWN_LAG, group=one.group_id)

    def title(self, cluster: NamedCluster) -> str:
        rates = self.rates()
        lag = told_lag((one.lag for one in rates), "group")
        return f"{format_instant(self.at_ms)}  {cluster}  {plural(len(rates), 'group')}, {lag}, sorted by {self.sort}"


def _frames(look: TopLook, cluster: NamedCluster, interval_ms: int, iterations: int | None, limits: TopLimits) -> Frames:
    looks = count(1)

    def report() -> Report:
        number = next(looks)
        look.take()
        is_judged = limits and number == iterations
        notices = look.left_out() if is_judged else [*look.left_out(), *look.unseen()]
        found = Report(COLUMNS, look.rates(), look.errors, notices, ("group",))
        return look.judged(found, limits) if is_judged else found

    environment = look.session.environment
    return Frames(look.session, report, lambda: look.title(cluster), lambda: environment.sleep_ms(interval_ms), iterations)


def live_view(look: TopLook, cluster: NamedCluster, interval_ms: int) -> bool:
    """Run the live view until the user ends it; False where its library is not installed."""
    if not is_there("textual"):
        look.session.notice(f"The live view needs textual: {install_line('top')}. Frames of text until then.")
        return False
    from kgctl.cli.groups.top_app import TopApp

    look.session.end_look()
    look.session.is_telling = False  # the view has the terminal to itself
    TopApp(look, cluster, interval_ms).run()
    return True
