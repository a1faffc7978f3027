"""``kgctl top``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from kgctl.admin import GroupAdmin
from kgctl.admin.group_rates import WORST_LAST, GroupRate, Watch, take_sample
from kgctl.admin.times import format_instant
from kgctl.cli.frames import Frames, is_shown_in_frames, parse_interval_ms
from kgctl.cli.options import GroupArguments, GroupOptions, merged_groups
from kgctl.cli.report import Column, Report, Row
from kgctl.cli.selection import ExcludeOption, MatchOption, NameFilter, name_filter, parse_names, plural
from kgctl.cli.session import NamedCluster, Session, session_of
from kgctl.errors import KgctlError

COLUMNS = (
    *map(Column, ("group", "state", "lag")),
    Column("consumed_per_s", "READ/S"),
    Column("produced_per_s", "WRITTEN/S"),
    Column("drain_s", "DRAIN-S"),
    Column("verdict"),
    Column("flags", if_any=True),
)
EPILOG = """Examples:

\b
kgctl top
kgctl top --match '^payments' --interval 2s --sort drain
kgctl top --iterations 2 --interval 10s -o csv
"""
_LAST = float("inf")
SORTS: dict[str, Callable[[GroupRate], tuple[float, str]]] = {
    "lag": lambda one: (-one.lag if one.lag is not None else -_LAST if one.flags else _LAST, one.group_id),
    "name": lambda one: (0, one.group_id),
    "rate": lambda one: (-one.consumed_per_s if one.consumed_per_s is not None else _LAST, one.group_id),
    "drain": lambda one: (-one.drain_s if one.drain_s is not None else (-_LAST if one.lag else _LAST), one.group_id),
    "verdict": lambda one: (-WORST_LAST.index(one.verdict), one.group_id),
}


def register(app: typer.Typer) -> None:
    app.command(epilog=EPILOG)(top)


def top(
    ctx: typer.Context,
    groups: GroupArguments = None,
    *,
    group: GroupOptions = None,
    match: MatchOption = None,
    exclude: ExcludeOption = None,
    interval: Annotated[str, typer.Option(metavar="SPAN", help="How often to look: 5s, 1m.")] = "5s",
    iterations: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after N looks.")] = None,
    sort: Annotated[
        str, typer.Option(metavar="KEY", help="By lag, name, rate, drain or verdict.", autocompletion=lambda: list(SORTS))
    ] = "lag",
    plain: Annotated[bool, typer.Option("--plain", help="Frames of text, as without a terminal.")] = False,
) -> Report | int:
    """Watch groups: lag, records read and written a second, time until nothing is left to read, and a verdict by Burrow's rules.

    OK: it keeps up. WARN: lag grows all the time. STALL: it has members, and its offsets do not move. STOP: it has none,
    and there is something to read. REWIND: its offsets went back. LOST: a commit lies outside of its log, where no consumer
    can go on. The column FLAGS says why a lag is unknown, as in `describe group`.
    On a terminal it is a live view (keys: s sorts, / filters, q ends); else frames of text, or rows after the last look with -o.
    """
    wanted, names = merged_groups(groups, group), name_filter(match, exclude)
    interval_ms = parse_interval_ms(interval)
    (sort_key,) = parse_names("--sort", [sort], tuple(SORTS))
    session = session_of(ctx)
    is_table = is_shown_in_frames(session, iterations)
    with session.connect() as admin:
        cluster = session.cluster(admin)
        look = Look(session, admin, wanted, names, sort_key)
        if (
            is_table
            and not plain
            and iterations is None
            and session.environment.stdout_is_terminal
            and look.finds_something()
            and live_view(look, cluster, interval_ms)
        ):
            return 0
        return _frames(look, cluster, interval_ms, iterations).run()


class Look:
    """Looks at the groups again and again; ``rates`` is what the looks so far say, chosen and sorted."""

    def __init__(self, session: Session, admin: GroupAdmin, wanted: Sequence[str], names: NameFilter, sort: str) -> None:
        self.sort = sort
        self.filter = ""
        self.errors: tuple[KgctlError, ...] = ()
        self.at_ms = 0
        self.session = session
        self._admin = admin
        self._wanted = wanted
        self._names = names
        self._watch = Watch()

    def take(self) -> None:
        """Look once more. Raises KgctlError where the cluster cannot be asked."""
        sample = take_sample(self._admin, self._wanted, self.session.environment.now_ms())
        self.errors, self.at_ms = sample.errors, sample.at_ms
        self._watch.add(sample)

    def finds_something(self) -> bool:
        """Look for the first time: False where none of the groups that are wanted is there."""
        self.take()
        return bool(self._watch.rates()) or not self._wanted

    def rates(self) -> list[GroupRate]:
        shown = [one for one in self._watch.rates() if self._names(one.group_id) and self.filter in one.group_id]
        return sorted(shown, key=SORTS[self.sort])

    def title(self, cluster: NamedCluster) -> str:
        rates = self.rates()
        lag = sum(one.lag for one in rates if one.lag is not None)
        return f"{format_instant(self.at_ms)}  {cluster}  {plural(len(rates), 'group')}, total lag {lag:,}, sorted by {self.sort}"


def _frames(look: Look, cluster: NamedCluster, interval_ms: int, iterations: int | None) -> Frames:
    def report() -> Report:
        look.take()
        return Report(COLUMNS, rows(look.rates()), look.errors, (), ("group",))

    environment = look.session.environment
    return Frames(look.session, report, lambda: look.title(cluster), lambda: environment.sleep_ms(interval_ms), iterations)


def rows(rates: Sequence[GroupRate]) -> list[Row]:
    return [
        {
            "group": one.group_id,
            "state": one.state,
            "lag": one.lag,
            "consumed_per_s": _rounded(one.consumed_per_s),
            "produced_per_s": _rounded(one.produced_per_s),
            "drain_s": _rounded(one.drain_s),
            "verdict": one.verdict.value,
            "flags": tuple(map(str, one.flags)),
        }
        for one in rates
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def live_view(look: Look, cluster: NamedCluster, interval_ms: int) -> bool:
    """Run the live view until the user ends it; False where its library is not installed."""
    try:
        from kgctl.cli.groups.top_app import TopApp
    except ModuleNotFoundError:
        look.session.notice("The live view needs textual: pip install 'kgctl[top]'. Frames of text until then.")
        return False
    TopApp(look, cluster, interval_ms).run()
    return True
