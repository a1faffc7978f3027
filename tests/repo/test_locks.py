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
    "requirements-dev.txt": ("dev", "spark"),
    "requirements-html.txt": ("html",),
    "requirements-spark.txt": ("spark",),
}
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)")


@pytest.mark.parametrize("lock", LOCKS)
def test_lock_satisfies_pyproject(lock: str) -> None:
    pinned = pins(lock)
    wanted = requirements(LOCKS[lock])
    assert [str(want) for want in wanted if not satisfied(want, pinned)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = (ROOT / ".ci" / lock).read_text().replace("\\\n", " ").splitlines()
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_a_package_has_one_version_in_all_locks() -> None:
    base = pins("requirements.txt")
    differing = {
        (lock, name): versions
        for lock in LOCKS
        for name, versions in pins(lock).items()
        if name in base and versions != base[name]
    }  # fmt: skip
    assert differing == {}


def satisfied(want: Requirement, pinned: dict[str, set[Version]]) -> bool:
    versions = pinned.get(canonicalize_name(want.name), set())
    return bool(versions) and all(want.specifier.contains(version) for version in versions)


def requirements(extras: tuple[str, ...]) -> Iterator[Requirement]:
    project = pyproject()["project"]
    optional = project["optional-dependencies"]
    build = (ROOT / ".ci" / "build.in").read_text().split()
    for text in [*project["dependencies"], *build, *(text for extra in extras for text in optional[extra])]:
        yield Requirement(text)


def pins(lock: str) -> dict[str, set[Version]]:
    found: dict[str, set[Version]] = {}
    for line in (ROOT / ".ci" / lock).read_text().splitlines():
        if match := PIN.match(line):
            found.setdefault(canonicalize_name(match["name"]), set()).add(Version(match["version"]))
    return found


def test_build_needs_of_pyproject_are_locked() -> None:
    pinned = pins("requirements.txt")
    assert [text for text in pyproject()["build-system"]["requires"] if not satisfied(Requirement(text), pinned)] == []
