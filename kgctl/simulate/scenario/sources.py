"""Where scenarios come from: files, stdin, those that kgctl brings along, a group as it is, and recorded traffic.

A group (``group: {from: F}``) and a recording (``replay(F.csv)``) are written out when the file is read, so that what is run,
swept, shrunk and kept is a whole scenario.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias, TypeVar

from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.files import text_of
from kgctl.simulate.scenario.patches import patched, written_out
from kgctl.simulate.scenario.quantities import format_duration, parse_duration, parse_rate, shown
from kgctl.simulate.scenario.vocabulary import did_you_mean
from kgctl.yaml_files import SMALL, FileError, Tree, read_yaml
from kgctl.yaml_files import Path as Way

if TYPE_CHECKING:
    from kgctl.simulate.scenario.observed import Observed

LIVE = "live:"
LiveGroup: TypeAlias = "Callable[[str], Observed]"
"""Reads a group of the cluster by its id."""

_NOT_OF_A_GROUP = ("name", "question", "events", "variants", "runs", "expect")
"""Keys that `scenario_text` fills with an example."""
_MOST_STEPS = 1_000
_SECOND_US = 1_000_000
_TIMES = ("at", "time", "timestamp")
_ENDINGS = ("log_end_offset", "end_offset")


def written_out_from(tree: Tree, folder: Path, live: LiveGroup | None) -> Tree:
    """Return the tree with what it takes from other files in their place. ``folder``: where relative names begin.

    Raises:
        FileError: such a file is not there, or is none; at the place that names it.
    """
    if not isinstance(tree.data, dict):
        return tree
    if "from_manifest" in tree.data:
        from kgctl.simulate.scenario.manifests import drift

        tree = drift(tree, folder)
    tree.data = _replayed(tree, tree.data, (), folder, "")
    group = tree.data.get("group")
    return _with_group(tree, group["from"], folder, live) if isinstance(group, dict) and "from" in group else tree


# --- a group


def _with_group(tree: Tree, source: Any, folder: Path, live: LiveGroup | None) -> Tree:
    from kgctl.simulate.scenario.observed import scenario_text

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
    from kgctl.simulate.scenario.observed import observed_in

    if not source.startswith(LIVE):
        return observed_in(text_of(folder / source.removeprefix("file:")), source)
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
        from kgctl.simulate.scenario.events import with_key

        named = next((str(data[key]) for key in with_key("rate") if isinstance(data.get(key), str)), topic)
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
    if name.startswith(PROMETHEUS):
        return _told_by_prometheus(name.removeprefix(PROMETHEUS).strip(), folder, topic)
    lines = text_of(folder / name).splitlines()
    separator = next((each for each in ",;\t" if lines and each in lines[0]), ",")
    reader = csv.DictReader(lines, delimiter=separator)
    header = {column.strip().lower().replace("-", "_"): column for column in reader.fieldnames or () if column}
    if len(header) < len([column for column in reader.fieldnames or () if column]):
        raise UsageError(f"{name}:1 has a column twice")
    rows = [(reader.line_num, row) for row in reader]
    time, rate, end, about = (_column_of(header, known) for known in (_TIMES, ("rate",), _ENDINGS, ("topic",)))
    if time is None or (end is None and rate is None):
        has = f"; it has {', '.join(header)}" if header else ""
        raise UsageError(f"{name} needs a header with time and rate, or time and log_end_offset{has}")
    if about is not None:
        rows = [(line, row) for line, row in rows if row[about] == topic]
    if not rows:
        raise UsageError(f"{name} has no rows{'' if about is None else f' of topic {topic!r}'}")
    partition = _column_of(header, ("partition",))
    if rate is not None:
        found: dict[int, float] = {}
        seen: dict[tuple[int, str], int] = {}
        for line, row in rows:
            at_us = _cell(name, line, time, row, _time_us)
            which = (at_us, row[partition] if partition else "")
            if line != seen.setdefault(which, line):
                raise UsageError(f"{name}:{line} has the time of line {seen[which]} again")
            found[at_us] = found.get(at_us, 0.0) + _cell(name, line, rate, row, _rate)
    else:
        times = [_cell(name, line, time, row, _time_us) for line, row in rows]
        for line, row in rows:
            _cell(name, line, str(end), row, lambda text: int(text or 0))
        found = _slopes(_by_partition(times, [row for _, row in rows], str(end), partition))
    return _steps(found)


def _steps(rates: Mapping[int, float]) -> Mapping[str, str]:
    first_us = min(rates)
    return {format_duration(at_us - first_us): f"{rate:.6f}/s" for at_us, rate in _coarse(sorted(rates.items()))}


PROMETHEUS = "prometheus:"


def _told_by_prometheus(name: str, folder: Path, topic: str) -> Mapping[str, str]:
    """The sum of the series of a saved answer of ``/api/v1/query_range``, those of the topic where they have one: rates."""
    try:
        data = json.loads(text_of(folder / name))["data"]
        series = data["result"] if data["resultType"] == "matrix" else None
    except (ValueError, KeyError, TypeError):
        series = None
    if series is None:
        raise UsageError(f"{name} is no answer of Prometheus's /api/v1/query_range with a matrix")
    own = [each for each in series if each.get("metric", {}).get("topic", topic) == topic]
    found: dict[int, float] = {}
    for each in own:
        for at_s, text in each["values"]:
            at_us = round(float(at_s) * _SECOND_US)
            found[at_us] = found.get(at_us, 0.0) + max(0.0, float(text)) if math.isfinite(float(text)) else math.nan
    found = {at_us: rate for at_us, rate in found.items() if math.isfinite(rate)}  # of the others nobody knows the rate
    if not found:
        raise UsageError(f"{name} has no samples of topic {topic!r}")
    return _steps(found)


def _column_of(header: Mapping[str, str], known: Sequence[str]) -> str | None:
    return next((header[each] for each in known if each in header), None)


_T = TypeVar("_T")


def _cell(name: str, line: int, column: str, row: Mapping[str, str], read: Callable[[str], _T]) -> _T:
    text = row[column] or ""
    try:
        return read(text.strip())
    except ValueError:
        raise UsageError(f"{name}:{line}: {text!r} is no {'time' if read is _time_us else column.strip()}") from None


def _rate(text: str) -> float:
    """A number of records a second, or a rate with its unit."""
    return parse_rate(text) / _SECOND_US if "/" in text else parse_rate(float(text)) / _SECOND_US


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


BUILTIN = "builtin:"
_DEEPEST = 8


def builtin_names() -> tuple[str, ...]:
    """The built-in scenarios, in the order of the alphabet."""
    folder = resources.files("kgctl.simulate") / "builtin"
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def builtin_text(name: str) -> str:
    """The file of a built-in scenario.

    Raises:
        NotFoundError: there is none of this name.
    """
    if name not in builtin_names():
        near = did_you_mean(name, builtin_names()) or "; `kgctl simulate list` shows those that there are"
        raise NotFoundError(f"there is no built-in scenario {name!r}{near}")
    return (resources.files("kgctl.simulate") / "builtin" / f"{name}.yaml").read_text(encoding="utf-8")


def read_source(name: str, stdin: TextIO | None = None, live: LiveGroup | None = None) -> Tree:
    """Return a scenario as a tree, with what it extends, replays and takes from a group merged in.

    ``name``: a file, ``-``, ``builtin:NAME``, or a built-in's bare name. ``live`` reads what ``group: {from: live:GROUP}`` names.

    Raises:
        NotFoundError: there is nothing of that name. FileError: it cannot be read. UsageError: it is no text.
    """
    return _with_bases(_read(name, stdin, live), name, Path(name).parent, (name,), live)


def _with_bases(tree: Tree, name: str, folder: Path, seen: tuple[str, ...], live: LiveGroup | None) -> Tree:
    if not isinstance(tree.data, dict) or "extends" not in tree.data:
        return tree
    base_name = tree.data["extends"]
    if not isinstance(base_name, str) or not base_name:
        raise tree.error(("extends",), f"must be builtin:NAME or a file, not {shown(base_name)}")
    real = base_name if base_name.startswith(BUILTIN) else str(folder / base_name)
    if real in seen:
        raise tree.error(("extends",), f"{name} extends itself: {' -> '.join((*seen, real))}")
    if len(seen) >= _DEEPEST:
        raise tree.error(("extends",), f"more than {_DEEPEST} files that extend one another")
    try:
        base = _read(real, None, live)
    except FileError:
        raise
    except (NotFoundError, UsageError) as error:
        raise tree.error(("extends",), error.message) from None
    if not isinstance(base.data, dict):
        raise tree.error(("extends",), f"{real} is no scenario: it is no mapping")
    base = _with_bases(base, real, Path(real).parent, (*seen, real), live)
    base.data, tree.data = written_out(base.data), written_out(tree.data)
    merged = patched(base, tree)
    merged.file = tree.file
    merged.locations[()] = tree.location(())
    merged.data.pop("extends", None)
    return merged


def _read(name: str, stdin: TextIO | None, live: LiveGroup | None) -> Tree:
    return written_out_from(_read_alone(name, stdin), Path("." if name == "-" else name).parent, live)


def _read_alone(name: str, stdin: TextIO | None) -> Tree:
    if name == "-" and stdin is not None:
        return _read_scenario(stdin.read(SMALL.characters + 1), "stdin")
    if name.startswith(BUILTIN):
        return _read_scenario(builtin_text(name.removeprefix(BUILTIN)), name)
    path = Path(name)
    if not path.exists() and stdin is not None and "/" not in name and name.removesuffix(".yaml") in builtin_names():
        return _read_scenario(builtin_text(name.removesuffix(".yaml")), f"{BUILTIN}{name.removesuffix('.yaml')}")
    return _read_scenario(_text_of(path), str(path))


def _read_scenario(text: str, source: str) -> Tree:
    tree = read_yaml(text, source)
    if tree.data is None:
        raise tree.error((), "the file is empty; `kgctl simulate init` writes a first scenario")
    return tree


def _text_of(path: Path) -> str:
    if not path.exists():
        hint = did_you_mean(path.name, builtin_names()) if "/" not in str(path) else ""
        raise NotFoundError(f"there is no file {str(path)!r}{hint and f', nor a built-in scenario{hint}'}")
    return text_of(path, most=SMALL.characters + 1)
