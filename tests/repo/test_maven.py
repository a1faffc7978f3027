"""A class path of Maven Central: asked for once, kept, and missed in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.machine import Unavailable
from tests.support.maven import asked_once, kept_class_path

POM = "<project><!-- {} --></project>"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Java, an empty cache, and whatever a test puts into the folder of programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return programs


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def pom(folder: Path) -> Path:
    path = folder / "pom.xml"
    path.write_text(POM.format(folder))
    return path


def test_unreachable_central_is_told_in_one_line_and_asked_once(machine: Path, tmp_path: Path) -> None:
    program(machine, "mvn", f"echo asked >> '{tmp_path}/asked'; echo '[ERROR] Could not transfer artifact a:b:1'; exit 1")
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"Maven Central cannot be reached .*: Could not transfer artifact a:b:1$"):
            asked_once(pom(tmp_path), "any")
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_class_path_is_sorted_and_kept(machine: Path, tmp_path: Path) -> None:
    for jar in ("b.jar", "a.jar"):
        (tmp_path / jar).touch()
    script = f"""echo asked >> '{tmp_path}/asked'
for argument in "$@"; do case "$argument" in -Dmdep.outputFile=*) output="${{argument#*=}}";; esac; done
printf '%s' '{tmp_path}/b.jar:{tmp_path}/a.jar' > "$output" """
    program(machine, "mvn", script)
    for _ in range(2):
        assert kept_class_path(pom(tmp_path), "any") == f"{tmp_path}/a.jar:{tmp_path}/b.jar"
    assert (tmp_path / "asked").read_text() == "asked\n"
    (tmp_path / "a.jar").unlink()
    kept_class_path(pom(tmp_path), "any")
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"
