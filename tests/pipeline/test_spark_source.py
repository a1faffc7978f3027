"""The data source in Spark: the same rows as the readers give, from files, from a cluster, in a stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.pipeline.collect.at_rest import collect_at_rest
from kgctl.pipeline.engines import LocalEngine, SparkEngine
from kgctl.pipeline.sources.at_rest import RestSource, record_log, segments
from kgctl.pipeline.store.tables import TABLES, to_stored
from kgctl.pipeline.store.warehouse import Warehouse
from tests.support.machine import is_there
from tests.support.pipeline.segments import example_segments
from tests.support.pipeline.warehouses import rows_of as stored_rows
from tests.support.serve import ServeFactory
from tests.support.wire.raw_client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

if TYPE_CHECKING or is_there("pyspark"):
    from kgctl.pipeline.sources.spark_source import NAME, SCHEMA, of_kafka_source, register

COLUMNS = [name for name in TABLES["records"].schema.names if name not in ("cluster", "source")]

pytestmark = pytest.mark.interop

OFFSET_COMMIT = 8
FEW_PARTITIONS = {"offsets.topic.num.partitions": "4"}
"""Of the offsets topic: each is a task of Spark's, and fifty tell no more than four."""


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def rows_of(source: RestSource) -> list[tuple[Any, ...]]:
    """What the pieces themselves give, as the table ``records`` has it."""
    tables = [table for piece in source.pieces for parsed in piece.read() for table in parsed.tables]
    stored = [to_stored("records", table, "").select(COLUMNS) for table in tables]
    return sorted(tuple(row.values()) for table in stored for row in table.to_pylist())


def load(session: SparkSession, **options: str) -> list[tuple[Any, ...]]:
    return plain(session.read.format(NAME).options(**options).load())


def plain(frame: DataFrame) -> list[tuple[Any, ...]]:
    """The rows, with times in UTC."""
    found = frame.toArrow().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def commits(bootstrap: str, groups: int, offset: int) -> None:
    with RawClient(bootstrap) as raw:
        for number in range(groups):
            entry = {"partition_index": 1, "committed_offset": offset, "committed_metadata": "", "committed_leader_epoch": 0}
            body = {"group_id": f"g{number}", "topics": [{"name": "orders", "partitions": [entry]}]}
            assert int(raw.call(OFFSET_COMMIT, 8, body).topics[0].partitions[0].error_code) == 0


def test_segments(session: SparkSession, tmp_path: Path) -> None:
    example_segments(tmp_path / "logs")
    frame = session.read.format(NAME).option("segments", str(tmp_path / "logs")).load()
    assert [f"{name} {kind}" for name, kind in frame.dtypes] == SCHEMA.split(", ")
    assert frame.columns == COLUMNS
    assert frame.selectExpr("spark_partition_id()").distinct().count() == 3
    assert load(session, segments=str(tmp_path / "logs")) == rows_of(segments(tmp_path / "logs"))


def test_damage_fails_the_query_unless_it_may_be_left_out(session: SparkSession, tmp_path: Path) -> None:
    example_segments(tmp_path)
    file = tmp_path / "__consumer_offsets-31" / f"{100:020d}.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(Exception, match=r"wrong checksum.*failOnDamage=false leaves it out"):
        load(session, segments=str(tmp_path))
    assert len(load(session, segments=str(tmp_path), failOnDamage="false")) == 48


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "one of the options segments, recordLog, parquet, kafka.bootstrap.servers must be given; none was"),
        pytest.param({"segments": "a", "recordLog": "b"}, "segments and recordLog was", marks=pytest.mark.deep),
        ({"segments": "/gone"}, "/gone: no such file or folder"),
        pytest.param(
            {"kafka.bootstrap.servers": "127.0.0.1:1", "reader": "kcat"},
            "reader 'kcat': auto, wire or confluent",
            marks=pytest.mark.deep,
        ),
        pytest.param({"kafka.bootstrap.servers": "127.0.0.1:1"}, "127.0.0.1:1", marks=pytest.mark.deep),
        ({"kafka.bootstrap.servers": "127.0.0.1:1", "timeoutMs": "15s"}, "timeoutMs '15s': a whole number above 0"),
    ],
)
def test_options_that_cannot_be(session: SparkSession, options: dict[str, str], words: str) -> None:
    with pytest.raises(Exception, match=words):
        load(session, **options)


def test_a_cluster_in_batches_and_as_a_stream(session: SparkSession, kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    server = kgctl_serve(topics={"orders": 2}, config=FEW_PARTITIONS, data=tmp_path / "data")
    commits(server.bootstrap, 20, 5)
    options = {"kafka.bootstrap.servers": server.bootstrap}
    expected = rows_of(record_log(tmp_path / "data"))
    assert len(expected) == 20
    assert load(session, **options) == load(session, recordLog=str(tmp_path / "data")) == expected
    assert load(session, **options, reader="confluent") == expected

    def stream() -> list[tuple[Any, ...]]:
        writing = (
            session.readStream.format(NAME)
            .options(**options, maxOffsetsPerTrigger="12")
            .load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .start(str(tmp_path / "out"))
        )
        try:
            writing.processAllAvailable()
        finally:
            writing.stop()
        return plain(session.read.parquet(str(tmp_path / "out")))

    assert stream() == expected
    commits(server.bootstrap, 3, 6)
    found = stream()
    assert found == rows_of(record_log(tmp_path / "data"))
    assert len(found) == 23


def test_collecting_on_spark_is_collecting_here(session: SparkSession, tmp_path: Path) -> None:
    """Damage and a file that is none of Kafka's are data, the same from both."""
    example_segments(tmp_path / "logs")
    file = tmp_path / "logs" / "__consumer_offsets-31" / f"{100:020d}.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    (file.parent / f"{900:020d}.log").write_text("text " * 40)
    found = []
    for name, engine in (("spark", SparkEngine(session)), ("here", LocalEngine())):
        warehouse = Warehouse.create(tmp_path / name)
        collection = collect_at_rest(warehouse, "c", [segments(tmp_path / "logs")], engine, str)
        errors = sorted((error.code, error.message) for error in collection.errors)
        damaged = stored_rows(warehouse, "damaged", "c")
        found.append((collection.added, errors, collection.notices, stored_rows(warehouse, "records", "c"), damaged))
    assert (found[0][0], len(found[0][1])) == (48, 2)
    assert found[0] == found[1]


def test_rows_of_the_jvms_own_source(session: SparkSession) -> None:
    kafka = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
    frame = session.sql(
        "SELECT X'01' key, X'02' value, '__consumer_offsets' topic, 3 partition, 9L offset, "
        "timestamp_millis(1772438400123) timestamp, 0 timestampType"
    )
    assert frame.schema.simpleString().count(":") == len(kafka.split(","))
    found = of_kafka_source(frame)
    assert [f"{name} {kind}" for name, kind in found.dtypes] == SCHEMA.split(", ")
    at = datetime(2026, 3, 2, 8, tzinfo=UTC) + timedelta(milliseconds=123)
    assert plain(found) == [(3, 9, at, b"\x01", b"\x02", None, None, None)]
