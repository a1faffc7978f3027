"""Data files: on disk before a commit names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import DataFile
from tests.support.pipeline.warehouses import built, collected


def test_files_and_their_folders_are_on_disk_before_a_commit_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[Path] = set()
    named: list[Path] = []
    fsync, commit = os.fsync, Table.commit

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        synced.add(Path(f"/proc/self/fd/{descriptor}").readlink())

    def checked(table: Table, files: Sequence[DataFile], *given: Any, **others: Any) -> bool:
        paths = [Path(table.location.child(table.name)) / file.path for file in files]
        assert {*paths, *(folder for path in paths for folder in list(path.parents)[:3])} <= synced
        named.extend(paths)
        return commit(table, files, *given, **others)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Table, "commit", checked)
    assert built(collected(tmp_path / "w")).failed == []
    assert len(named) > 15
