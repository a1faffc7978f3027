"""Integration tests that other clients' projects wrote, unchanged, run on a server of ours: what passed and what did not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tests.repo.project import ROOT
from tests.support.machine import Unavailable, once
from tests.support.maven import cache_folder, cache_lock, digest

LOCK = ROOT / ".ci/requirements-dev.txt"
TIMEOUT_S = 420
_TOLD = 2_000

EXTERNAL_SERVICE = """\
class ExternalService:
    def __init__(self, *address): pass
    def open(self): pass
    close = stop = dump_logs = open
SpawnedService = None
"""
"""What kafka-python's sdist leaves out of its tests: a broker that runs already needs no more."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Names of tests, without their module's path, by how they ended."""

    passed: frozenset[str]
    failed: frozenset[str]
    skipped: frozenset[str]
    why: Mapping[str, str] = field(default_factory=dict)
    """The end of what pytest says of each test that failed."""


@once
def kafka_python_source() -> Path:
    """The folder of kafka-python's sdist of the locked version, fetched once. Raises `Unavailable`."""
    locked = re.search(r"^kafka-python==(\S+) \\\n(?: +--hash=\S+(?: \\)?\n)+", LOCK.read_text(), re.MULTILINE)
    assert locked is not None
    folder = cache_folder() / f"kafka-python-{digest(locked.group().encode(), EXTERNAL_SERVICE.encode())}"
    with cache_lock("kafka-python"):
        if not folder.exists():
            _fetch(locked.group(), folder)
    return folder / f"kafka_python-{locked[1]}"


_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Pythons before 3.11.4, as Debian 12 has one, cannot be told so; what is unpacked has the hash that is locked."""


def _fetch(requirement: str, folder: Path) -> None:
    part = folder.with_suffix(".part")
    part.mkdir(exist_ok=True)
    (part / "requirements.txt").write_text(requirement)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "kafka-python", "--require-hashes"]
    done = subprocess.run(
        [*pip, "--dest", str(part), "--requirement", str(part / "requirements.txt")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"kafka-python's source: {done.stderr.strip().splitlines()[-1:]}")
    (archive,) = part.glob("kafka_python-*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(part, **_SAFELY)
    tests = part / archive.name.removesuffix(".tar.gz") / "test"
    (tests / "__init__.py").touch()
    (tests / "service.py").write_text(EXTERNAL_SERVICE)
    part.rename(folder)


def run_kafka_python(bootstrap: str, folder: Path, version: str = "4.3", only: Collection[str] = ()) -> Outcomes:
    """Run the integration tests on a server, or these alone; those whose broker they would start themselves skip themselves."""
    source, report = kafka_python_source(), folder / "report.xml"
    (folder / "kafka").mkdir(exist_ok=True)
    variables = {"KAFKA_URI": f"kafka://{bootstrap}", "KAFKA_VERSION": version, "KAFKA_ROOT": str(folder / "kafka")}
    subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "test/integration",
                "--ignore=test/integration/test_ssl_integration.py",
                "-q",
                "-n0",
            ),
            *("-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "--timeout=60", f"--junitxml={report}"),
            *(("-k", " or ".join(name.partition("[")[0] for name in only)) if only else ()),
        ],
        cwd=source,
        env={**os.environ, **variables, "PYTHONPATH": str(source)},
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return outcomes_of(report)


def outcomes_of(report: Path, name_of: Callable[[Mapping[str, str]], str] = itemgetter("name")) -> Outcomes:
    """Read a report of pytest or JUnit; ``name_of`` names a test by its attributes."""
    found: dict[str, set[str]] = {"passed": set(), "failed": set(), "skipped": set()}
    why: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ended = {child.tag: child for child in case if child.tag in ("failure", "error", "skipped")}
        kind = "passed" if not ended else "skipped" if ended.keys() == {"skipped"} else "failed"
        name = name_of(case.attrib)
        found[kind].add(name)
        if kind == "failed":
            why[name] = "\n".join(child.text or child.attrib.get("message", "") for child in ended.values())[-_TOLD:]
    passed, failed, skipped = (frozenset(found[kind]) for kind in ("passed", "failed", "skipped"))
    return Outcomes(passed, failed, skipped, why)
