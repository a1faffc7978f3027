"""The engine on a real Spark: what it gives is what one process gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kgctl.errors import KgctlError, UnreachableError
from kgctl.pipeline.engines import (
    PROCESS_DIED,
    EngineName,
    EngineOptions,
    LocalEngine,
    SparkEngine,
    dealt,
    open_engine,
    shipped,
    spark_errors,
)
from tests.support.members import wait_until
from tests.support.pipeline.work import away, kill_at_five, square

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_chunks_are_dealt_out_like_cards() -> None:
    assert dealt({0: "a", 1: "b", 4: "c", 5: "d", 7: "e"}, 2) == [[(0, "a"), (4, "c"), (7, "e")], [(1, "b"), (5, "d")]]
    assert dealt({3: "a", 9: "b"}, 5) == [[(3, "a")], [(9, "b")]]
    assert dealt({}, 5) == []


@pytest.mark.parametrize("count", [0, 1, 7, pytest.param(200, marks=pytest.mark.deep)])
def test_the_same_as_in_one_process(spark: SparkSession, count: int) -> None:
    engine = SparkEngine(spark)
    seen: list[int] = []
    found = engine.map(square, range(count), on_done=lambda done: seen.append(done.index))
    here = LocalEngine().map(square, range(count))
    assert [(done.index, done.value, done.failure and done.failure.message) for done in found] == [
        (done.index, done.value, done.failure and done.failure.message) for done in here
    ]
    assert sorted(seen) == list(range(count))


def test_an_item_that_kills_its_worker_fails_alone(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    found = engine.map(kill_at_five, range(8))
    assert [done.value for done in found] == [None if number == 5 else number for number in range(8)]
    assert found[5].failure is not None
    assert found[5].failure.code == PROCESS_DIED
    assert engine.map(square, [3])[0].value == 9


def test_work_that_cannot_be_done_at_all_is_one_line(spark: SparkSession) -> None:
    with pytest.raises(KgctlError, match=r"^Spark did none of the work: .*$") as caught:
        SparkEngine(spark).map(kill_at_five, [5])
    assert "\n" not in caught.value.message


def test_what_a_task_raises_is_what_it_was(spark: SparkSession) -> None:
    """So it has the exit code that it has without Spark."""
    with pytest.raises(UnreachableError) as caught, spark_errors():
        spark.range(1).mapInArrow(shipped(away), "id long").collect()
    assert (caught.value.message, caught.value.code) == ("nobody is there", "UNREACHABLE")


def test_a_stream_that_is_left_is_cancelled(spark: SparkSession) -> None:
    engine = SparkEngine(spark)
    stream = engine.stream(square, range(20))
    assert next(stream).value is not None
    stream.close()
    wait_until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds() == [], "no job goes on, and Spark has noticed")


def test_a_command_says_nothing_of_a_pandas_that_spark_does_not_know_yet(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.pandas.utils import require_minimum_pandas_version

    monkeypatch.setattr("pandas.__version__", "3.1.1")
    with pytest.warns(FutureWarning, match="PySpark does not yet fully support pandas"):
        require_minimum_pandas_version()
    with open_engine(EngineOptions(name=EngineName.SPARK)) as engine:
        require_minimum_pandas_version()
        assert [done.value for done in engine.map(square, [3])] == [9]


def test_the_spark_there_is_is_used_and_goes_on(spark: SparkSession) -> None:
    with open_engine(EngineOptions(name=EngineName.SPARK, master="local[1]")) as engine:
        assert engine.slots == 2
    assert spark.range(3).count() == 3
