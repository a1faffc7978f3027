"""The public API: its names, their signatures, and how light the door is."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any, get_args, get_origin

import pytest

import kgctl
from kgctl import errors
from kgctl.errors import InvariantViolation, KgctlError, NotFoundError, UsageError
from tests.docs.reference import REFERENCE, SHOWN_AS, own_classes
from tests.repo.project import ROOT

RECORDED = ROOT / "tests" / "golden" / "public-api.json"


def signatures() -> dict[str, Any]:
    """Every public name with what may be called on it."""
    found: dict[str, Any] = {"simulate": str(inspect.signature(simulate()))}
    for name in sorted(set(kgctl.__all__) - {"__version__", "simulate"}):
        value = getattr(kgctl, name)
        found[name] = members(value) if inspect.isclass(value) else str(inspect.signature(value))
    found |= {f"results.{name}": members(getattr(kgctl.results, name)) for name in kgctl.results.__all__}
    found |= {f"testing.{name}": members(getattr(kgctl.testing, name)) for name in kgctl.testing.__all__}
    found["deprecated"] = {name: since for name, (since, _) in kgctl._DEPRECATED.items()}
    found["errors"] = sorted(name for name, value in vars(errors).items() if is_error(value))
    return found


PRIVATE_ALL_THE_SAME = {
    "Recording": "what a simulated run recorded: its form is the simulator's own",
    "TraceEvent": "the same, of the trace's events",
    **dict.fromkeys(("Scenario", "Expectation", "VariantOutcome", "Measured"), "the same"),
    "NumberedPartitions": "partitions as numbers; assignors of one's own get mappings",
    "Acl": "a rule in the form of the protocol; users write rules as text",
    "Request": "the core's requests, for Coordinator.ask()",
}
"""Types in public signatures that are not public, and why."""


def types_in(annotation: object) -> Iterator[type]:
    """The classes that an annotation is made of."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    for part in (get_origin(annotation), *get_args(annotation)):
        if part is not None and part is not annotation:
            yield from types_in(part)


def annotations_of(value: Any) -> Iterator[object]:
    """Those of a function; of a class, those of its public methods, properties and fields."""
    if not inspect.isclass(value):
        function = inspect.unwrap(value)
        names = {**vars(sys.modules[function.__module__]), **{name: getattr(kgctl, name) for name in kgctl.__all__}}
        names |= {name: getattr(kgctl.results, name) for name in kgctl.results.__all__}
        for annotation in function.__annotations__.values():
            try:
                yield eval(annotation, names) if isinstance(annotation, str) else annotation
            except NameError as error:
                yield type(str(error.name), (), {"__module__": "kgctl.unknown"})
        return
    own = inspect.getmembers_static(value, lambda each: isinstance(each, property) or inspect.isfunction(each))
    given = value.__doc__ is not None and value.__name__ in ("Admin", "AsyncAdmin", "Plan", "AsyncPlan", "Generation", "Records")
    for name, each in own:
        if not name.startswith("_") or (name == "__init__" and not given):
            yield from annotations_of(each.fget if isinstance(each, property) else each)


def test_every_type_in_a_public_signature_is_public() -> None:
    """Whoever writes down what a call gives needs its name; a type without one has no page either."""
    public = {name: getattr(kgctl, name) for name in set(kgctl.__all__) - {"simulate", "__version__"}}
    public |= {name: getattr(kgctl.results, name) for name in kgctl.results.__all__}
    public |= {name: getattr(kgctl.testing, name) for name in kgctl.testing.__all__} | {"simulate": simulate()}
    found = {
        each.__name__
        for value in public.values()
        for annotation in annotations_of(value)
        for each in types_in(annotation)
        if each.__module__.startswith("kgctl.") and not each.__module__.startswith("kgctl.errors")
    }
    assert found - {value.__name__ for value in public.values()} <= set(PRIVATE_ALL_THE_SAME)


CLASSES = [(page, path) for page, paths in REFERENCE.items() for path in paths if path.rpartition(".")[2][0].isupper()]


@pytest.mark.parametrize(("page", "path"), CLASSES)
def test_the_reference_has_everything_that_may_be_called(page: str, path: str) -> None:
    """By the class itself or the public one that it has it from; also what comes from a base that is no public name."""
    module, _, name = path.rpartition(".")
    value = getattr(import_module(module), name)
    text = (ROOT / "kgctl" / "manual" / f"{page}.md").read_text()
    own = inspect.getmembers_static(value, lambda each: isinstance(each, property) or inspect.isfunction(each))
    missing = []
    for attribute, member in own:
        function: Any = member.fget if isinstance(member, property) else member
        titles = [f"### {owner}.{attribute}\n" for owner in (name, function.__qualname__.partition(".")[0])]
        is_ours = function.__module__.startswith("kgctl.") and inspect.getdoc(member)
        if is_ours and not attribute.startswith("_") and not any(title in text for title in titles):
            missing.append(attribute)
    assert not missing


def gone_too_early(recorded: dict[str, Any], found: dict[str, Any], version: str) -> list[str]:
    """What was public and is not, although no earlier minor version deprecated it: names, and methods of classes."""
    deprecated = recorded.get("deprecated", {})
    names = [name for name in recorded if name not in found]
    names += [
        f"{name}.{method}"
        for name, methods in recorded.items()
        if isinstance(methods, dict) and isinstance(found.get(name), dict) and name != "deprecated"
        for method in methods
        if method not in found[name]
    ]
    return [name for name in names if minor(deprecated.get(name, version)) >= minor(version)]


def minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def record() -> None:
    """Write what is public now; refuses what would break users without a warning."""
    recorded, found = json.loads(RECORDED.read_text()), signatures()
    early = gone_too_early(recorded, found, kgctl.__version__)
    if early:
        raise SystemExit(f"not deprecated in an earlier minor version (kgctl._DEPRECATED): {', '.join(early)}")
    RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def simulate() -> Any:
    from kgctl.library.simulation import simulate as function

    return function


def members(value: type) -> dict[str, str]:
    if issubclass(value, Enum):
        names = {member.name: str(member.value) for member in value}
        return {**names, **{name: "property" for name, member in vars(value).items() if isinstance(member, property)}}
    callables = {name: member for name, member in inspect.getmembers(value, callable) if not name.startswith("_")}
    if issubclass(value, dict):
        callables = {name: member for name, member in callables.items() if name in vars(value)}
    makers = [vars(one)["__init__"] for one in own_classes(value) if "__init__" in vars(one)]
    own = {"__init__": makers[0]} if makers else {}
    properties = {name: "property" for name, _ in inspect.getmembers(value, inspect.isdatadescriptor) if not name.startswith("_")}
    return {**properties, **{name: str(inspect.signature(member)) for name, member in {**own, **callables}.items()}}


def is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, KgctlError)


def test_signatures_are_as_recorded() -> None:
    """What differs is a change for users: a new name, a deprecation, or a new major version. Record it on purpose.

    ``python -m tests.library.test_public`` writes the file.
    """
    found, recorded = signatures(), json.loads(RECORDED.read_text())
    assert set(recorded.pop("errors")) <= set(found.pop("errors"))  # a new kind of error breaks nobody
    assert found == recorded


@pytest.mark.parametrize(
    ("deprecated", "version", "early"),
    [
        ({}, "0.2.0", ["old", "Kept.old"]),
        ({"old": "0.2.0"}, "0.2.3", ["old", "Kept.old"]),
        ({"old": "0.1.4", "Kept.old": "0.2.0"}, "0.2.0", ["Kept.old"]),
        ({"old": "0.9.0", "Kept.old": "0.9.0"}, "1.0.0", []),
    ],
)
def test_a_public_name_goes_only_after_a_minor_version_that_deprecated_it(
    deprecated: dict[str, str], version: str, early: list[str]
) -> None:
    recorded = {"old": "()", "Kept": {"old": "()", "new": "()"}, "deprecated": deprecated}
    assert gone_too_early(recorded, {"Kept": {"new": "()"}, "deprecated": {}}, version) == early


def test_a_deprecated_name_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kgctl._DEPRECATED, "Assigned", ("0.2.0", "use assign"))
    monkeypatch.delitem(vars(kgctl), "Assigned", raising=False)
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match=r"kgctl\.Assigned is deprecated since 0\.2\.0: use assign"):
            assert kgctl.Assigned.__name__ == "Assigned"


def test_every_public_name_is_in_the_reference() -> None:
    described = {SHOWN_AS.get(path, path).removeprefix("kgctl.") for paths in REFERENCE.values() for path in paths}
    results = {f"results.{name}" for name in kgctl.results.__all__}
    testing = {f"testing.{name}" for name in kgctl.testing.__all__}
    assert described == {*kgctl.__all__, *results, *testing, "errors"} - {"__version__"}


def test_every_public_name_is_documented() -> None:
    undocumented = [name for name in kgctl.__all__ if name != "__version__" and not inspect.getdoc(getattr(kgctl, name))]
    undocumented += [name for name in kgctl.testing.__all__ if not inspect.getdoc(getattr(kgctl.testing, name))]
    undocumented += [name for name in kgctl.results.__all__ if not inspect.getdoc(getattr(kgctl.results, name))]
    assert undocumented == []


def test_importing_kgctl_is_light() -> None:
    heavy = ("asyncio", "yaml", "pydantic", "confluent_kafka", "pyarrow", "rich", "typer", "sqlite3", "re2")
    script = f"import sys, kgctl; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'asign'"):
        getattr(kgctl, "asi" + "gn")


def test_assign_answers_as_kafka_does_and_says_what_moved() -> None:
    found = kgctl.assign("sticky", topics={"o": 4}, members=["a", "b"], previous={"a": {"o": [0, 1, 2]}, "c": {"o": [3]}})
    assert found == kgctl.Assigned({"a": {"o": (0, 1)}, "b": {"o": (2, 3)}}, moved=1, moves_needed=1, unassigned=0, spread=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"assignor": "stiky"}, "did you mean sticky"),
        ({"topics": {"o": 0}}, "at least one partition"),
        ({"members": []}, "needs members"),
    ],
)
def test_assign_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kgctl.assign(**{"assignor": "range", "topics": {"o": 1}, "members": ["a"], **arguments})


class Everything:
    """An assignor of one's own that gives all to everybody."""

    name = "everything"

    def assign(self, group: Any) -> dict[str, Any]:
        return {member.member_id: {"o": [0]} for member in group.members}


def test_an_assignor_of_ones_own_is_held_to_the_rules() -> None:
    with pytest.raises(InvariantViolation):
        kgctl.assign(f"{__name__}:Everything", topics={"o": 1}, members=["a", "b"])


SCENARIO = {
    "kgctl": 1,
    "name": "crash",
    "topics": {"orders": 4},
    "members": {"app": {"count": 2}},
    "events": [{"at": "0s", "crash": "app"}, {"at": "10s", "start": "app"}],
    "duration": "2m",
    "expect": ["double_owned == 0"],
}


def test_simulate_takes_a_document_and_repeats_itself() -> None:
    first, second = (kgctl.simulate(SCENARIO, seed=3) for _ in range(2))
    assert first == second
    assert [each.passed for each in first.expectations] == [True]
    assert first.passed
    again = first.run()
    assert again.recording.seed == first.seeds[0]
    assert again.events == first.run(seed=first.seeds[0]).events != ()
    with pytest.raises(NotFoundError, match="there is no variant 'b'; known: default"):
        first.run("b")
    other = kgctl.simulate(SCENARIO, seed=3, settings={"members.app.count": 1})
    assert other.digest != first.digest


def test_simulate_names_what_is_wrong() -> None:
    with pytest.raises(UsageError, match=r"events\[0\]: .*|events\[0\]\.kill: unknown kind"):
        kgctl.simulate({**SCENARIO, "events": [{"at": "0s", "kill": "app"}]})


def test_connect_needs_one_cluster() -> None:
    with pytest.raises(UsageError, match="name one cluster"):
        kgctl.connect()
    with kgctl.testing.EmbeddedServer({"orders": 1}) as cluster, kgctl.connect(cluster.bootstrap) as admin:
        assert admin.list_topics(["orders"]) == {"orders": 1}


if __name__ == "__main__":
    record()
