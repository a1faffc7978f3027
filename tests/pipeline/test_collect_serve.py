"""``kgctl history collect`` as a process, beside ``kgctl serve``: until it is told to end, and from where it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin.librdkafka import produce
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import StoreLocation
from kgctl.pipeline.store.tables import RAW, conform, from_stored
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.kafka.kgctl import run_kgctl
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.pipeline.segments import segment
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.interop

OFFSET_COMMIT = 8
STOPPING = """\
import sys
from kgctl.cli.app import run_process
from kgctl.pipeline.collect import at_rest
name, times = sys.argv[1], int(sys.argv[2])
step = getattr(at_rest, name)
def stopping(*arguments):
    global times
    times -= 1
    if not times:
        print("here", flush=True)
        sys.stdin.read()
    return step(*arguments)
setattr(at_rest, name, stopping)
raise SystemExit(run_process(sys.argv[3:]))
"""
"""A command that waits to be killed, in the so-and-so-manieth call of a step."""


def commit(raw: RawClient, offset: int) -> None:
    entry = {"partition_index": 1, "committed_offset": offset, "committed_metadata": "m", "committed_leader_epoch": 0}
    body = raw.call(OFFSET_COMMIT, 8, {"group_id": "payments", "topics": [{"name": "orders", "partitions": [entry]}]})
    assert int(body.topics[0].partitions[0].error_code) == 0


def records(warehouse: Path) -> Any:
    return conform(from_stored("records", Warehouse.open(warehouse).table("records").rows()), RAW).sort_by("offset")


def samples(warehouse: Path) -> int:
    """How many samples there are."""
    return int(Table(StoreLocation(str(warehouse)), "samples").rows().num_rows)


def start(bootstrap: str, warehouse: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kgctl", "--bootstrap-server", bootstrap, "history", "collect"]
    options = ["--warehouse", str(warehouse), "--sample-every", "1s", "-o", "json"]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.deep)])
def test_it_runs_until_it_is_told_to_end_and_all_is_written(kgctl_serve: ServeFactory, tmp_path: Path, number: int) -> None:
    server = kgctl_serve(topics={"orders": 2}, data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw:
        commit(raw, 1)
        collecting = start(server.bootstrap, tmp_path / "w")
        try:
            wait_until(lambda: samples(tmp_path / "w") > 0, "a sample")
            commit(raw, 2)
            begun = samples(tmp_path / "w")
            wait_until(lambda: samples(tmp_path / "w") > begun + 4, "a round of samples that began after the commit")
            collecting.send_signal(number)
            out, err = collecting.communicate(timeout=PATIENCE_S)
        finally:
            collecting.kill()
            collecting.communicate()
        assert (collecting.returncode, json.loads(out)["status"]) == (0, "ok"), err
        assert records(tmp_path / "w").num_rows == 2
        commit(raw, 3)
    again = run_kgctl(server.bootstrap, "history", "collect", "--once", "--warehouse", str(tmp_path / "w"))
    assert [(row["records"], row["known"]) for row in again.data] == [(1, 0)]
    by_folder = run_kgctl(
        "unused:1", "history", "collect", "--record-log", str(tmp_path / "data"), "--warehouse", str(tmp_path / "f")
    )
    assert [row["records"] for row in by_folder.data] == [3]
    assert records(tmp_path / "f").equals(records(tmp_path / "w"))


def test_a_killed_collection_loses_nothing(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 2})
    with RawClient(server.bootstrap) as raw:
        for offset in range(5):
            commit(raw, offset)
        collecting = start(server.bootstrap, tmp_path / "w")
        wait_until(lambda: samples(tmp_path / "w") > 0, "a sample")
        collecting.kill()
        collecting.communicate()
    run_kgctl(server.bootstrap, "history", "collect", "--once", "--warehouse", str(tmp_path / "w"))
    assert sorted(records(tmp_path / "w").column("offset").to_pylist()) == list(range(5))


def test_a_server_that_starts_again_is_waited_for(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 2}, data=tmp_path / "data")
    with RawClient(server.bootstrap) as raw:
        commit(raw, 1)
    collecting = start(server.bootstrap, tmp_path / "w")
    try:
        wait_until(lambda: samples(tmp_path / "w") > 0, "a sample")
        server.kill()
        server = kgctl_serve(data=tmp_path / "data", listen=server.bootstrap)
        with RawClient(server.bootstrap) as raw:
            commit(raw, 2)
            before = samples(tmp_path / "w")
            wait_until(lambda: samples(tmp_path / "w") > before + 1, "samples again")
        collecting.terminate()
        out, err = collecting.communicate(timeout=PATIENCE_S)
    finally:
        collecting.kill()
        collecting.communicate()
    assert (collecting.returncode, json.loads(out)["exit_code"]) == (0, 0), err
    assert sorted(records(tmp_path / "w").column("offset").to_pylist()) == [0, 1]


def test_a_killed_collection_of_files_leaves_nothing_half_done(tmp_path: Path) -> None:
    """Killed when most of twelve partitions are read; nothing counts before all are."""
    for partition in range(12):
        folder = tmp_path / "logs" / f"__consumer_offsets-{partition}"
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f"{5_000 * number:020d}.log").write_bytes(segment([10] * 500, first_offset=5_000 * number))
    words = ("history", "collect", "--segments", str(tmp_path / "logs"), "--jobs", "1", "--warehouse")
    command = [sys.executable, "-c", STOPPING, "stage", "30", *words, str(tmp_path / "w")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "here\n"
        killed.kill()
    assert Table(StoreLocation(str(tmp_path / "w")), "records").version == -1
    rows = run_kgctl("unused:1", *words, str(tmp_path / "w")).data
    assert sum(row["records"] for row in rows) == 12 * 15_000


def test_a_watch_tells_what_happens_and_ends_in_good_order(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 2})
    line = ["history", "watch", "--alert", "lag > 0 on payments", "--warehouse", str(tmp_path / "w"), "--sample-every", "1s"]
    with RawClient(server.bootstrap) as raw:
        commit(raw, 0)
        command = [sys.executable, "-m", "kgctl", "--bootstrap-server", server.bootstrap, *line, "--every", "1s"]
        watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: samples(tmp_path / "w") > 0, "a sample")
            produce(server.bootstrap, "orders", 4, 2)
            assert watching.stdout is not None
            told = watching.stdout.readline()
            watching.terminate()
            _, err = watching.communicate(timeout=PATIENCE_S)
        finally:
            watching.kill()
            watching.communicate()
        assert (watching.returncode, "firing    lag" in told) == (0, True), (told, err)
        again = run_kgctl(server.bootstrap, *line[:-2], "--once", code=6)
        assert [(row["status"], row["group"]) for row in again.data] == [("firing", "payments")]
