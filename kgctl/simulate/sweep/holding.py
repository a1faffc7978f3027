"""Which points of a grid hold, and the smallest of them: what a search by a sweep is after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kgctl.simulate.scenario.quantities import is_duration, parse_duration
from kgctl.simulate.sweep.plan import Axis, RunRow, Sweep, settings_at, typed

_MOST_TOLD = 3


def holds(row: RunRow) -> bool:
    """Whether the run came to its end, every expectation held, and nothing went wrong unasked."""
    return row.error is None and not row.stopped and not row.expectations_failed


def never_asked(rows: Sequence[RunRow]) -> list[str]:
    """The expectations that none of these runs was asked."""
    each = [row.unasked for row in rows if row.error is None]
    return [text for text in dict.fromkeys(each[0]) if all(text in other for other in each)] if each else []


def held_points(sweep: Sweep, rows: Sequence[RunRow], variant: str) -> set[int]:
    """The numbers of the points at which all seeds of this variant were run, and hold: what is asked elsewhere in the grid is
    asked there, too."""
    mine = sorted((row for row in rows if row.variant == variant), key=lambda row: row.number)
    whole = {number: list(group) for number, group in groupby(mine, key=lambda row: row.number)}
    nowhere = never_asked(mine)
    return {
        number
        for number, group in whole.items()
        if len(group) == len(sweep.seeds) and all(map(holds, group)) and {*never_asked(group)} <= {*nowhere}
    }


def idle_axes(sweep: Sweep, rows: Sequence[RunRow]) -> Iterator[str]:
    """The parameters with which every run is the same, whatever their value."""
    points = sweep.points()
    ran = [row for row in rows if row.digest is not None]
    for place, axis in enumerate(sweep.axes):
        alike: dict[tuple[object, ...], list[object]] = {}
        for row in ran:
            point = points[row.number]
            others = (*point[:place], *point[place + 1 :], row.variant, row.seed)
            alike.setdefault(others, []).append((row.digest, row.metrics))
        if alike and all(len(of) == len(axis.values) and of.count(of[0]) == len(of) for of in alike.values()):
            yield axis.path


def smallest_lines(sweep: Sweep, rows: Sequence[RunRow]) -> Iterator[str]:
    """A sentence for each variant of which some points hold and some do not: below which of them none does."""
    ranks = [_ranks(axis) for axis in sweep.axes]
    places = [tuple(rank[value] for rank, value in zip(ranks, point, strict=True)) for point in sweep.points()]
    for variant in sweep.variant_names:
        held = held_points(sweep, rows, variant)
        named = f"{variant}: " if sweep.has_variants else ""
        if not held:
            yield f"{named}no point of the grid holds"
        elif len(held) < len(places):
            yield f"{named}{_smallest(sweep, places, held)}"


def _smallest(sweep: Sweep, places: Sequence[tuple[int, ...]], held: set[int]) -> str:
    least = [one for one in sorted(held) if not any(other != one and _is_up(places[other], places[one]) for other in held)]
    broken = [n for n, place in enumerate(places) if n not in held and any(_is_up(places[one], place) for one in least)]
    points = sweep.points()
    told = [", ".join(settings_at(sweep.axes, points[one])) for one in least[:_MOST_TOLD]]
    more = f" ({len(least) - _MOST_TOLD} more)" if len(least) > _MOST_TOLD else ""
    but = f"; but not all that are larger do: {', '.join(settings_at(sweep.axes, points[broken[0]]))}" if broken else ""
    return f"the smallest that holds: {'; or '.join(told)}{more}{but}"


def _is_up(low: tuple[int, ...], high: tuple[int, ...]) -> bool:
    return all(one <= other for one, other in zip(low, high, strict=True))


def _ranks(axis: Axis) -> dict[str, int]:
    """Each value's place from the smallest on: by number or time; where there are others, in the order that was given."""
    values = typed(axis)
    if all(isinstance(value, int | float) for value in values.values()):
        ordered = sorted(axis.values, key=lambda text: float(values[text]))
    elif all(map(is_duration, axis.values)):
        ordered = sorted(axis.values, key=parse_duration)
    else:
        ordered = list(axis.values)
    return {text: place for place, text in enumerate(ordered)}
