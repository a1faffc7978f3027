"""Recorded traffic, ramps, and groups that a scenario begins with."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kgctl.model.groups import GroupDescription, GroupState, GroupType, MemberDescription
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.observed import Observed
from kgctl.simulate.scenario.quantities import parse_ramp
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import FileError

HEAD = "kgctl: 1\nname: x\n"
BODY = HEAD + "topics: {orders: 2, other: 1}\nmembers: {app: {count: 2}}\n"
HZ = 1_000_000
DESCRIBED = {
    "data": [
        {
            "group": "payments",
            "consumer_id": f"consumer-payments-1-{number}",
            "client_id": "consumer-payments-1",
            "assignment": f"orders:{number}",
            "subscribed_topics": ["orders"],
        }
        for number in range(3)
    ]
}


def read(folder: Path, text: str, live: Any = None, **files: str) -> LoadedFile:
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
    (folder / "s.yaml").write_text(text)
    return load(read_source(str(folder / "s.yaml"), None, live))


def steps(found: LoadedFile, position: int = 0) -> list[tuple[float, float]]:
    """(seconds, records a second)."""
    return [(at_us / 1e6, rate / HZ) for at_us, rate in found.variants[0].scenario.traffic[position].steps]


def test_rates_are_replayed_from_their_first_time_on(tmp_path: Path) -> None:
    found = read(tmp_path, BODY + "traffic: {orders: replay(a.csv)}\n", a="time,rate\n10,100\n70,500.5\n2m,50\n")
    assert steps(found) == [(0, 100), (60, 500.5), (110, 50)]


def test_samples_of_log_ends_become_the_rate_of_all_partitions_of_the_topic(tmp_path: Path) -> None:
    rows = [
        "TIME,TOPIC,PARTITION,LOG-END-OFFSET",
        "2026-03-02T08:40:00.000Z,orders,0,100",
        "2026-03-02T08:41:00.000Z,orders,0,700",
        "2026-03-02T08:40:30.000Z,orders,1,0",
        "2026-03-02T08:42:30.000Z,orders,1,1200",
        "2026-03-02T08:42:00.000Z,orders,1,",
        "2026-03-02T08:42:30.000Z,other,0,9000",
    ]
    found = read(tmp_path, BODY + "traffic: {orders: {rate: replay('a.csv'), keys: even}}\n", a="\n".join(rows))
    assert steps(found) == [(0, 10), (30, 20), (60, 10), (150, 0)]


def test_spreadsheets_and_rates_of_partitions_are_read(tmp_path: Path) -> None:
    text = BODY + "traffic: {orders: replay(a.csv), other: replay(b.csv)}\n"
    files = {"a": "\ufeffTimestamp;Rate\r\n0;5\r\n60;6/s\r\n", "b": "time,partition,rate\n0,0,1\n0,1,2\n9,0,3\n9,1,4\n"}
    scenario = read(tmp_path, text, **files).variants[0].scenario
    assert [each.steps for each in scenario.traffic] == [
        ((0, 5 * HZ), (60_000_000, 6 * HZ)),
        ((0, 3 * HZ), (9_000_000, 7 * HZ)),
    ]


def test_a_long_recording_keeps_what_was_written(tmp_path: Path) -> None:
    rows = "".join(f"{second},{1000 + second % 7}\n" for second in range(5_000))
    found = steps(read(tmp_path, BODY + "traffic: {orders: replay(a.csv)}\n", a="at,rate\n" + rows))
    assert len(found) <= 1_002
    written = sum(rate * (later - at) for (at, rate), (later, _) in pairwise(found))
    assert written == pytest.approx(sum(1000 + second % 7 for second in range(4_999)), rel=1e-6)


def test_events_and_variants_replay_too(tmp_path: Path) -> None:
    text = BODY + "events: [{set_traffic: orders, rate: replay(a.csv)}]\nvariants: {b: {traffic: {other: replay(a.csv)}}}\n"
    found = read(tmp_path, text, a="time,rate,topic\n0,5,orders\n0,6,other\n")
    scenario = found.variants[0].scenario
    assert (scenario.events[0].rates, scenario.traffic[0].steps) == (((0, 5 * HZ),), ((0, 6 * HZ),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("traffic: {orders: replay(none.csv)}", "5:11: traffic.orders: cannot read "),
        ("traffic: {orders: replay()}", "5:11: traffic.orders: 'replay()' names no file: replay(traffic.csv)"),
        ("traffic: {orders: replay(a.csv}", "5:11: traffic.orders: 'replay(a.csv' names no file"),
        ("traffic: {other: replay(a.csv)}", "5:11: traffic.other: a.csv has no rows of topic 'other'"),
        (
            "traffic: {orders: replay(b.csv)}",
            "5:11: traffic.orders: b.csv needs a header with time and rate, or time and log_end",
        ),
        ("traffic: {orders: replay(c.csv)}", "5:11: traffic.orders: c.csv:2: 'soon' is no time"),
        ("traffic: {orders: replay(e.csv)}", "5:11: traffic.orders: e.csv:3: 'much' is no rate"),
        ("traffic: {orders: replay(f.csv)}", "5:11: traffic.orders: f.csv:3 has the time of line 2 again"),
        ("traffic: {orders: replay(g.csv)}", "5:11: traffic.orders: g.csv:1 has a column twice"),
        ("traffic: {orders: replay(d.csv)}", "5:11: traffic.orders: there are no two samples of one partition"),
        ("question: replay(a.csv)", "5:1: question: replay(...) is a rate"),
    ],
)
def test_a_wrong_recording_is_told_where_it_is_named(tmp_path: Path, text: str, message: str) -> None:
    files = {"a": "time,rate,topic\n0,5,orders\n", "b": "when,rate\n0,5\n", "c": "at,rate\nsoon,5\n", "d": "at,end_offset\n0,5\n"}
    files |= {"e": "time,rate\n0,5\n9,much\n", "f": "time,rate\n0,5\n0,6\n", "g": "time,rate,Rate\n0,5,6\n"}
    with pytest.raises(FileError) as raised:
        read(tmp_path, BODY + text + "\n", **files)
    assert message in str(raised.value)


def test_a_ramp_is_a_line_in_pieces_that_holds_its_last_rate() -> None:
    found = parse_ramp("ramp(0/s, 100/s, 4s)")
    assert [(at_us / 1e6, rate / HZ) for at_us, rate in found] == [(0, 12.5), (1, 37.5), (2, 62.5), (3, 87.5), (4, 100)]
    assert len(parse_ramp("ramp(90/s, 10/s, 24h)")) == 97
    assert parse_ramp("5/s") == ()


def test_a_ramp_may_be_a_step(tmp_path: Path) -> None:
    found = read(tmp_path, BODY + "traffic: {orders: {0s: 10/s, 1m: 'ramp(10/s, 20/s, 2s)', 5m: 0/s}}\n")
    assert steps(found) == [(0, 10), (60, 12.5), (61, 17.5), (62, 20), (300, 0)]


def test_a_described_group_is_what_the_file_changes(tmp_path: Path) -> None:
    (tmp_path / "payments.json").write_text(json.dumps(DESCRIBED))
    found = read(
        tmp_path,
        HEAD + "group: {from: payments.json, config: {session.timeout.ms: 10s}}\nmembers: {consumer-payments: {boot: 1s}}\n",
    )
    scenario = found.variants[0].scenario
    assert (scenario.group_id, scenario.topics[0].name, scenario.topics[0].partitions) == ("payments", "orders", 3)
    (members,) = scenario.members
    assert (members.name, members.count, members.boot.mean_us) == ("consumer-payments", 3, 1_000_000)
    assert members.config["session.timeout.ms"] == "10000"
    assert members.config["heartbeat.interval.ms"] == "3000"
    assert (scenario.events, found.variant_names, found.runs) == ((), ("default",), 1)


def test_a_live_group_is_asked_for_by_its_name(tmp_path: Path) -> None:
    member = MemberDescription("m", "rdkafka", subscribed_topics=("orders",))
    group = GroupDescription("live-one", GroupState.STABLE, GroupType.CONSUMER, members=(member, member))
    asked: list[str] = []

    def live(name: str) -> Observed:
        asked.append(name)
        return Observed(group=group, topics={"orders": 7}, written={"orders": 12.0})

    scenario = read(tmp_path, HEAD + "group: {from: 'live:live-one'}\n", live).variants[0].scenario
    assert asked == ["live-one"]
    assert (scenario.group_id, scenario.members[0].count, scenario.members[0].client) == ("live-one", 2, "librdkafka")
    assert scenario.traffic[0].steps == ((0, 12 * HZ),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("group: {from: none.json}", "3:9: group.from: cannot read "),
        ("group: {from: s.yaml}", "3:9: group.from: s.yaml is not what `kgctl describe group G --members -o json` prints"),
        ("group: {from: 5}", "3:9: group.from: must be a file or live:GROUP, not 5"),
        ("group: {from: 'live:x'}", "3:9: group.from: a live group is read by the commands of kgctl simulate; here name a file"),
        (
            "topics: {t: 1}\nmembers: {app: {}}\nvariants: {a: {group: {from: x}}}",
            "5:24: group.from: it stands for the whole file, not in a variant",
        ),
    ],
)
def test_a_group_that_cannot_be_taken_is_told_where_it_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError) as raised:
        read(tmp_path, HEAD + text + "\n")
    assert message in str(raised.value)


def answer(*series: tuple[str | None, list[list[object]]]) -> str:
    result = [{"metric": {"topic": topic} if topic else {}, "values": values} for topic, values in series]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_an_answer_of_prometheus_is_the_sum_of_a_topics_series(tmp_path: Path) -> None:
    saved = answer(
        ("orders", [[1700000000.5, "100"], [1700000030.5, "9"], [1700000060.5, "250.25"], [1700000090.5, "+Inf"]]),
        ("orders", [[1700000000.5, "11"], [1700000030.5, "NaN"], [1700000060.5, "-1"], [1700000090.5, "1"]]),
        ("other", [[1700000000.5, "9"]]),
    )
    found = read(tmp_path, BODY + "traffic: {orders: 'replay(prometheus: a.csv)'}\n", a=saved)
    assert steps(found) == [(0, 111), (60, 250.25)]


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        ("not json", "is no answer of Prometheus's /api/v1/query_range with a matrix"),
        ('{"status": "error"}', "is no answer of Prometheus's /api/v1/query_range with a matrix"),
        (answer(("other", [[1, "1"]])), "has no samples of topic 'orders'"),
        (answer(("orders", [[1, "NaN"], [2, "NaN"]])), "has no samples of topic 'orders'"),
    ],
)
def test_what_is_no_answer_of_prometheus_is_told(tmp_path: Path, saved: str, told: str) -> None:
    with pytest.raises(FileError, match=told):
        read(tmp_path, BODY + "traffic: {orders: 'replay(prometheus: a.csv)'}\n", a=saved)
