"""``kgctl history collect``: its options, its files, and what it says when something is wrong."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kgctl.cli.environment import Environment
from kgctl.cli.history.collect import progress_line
from kgctl.pipeline.store.delta import Table
from kgctl.pipeline.store.files import StoreLocation
from kgctl.serde.record_batch import Record, build_batch
from kgctl.storage.folder import open_folder
from tests.cli.harness import Cli, Terminal
from tests.support.pipeline.segments import example_segments, segment
from tests.support.storage import commit


@pytest.fixture
def cli(cli: Cli) -> Cli:
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "warehouse")
    return cli


@pytest.fixture
def logs(cli: Cli) -> Path:
    example_segments(cli.folder / "logs")
    return cli.folder / "logs"


def test_segments(cli: Cli, logs: Path) -> None:
    ran = cli(f"history collect --segments {logs} -o json")
    assert (ran.code, ran.err) == (0, "Collected 52 records of cluster 'default'.\n")
    assert ran.json["summary"] == {"cluster": "default", "records": 52, "known": 0, "damaged": 0, "samples": 0}
    assert ran.data == [
        {
            "cluster": "default",
            "log_partition": 7,
            "records": 40,
            "known": 0,
            "damaged": 0,
            "first_offset": 0,
            "last_offset": 39,
            "from": "2026-03-02T08:00:00.000Z",
            "to": "2026-03-02T08:39:00.000Z",
        },
        {
            "cluster": "default",
            "log_partition": 31,
            "records": 12,
            "known": 0,
            "damaged": 0,
            "first_offset": 100,
            "last_offset": 111,
            "from": "2026-03-02T08:00:00.000Z",
            "to": "2026-03-02T08:11:00.000Z",
        },
    ]
    again = cli(f"history collect --segments {logs / '__consumer_offsets-31'} --segments {logs / '__consumer_offsets-7'}")
    assert (again.code, again.err) == (0, "Collected 0 records of cluster 'default', 52 were there already.\n")


def test_damage_is_partial(cli: Cli, logs: Path) -> None:
    file = logs / "__consumer_offsets-31" / f"{100:020d}.log"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    ran = cli(f"history collect --segments {logs} -o json")
    assert (ran.code, ran.json["status"]) == (3, "partial")
    (error,) = ran.json["errors"]
    assert (error["code"], error["partition"]) == ("DAMAGED", 31)
    assert f"{file} at byte" in error["message"]
    assert "wrong checksum" in error["message"]
    assert [(row["log_partition"], row["records"], row["damaged"]) for row in ran.data] == [(7, 40, 0), (31, 8, 1)]


def test_nothing_of_kafkas_at_all(cli: Cli) -> None:
    folder = cli.folder / "__consumer_offsets-1"
    folder.mkdir()
    (folder / f"{0:020d}.log").write_text("a log of another kind\n" * 9)
    ran = cli(f"history collect --segments {folder} -o json")
    assert (ran.code, ran.json["status"], ran.data) == (2, "error", [])
    assert "holds no record batch of Kafka's" in ran.json["errors"][0]["message"]


def test_segments_of_another_cluster(cli: Cli, logs: Path) -> None:
    cli(f"history collect --segments {logs}")
    file = logs / "__consumer_offsets-31" / f"{100:020d}.log"
    file.write_bytes(segment([3], first_offset=100))
    ran = cli(f"history collect --segments {file}")
    assert ran.code == 5
    assert "offset 100 is in the warehouse with another record" in ran.err
    assert cli(f"history collect --segments {file} --cluster other").code == 0


def test_one_file_of_another_topic_refuses_all(cli: Cli, logs: Path) -> None:
    file = logs / "__consumer_offsets-31" / f"{100:020d}.log"
    file.write_bytes(build_batch([Record(100, 1_700_000_000_000, b"order-17", b"a value")]))
    ran = cli(f"history collect --segments {logs}")
    assert ran.code == 5
    assert "records of another topic than __consumer_offsets" in ran.err
    assert ran.err.endswith("Collected 0 records of cluster 'default'.\n")


def test_a_data_folder_by_either_name(cli: Cli) -> None:
    with open_folder(cli.folder / "data", create=True, offsets_partitions=1) as folder:
        folder.record_log.append([commit("g", 0, 5)], 1_000)
    ran = cli(f"history collect --record-log {cli.folder / 'data'} -o json")
    assert (ran.code, [row["records"] for row in ran.data]) == (0, [1])
    ran = cli(f"--embedded {cli.folder / 'data'} history collect -o json")
    assert (ran.code, [(row["records"], row["known"]) for row in ran.data]) == (0, [(0, 1)])


def test_another_warehouse_keeps_its_name(cli: Cli, logs: Path) -> None:
    cli(f"history collect --segments {logs} --cluster staging")
    ran = cli(f"history collect --parquet {cli.folder / 'warehouse'} --warehouse {cli.folder / 'copy'} -o json")
    assert {row["cluster"] for row in ran.data} == {"staging"}
    assert sum(row["records"] for row in ran.data) == 52


def test_several_warehouses_are_collected_together(cli: Cli, logs: Path) -> None:
    for number in (7, 31):
        line = f"history collect --segments {logs / f'__consumer_offsets-{number}'} --cluster one --warehouse"
        assert cli(f"{line} {cli.folder / f'part-{number}'}").code == 0
    ran = cli(f"history collect --parquet {cli.folder / 'part-7'} --parquet file://{cli.folder / 'part-31'}")
    assert (ran.code, ran.err) == (0, "Collected 52 records of cluster 'one'.\n")

    assert cli(f"history collect --segments {logs} --cluster other --warehouse {cli.folder / 'other'}").code == 0
    ran = cli(f"history collect --parquet {cli.folder / 'part-7'} --parquet {cli.folder / 'other'}")
    assert (ran.code, ran.err) == (2, "kgctl: --parquet: these are of several clusters (one, other): collect them one by one\n")


def test_progress_is_for_terminals() -> None:
    for stream, expected in ((Terminal(), "\r\x1b[Kone\r\x1b[K"), (io.StringIO(), "")):
        with progress_line(Environment(stderr=stream)) as show:
            show("one")
            show("too soon to be seen")
        assert stream.getvalue() == expected


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("--segments gone", 4, "gone: no such file or folder"),
        ("--record-log gone", 4, "no data folder at gone"),
        ("--parquet gone", 4, "gone: no such file or folder"),
        ("--segments a --parquet b", 2, "--segments and --parquet exclude each other"),
        ("--segments a --once", 2, "--once is for a live cluster, and --segments reads files"),
        ("--segments a --for 5s", 2, "--for is for a live cluster, and --segments reads files"),
        ("--record-log a --reader wire", 2, "--reader is for a live cluster, and --record-log reads files"),
        ("--embedded a --all-topics", 2, "--all-topics is for a live cluster, and --embedded reads files"),
        (
            "--once --bootstrap-server 127.0.0.1:1 --jobs 2",
            2,
            "--jobs is for files: --segments, --record-log or --parquet; or add",
        ),
        ("--once --bootstrap-server 127.0.0.1:1 --remote sc://127.0.0.1", 2, "--remote is for files"),
        ("--once --for 5s", 2, "--once and --for exclude each other"),
        ("--for soon", 2, "--for: cannot read 'soon' as a duration"),
        ("--for 0s", 2, "--for 0s must be more than zero"),
        ("--sample-every 10ms", 2, "--sample-every 10ms: the shortest is 1s"),
        ("--reader kcat", 2, "--reader"),
        ("--once -X security.protocol=nonsense", 2, "security.protocol"),
        ("--once --reader wire -X security.protocol=SASL_SSL -X sasl.mechanism=GSSAPI", 1, "use --reader confluent"),
        ("--parquet s3://bucket/wh", 2, "--parquet s3://bucket/wh: files of this machine are read"),
        ("--segments gs://bucket/logs", 2, "--segments gs://bucket/logs: files of this machine are read"),
        ("--once --bootstrap-server 127.0.0.1:1", 7, "127.0.0.1:1"),
        ("--once --bootstrap-server 127.0.0.1:1 --reader confluent --timeout 2", 7, "127.0.0.1:1"),
    ],
)
def test_mistakes(cli: Cli, line: str, code: int, words: str) -> None:
    ran = cli(f"history collect {line}")
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert not (cli.folder / "warehouse").exists()


@pytest.mark.parametrize("option", ["--segments", "--record-log", "--parquet", "--cluster", "--warehouse"])
def test_empty_values(cli: Cli, logs: Path, option: str) -> None:
    source = [] if option in ("--segments", "--record-log", "--parquet") else ["--segments", str(logs)]
    ran = cli.run(["history", "collect", *source, option, ""])
    assert ran.code == 2
    assert "is empty (an unset variable?)" in ran.err


def test_folders_that_are_no_warehouse(cli: Cli, logs: Path) -> None:
    ran = cli(f"history collect --segments {logs} --warehouse {logs}")
    assert (ran.code, ran.err) == (2, f"kgctl: {logs} is not a warehouse (it has no table of clusters)\n")
    newer = cli.folder / "newer"
    newer.mkdir()
    Table(StoreLocation(str(newer)), "clusters").commit([], numbers={"kgctl_warehouse": 3})
    ran = cli(f"history collect --segments {logs} --warehouse {newer}")
    assert ran.code == 2
    assert "made by a newer kgctl" in ran.err


@pytest.mark.parametrize("url", ["s4://bucket/wh", "ftp://host/wh", "jdbc:x"])
@pytest.mark.parametrize("command", ["collect --segments {logs}", "build", "offsets"])
def test_a_store_that_is_not_handled_is_refused_before_anything_is_read(
    cli: Cli, logs: Path, monkeypatch: pytest.MonkeyPatch, url: str, command: str
) -> None:
    monkeypatch.chdir(cli.folder)
    before = sorted(cli.folder.rglob("*"))
    ran = cli(f"history {command.format(logs=logs)} --warehouse {url}")
    assert (ran.code, sorted(cli.folder.rglob("*"))) == (2, before)
    assert f"--warehouse {url}: stores of the kind {url.partition(':')[0]}: are not handled" in ran.err
