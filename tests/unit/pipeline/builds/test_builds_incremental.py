"""Builds that go on from state: whatever the cut of a history into builds, the rows are those of one build."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kgctl.pipeline.builds import cut, fold, run
from kgctl.pipeline.builds.carry import SCHEMAS, bytes_of, of_bytes
from kgctl.pipeline.builds.step import StepInput, StepMade, step
from kgctl.pipeline.store.files import is_provisional
from kgctl.pipeline.store.states import SLICE, named, packed, read_state, unpacked
from kgctl.pipeline.store.tables import LOG_OFFSETS
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.tables.replay import played_back
from tests.benchmarks.pipeline.build_work import samples
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.any_history import any_history, built_in_pieces
from tests.support.pipeline.generated_log import START_MS, Size, generated_log
from tests.support.pipeline.history_of import commit, commits, members, raw
from tests.support.pipeline.logs import raw_log
from tests.support.pipeline.warehouses import (
    LOG,
    SAMPLES,
    add,
    built,
    built_whole,
    collected,
    data_files,
    rows_of,
    tables_of,
    tables_of_whole,
)


def raw_of_one(part: pa.Table) -> pa.Table:
    """The last record of a part once more, behind its end."""
    last = part.slice(part.num_rows - 1)
    return last.set_column(1, last.schema.field(1), pc.add(last.column("offset"), 1))


@functools.cache
def long_log() -> list[pa.Table]:
    """More records than fit into a few slices."""
    return raw_log(10)


RARE = SAMPLES.filter(pa.array([row % 2 == 0 for row in range(SAMPLES.num_rows)]))


def _is_as_one(folder: Path, seed: int) -> Counter[str]:
    history = any_history(seed)
    whole = collected(folder / "whole", history.parts, history.samples)
    assert built(whole).failed == []
    pieces, late = built_in_pieces(folder / "pieces", history, seed)
    expected, found = tables_of(whole), tables_of(pieces)
    for name, rows in expected.items():
        assert found[name] == rows, f"seed {seed}: {name}"
    return late


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.deep) for seed in (0, 2, 3))])
def test_any_cut_into_builds_gives_the_rows_of_one(tmp_path: Path, seed: int) -> None:
    _is_as_one(tmp_path, seed)


@pytest.mark.deep
def test_any_of_many_cuts_into_builds_gives_the_rows_of_one(tmp_path: Path) -> None:
    late = sum((_is_as_one(tmp_path / str(seed), seed) for seed in range(1_000, 1_100)), Counter[str]())
    assert len(late) > 2, "some of these histories come late in every way that no earlier state helps against"


@pytest.mark.deep
def test_more_slices_than_before_go_on_from_the_same_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = raw_of_one(long_log()[0])
    expected = collected(tmp_path / "whole", long_log(), RARE)
    built(expected)
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in long_log()], RARE)
    assert built(warehouse).late == {}
    monkeypatch.setattr(cut, "PORTION_ROWS", 40)
    for part in long_log():
        add(warehouse, "c1", part.slice(30))

    result = built(warehouse, jobs=2)

    assert (result.built, result.late) == (1, {})
    assert tables_of(warehouse) == tables_of(expected)
    assert len(warehouse.table("state").files()) > 4
    monkeypatch.setattr(cut, "PORTION_ROWS", 10_000)
    add(warehouse, "c1", later)
    add(expected, "c1", later)
    assert (built(warehouse).late, built(expected).late) == ({}, {})
    assert tables_of(warehouse) == tables_of(expected)
    assert len(warehouse.table("state").files()) == 2, "one slice, and what is of the cluster"


def test_a_step_that_others_follow_knows_nothing_of_who_came_after_its_horizon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first build has rows of series whose first commit a step of the second one leaves to the last."""
    monkeypatch.setattr(cut, "PORTION_ROWS", 40)
    for records in (20, 35, 50):
        warehouse = collected(tmp_path / str(records), [part.slice(0, records) for part in LOG])
        built(warehouse)
        for part in LOG:
            add(warehouse, "c1", part.slice(records))
        result = built(warehouse)
        assert (result.built, result.failed, result.late) == (1, [], {})
        assert tables_of(warehouse) == tables_of_whole()


def test_a_build_reads_what_is_new_alone(tmp_path: Path) -> None:
    """Old files of records and of tables are cut off: a build that opened one of them would fail."""
    expected = collected(tmp_path / "whole", long_log(), RARE)
    built(expected)
    warehouse = collected(tmp_path / "w", [part.slice(0, part.num_rows - 20) for part in long_log()], RARE)
    built(warehouse)
    whole = {path: path.read_bytes() for name in ("records", "samples", "lag", "resets") for path in data_files(warehouse, name)}
    for path in whole:
        path.write_bytes(b"PAR1")
    for part in long_log():
        add(warehouse, "c1", part.slice(part.num_rows - 20))

    result = built(warehouse)

    assert (result.failed, result.late, result.decoded) == ([], {}, 20 * len(long_log()))
    for path, data in whole.items():
        path.write_bytes(data)
    assert tables_of(warehouse) == tables_of(expected)


def test_late_records_are_told_and_built(tmp_path: Path) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w", [LOG[0], *(part.slice(40) for part in LOG[1:])])
    built(warehouse)
    for part in LOG[1:]:
        add(warehouse, "c1", part.slice(0, 40))

    why = "records came late, as of __consumer_offsets-1: the tables of 4 partitions of __consumer_offsets were made anew"
    assert built(warehouse).late == {"c1": [why]}
    assert tables_of(warehouse) == expected


def test_steps_in_an_empty_group_are_counted_on_from_build_to_build(tmp_path: Path) -> None:
    """A reader is known by many steps forward in a row, wherever a build ends."""
    steps = [*range(1, 25), 3, *range(4, 30)]
    records = [(0, members(1, 1)), *commits((1_000, 0)), (2_000, members(0, 2))]
    log = raw([*records, *((60_000 + number * 20_000, commit(offset)) for number, offset in enumerate(steps))])
    whole, pieces = collected(tmp_path / "whole", [log]), Warehouse.create(tmp_path / "pieces")
    built(whole)
    pieces.add_samples("c1", SAMPLES)
    for low in range(0, log.num_rows, 5):
        add(pieces, "c1", log.slice(low, 5))
        built(pieces)

    expected = [*range(1, 21), 3, *range(4, 24)]
    assert sorted(row["offset_after"] for row in rows_of(whole, "resets")) == sorted(expected)
    assert tables_of(pieces) == tables_of(whole)


def test_what_is_settled_is_not_written_again(tmp_path: Path) -> None:
    size = Size(4_000, groups=4, topics=1, partitions=2, interval_ms=400)
    log = generated_log(0, size)
    warehouse = collected(tmp_path / "w", [log.slice(0, 3_900)], SAMPLES.slice(0, 0))
    built(warehouse)
    before = {file.path for file in warehouse.table("lag").files() if not is_provisional(file)}
    add(warehouse, "c1", log.slice(3_900))

    result = built(warehouse)

    after = warehouse.table("lag").files()
    written = sum(each.written for each in result.tables if each.table == "lag")
    assert before <= {file.path for file in after}
    assert written < 1_000 < sum(file.rows for file in after)
    assert log.column("timestamp_ms")[0].as_py() >= START_MS


KILLED = """
import os, signal, sys
from kgctl.pipeline.store.delta import Table
from tests.support.pipeline.warehouses import Warehouse, built
commit, left = Table.commit, int(sys.argv[2])

def counted(*given, **named):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return commit(*given, **named)

Table.commit = counted
built(Warehouse.open(sys.argv[1]))
"""


@pytest.mark.parametrize("last", [5, *(pytest.param(number, marks=pytest.mark.deep) for number in (0, 1, 2, 8, 9, 10, 11))])
def test_a_killed_build_is_ended_by_the_next(tmp_path: Path, last: int) -> None:
    expected = tables_of_whole()
    warehouse = collected(tmp_path / "w", [part.slice(0, 30) for part in LOG])
    built(warehouse)
    for part in LOG:
        add(warehouse, "c1", part.slice(30))

    line = [sys.executable, "-c", KILLED, str(tmp_path / "w"), str(last)]
    ended = subprocess.run(line, check=False, env=os.environ, timeout=PATIENCE_S)

    assert ended.returncode == -signal.SIGKILL
    assert built(warehouse).failed == []
    assert tables_of(warehouse) == expected


@pytest.mark.parametrize("seed", [1, 10, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 20) if seed != 10)])
def test_a_build_in_many_steps_gives_the_rows_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    history = any_history(seed)
    whole, stepped = (collected(tmp_path / name, history.parts, history.samples) for name in ("whole", "stepped"))
    built(whole)
    monkeypatch.setattr(cut, "PORTION_ROWS", 15)
    monkeypatch.setattr(fold, "STEP_POINTS", 1)

    assert built(stepped).failed == []
    assert tables_of(stepped) == tables_of(whole)


def test_the_steps_of_a_build_make_no_row_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a later step makes, because it may still change, is left to it."""
    made: list[StepMade] = []

    def noted(given: StepInput) -> StepMade:
        made.append(step(given))
        return made[-1]

    monkeypatch.setattr(fold, "step", noted)
    monkeypatch.setattr(cut, "PORTION_ROWS", 1_000)
    warehouse = collected(tmp_path / "w", [generated_log(0, Size(4_000, groups=4, topics=1, partitions=2, interval_ms=50))])
    built(warehouse)

    tables = [found["commit_rate"] for each in made for found in (each.tables, each.provisional)]
    assert len(made) > 3
    assert sum(pc.sum(each.column("commits")).as_py() or 0 for each in tables) == sum(
        row["commits"] for row in rows_of(warehouse, "commit_rate")
    )


class Death(BaseException):
    """Ends everything; nobody catches it."""


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
def test_a_build_that_dies_goes_on_from_its_last_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_first: bool) -> None:
    """Records that it had kept are not read again."""
    size = Size(2_000, groups=4, topics=1, partitions=2, interval_ms=400)
    log = generated_log(0, size)
    expected, warehouse = (collected(tmp_path / name, [log], SAMPLES.slice(0, 0)) for name in ("whole", "w"))
    built(expected)
    if not is_first:
        warehouse = collected(tmp_path / "second", [log.slice(0, 500)], SAMPLES.slice(0, 0))
        built(warehouse)
        add(warehouse, "c1", log.slice(500))
    monkeypatch.setattr(cut, "PORTION_ROWS", 100)
    seen: list[run.Progress] = []

    def noted(progress: run.Progress) -> None:
        seen.append(progress)
        if len(seen) == 8:
            raise Death

    with pytest.raises(Death):
        built(warehouse, on_progress=noted, step_records=300)
    add(warehouse, "c1", raw_of_one(log))
    add(expected, "c1", raw_of_one(log))
    assert built(warehouse, on_progress=noted).failed == []

    built(expected)
    assert (seen[7].records, seen[8].records, seen[8].of_records) == (800, 700, 2_000 if is_first else 1_500)
    assert tables_of(warehouse) == tables_of(expected)
    kept = [file.path for file in warehouse.table("state").files() if "progress" in file.path]
    assert kept == [], "nothing is kept of a build that has ended"


def test_a_step_leaves_the_same_rows_behind_whatever_is_in_its_memory(tmp_path: Path) -> None:
    """The state of a slice is written and read again without a loss."""
    warehouse = built_whole(tmp_path / "w")
    files = named(warehouse.table("state").files("c1"), SLICE)
    assert files
    for file in files:
        data = read_state(warehouse.location, file.path)
        state = of_bytes(data)
        again = of_bytes(bytes_of(state))
        assert again.sampled_ms == state.sampled_ms
        assert all(again.table(name).equals(state.table(name)) for name in SCHEMAS)
        topics = [unpacked(data)[1][name].column("topic") for name in ("samples", "raw samples")]
        assert {column.type for column in topics} == {pa.string()}, "an older version reads them as they were"


def test_a_build_looks_no_sample_up_of_a_commit_that_stood_when_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old samples tell when the log's end left that commit behind; a later commit of the series is there already."""
    looked_up: list[object] = []
    plain = fold._Samples.of_topics

    def noted(self: fold._Samples, topics: Sequence[str], to_ms: int) -> pa.Table:
        looked_up.append(topics)
        return plain(self, topics, to_ms)

    monkeypatch.setattr(fold._Samples, "of_topics", noted)
    times = [60_000, *range(1_200_000, 1_320_000, 10_000)]
    log = raw([(time_ms, commit(600 if time_ms == 60_000 else time_ms // 100)) for time_ms in times])
    sampled = [
        {"topic": "t", "partition": 0, "timestamp_ms": at, "log_end_offset": at // 100} for at in range(0, 1_400_000, 10_000)
    ]
    samples = pa.Table.from_pylist(sampled, schema=LOG_OFFSETS)
    is_first = pc.less(samples.column("timestamp_ms"), 1_250_000)
    warehouse = collected(tmp_path / "w", [log.slice(0, 5)], samples.filter(is_first))
    built(warehouse)
    add(warehouse, "c1", log.slice(5))
    warehouse.add_samples("c1", samples.filter(pc.invert(is_first)))
    built(warehouse)

    assert looked_up == []
    expected = collected(tmp_path / "whole", [log], samples)
    built(expected)
    assert tables_of(warehouse) == tables_of(expected)


def test_a_group_that_waits_for_a_topics_name_is_played_back_when_it_is_told_one() -> None:
    states = pa.table({"group": ["told", "waits", "idle"], "state": ["", "", ""], "is_waiting": [True, True, False]})
    records = pa.table({"group": ["new"]})

    assert played_back(records, states, {"told", "idle"}) == {"new", "told"}


def test_states_whose_columns_stand_in_another_order_are_read() -> None:
    """As earlier versions wrote them."""
    turned = {name: schema.empty_table().select(schema.names[::-1]) for name, schema in SCHEMAS.items()}
    found = of_bytes(packed({"sampled_ms": 3}, turned))
    assert {name: table.schema for name, table in found.tables.items()} == dict(SCHEMAS)
    assert found.sampled_ms == 3


def test_a_step_goes_on_from_the_last_window_where_it_is_known_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes of one series, a thousand commits a minute: no step has those of four minutes before it."""
    monkeypatch.setattr(cut, "PORTION_ROWS", 1_000)
    log = generated_log(0, Size(10_000, groups=1, topics=1, partitions=1, interval_ms=60))
    carried = []

    def noted(given: StepInput) -> StepMade:
        carried.append(given.before.table("entries").num_rows)
        return step(given)

    monkeypatch.setattr(fold, "step", noted)
    parts = [log.slice(at, 1_000) for at in range(0, 10_000, 1_000)]
    built(collected(tmp_path / "w", parts, samples(Size(10_000, partitions=1, interval_ms=60))))

    assert len(carried) == 10
    assert max(carried) < 1_100


def test_a_slice_goes_on_with_the_samples_of_its_own_topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with all of another one that its groups begin to read, of which it was given none."""
    topics, times = ("t", "u", "nobody reads it"), range(60_000, 1_260_000, 60_000)
    sampled = [
        {"topic": topic, "partition": 0, "timestamp_ms": at, "log_end_offset": at // 100}
        for at in range(0, 1_400_000, 10_000)
        for topic in topics
    ]
    samples = pa.Table.from_pylist(sampled, schema=LOG_OFFSETS)
    is_first = pc.less(samples.column("timestamp_ms"), 1_270_000)
    read_on = [(at, commit(1_000, "t", group="g1")) for at in range(1_265_000, 1_300_000, 5_000)]
    own = [[(at, commit(at // 100, topics[number], group=f"g{number}")) for at in times] for number in (0, 1)]
    logs = [raw(own[0]), raw([*own[1], *read_on], 1)]
    warehouse = collected(tmp_path / "w", [log.slice(0, len(times)) for log in logs], samples.filter(is_first))
    monkeypatch.setattr(cut, "PORTION_ROWS", 25)
    built(warehouse)

    files = named(warehouse.table("state").files("c1"), SLICE)
    states = [of_bytes(read_state(warehouse.location, file.path)).sampled for file in files]
    kept = [{*state.raw.column("topic").to_pylist(), *state.cleaned.column("topic").to_pylist()} for state in states]
    assert sorted(kept) == [{"t"}, {"u"}]

    add(warehouse, "c1", logs[1].slice(len(times)))
    warehouse.add_samples("c1", samples.filter(pc.invert(is_first)))
    monkeypatch.setattr(cut, "PORTION_ROWS", 5)
    assert built(warehouse).late == {}
    expected = collected(tmp_path / "whole", logs, samples)
    built(expected)
    assert tables_of(warehouse) == tables_of(expected)
    waited = [row["lag_ms"] for row in rows_of(warehouse, "lag") if (row["group"], row["topic"]) == ("g1", "t")]
    assert min(waited) == 1_165_000, "older samples tell when the log's end left the commit behind"
