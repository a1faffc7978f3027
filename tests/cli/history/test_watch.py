"""``kgctl history watch``: rules on a history that others collect, its exit codes, and what it says when something is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from kgctl.errors import KgctlError, StorageError, UnreachableError
from kgctl.pipeline.store.warehouse import Warehouse
from kgctl.pipeline.watch.loop import Watch
from kgctl.pipeline.watch.outlets import WatchState
from kgctl.pipeline.watch.rules import RULES, Alert
from tests.cli.harness import Cli
from tests.support.pipeline.example import minute
from tests.support.pipeline.gold import commit, run, write_gold


@pytest.fixture
def cli(cli: Cli, example: Path) -> Cli:
    shutil.copytree(example, cli.folder / "own")  # it is built anew, and alerts are kept in it
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "own")
    cli.now_ms = minute(41)
    return cli


WATCH = ["history", "watch", "--no-collect"]


def test_once_without_an_alert_says_that_nothing_was_judged(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    ran = cli.run([*WATCH, "--once", "-o", "json"])
    assert (ran.code, ran.data, ran.err) == (0, [], "No --alert is given: nothing was judged.\n")


def test_once_exits_with_6_while_an_alert_fires(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    ran = cli.run([*WATCH, "--once", "--alert", "reset in 10m"])
    assert (ran.code, ran.out) == (
        6,
        "TIME                      STATUS  ALERT  GROUP     TOPIC   PARTITION  SUMMARY\n"
        "2026-03-02T08:41:00.000Z  firing  reset  payments  orders          0  payments on orders-0 went from 70 to 0"
        " (went_back)\n",
    )
    cli.now_ms = minute(42)
    again = cli.run([*WATCH, "--once", "--alert", "reset in 10m", "-o", "json"])
    assert (again.code, [row["time"] for row in again.data]) == (6, ["2026-03-02T08:41:00.000Z"])
    keys = ["time", "status", "alert", "cluster", "group", "topic", "partition", "value", "since", "rule", "summary"]
    assert list(again.data[0]) == keys
    assert [error["code"] for error in again.json["errors"]] == ["ALERT"]
    cli.now_ms = minute(55)
    later = cli.run([*WATCH, "--once", "--alert", "reset in 10m"])
    assert (later.code, later.err) == (0, "No alert fires.\n")


def unchanged(*_: object, **__: object) -> object:
    """In the place of a build: the example's tables were not made of records."""
    from kgctl.pipeline.builds.run import BuildResult

    return BuildResult()


@pytest.mark.parametrize("broken", ["kgctl.pipeline.builds.run.build", "kgctl.pipeline.watch.rules.AlertStateFile.save"])
def test_a_look_that_is_not_whole_is_no_pass(cli: Cli, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """What came last is not in the tables, or how long a rule has held is forgotten: that nothing fires is not known."""

    def fail(*_: object, **__: object) -> None:
        raise StorageError("disk full")

    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    monkeypatch.setattr(broken, fail)
    cli.now_ms = minute(55)
    ran = cli.run([*WATCH, "--once", "--alert", "reset in 10m"])
    assert (ran.code, "disk full" in ran.err, "No alert fires" in ran.err) == (1, True, False)
    assert cli.run([*WATCH, "--for", "1s", "--every", "1s", "--alert", "reset in 10m"]).code == 1


def test_what_cannot_be_measured_holds_no_threshold(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.now_ms = minute(90)
    ran = cli.run([*WATCH, "--once", "--alert", "lag > 1000000", "-o", "json"])
    assert (ran.code, [error["code"] for error in ran.json["errors"]]) == (6, ["LAG_UNKNOWN"])
    assert "last measured 30 min before" in ran.data[0]["summary"]
    assert cli.run([*WATCH, "--once", "--alert", "lag > 1000000", "--allow-unknown", "--state", str(cli.folder / "s")]).code == 0


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("reset in 10m", "whether payments was reset is not known: last collected 29 min before"),
        ("reset on paymnets", "of paymnets nothing is known"),
        ("stopped on paymnets*", "no group is 'paymnets*'"),
    ],
)
def test_what_nobody_collects_and_what_nobody_is_called_is_no_pass(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, rule: str, told: str
) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.now_ms = minute(90)
    ran = cli.run([*WATCH, "--once", "--alert", rule])
    assert (ran.code, ran.err) == (6, f"kgctl: {told}\n")
    assert cli.run([*WATCH, "--once", "--alert", rule, "--allow-unknown", "--state", str(cli.folder / "s")]).code == 0

    (cli.folder / "s").unlink()
    span = ["--for", "1s", "--every", "1s", "--state", str(cli.folder / "s")]
    ran = cli.run([*WATCH, *span, "--alert", rule])
    assert (ran.code, ran.out[26:]) == (6, f"firing    {rule.partition(' ')[0]:14}  {told}\n")
    assert ran.err == (f"kgctl: {told}\n" if "*" in rule else ""), "a pattern that is no group's is told as it begins"
    (cli.folder / "s").unlink()
    assert cli.run([*WATCH, *span, "--alert", rule, "--allow-unknown"]).code == 0


WHY = (
    "; as it began: 1 rebalance, at least 0.041 s together (member left); 1 member, 2 before; "
    "reset of orders: 1 partition by -70 records (went back)"
)


def test_a_run_with_an_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    ran = cli.run([*WATCH, "--for", "1s", "--every", "1s", "--alert", "lag > 5"])
    assert (ran.code, ran.out) == (6, f"2026-03-02T08:41:00.000Z  firing    lag             lag of payments is 92, over 5{WHY}\n")
    quick = cli.run([*WATCH, "--exit-on-alert", "--every", "1h", "--alert", "reset in 10m"])
    assert quick.code == 6
    cli.terminal = True
    shown = cli.run([*WATCH, "--for", "1s", "--every", "1s", "--alert", "lag > 5"])
    assert "1 alerts" in shown.out
    assert "REWIND" in shown.out


class Away:
    """A cluster that is collected until it is not there any more."""

    cluster = "staging"

    def follow(self, _every_s: float, _for_s: float | None, looked: Callable[[], object], _halt: object) -> KgctlError:
        looked()
        return UnreachableError("cannot connect to a:1")

    def stop(self) -> None: ...


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_cluster_that_is_away_at_the_end_is_no_pass(cli: Cli, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """A rollout that ends with its brokers was held to be well: what was measured last was not two minutes old."""
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    monkeypatch.setattr("kgctl.cli.history.watch.LiveSource.open", lambda *_: nullcontext(Away()))
    ran = cli.run(["history", "watch", "--for", "1h", "--alert", "lag > 1000 on payments", "-o", output])
    assert (ran.code, "No alert has fired" in ran.err) == (1, False)
    assert ran.err == "kgctl: that nothing else fires is not known: cannot connect to a:1\n"
    ran = cli.run(["history", "watch", "--for", "1h", "--alert", "lag > 10 on payments", "-o", output])
    assert ran.code == 6


@pytest.mark.parametrize("line", [["--once", "-o", "json"], ["--exit-on-alert"], ["--for", "1h", "--every", "1h"]])
def test_reader_that_has_gone_hides_no_alert(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: list[str]) -> None:
    """As in ``kgctl history watch ... | head -1``."""
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.stdout_error = BrokenPipeError()
    assert cli.run([*WATCH, *line, "--alert", "lag > 5"]).code == 6


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["--alert", "lagg > 5"], 2, "--alert: there is no rule 'lagg'; did you mean lag?"),
        (["--no-collect", "--state", "-"], 2, "- would be a file of this name: stdout has the result; name a file"),
        (["--every", "10ms"], 2, "--every 10ms: the shortest is 1s"),
        (["--once", "--for", "5s"], 2, "--once and --for exclude each other"),
        (["--no-collect", "--sample-every", "5s"], 2, "--sample-every is for a collection"),
        (["--no-collect", "--cluster", "nowhere"], 4, "no cluster 'nowhere'"),
        (["--no-collect", "--webhook", "example"], 2, "--webhook 'example'"),
        (["--no-collect", "--webhook-header", "a:b"], 2, "--webhook-header belongs to --webhook"),
        (["--no-collect", "--webhook", "http://a/", "--webhook-header", "b"], 2, "--webhook-header: write NAME:VALUE"),
        (["--no-collect", "--metrics", "9100"], 2, "--metrics 9100: write HOST:PORT"),
        (["--no-collect", "--metrics-file", "gone/file"], 2, "there is no folder"),
        (["--no-collect", "--keep", "1h"], 2, "--keep 1h: whole days are thinned"),
        (["--embedded", "data"], 2, "watch with --no-collect"),
        (["--bootstrap-server", "127.0.0.1:1"], 7, "127.0.0.1:1"),
    ],
)
def test_mistakes(cli: Cli, line: list[str], code: int, words: str) -> None:
    ran = cli.run(["history", "watch", *line])
    assert (ran.code, ran.out) == (code, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


STATES = {"growing": "WARN", "stalled": "STALL", "stopped": "STOP", "past": "PAST_END", "below": "BELOW_START"}
OUT = {"past": -7, "below": 7}
"""How far the log's end is from commits that are out of its range."""
EVERY_RULE = [
    "lag > 100 on behind",
    "partition-lag > 100 on behind",
    "time-lag > 5m on behind",
    "catch-up > 30m on late*",
    "growing on growing",
    "stalled on stalled",
    "stopped on stopped",
    "past-end on past",
    "below-start on below",
    "unmeasured on unmeasured",
    "rebalances > 2 in 10m",
    "reset",
    "empty",
    "gone",
]
FIRED = [
    ("lag", "behind", None, 110, "lag of behind is 110, over 100"),
    ("partition-lag", "behind", 0, 110, "lag of behind on t-0 is 110, over 100"),
    ("time-lag", "behind", None, 600, "time lag of behind is 600 s, over 300 s"),
    ("catch-up", "late", None, None, "late on t does not catch up: it has 180 to read, and reads no faster than is written"),
    ("catch-up", "later", None, 3_280, "later on t catches up in 3280 s, over 1800 s"),
    ("growing", "growing", 0, 7, "growing on t-0 is falling behind, lag 7"),
    ("stalled", "stalled", 0, 7, "stalled on t-0 is stalled, lag 7"),
    ("stopped", "stopped", 0, 7, "stopped on t-0 has stopped, lag 7"),
    ("past-end", "past", 0, None, "past on t-0 is committed past the log's end"),
    ("below-start", "below", 0, None, "below on t-0 is committed before the log's start"),
    ("unmeasured", "unmeasured", 0, None, "unmeasured on t-0 is not measured: the end of the log was not sampled"),
    ("rebalances", "restless", None, 3, "restless rebalanced 3 times in 600 s (member_joined), over 2"),
    ("reset", "behind", 0, -50, "behind on t-0 went from 100 to 50 (went_back)"),
    ("empty", "empty", None, None, "empty has no member"),
    ("gone", "gone", None, None, "gone was deleted, or has expired"),
]


def everything_at_once(folder: Path, cluster: str = "c1") -> None:
    """A history in which there is something for each rule, a minute before `minute` 41."""
    groups = {"behind": 110, **dict.fromkeys(STATES, 7), "unmeasured": None, **OUT}
    place = {"topic": "t", "partition": 0}
    commits = [
        commit(group, "t", 0, 50, minute(1 + number), 20 * order + number)
        for order, group in enumerate(groups)
        for number in range(12)
    ]
    lags = [
        {
            **place,
            "group": group,
            "time_ms": minute(40),
            "committed_offset": 50,
            "log_end_offset": None if lag is None else 50 + lag,
            "lag": None if group in OUT else lag,
            "lag_ms": None if lag is None else (600_000 if group == "behind" else 1_000),
            "kind": "sample",
        }
        for group, lag in groups.items()
    ]
    lags += [
        {
            **place,
            "group": group,
            "time_ms": minute(number),
            "committed_offset": reads * number,
            "log_end_offset": 100 + 12 * number,
            "lag": 100 - (reads - 12) * number,
            "lag_ms": 1_000,
            "kind": "commit",
        }
        for group, reads in (("late", 10), ("later", 13))
        for number in range(28, 41)
    ]
    commits += [commit(group, "t", 0, 50, minute(40), 500 + number) for number, group in enumerate(("late", "later"))]
    back = {"offset_before": 100, "offset_after": 50, "kind": "backward", "records": -50, "evidence": "went_back"}
    generations = [
        _generation("restless", 32 + number, number + 1, members=1 + number, cause="member_joined") for number in range(3)
    ]
    generations += [_generation("empty", 20, 5, members=0, cause="group_emptied")]
    generations += [_generation("gone", 20, 5, members=0, cause="group_deleted")]
    write_gold(
        folder,
        {
            "offset_commits": commits,
            "lag": lags,
            "status_changes": [
                {**place, "group": group, "time_ms": minute(39), "status": status} for group, status in STATES.items()
            ],
            "resets": [{**place, "group": "behind", "time_ms": minute(12), "log_offset": 11, **back}],
            "generations": generations,
            "coverage": [run(0, 600, minute(0), minute(41))],
        },
        sampled_ms=[minute(number) for number in range(42)],
        cluster=cluster,
    )


def _generation(group: str, at: int, number: int, *, members: int, cause: str) -> dict[str, object]:
    times = dict.fromkeys(("time_ms", "started_ms", "stable_ms"), minute(at))
    facts = {"type": "classic", "protocol_type": "consumer", "generation_id": number, "duration_ms": 0}
    return {
        **times,
        **facts,
        "group": group,
        "started_by": "join_phase_ended",
        "members": members,
        "cause": cause,
        "log_offset": at,
    }


def test_every_rule_fires_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    everything_at_once(cli.folder / "all")
    assert {text.split()[0] for text in EVERY_RULE} == set(RULES)
    line = [*WATCH, "--once", "--warehouse", str(cli.folder / "all"), "-o", "json"]
    line += [word for text in EVERY_RULE for word in ("--alert", text)]

    ran = cli.run(line)

    assert (ran.code, ran.json["status"]) == (6, "error")
    assert [tuple(row[key] for key in ("alert", "group", "partition", "value", "summary")) for row in ran.data] == FIRED
    assert {row["status"] for row in ran.data} == {"firing"}
    cli.now_ms = minute(41) + 30_000
    again = cli.run(line)
    assert [row["time"] for row in again.data] == ["2026-03-02T08:41:00.000Z"] * len(FIRED), "none is told anew"


@pytest.fixture
def several(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A warehouse of two clusters, east and west, each with what `everything_at_once` has."""
    monkeypatch.setattr("kgctl.pipeline.builds.run.build", unchanged)
    cli.variables["KGCTL_WAREHOUSE"] = str(cli.folder / "several")
    for cluster in ("east", "west"):
        everything_at_once(cli.folder / "several", cluster)
    return cli


def test_all_clusters_of_a_warehouse_are_watched(several: Cli) -> None:
    line = [*WATCH, "--once", "--alert", "lag > 100 on behind", "--metrics-file", str(several.folder / "kgctl.prom")]
    shown = several.run(line)
    assert (shown.code, shown.out) == (
        6,
        "TIME                      STATUS  ALERT  CLUSTER  GROUP   TOPIC  PARTITION  SUMMARY\n"
        "2026-03-02T08:41:00.000Z  firing  lag    east     behind  -      -          lag of behind is 110, over 100\n"
        "2026-03-02T08:41:00.000Z  firing  lag    west     behind  -      -          lag of behind is 110, over 100\n",
    )
    assert "cluster 'west': lag of behind is 110, over 100" in shown.err
    page = (several.folder / "kgctl.prom").read_text()
    for cluster in ("east", "west"):
        assert f'kgctl_group_lag{{cluster="{cluster}",group="behind"}} 110.0\n' in page
    assert page.count("# TYPE kgctl_group_lag gauge\n") == 1

    one = several.run([*line, "--cluster", "west", "-o", "json"])
    assert [row["cluster"] for row in one.data] == ["west"]
    assert [error["message"] for error in one.json["errors"]] == ["lag of behind is 110, over 100"]


def test_what_goes_wrong_with_one_cluster_harms_no_other(several: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: object, clusters: list[str], *__: object, **___: object) -> object:
        if clusters == ["east"]:
            raise StorageError("disk full")
        return unchanged()

    monkeypatch.setattr("kgctl.pipeline.builds.run.build", build)
    ran = several.run([*WATCH, "--once", "--alert", "lag > 100 on behind", "-o", "json"])
    assert (ran.code, [row["cluster"] for row in ran.data]) == (6, ["east", "west"])
    assert "kgctl: cluster 'east': disk full" in ran.err

    cursed = several.folder / "several" / "_watch"
    for file in cursed.iterdir():
        file.unlink()
    monkeypatch.setattr("kgctl.pipeline.watch.loop.Watch._judge", judging_only_west)
    ran = several.run([*WATCH, "--once", "--alert", "lag > 1000 on behind", "-o", "json"])
    assert (ran.code, [error["message"] for error in ran.json["errors"]]) == (
        3,
        ["cluster 'east': the rules could not be judged: disk full; unreadable"],
    )
    several.now_ms = minute(41)
    assert several.run([*WATCH, "--for", "1s", "--alert", "lag > 1000 on behind"]).code == 3, "as a table, too"


def judging_only_west(watch: Watch, now_ms: int, **_: object) -> list[Alert]:
    if watch.cluster == "east":
        raise StorageError("unreadable")
    watch.measured = WatchState(watch.cluster, looked_ms=now_ms)
    return []


def test_each_cluster_has_its_own_state(several: Cli) -> None:
    one_behind(several.folder / "several", "between")
    line = [
        *WATCH,
        "--once",
        "--alert",
        "lag > 100 on southern",
        "--alert",
        "lag > 100 on behind",
        "--allow-unknown",
        "-o",
        "json",
    ]
    first = [(row["cluster"], row["group"], row["time"]) for row in several.run(line).data]
    several.now_ms = minute(42)
    again = [(row["cluster"], row["group"], row["time"]) for row in several.run(line).data]
    assert [row[:2] for row in first] == [("between", "southern"), ("east", "behind"), ("west", "behind")]
    assert again == first, "none is told anew"


def test_a_cluster_that_comes_is_watched_from_then_on(several: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_: object, clusters: list[str], *__: object, **___: object) -> object:
        if clusters == ["west"] and "south" not in Warehouse.open(several.folder / "several").clusters():
            one_behind(several.folder / "several", "south")
        return unchanged()

    monkeypatch.setattr("kgctl.pipeline.builds.run.build", build)
    ran = several.run([*WATCH, "--exit-on-alert", "--every", "1s", "--alert", "lag > 100 on southern"])
    told = "2026-03-02T08:41:00.000Z  firing    lag             cluster 'south': lag of southern is 110, over 100\n"
    assert (ran.code, ran.out) == (6, told)


def test_a_warehouse_that_is_away_at_the_first_look_is_no_warehouse_without_alerts(
    several: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = iter([["east", "west"]] * 3)  # as often as it is asked before the first look

    def clusters(_: Warehouse) -> list[str]:
        for found in known:
            return found
        raise StorageError("away")

    monkeypatch.setattr(Warehouse, "clusters", clusters)
    ran = several.run([*WATCH, "--once", "--alert", "lag > 100 on behind", "-o", "json"])
    told = [f"cluster {name!r}: the rules could not be judged: away; away" for name in ("east", "west")]
    assert (ran.code, [error["message"] for error in ran.json["errors"]]) == (1, told)


def one_behind(folder: Path, cluster: str) -> None:
    place = {"group": "southern", "topic": "t", "partition": 0, "time_ms": minute(40), "committed_offset": 50}
    tables = {
        "offset_commits": [commit("southern", "t", 0, 50, minute(40), 1)],
        "lag": [{**place, "log_end_offset": 160, "lag": 110, "lag_ms": 1_000, "kind": "commit"}],
        "coverage": [run(0, 1, minute(0), minute(41))],
    }
    write_gold(folder, tables, cluster=cluster, sampled_ms=[minute(number) for number in range(42)])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["--no-collect", "--state", "file"], "--state is for one cluster"),
        (["--cluster", "east", "--cluster", "west"], "one cluster is collected"),
        (["--no-collect", "--cluster", "east", "--cluster", ""], "--cluster is empty"),
    ],
)
def test_mistakes_with_several_clusters(several: Cli, line: list[str], words: str) -> None:
    ran = several.run(["history", "watch", *line])
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
