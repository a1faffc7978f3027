"""The locks hold what pyproject.toml asks for, with hashes, and say nothing of where they were made."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.repo.project import ROOT, pyproject

LOCKS = {
    "requirements.txt": (),
    "requirements-history.txt": ("history",),
    "requirements-dev.txt": (
        "test",
        "lint",
        "html",
        "top",
        "metrics",
        "zookeeper",
        "zookeeper-sasl",
        "msk",
        "keyring",
        "testing",
    ),
    "requirements-spark.txt": ("spark", "connect"),
    "requirements-ci.txt": ("deep", "release"),
}
"""Each has what these groups and extras of pyproject.toml ask for, beyond what those before it have."""
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)")


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_satisfies_pyproject(lock: str) -> None:
    before = list(LOCKS)[: list(LOCKS).index(lock)]
    pinned: dict[str, set[Version]] = {}
    for each in (*before, lock):
        pinned = {**pinned, **pins(each)}
    wanted = [*asked_for(LOCKS[lock]), *kgctls_own()]
    assert [str(want) for want in wanted if not satisfied(want, pinned)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = (ROOT / ".ci" / lock).read_text().replace("\\\n", " ").splitlines()
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_a_package_has_one_version_in_all_locks() -> None:
    """Each Python and platform has its own, which the locks agree on."""
    found: dict[str, set[frozenset[Version]]] = {}
    for lock in LOCKS:
        for name, versions in pins(lock).items():
            found.setdefault(name, set()).add(frozenset(versions))
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}


def test_no_lock_repeats_what_is_installed_before_it() -> None:
    before = {"history": [""], "dev": ["", "-history"], "spark": ["", "-history"], "ci": ["", "-history", "-dev"]}
    for lock, others in before.items():
        assert not pinned_lines(f"-{lock}") & set().union(*map(pinned_lines, others)), lock


def pinned_lines(lock: str) -> set[str]:
    return {line for line in (ROOT / ".ci" / f"requirements{lock}.txt").read_text().splitlines() if PIN.match(line)}


def test_every_extra_is_locked() -> None:
    extras = pyproject()["project"]["optional-dependencies"].keys()
    assert extras - set().union(*LOCKS.values()) == {"java"}, "which no test needs: .ci/tools brings a Java"


def satisfied(want: Requirement, pinned: dict[str, set[Version]]) -> bool:
    versions = pinned.get(canonicalize_name(want.name), set())
    return bool(versions) and all(want.specifier.contains(version) for version in versions)


def kgctls_own() -> Iterator[Requirement]:
    build = (ROOT / ".ci" / "build.in").read_text().split()
    yield from map(Requirement, [*pyproject()["project"]["dependencies"], *build])


def asked_for(names: tuple[str, ...]) -> Iterator[Requirement]:
    """What extras and groups ask for, those that they name included."""
    sets = {**pyproject()["project"]["optional-dependencies"], **pyproject()["dependency-groups"]}
    for text in (text for name in names for text in sets[name]):
        want = Requirement(text)
        if want.name == "kgctl":
            yield from asked_for(tuple(want.extras))
        else:
            yield want


def pins(lock: str) -> dict[str, set[Version]]:
    found: dict[str, set[Version]] = {}
    for line in (ROOT / ".ci" / lock).read_text().splitlines():
        if match := PIN.match(line):
            found.setdefault(canonicalize_name(match["name"]), set()).add(Version(match["version"]))
    return found


def test_build_needs_of_pyproject_are_locked() -> None:
    pinned = pins("requirements.txt")
    assert [text for text in pyproject()["build-system"]["requires"] if not satisfied(Requirement(text), pinned)] == []
