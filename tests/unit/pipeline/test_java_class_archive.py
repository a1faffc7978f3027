"""When the archive of classes is used, when it is made, and when it is left alone."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from kgctl.pipeline.java import ClassArchive, Java, size_file

pytestmark = pytest.mark.needs("pyspark")

WHOLE = Java(Path("/java"), 17, "Test 17.0.1")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("KGCTL_SPARK_ARCHIVE", raising=False)


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines of processes that were to be started."""
    found: list[list[str]] = []
    monkeypatch.setattr("os.posix_spawn", lambda path, command, environment, **options: found.append(command))
    return found


def archive(content: bytes = b"classes", noted: int | None = None) -> ClassArchive:
    """One that is there."""
    made = ClassArchive.of(WHOLE)
    assert made.path is not None
    made.path.parent.mkdir(parents=True)
    made.path.write_bytes(content)
    size_file(made.path).write_text(str(len(content) if noted is None else noted))
    return made


def test_each_build_of_java_has_its_own(tmp_path: Path) -> None:
    paths = {
        ClassArchive.of(java).path
        for java in (WHOLE, Java(Path("/java"), 17, "Test 17.0.2"), Java(Path("/b"), 17, "Test 17.0.1"))
    }
    assert len(paths) == 3
    assert ClassArchive.of(WHOLE).path in paths
    assert all(path is not None and path.parent == tmp_path / "spark" for path in paths)


def test_a_whole_one_is_used() -> None:
    made = archive()
    assert made.java_options().startswith(f"-XX:SharedArchiveFile={made.path} -XX:+VerifySharedSpaces")


def test_none_half_a_one_and_one_without_a_note_are_not() -> None:
    assert ClassArchive.of(WHOLE).java_options() == ""
    made = archive(noted=1_000)
    assert made.java_options() == ""
    assert made.path is not None
    size_file(made.path).unlink()
    assert made.java_options() == ""


def test_it_can_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ClassArchive.of(Java(Path("/java"), 21, "Test 21", lacks_vector=True)) == ClassArchive(None)
    monkeypatch.setenv("KGCTL_SPARK_ARCHIVE", "off")
    assert ClassArchive.of(WHOLE) == ClassArchive(None)


def test_it_is_made_where_there_is_none(spawned: list[list[str]]) -> None:
    made = ClassArchive.of(WHOLE)
    made.make_in_background()
    assert [command[1:] for command in spawned] == [["-m", "kgctl.pipeline.java", str(made.path)]]


def test_it_is_not_made_where_it_is_or_is_being_made_or_has_failed_often(spawned: list[list[str]]) -> None:
    made = archive()
    made.make_in_background()
    assert made.path is not None
    made.discard()
    assert not made.path.exists()
    claim = made.path.with_suffix(".claim")
    with claim.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        made.make_in_background()
    claim.write_text("111")
    made.make_in_background()
    ClassArchive(None).make_in_background()
    assert spawned == []


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spawned: list[list[str]]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KGCTL_CACHE_DIR", str(tmp_path / "file"))
    ClassArchive.of(WHOLE).make_in_background()
    assert spawned == []
