"""What a scenario takes from outside its file: recorded traffic (``replay(F.csv)``) and a group as it is (``group: {from: F}``).

Both are written out when the file is read, so that what is run, swept, shrunk and kept is a whole scenario.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from kgctl.errors import KgctlError, UsageError
from kgctl.simulate.scenario.from_group import Observed, observed_in, scenario_text
from kgctl.simulate.scenario.patches import patched
from kgctl.simulate.scenario.quantities import format_duration, parse_duration
from kgctl.simulate.scenario.wording import shown
from kgctl.yaml_files import Path as Way
from kgctl.yaml_files import Tree, read_yaml

LIVE = "live:"
LiveGroup: TypeAlias = Callable[[str], Observed]
"""Reads a group of the cluster by its id."""

_NOT_OF_A_GROUP = ("name", "question", "events", "variants", "runs", "expect")
"""Keys that `scenario_text` fills with an example."""
_TOPIC_KEYS = ("set_traffic", "create_topic")
_MOST_STEPS = 1_000
_SECOND_US = 1_000_000
_ENDINGS = ("log_end_offset", "end_offset")


def written_out_from(tree: Tree, folder: Path, live: LiveGroup | None) -> Tree:
    """Return the tree with what it takes from other files in their place. ``folder``: where relative names begin.

    Raises:
        FileError: such a file is not there, or is none; at the place that names it.
    """
    if not isinstance(tree.data, dict):
        return tree
    tree.data = _replayed(tree, tree.data, (), folder, "")
    group = tree.data.get("group")
    return _with_group(tree, group["from"], folder, live) if isinstance(group, dict) and "from" in group else tree


# --- a group


def _with_group(tree: Tree, source: Any, folder: Path, live: LiveGroup | None) -> Tree:
    place: Way = ("group", "from")
    if not isinstance(source, str) or not source:
        raise tree.error(place, f"must be a file or live:GROUP, not {shown(source)}")
    try:
        base = read_yaml(scenario_text(_observed(source, folder, live)), source)
    except KgctlError as error:
        raise tree.error(place, error.message) from None
    for key in _NOT_OF_A_GROUP:
        base.data.pop(key, None)
    tree.data = {**tree.data, "group": {key: value for key, value in tree.data["group"].items() if key != "from"}}
    merged = patched(base, tree)
    merged.file = tree.file
    merged.locations[()] = tree.location(())
    return merged


def _observed(source: str, folder: Path, live: LiveGroup | None) -> Observed:
    if not source.startswith(LIVE):
        return observed_in(_text(folder / source.removeprefix("file:")), source)
    if live is None:
        raise UsageError("a live group is read by the commands of kgctl simulate; here name a file")
    return live(source.removeprefix(LIVE))


# --- traffic


def _replayed(tree: Tree, data: Any, way: Way, folder: Path, topic: str) -> Any:
    if isinstance(data, str) and data.strip().startswith("replay("):
        if not topic:
            raise tree.error(way, "replay(...) is a rate: of traffic, of set_traffic or of create_topic")
        try:
            return _rates(_name_in(data), folder, topic)
        except (ValueError, UsageError) as error:
            raise tree.error(way, error.message if isinstance(error, UsageError) else str(error)) from None
    if isinstance(data, list):
        return [_replayed(tree, each, (*way, place), folder, topic) for place, each in enumerate(data)]
    if isinstance(data, dict):
        named = next((str(data[key]) for key in _TOPIC_KEYS if isinstance(data.get(key), str)), topic)
        is_traffic = way[-1:] == ("traffic",)
        return {key: _replayed(tree, each, (*way, key), folder, key if is_traffic else named) for key, each in data.items()}
    return data


def _name_in(text: str) -> str:
    name = text.strip().removeprefix("replay(").removesuffix(")").strip().strip("'\"")
    if not name or not text.strip().endswith(")"):
        raise ValueError(f"{text!r} names no file: replay(traffic.csv)")
    return name


def _rates(name: str, folder: Path, topic: str) -> Mapping[str, str]:
    """Return the steps of a recording: time from its beginning -> rate."""
    rows = list(csv.DictReader(_text(folder / name).splitlines()))
    columns = {column.strip().lower().replace("-", "_"): column for column in rows[0] if column} if rows else {}
    if "topic" in columns:
        rows = [row for row in rows if row[columns["topic"]] == topic]
    if not rows:
        raise UsageError(f"{name} has no rows{f' of topic {topic!r}' if columns else ''}")
    time = next((columns[known] for known in ("at", "time") if known in columns), None)
    end = next((columns[known] for known in _ENDINGS if known in columns), None)
    if time is None or (end is None and "rate" not in columns):
        raise UsageError(f"{name} needs a header with time and rate, or time and log_end_offset")
    try:
        times = [_time_us(row[time]) for row in rows]
        if "rate" in columns:
            found = {at_us: float(row[columns["rate"]]) for at_us, row in zip(times, rows, strict=True)}
        else:
            found = _slopes(_by_partition(times, rows, str(end), columns.get("partition")))
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}: {error}") from None
    first_us = min(found)
    return {format_duration(at_us - first_us): f"{rate:.6f}/s" for at_us, rate in _coarse(sorted(found.items()))}


def _time_us(text: str) -> int:
    """``2026-03-02T08:40:00Z``, ``10m``, or a number of seconds."""
    if "-" in text and ":" in text:
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return round(moment.timestamp() * _SECOND_US)
    return parse_duration(text, bare_unit="s")


def _by_partition(
    times: list[int], rows: list[dict[str, str]], end: str, partition: str | None
) -> Mapping[str, list[tuple[int, int]]]:
    """Return (time, end of the log) of each partition where it is known, in the order of time."""
    found: dict[str, dict[int, int]] = {}
    for at_us, row in zip(times, rows, strict=True):
        if row[end]:
            own = found.setdefault(row[partition] if partition else "", {})
            own[at_us] = max(int(row[end]), own.get(at_us, 0))
    return {name: sorted(points.items()) for name, points in found.items()}


def _slopes(ends: Mapping[str, list[tuple[int, int]]]) -> dict[int, float]:
    """Return the rate of all partitions together from each sample on; a log that is shorter than before was written anew."""
    changes: dict[int, float] = {}
    for points in ends.values():
        for (from_us, before), (to_us, after) in pairwise(points):
            rate = max(after - before, 0) * _SECOND_US / (to_us - from_us)
            changes[from_us] = changes.get(from_us, 0) + rate
            changes[to_us] = changes.get(to_us, 0) - rate
    if not changes:
        raise UsageError("there are no two samples of one partition: no rate can be told")
    found, rate = {}, 0.0
    for at_us in sorted(changes):
        rate += changes[at_us]
        found[at_us] = max(rate, 0.0)
    return found


def _coarse(steps: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """Yield at most so many steps: means over equal times where there are more."""
    if len(steps) <= _MOST_STEPS:
        yield from steps
        return
    first_us, last_us = steps[0][0], steps[-1][0]
    width_us = (last_us - first_us) // _MOST_STEPS + 1
    written: dict[int, float] = {}
    for (from_us, rate), (to_us, _) in pairwise(steps):
        while from_us < to_us:
            number = (from_us - first_us) // width_us
            until_us = min(first_us + (number + 1) * width_us, to_us)
            written[number] = written.get(number, 0) + rate * (until_us - from_us)
            from_us = until_us  # noqa: PLW2901  # the rest of it
    yield from ((first_us + number * width_us, amount / width_us) for number, amount in sorted(written.items()))
    yield steps[-1]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
