"""``kgctl history sql``: what it tells besides the rows."""

from __future__ import annotations

import pytest

from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli, Ran
from tests.support.pipeline.generated_log import Size, generated_log
from tests.support.pipeline.warehouses import add, built


def not_built(ran: Ran) -> dict[str, object]:
    """Return the summary of two clusters of which one was not built, without how far both were collected."""
    found = dict(ran.json["summary"])
    assert (found.pop("collected_from"), found.pop("collected_to")) == (None, None)
    return found


def test_what_no_build_has_brought_in_is_told_by_cluster_and_counted(cli: Cli) -> None:
    warehouse = Warehouse.create(cli.folder / "warehouse")
    add(warehouse, "c1", generated_log(0, Size(10)), "generated")
    built(warehouse)
    add(warehouse, "c1", generated_log(0, Size(30)).slice(10), "generated")
    add(warehouse, "c2", generated_log(0, Size(30)), "generated")
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "warehouse")

    ran = cli.run(["history", "sql", "SELECT count(*) AS n FROM records", "-o", "json"])

    assert not_built(ran) == {"records_not_built": 50, "late_records_not_built": 0, "samples_not_built": 0}
    told = "records were collected after the last build: kgctl history build brings them in."
    assert ran.err.splitlines() == [f"cluster 'c1': 20 {told}", f"cluster 'c2': 30 {told}"]


def test_every_type_has_a_form_for_programs(cli: Cli) -> None:
    Warehouse.create(cli.folder / "warehouse")
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "warehouse")
    at = "TIMESTAMPTZ '2026-01-31 10:00:00.5+00'"
    text = f"""SELECT sum(n) AS whole, sum(n) / 4 AS part, 1.50::DECIMAL(9, 2) AS money, [{at}] AS times,
        {{'at': {at}, 'n': [1]}} AS nested, {at} - {at} AS nothing, INTERVAL '1 month 2 days 3.5 seconds' AS span,
        [[1], [2]] AS lists, '\\x01'::BLOB AS bytes, NULL AS no, 'inf'::DOUBLE AS endless
        FROM (VALUES (3), (4)) AS numbers(n)"""

    ran = cli.run(["history", "sql", text, "-o", "json"])

    assert ran.data == [
        {
            "whole": 7,
            "part": 1.75,
            "money": 1.5,
            "times": ["2026-01-31T10:00:00.500Z"],
            "nested": '{"at": "2026-01-31T10:00:00.500Z", "n": [1]}',
            "nothing": "PT0S",
            "span": "P1M2DT3.5S",
            "lists": ["[1]", "[2]"],
            "bytes": "01",
            "no": None,
            "endless": None,
        }
    ]
    file = str(cli.folder / "rows.parquet")
    assert [cli.run(["history", "sql", text, *form]).code for form in (["-o", "csv"], [], ["--parquet", file])] == [0, 0, 0]
    mixed = cli.run(["history", "sql", "SELECT union_value(a := 2) AS a", "--parquet", file])
    assert (mixed.code, mixed.err.startswith("kgctl: Parquet has no such type: ")) == (2, True)


def test_every_column_of_every_view_is_told(cli: Cli) -> None:
    warehouse = Warehouse.create(cli.folder / "warehouse")
    add(warehouse, "c1", generated_log(0, Size(10)), "generated")
    built(warehouse)
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "warehouse")
    told = cli("history sql --tables -o json").data
    for view in ("members", "assignments", "stalls"):
        asked = cli.run(["history", "sql", f"SELECT column_name FROM (DESCRIBE {view})", "-o", "json"])
        columns = [row["column_name"] for row in asked.data]
        meanings = {row["column"]: row["meaning"] for row in told if row["table"] == view and row["column"]}
        assert (sorted(meanings), all(meanings.values())) == (sorted(columns), True)


def test_the_variable_names_a_store_by_its_url(cli: Cli) -> None:
    cli.variables["KGCTL_WAREHOUSE"] = "s9://bucket/history"

    ran = cli("history sql --tables"), cli("history lag")

    assert (ran[0].code, ran[1].code) == (0, 2)
    assert ran[1].err.startswith("kgctl: KGCTL_WAREHOUSE s9://bucket/history: stores of the kind s9: are not handled")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("SELECT-1 --parquet -", "- would be a file of this name: stdout has the result; name a file"),
        ("SELECT-1 --parquet nosuch/rows.parquet", "nosuch/rows.parquet: there is no folder "),
        ("SELECT-1 --parquet .", ". is a folder; name a file"),
        ("--tables --parquet rows.parquet", "--parquet takes the rows of a query: it has no place beside --tables"),
    ],
)
def test_file_of_rows_is_refused_before_anything_is_asked(cli: Cli, line: str, told: str) -> None:
    ran = cli(f"history sql {line}")

    assert (ran.code, ran.err.startswith(f"kgctl: {told}"), sorted(cli.folder.glob("*.parquet"))) == (2, True, [])


def test_rows_of_no_build_are_no_answer(cli: Cli) -> None:
    """An alert in a pipe would take 0 for "nothing is behind" where nothing was looked at yet."""
    folder = cli.folder / "warehouse"
    warehouse = Warehouse.create(folder)
    cli.variables["KGCTL_WAREHOUSE"] = str(folder)
    query = "WITH behind AS (SELECT * FROM health) SELECT count(*) AS n FROM behind"

    empty = cli.run(["history", "sql", query])
    add(warehouse, "c1", generated_log(0, Size(10)), "generated")
    unbuilt, records = cli.run(["history", "sql", query]), cli.run(["history", "sql", "SELECT count(*) AS n FROM records;"])
    built(warehouse)
    add(warehouse, "c2", generated_log(0, Size(10)), "generated")
    one = cli.run(["history", "sql", query])
    warehouse.table("state").commit([], numbers={"tables/c1": 0})
    older = cli.run(["history", "sql", query])

    assert [each.code for each in (empty, unbuilt, records, one, older)] == [4, 4, 0, 3, 1]
    assert empty.err == f"kgctl: {folder}: nothing was collected yet\n"
    assert unbuilt.err == f"kgctl: {folder}: cluster 'c1' was collected but not built yet: kgctl history build does it\n"
    assert (
        one.err.splitlines()[0] == f"kgctl: {folder}: cluster 'c2' was collected but not built yet: kgctl history build does it"
    )
    assert "the tables of cluster 'c1' were built by an older kgctl" in older.err


def test_a_cluster_that_was_never_built_is_no_part_of_the_numbers_and_an_error(cli: Cli) -> None:
    """Of two clusters the numbers of one, with 0, would be taken for those of both."""
    folder = cli.folder / "warehouse"
    warehouse = Warehouse.create(folder)
    cli.variables["KGCTL_WAREHOUSE"] = str(folder)
    add(warehouse, "c1", generated_log(0, Size(10)), "generated")
    built(warehouse)
    add(warehouse, "c2", generated_log(0, Size(10)), "generated")
    query = "SELECT DISTINCT cluster FROM coverage"

    both = cli.run(["history", "sql", query, "-o", "json"])
    one, other, nosuch = (cli.run(["history", "sql", query, "--cluster", name, "-o", "json"]) for name in ("c1", "c2", "c3"))
    records = cli.run(["history", "sql", "SELECT DISTINCT cluster FROM records", "--cluster", "c2", "-o", "json"])

    unbuilt = f"{folder}: cluster 'c2' was collected but not built yet: kgctl history build does it"
    assert (both.code, both.data, [each["message"] for each in both.json["errors"]]) == (3, [{"cluster": "c1"}], [unbuilt])
    assert not_built(both) == {"records_not_built": 10, "late_records_not_built": 0, "samples_not_built": 0}
    assert (one.code, one.data, one.err) == (0, [{"cluster": "c1"}], "")
    assert [(each.code, each.data) for each in (other, nosuch)] == [(4, []), (4, [])]
    assert nosuch.json["errors"][0]["message"] == f"{folder}: no cluster 'c3' (there: c1, c2)"
    assert (records.code, records.data) == (0, [{"cluster": "c2"}])


def test_how_far_was_collected_holds_for_all_that_were_asked(cli: Cli) -> None:
    folder = cli.folder / "warehouse"
    warehouse = Warehouse.create(folder)
    cli.variables["KGCTL_WAREHOUSE"] = str(folder)
    log = generated_log(0, Size(30))
    add(warehouse, "c1", log.slice(0, 20), "generated")
    add(warehouse, "c2", log.slice(10), "generated")
    assert cli.run(["history", "build", "--engine", "local", "-j", "1"]).code == 0

    def collected(*names: str) -> tuple[str, str]:
        options = [each for name in names for each in ("--cluster", name)]
        ran = cli.run(["history", "sql", "SELECT 1 AS one", *options, "-o", "json"])
        return ran.json["summary"]["collected_from"], ran.json["summary"]["collected_to"]

    (from_1, to_1), (from_2, to_2) = collected("c1"), collected("c2")
    assert from_1 < from_2
    assert to_1 < to_2
    assert collected() == collected("c1", "c2") == (from_2, to_1)
