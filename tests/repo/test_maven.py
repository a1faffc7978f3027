"""Without Maven Central the Java parts are skipped with a reason, and fail where nothing may be missing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import maven
from tests.support.kafka.fixtures import java_or_skip

POM = "<project><!-- {} --></project>"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Java, an empty cache, and whatever a test puts into the folder of programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(maven, "find_java", lambda program="java": Path("/bin/true"))
    monkeypatch.setattr(maven, "_failures", {})
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
        with pytest.raises(
            maven.MavenUnavailable, match=r"Maven Central cannot be reached .*: Could not transfer artifact a:b:1$"
        ):
            maven.class_path(pom(tmp_path))
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_class_path_is_sorted_and_kept(machine: Path, tmp_path: Path) -> None:
    for jar in ("b.jar", "a.jar"):
        (tmp_path / jar).touch()
    script = f"""echo asked >> '{tmp_path}/asked'
for argument in "$@"; do case "$argument" in -Dmdep.outputFile=*) output="${{argument#*=}}";; esac; done
printf '%s' '{tmp_path}/b.jar:{tmp_path}/a.jar' > "$output" """
    program(machine, "mvn", script)
    for _ in range(2):
        maven._class_path.cache_clear()
        assert maven.class_path(pom(tmp_path)) == f"{tmp_path}/a.jar:{tmp_path}/b.jar"
    assert (tmp_path / "asked").read_text() == "asked\n"
    (tmp_path / "a.jar").unlink()
    maven._class_path.cache_clear()
    maven.class_path(pom(tmp_path))
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


def test_want_of_java_skips_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Maven"), java_or_skip():
        raise maven.MavenUnavailable("no Maven (mvn) on this machine")


def test_want_of_java_fails_where_nothing_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Maven"), java_or_skip():
        raise maven.MavenUnavailable("no Maven (mvn) on this machine")
