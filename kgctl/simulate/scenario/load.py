"""From a file to what can be run: the variants as scenarios, the expectations, the seeds, and what a sweep shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.simulate.scenario.checks import Check, CheckReader, FilterNames, compiled, wrong_filters, wrong_filters_of
from kgctl.simulate.scenario.expressions import ExpressionError, Metric, Names, metrics_of, parse_expression
from kgctl.simulate.scenario.metric import STATE, metric_kinds
from kgctl.simulate.scenario.patches import merge_patch, patched, split_path, with_setting, written_out
from kgctl.simulate.scenario.quantities import shown
from kgctl.simulate.scenario.vocabulary import TROUBLES, did_you_mean
from kgctl.yaml_files import FileError, Location, Path, Problem, Tree

if TYPE_CHECKING:
    from kgctl.coordinator.config import CoordinatorConfig
    from kgctl.member.config import MemberConfig
    from kgctl.simulate.scenario.model import Scenario, ScenarioFile


@frozen_in_order
class ReportSpec:
    """``x``: the path of a parameter that is swept; None: the one with the most values. ``y`` empty: the usual metrics."""

    x: str | None = None
    y: tuple[Metric, ...] = ()


EMPTY_REPORT = ReportSpec()


def read_report(tree: Tree, around: FilterNames, problems: list[Problem]) -> ReportSpec:
    """The section of a file whose form is right; what contradicts the rest of it is added to ``problems``."""
    raw = tree.data.get("report") or {}
    swept = tuple(tree.data.get("sweep") or ())

    def wrong(path: Path, message: str) -> None:
        problems.append(tree.problem(path, message))

    along = None
    if (name := raw.get("x")) is not None:
        try:
            along = parameter_named(name, swept)
        except ValueError as error:
            wrong(("report", "x"), str(error))
    found = []
    entries = raw.get("y") or []
    for index, text in enumerate([entries] if isinstance(entries, str) else entries):
        path: Path = ("report", "y") if isinstance(entries, str) else ("report", "y", index)
        try:
            found.append(metric_of(text, around))
        except ValueError as error:
            wrong(path, str(error))
    return ReportSpec(along, tuple(dict.fromkeys(found)))


def parameter_named(name: str, swept: Sequence[str]) -> str:
    """The path of a parameter by the path, or by the end of it that no other has: ``session.timeout.ms``, ``app.count``.

    Raises:
        ValueError: there is none, or there are several.
    """
    if not swept:
        raise ValueError(f"{name!r} is not swept: the file has no `sweep:`")
    found = [path for path in swept if path == name] or [path for path in swept if path.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(f"{name!r} may be each of {', '.join(found)}; write the whole path")
    ends = [".".join(steps[start:]) for path in swept for steps in (path.split("."),) for start in range(len(steps))]
    near = did_you_mean(name, ends) or f"; swept: {', '.join(swept)}"
    raise ValueError(f"{name!r} is not swept{near}")


def metric_of(text: str, around: FilterNames) -> Metric:
    """A metric with its filters: ``max_gap``, ``unavailable(cause rebalance)``.

    Raises:
        ValueError: it is something else, or no number.
    """
    text = " ".join(text.split())
    known = [name for name, kind in metric_kinds().items() if kind.unit is not STATE]
    try:
        node = parse_expression(text, Names(metric_kinds(), ()))
    except ExpressionError as error:
        name = text.partition("(")[0].strip()
        if name.isidentifier() and name not in metric_kinds():
            raise ValueError(f"there is no metric {name!r}{did_you_mean(name, known)}") from None
        raise ValueError(f"{error}, at letter {error.at + 1} of `{text}`") from None
    if not isinstance(node, Metric):
        raise ValueError(f"{text!r} is no metric; write one, such as max_gap or unavailable(cause rebalance)")
    if node.name not in known:
        raise ValueError(f"{node.name!r} is no number")
    for problem in wrong_filters_of(node, around):
        raise ValueError(problem)
    return Metric(node.name, node.filters)


DEFAULT = "default"
"""The name of the one variant of a file without variants."""

OF_THE_WHOLE_FILE = (
    "kgctl",
    "name",
    "question",
    "seed",
    "runs",
    "expect",
    "variants",
    "extends",
    "from_manifest",
    "output",
    "sweep",
    "report",
)
"""Keys that a variant cannot change."""

_NAMED = ("members", "topics", "variants")
"""Keys with names below them. What a setting changes below such a name has to be there: a slip would add another one."""


@frozen_in_order
class Variant:
    """One variant, merged. ``settings``: the values of Kafka's settings that expressions may name, times in seconds.

    ``added``: the paths of the sets of members and of the topics that the file has in this variant only.
    """

    name: str
    scenario: Scenario
    tree: Tree
    settings: Mapping[str, float | str]
    added: tuple[tuple[str, str], ...] = ()


@frozen_in_order
class LoadedFile:
    """A whole file. ``variant_names`` has also those that were not asked for; ``variants`` are the ones to run.

    ``swept``: the paths of its parameters.
    """

    source: str
    name: str
    question: str
    seed: int
    runs: int
    variant_names: tuple[str, ...]
    variants: tuple[Variant, ...]
    checks: tuple[Check, ...]
    output: Mapping[str, str] = field(default_factory=dict)
    report: ReportSpec = EMPTY_REPORT
    swept: tuple[str, ...] = ()

    def can_ask(self, check: Check) -> bool:
        """Return whether the variants that a check is about are among those to run."""
        names = [variant.name for variant in self.variants]
        is_there = all(name in names for name in check.named_variants)
        return is_there and (check.variants is None or any(name in names for name in check.variants))


@frozen_in_order
class _Column:
    """What a result has a column for: a variant, a group of several, or one group of a variant. ``patch``: the variant's name."""

    name: str
    patch: str
    group: str | None = None

    @property
    def known_as(self) -> tuple[str, ...]:
        """Return the names by which it can be asked for: also all groups of a variant, and a group in all variants."""
        patch = "" if self.name == self.group else self.patch
        return tuple(dict.fromkeys(name for name in (self.name, patch, self.group) if name))


def _columns(base: Tree, patches: Mapping[str, Any]) -> list[_Column]:
    names, groups = tuple(patches) or (DEFAULT,), _names_below(base.data, "groups")
    if not groups:
        return [_Column(name, name) for name in names]
    return [_Column(f"{name}-{group}" if patches else group, name, group) for name in names for group in groups]


def _short_names(columns: Sequence[_Column]) -> Mapping[str, tuple[str, ...]]:
    """Return what a variant's or a group's name stands for where each column is one group of a variant."""
    shorts = dict.fromkeys(each for column in columns for each in column.known_as if each != column.name)
    return {short: tuple(column.name for column in columns if short in column.known_as) for short in shorts}


Built: TypeAlias = "tuple[str, ScenarioFile | None, Variant | None]"


def load(
    tree: Tree, *, settings: Sequence[str] = (), variants: Sequence[str] = (), checks: Sequence[str] | None = None
) -> LoadedFile:
    """The file, merged and checked. ``settings``: ``PATH=VALUE``, over everything; ``variants``: only these; ``checks``: instead
    of the file's expectations.

    Raises:
        FileError: the file is wrong. UsageError: a setting or a variant that is not there, or that a check needs.
    """
    problems: list[Problem] = []
    if not isinstance(tree.data, dict):
        raise tree.error((), "a scenario is a mapping: name, topics, members and so on")
    tree = Tree(tree.file, written_out(tree.data), tree.locations)
    base = _by_version(_with_settings(tree, settings, tree))
    if _BROKER_VERSION not in base.data:  # which a setting may have told, too
        settings = [each for each in settings if split_path(each.partition("=")[0].strip()) != (_BROKER_VERSION,)]
    patches = _patches(base, problems)
    columns = _columns(base, patches)
    names = tuple(column.name for column in columns)
    _check_asked(variants, tuple(dict.fromkeys(each for column in columns for each in column.known_as)))
    wanted = [column for column in columns if not variants or any(each in variants for each in column.known_as)]
    merged = {column.patch: _merged(base, patches, column.patch, settings, problems) for column in wanted}
    in_expressions = names if names != (DEFAULT,) else ()
    built = [(column.name, *_built(column, merged[column.patch], base, in_expressions, problems)) for column in wanted]
    words = Names(metric_kinds(), _setting_names(), in_expressions, _short_names(columns))
    found = _checks(base, checks, words, built, problems, merged=list(merged.values()))
    own = found if checks is None else _checks(base, None, words, built, [], merged=list(merged.values()))
    _check_swept(base, problems)
    report = read_report(base, _surroundings(built), problems) if all(one is not None for _, one, _ in built) else EMPTY_REPORT
    if problems:
        raise FileError(_unique(problems))
    sections = built[0][1]
    assert sections is not None
    loaded = LoadedFile(
        source=tree.file,
        name=sections.name,
        question=sections.question,
        seed=sections.seed,
        runs=sections.runs,
        variant_names=names,
        variants=tuple(_allowing(variant, own) for _, _, variant in built if variant is not None),
        checks=found,
        output={key: value for key, value in sections.output.model_dump().items() if value is not None},
        report=report,
        swept=tuple(sections.sweep),
    )
    if unasked := [check.shown for check in found if checks is not None and not loaded.can_ask(check)]:
        raise UsageError(f"--check {unasked[0]!r} cannot be asked: its variants are not run; name them by --variant, too")
    return loaded


_BROKER_VERSION = "broker_version"


def _by_version(file: Tree) -> Tree:
    """The file with a variant for each version of a list of them: ``kafka-4-2`` for 4.2."""
    versions = file.data.get(_BROKER_VERSION)
    if not isinstance(versions, list) or not versions or "variants" in file.data:
        return file
    data = {key: value for key, value in file.data.items() if key != _BROKER_VERSION}
    names = ["kafka-" + re.sub(r"\W+", "-", str(version)) for version in versions]
    places: dict[Path, Location] = {
        ("variants", name, _BROKER_VERSION): file.location((_BROKER_VERSION, at)) for at, name in enumerate(names)
    }
    patches = {name: {_BROKER_VERSION: version} for name, version in zip(names, versions, strict=True)}
    return Tree(file.file, {**data, "variants": patches}, {**file.locations, **places})


def _decided(check: Check, variant: str) -> Iterator[Metric]:
    """The metrics that a check asks about in a variant, as a whole: of one pod, or of a part of the time, it decides no more."""
    if check.variants is None or variant in check.variants:
        yield from (each for each in metrics_of(check.node) if each.variant in (None, variant) and not each.filters)


def decided(variant: str, checks: Sequence[Check]) -> list[str]:
    """The kinds of what goes wrong unasked that an expectation decides in a variant."""
    asked = {metric.name for check in checks if check.is_of_whole_runs for metric in _decided(check, variant)}
    return [kind.name for kind in TROUBLES.values() if kind.metric in asked]


def _allowing(variant: Variant, checks: Sequence[Check]) -> Variant:
    """The variant, which what an expectation of the file decides does not fail unasked."""
    own = decided(variant.name, checks)
    if not own:
        return variant
    from kgctl.simulate.scenario.fields import changed

    return replace(variant, scenario=changed(variant.scenario, decided=tuple(own)))


def _with_settings(tree: Tree, settings: Sequence[str], file: Tree) -> Tree:
    for assignment in settings:
        path = split_path(assignment.partition("=")[0].strip())
        if len(path) > 2 and path[0] in _NAMED and str(path[1]) not in _names_below(tree.data, path[0]):
            if why := _nobodys_name(path, file):
                raise UsageError(f"--set {assignment}: {why}")
        else:
            tree = with_setting(tree, assignment)
    return tree


def _names_below(data: Any, key: str | int) -> tuple[str, ...]:
    found = data.get(key) if isinstance(data, dict) else None
    return tuple(found) if isinstance(found, dict) else ()


def _nobodys_name(path: Path, file: Tree) -> str:
    """Why what a path leads to, below a name, is nowhere: neither in the file nor in a variant; "" where it is."""
    if len(path) <= 2 or path[0] not in _NAMED:
        return ""
    patches = [file.data["variants"][name] for name in _names_below(file.data, "variants")]
    known = dict.fromkeys(name for data in (file.data, *patches) for name in _names_below(data, path[0]))
    if str(path[1]) in known:
        return ""
    what = {"members": "set of members", "topics": "topic", "variants": "variant"}[str(path[0])]
    return f"there is no {what} {str(path[1])!r}{did_you_mean(str(path[1]), known, list_up_to=12)}"


def _check_swept(base: Tree, problems: list[Problem]) -> None:
    for key in _names_below(base.data, "sweep"):
        try:
            why = _nobodys_name(split_path(key), base)
        except UsageError as error:
            why = error.message
        if why:
            problems.append(base.problem(("sweep", key), why))


def _patches(base: Tree, problems: list[Problem]) -> Mapping[str, Any]:
    raw = base.data.get("variants")
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not raw:
        problems.append(base.problem(("variants",), "must be a mapping of names to patches"))
        return {}
    for name, patch in raw.items():
        path: Path = ("variants", name)
        if not name.replace("-", "").replace("_", "").isalnum() or not (name[0].isalpha() or name[0] == "_"):
            problems.append(base.problem(path, "a variant is named with letters, digits, - and _, a letter first"))
        if patch is not None and not isinstance(patch, dict):
            problems.append(base.problem(path, f"a patch is a mapping, not {shown(patch)}"))
        fixed = [(*path, key) for key in (patch if isinstance(patch, dict) else ()) if key in OF_THE_WHOLE_FILE]
        problems.extend(base.problem(way, "stands for the whole file, not in a variant") for way in fixed)
    return raw


def _check_asked(asked: Sequence[str], names: tuple[str, ...]) -> None:
    for name in asked:
        if name not in names:
            raise UsageError(f"there is no variant {name!r}{did_you_mean(name, names, list_up_to=20)}")


def _merged(base: Tree, patches: Mapping[str, Any], name: str, settings: Sequence[str], problems: list[Problem]) -> Tree:
    tree = Tree(base.file, merge_patch({}, _filled(base.data)), base.locations)
    if isinstance(patches.get(name), dict):
        tree = patched(tree, base, ("variants", name))
        own = [each for each in settings if split_path(each.partition("=")[0].strip())[0] != "variants"]
        tree = _with_settings(tree, own, base)
        tree.data = merge_patch({}, tree.data)
    problems.extend(_split_off(tree))
    return tree


def _split_off(tree: Tree) -> Iterator[Problem]:
    """Yield a problem for ``group: {from: ...}`` in a variant, and take it out of the tree, which is the caller's own copy."""
    group = tree.data.get("group")
    if isinstance(group, dict) and "from" in group:
        del group["from"]
        path: Path = ("group", "from")
        yield tree.problem(path, "it stands for the whole file, not in a variant", rule="not-supported")


def _filled(data: Mapping[str, Any]) -> dict[str, Any]:
    """Without the variants; a set of members or a topic about which nothing is said has the defaults."""
    found = {key: value for key, value in data.items() if key != "variants"}
    for key in ("members", "topics"):
        if isinstance(found.get(key), dict):
            found[key] = {name: {} if value is None else value for name, value in found[key].items()}
    return found


def _built(
    column: _Column, tree: Tree, base: Tree, variants: tuple[str, ...], problems: list[Problem]
) -> tuple[ScenarioFile | None, Variant | None]:
    from kgctl.simulate.scenario.fields import Reading
    from kgctl.simulate.scenario.schema import validate, without

    names = Names(metric_kinds(), _setting_names(), variants)
    file = Reading(tree, lambda text: compiled(text, names))
    wrong: list[Problem] = []
    whole = validate(file, wrong)
    problems.extend(wrong)
    if whole is None:  # what else is wrong is told too, as far as it does not follow from this
        tree = without(tree, [problem.path for problem in wrong])
        file = Reading(tree, file.condition)
        whole = validate(file, [])
    if whole is None or (wrong and not (whole.members and whole.topics)):
        return None, None
    problems.extend(file.problems)
    scenario = whole if column.group is None or problems else whole.of_group(column.group)
    if _names_below(tree.data, "groups") != _names_below(base.data, "groups"):
        problems.append(tree.problem(("groups",), "are the same in every variant"))
    added = [(key, own) for key in ("members", "topics") for own in _names_below(tree.data, key)]
    known = [(key, own) for key in ("members", "topics") for own in _names_below(base.data, key)]
    settings = _setting_values(scenario) if not problems else {}
    return None if wrong else whole, Variant(
        column.name, scenario, tree, settings, tuple(each for each in added if each not in known)
    )


def _checks(
    base: Tree,
    given: Sequence[str] | None,
    names: Names,
    built: Sequence[Built],
    problems: list[Problem],
    *,
    merged: Sequence[Tree],
) -> tuple[Check, ...]:
    tree = base if given is None else Tree("--check", {"expect": [expectation_of(text) for text in given]})
    found: list[Check] = []
    reader = CheckReader(tree, names, problems, _event_names(merged))
    around = _surroundings(built) if all(variant is not None for _, _, variant in built) else None
    entries = tree.data.get("expect")
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        path: Path = ("expect", index)
        checks = reader.of_entry(entry, path)
        found.extend(checks)
        if around is not None:
            wrong = dict.fromkeys(message for check in checks for message in wrong_filters(check, around))
            problems.extend(tree.problem(path, message) for message in wrong)
    return tuple(found)


def _event_names(trees: Sequence[Tree]) -> tuple[str, ...]:
    """The names of events, of those too that cannot be read."""
    events = [tree.data.get("events") for tree in trees]
    entries = [entry for each in events if isinstance(each, list) for entry in each if isinstance(entry, dict)]
    return tuple(dict.fromkeys(name for entry in entries if isinstance(name := entry.get("name"), str)))


def _surroundings(built: Sequence[Built]) -> FilterNames:
    return FilterNames.of([variant.scenario for _, _, variant in built if variant])


def expectation_of(text: str) -> Any:
    """An expectation on the command line: an expression, or a flow mapping such as ``{always: owners(partition) <= 1}``."""
    from kgctl.yaml_files import read_yaml

    return read_yaml(text, "--check").data if text.lstrip().startswith("{") else text


def _unique(problems: Sequence[Problem]) -> list[Problem]:
    """Each once: what several variants share is wrong in each of them. In the order of the file."""
    once = dict.fromkeys(problems)
    return sorted(
        once,
        key=lambda problem: (problem.location.line == 0, problem.location.file, problem.location.line, problem.location.column),
    )


def _setting_names() -> tuple[str, ...]:
    """Every setting that an expression may name: consumers' and the coordinator's."""
    from kgctl.coordinator.config import setting_names as broker_names
    from kgctl.member.config import settings

    return (*settings(), *broker_names())


def _setting_values(scenario: Scenario) -> Mapping[str, float | str]:
    """By Kafka's names, times in seconds. Consumer settings are those of the first set of members; defaults included."""
    from kgctl.member.config import MemberConfig
    from kgctl.simulate.scenario.fields import read_broker_settings

    first = scenario.members[0]
    return {**_of(read_broker_settings(scenario.cluster.config)), **_of(MemberConfig.from_properties(first.config, first.client))}


def _of(config: CoordinatorConfig | MemberConfig) -> dict[str, float | str]:
    found: dict[str, float | str] = {}
    for entry in fields(config):
        value = getattr(config, entry.name)
        if not entry.metadata or value is None:
            continue
        found[entry.metadata["name"]] = _value_of(entry.metadata["name"], value)
    return found


def _value_of(name: str, value: object) -> float | str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return value / 1_000 if name.endswith(".ms") else value * 60 if name.endswith(".minutes") else value
    return ",".join(value) if isinstance(value, tuple) else str(value)
