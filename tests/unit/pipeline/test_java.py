"""Which Java Spark is started with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kgctl.errors import UsageError
from kgctl.extras import install_line
from kgctl.pipeline.java import Java, find_java, read_java

_ALL = "java.base jdk.incubator.vector java.logging"


def java_home(folder: Path, version: str, *, modules: str = _ALL, says: str = "") -> Path:
    """A folder that looks like an installed Java; with ``says``, one without a release file, whose program tells."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{says}\" 2020-01-01' >&2\nprintf '<%s>' \"$@\"\n")
    program.chmod(0o755)
    if not says:
        text = f'IMPLEMENTOR="Test"\nJAVA_RUNTIME_VERSION="{version}+6"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n'
        (folder / "release").write_text(text)
    return folder


def test_java_home_comes_first_then_the_path_then_the_usual_folders(tmp_path: Path) -> None:
    named = java_home(tmp_path / "named", "21.0.1")
    on_path = java_home(tmp_path / "path", "17.0.2")
    usual = java_home(tmp_path / "jvm" / "java-25", "25.0.3")
    folders = [f"{tmp_path}/jvm/*"]
    variables = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert find_java(variables, folders=folders) == Java(named, 21, "Test 21.0.1+6")
    assert find_java({"PATH": variables["PATH"]}, folders=folders).home == on_path
    assert find_java({"PATH": ""}, folders=folders).home == usual


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "1.8.0_402")
    new = java_home(tmp_path / "jvm" / "new", "17.0.2")
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, folders=[f"{tmp_path}/jvm/*"]).home == new


def test_too_old_alone_is_named_with_what_to_install(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "11.0.22")
    with pytest.raises(UsageError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""}, folders=[], with_wheel=False)
    assert caught.value.message == (
        f"Spark needs Java 17 or later, and {old} is Java 11: apt-get install default-jre-headless, brew install openjdk, "
        f"or {install_line('java')} installs one"
    )


def test_none_at_all_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^Spark needs Java 17 or later, and none was found: apt-get install default-jre"):
        find_java({"JAVA_HOME": "/no/such/folder", "PATH": ""}, folders=["/no/such/jvm/*"], with_wheel=False)


def test_without_a_release_file_the_program_is_asked(tmp_path: Path) -> None:
    assert read_java(java_home(tmp_path / "a", "", says="17.0.9")) == Java(tmp_path / "a", 17, "17.0.9")
    assert read_java(java_home(tmp_path / "b", "", says="nothing of the kind")) is None
    assert read_java(tmp_path / "c") is None


def test_a_runtime_without_the_vector_module_is_started_without_it(tmp_path: Path) -> None:
    cut = java_home(tmp_path / "cut down", "21.0.8", modules="java.base java.logging")
    found = find_java({"JAVA_HOME": str(cut), "PATH": ""}, folders=[], wrappers=tmp_path / "cache")
    assert (found.version, found.lacks_vector, found.home.parent) == (21, True, tmp_path / "cache")
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dtext=two words", "Main"]
    said = subprocess.run([found.home / "bin" / "java", *words], capture_output=True, text=True, check=True)
    assert said.stdout == "<-Xmx1g><-Dtext=two words><Main>"
    assert find_java({"JAVA_HOME": str(cut), "PATH": ""}, folders=[], wrappers=tmp_path / "cache") == found


def test_the_program_without_words_gets_none(tmp_path: Path) -> None:
    cut = java_home(tmp_path / "cut", "21.0.8", modules="java.base")
    found = find_java({"JAVA_HOME": str(cut), "PATH": ""}, folders=[], wrappers=tmp_path / "cache")
    assert subprocess.run([found.home / "bin" / "java"], capture_output=True, text=True, check=True).stdout == "<>"
