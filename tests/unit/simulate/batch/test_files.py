"""Files that a run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin.embedded import open_embedded
from kgctl.errors import UsageError
from kgctl.simulate.batch.files import OutputFiles
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.storage.folder import DataFolder
from kgctl.yaml_files import read_yaml
from tests.support.simulate.outcomes import failing

SCENARIO = """
kgctl: 1
name: tiny
topics: {orders: 2}
group: {id: app}
members: {app: {count: 2}}
traffic: {orders: 10/s}
duration: 1m
"""
TWO = SCENARIO + "variants: {eager: {}, other: {warmup: 1s}}\n"


def loaded(text: str = SCENARIO) -> LoadedFile:
    return load(read_yaml(text, "tiny.yaml"))


def test_every_file_that_was_asked_for_is_written(tmp_path: Path) -> None:
    names = ("html", "junit", "markdown", "metrics", "events", "records", "state")
    html, junit, markdown, metrics, events, records, state = (tmp_path / name for name in names)
    files = OutputFiles(html=html, junit=junit, markdown=markdown, metrics=metrics, events=events, records=records, state=state)

    files.check(loaded())
    written = files.write(loaded(), failing())

    assert written == [str(tmp_path / name) for name in names]
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert junit.read_text().startswith('<?xml version="1.0"')
    assert markdown.read_text().startswith("### ❌ tiny")
    assert json.loads(metrics.read_text())["scenario"] == "tiny"
    assert events.read_text().startswith('{"kind":"run","scenario":"tiny","variant":"default","seed":1}\n{"at_us":')
    with DataFolder.open(records, create=False) as folder:
        assert next(iter(folder.record_log.read())).timestamp_ms >= 1_767_225_600_000
    with open_embedded(state) as admin:
        assert len(admin.describe_groups(["app"]).values["app"].members) == 2


def test_event_log_has_every_run(tmp_path: Path) -> None:
    OutputFiles(events=tmp_path / "events").write(loaded(TWO), failing())

    runs = [line for line in (tmp_path / "events").read_text().splitlines() if '"kind":"run"' in line]

    assert runs == [
        f'{{"kind":"run","scenario":"tiny","variant":"{name}","seed":{seed}}}'
        for seed in (1, 2, 3)
        for name in ("eager", "other")
    ]


def test_summary_of_a_job_is_added_to(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")

    OutputFiles(markdown=summary, appended=(summary,)).write(loaded(), failing())

    assert summary.read_text().startswith("before\n### ❌ tiny\n")


def test_nothing_asked_writes_nothing(tmp_path: Path) -> None:
    assert OutputFiles().write(loaded(), failing()) == []


@pytest.mark.parametrize(
    ("given", "text", "message"),
    [
        ({"junit": "."}, SCENARIO, " is a folder; name a file"),
        ({"html": "no/where.html"}, SCENARIO, "where.html: there is no folder "),
        ({"html": "x", "junit": "x"}, SCENARIO, "x: each output needs a file of its own"),
        ({"records": "full"}, SCENARIO, "full is not empty: name a new folder"),
        ({"state": "new"}, TWO, "--state-out is for one run: add --variant, one of eager, other"),
        ({"records": "new", "state": "new"}, SCENARIO, "--records-out and --state-out need a folder each"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_run(
    tmp_path: Path, given: dict[str, str], text: str, message: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    paths: dict[str, Any] = {name: tmp_path / path for name, path in given.items()}

    with pytest.raises(UsageError) as refused:
        OutputFiles(**paths).check(loaded(text))

    assert message in refused.value.message
