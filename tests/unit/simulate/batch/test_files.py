"""Files that a run leaves behind."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin.embedded import open_embedded
from kgctl.errors import UsageError
from kgctl.model.groups import TopicPartition
from kgctl.simulate.batch.files import EventLines, OutputFiles, final_state, write_events
from kgctl.simulate.batch.plan import picture_of
from kgctl.simulate.metrics.result import run
from kgctl.simulate.recording.trace import Disowned, PodChanged
from kgctl.simulate.report.outcome import Mark
from kgctl.simulate.scenario.load import LoadedFile, Variant, load
from kgctl.simulate.scenario.vocabulary import PodChange
from kgctl.storage.folder import open_folder
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
    written = list(files.write(loaded(), failing()))

    assert written == [str(tmp_path / name) for name in names]
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert junit.read_text().startswith('<?xml version="1.0"')
    assert markdown.read_text().startswith("### ❌ tiny")
    assert json.loads(metrics.read_text())["scenario"] == "tiny"
    assert events.read_text().startswith('{"kind":"run","scenario":"tiny","variant":"default","seed":1}\n{"at_us":')
    with open_folder(records, create=False) as folder:
        assert next(iter(folder.record_log.read())).timestamp_ms >= 1_767_225_600_000
    with open_embedded(state) as admin:
        assert len(admin.describe_groups(["app"]).values["app"].members) == 2


def test_event_log_has_every_run(tmp_path: Path) -> None:
    list(OutputFiles(events=tmp_path / "events").write(loaded(TWO), failing()))

    runs = [line for line in (tmp_path / "events").read_text().splitlines() if '"kind":"run"' in line]

    assert runs == [
        f'{{"kind":"run","scenario":"tiny","variant":"{name}","seed":{seed}}}'
        for seed in (1, 2, 3)
        for name in ("eager", "other")
    ]


def test_summary_of_a_job_is_added_to(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")

    list(OutputFiles(markdown=summary, appended=(summary,)).write(loaded(), failing()))

    assert summary.read_text().startswith("before\n### ❌ tiny\n")


def test_nothing_asked_writes_nothing(tmp_path: Path) -> None:
    assert list(OutputFiles().write(loaded(), failing())) == []


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


CRASH = """
kgctl: 1
name: crash
question: How long are its partitions alone?
topics: {orders: 4}
group: {id: app, config: {partition.assignment.strategy: [cooperative-sticky]}}
members:
  app: {count: 2, rate: 1000/s}
traffic: {orders: 100/s}
warmup: 30s
events:
  - {at: 10s, crash: app/1, for: 1m}
duration: 2m
"""

STALL = """
kgctl: 1
name: stall
topics: {orders: 2}
group: {id: app, config: {max.poll.interval.ms: 10s, partition.assignment.strategy: [range]}}
members:
  app: {count: 2, rate: 1000/s}
warmup: 30s
events:
  - {at: 10s, pause_process: app/1, for: 60s}
duration: 2m
"""


def variant(text: str) -> Variant:
    return load(read_yaml(text, "test.yaml")).variants[0]


def test_lanes_cover_the_run_and_name_the_cause_of_each_gap() -> None:
    picture = picture_of(run(variant(CRASH).scenario, 1))

    assert [lane.name for lane in picture.lanes] == ["orders-0", "orders-1", "orders-2", "orders-3"]
    for lane in picture.lanes:
        times = [(each.from_us, each.to_us) for each in lane.segments]
        assert (times[0][0], times[-1][1]) == (0, 120_000_000)
        assert [end for _, end in times[:-1]] == [start for start, _ in times[1:]]
    gaps = [each for lane in picture.lanes for each in lane.segments if not each.owners and each.from_us == 10_000_000]
    assert [gap.cause for gap in gaps] == ["detection", "detection"]
    assert all(30_000_000 < gap.to_us - gap.from_us < 50_000_000 for gap in gaps)


def test_marks_are_events_and_processes_that_come_and_go() -> None:
    picture = picture_of(run(variant(CRASH).scenario, 1))

    assert picture.marks[:2] == (Mark(10_000_000, "crash app/1"), Mark(10_000_000, "app-1 goes"))
    assert [mark.text for mark in picture.marks[2:]] == ["crash app/1 ends", "app-1 starts"]


def test_records_wait_while_nobody_reads_and_are_caught_up_with() -> None:
    (series,) = picture_of(run(variant(CRASH).scenario, 1)).lag

    assert (series.topic, series.points[0], series.points[-1]) == ("orders", (0, 0.0), (120_000_000, 0.0))
    assert 2_250 < max(records for _, records in series.points) < 2_600


def test_frozen_owner_and_its_successor_are_both_shown() -> None:
    picture = picture_of(run(variant(STALL).scenario, 1))

    owners = {each.owners for lane in picture.lanes for each in lane.segments}

    assert {("app-0",), ("app-1",)} <= owners


def test_event_log_of_a_run_has_the_digest_of_its_lines() -> None:
    lines: list[str] = []

    write_events("crash", variant(CRASH), 3, lines.append)

    assert json.loads(lines[0]) == {"kind": "run", "scenario": "crash", "variant": "default", "seed": 3}
    assert sha256("".join(lines[1:]).encode()).hexdigest() == run(variant(CRASH).scenario, 3).digest


@pytest.mark.usefixtures("exact_warmup")
def test_final_state_has_the_ends_of_logs_by_the_traffic() -> None:
    state = final_state(variant(CRASH), 1, with_all_commits=False)

    assert state.end_offsets == {TopicPartition("orders", number): 25 * 150 for number in range(4)}
    assert state.topics["orders"].partition_count == 4
    assert {type(each.record.key).__name__ for _, each in state.records if hasattr(each.record, "key")} == {
        "GroupMetadataKey",
        "OffsetCommitKey",
    }


AUTOSCALE = """
kgctl: 1
name: autoscale
topics: {orders: 4}
members: {app: {count: 1, rate: 100/s, boot: 5s}}
traffic: {orders: {0s: 50/s, 30s: 300/s}}
autoscale: {members: app, target: 500, max: 4}
warmup: 30s
duration: 4m
"""


@pytest.mark.usefixtures("exact_warmup")
def test_an_autoscaler_is_drawn_with_what_it_saw_and_did() -> None:
    result = run(variant(AUTOSCALE).scenario, 1)
    picture = picture_of(result)
    (pods,) = picture.replicas
    assert (pods.members, pods.wanted[0], pods.wanted[-1][1]) == ("app", (0, 1), 4)
    assert [number for _, number in pods.running] == sorted(number for _, number in pods.running)
    assert pods.running[-1][1] == 4
    for at_us, number in pods.running[1:]:
        assert any(wanted >= number and asked_us < at_us for asked_us, wanted in pods.wanted)
    first = result.recording.history.scalings[0]
    assert f"app 1 to {first.replicas} (lag {first.value:,})" in [mark.text for mark in picture.marks]
    assert picture_of(run(variant(CRASH).scenario, 1)).replicas == ()


def test_each_run_is_named_before_its_events() -> None:
    lines: list[str] = []
    log = EventLines(lines.append)

    log.begin_run("crash", "eager", 7)
    log.on_trace(PodChanged(-5, "app-0", PodChange.BOOT))
    log.on_trace(Disowned(9, "app-0", "detection", ("t-0", "t-1")))
    log.on_step(9, None)

    assert "".join(lines) == (
        '{"kind":"run","scenario":"crash","variant":"eager","seed":7}\n'
        '{"at_us":-5,"kind":"pod","pod":"app-0","what":"boot"}\n'
        '{"at_us":9,"kind":"disown","pod":"app-0","cause":"detection","partitions":["t-0","t-1"]}\n'
    )
