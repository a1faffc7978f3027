"""A watch goes on whatever fails: builds, the webhook, the file of metrics; what it knows is what Prometheus sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kgctl.admin.times import parse_duration_ms
from kgctl.errors import KgctlError, StorageError
from kgctl.pipeline.store.files import StoreLocation
from kgctl.pipeline.watch.loop import Outside, Watch, WatchSettings
from kgctl.pipeline.watch.outlets import Metrics, NotTakenError, Webhook
from kgctl.pipeline.watch.rules import Alert, AlertStateFile, parse_rule
from tests.support.pipeline.example import CLUSTER, example_history, minute, past_end
from tests.support.pipeline.gold import write_gold


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watch") / "warehouse"
    example_history(folder)
    return folder


class Away(Webhook):
    """Takes nothing while ``trouble`` is set."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1/")
        object.__setattr__(self, "trouble", None)
        object.__setattr__(self, "taken", [])

    trouble: KgctlError | None
    taken: list[list[str]]

    def send(self, cluster: str, alerts: Sequence[Alert]) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.taken.append([f"{cluster} {alert.name} {alert.status}" for alert in alerts])


@dataclass
class World:
    """A clock at a minute of the morning, and a build that fails where it is told to."""

    at: float = 41
    notices: list[str] = field(default_factory=list)
    build: Callable[[], object] = bool

    def _build(self) -> object:
        return self.build()

    def outside(self) -> Outside:
        return Outside(self._build, lambda: minute(self.at), self.notices.append)


def watch(warehouse: Path, folder: Path, world: World, *rules: str) -> Watch:
    read = [parse_rule(text, parse_duration_ms) for text in rules]
    place = StoreLocation.parse(str(warehouse))
    return Watch(place, CLUSTER, WatchSettings(read), AlertStateFile(folder / "state.json"), world.outside())


def test_looks_tell_what_has_changed_and_the_next_run_goes_on(warehouse: Path, tmp_path: Path) -> None:
    world = World(at=36)
    first = watch(warehouse, tmp_path, world, "reset in 10m")
    assert first.look() == []
    world.at = 41
    assert [(alert.name, alert.status) for alert in first.look()] == [("reset", "firing")]
    second = watch(warehouse, tmp_path, world, "reset in 10m")
    assert second.look() == []
    world.at = 55
    assert [(alert.name, alert.status) for alert in second.look()] == [("reset", "resolved")]
    assert (first.fired, second.fired, world.notices) == (1, 0, [])


def test_an_alert_says_what_happened_as_it_began(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "lag of payments is 92, over 50"
    why = "1 rebalance, at least 0.041 s together (member left); 1 member, 2 before; reset of orders: 1 partition by -70 records"
    (alert,) = watch(warehouse, tmp_path, World(at=41), "lag > 50 on payments").look()
    assert alert.summary == f"{text}; as it began: {why} (went back)"

    def broken(*_: object) -> None:
        raise StorageError("gone")

    monkeypatch.setattr("kgctl.pipeline.watch.rules.spells", broken)
    world = World(at=41)
    (alert,) = watch(warehouse, tmp_path / "broken", world, "lag > 50 on payments").look()
    assert (alert.summary, world.notices) == (text, ["gone"])


def test_a_build_that_fails_is_told_once_and_the_rules_are_judged(warehouse: Path, tmp_path: Path) -> None:
    world = World()

    def fail() -> None:
        raise StorageError("disk full")

    world.build = fail
    found = watch(warehouse, tmp_path, world, "lag > 5")
    assert [alert.name for alert in found.look()] == ["lag"]
    found.look()
    assert (world.notices, found.measured.failures, found.measured.built_ms) == (["disk full"], 2, None)
    world.build = bool
    found.look()
    world.build = fail
    found.look()
    assert world.notices == ["disk full"] * 2


def test_a_warehouse_that_cannot_be_read_is_no_end(tmp_path: Path) -> None:
    world = World()
    found = watch(tmp_path / "gone", tmp_path, world, "lag > 5")
    assert (found.look(), found.measured.looked_ms, len(world.notices)) == ([], None, 1)
    assert "no warehouse at" in found.why_not()


def test_what_a_webhook_does_not_take_is_kept_until_it_does(warehouse: Path, tmp_path: Path) -> None:
    world, away = World(), Away()
    object.__setattr__(away, "trouble", NotTakenError("away"))
    first = watch(warehouse, tmp_path, world, "lag > 5", "reset")
    first.webhook = away
    first.look()
    first.look()
    assert world.notices == ["away; 2 changes are kept for the next look"]
    assert (first.measured.webhook_failures, first.measured.undelivered) == (2, 2)
    second = watch(warehouse, tmp_path, world, "lag > 5", "reset")
    second.webhook = away
    object.__setattr__(away, "trouble", None)
    second.look()
    second.look()
    assert away.taken == [[f"{CLUSTER} lag firing", f"{CLUSTER} reset firing"]]


def test_what_a_webhook_refuses_is_not_posted_for_ever(warehouse: Path, tmp_path: Path) -> None:
    world, away = World(), Away()
    object.__setattr__(away, "trouble", KgctlError("refused"))
    found = watch(warehouse, tmp_path, world, "lag > 5")
    found.webhook = away
    found.look()
    assert (world.notices, found.alerts.undelivered) == (["refused"], [])


def test_metrics_have_what_is_known_and_nothing_else(warehouse: Path, tmp_path: Path) -> None:
    world = World()
    found = watch(warehouse, tmp_path, world, "lag > 5")
    found.metrics = Metrics(tmp_path / "kgctl.prom")
    found.look()
    first = samples(tmp_path / "kgctl.prom")
    assert first["kgctl_group_lag", "payments", None] == 92
    assert first["kgctl_partition_lag", "payments", "0"] == 84
    assert first["kgctl_partition_lag_seconds", "payments", "0"] == 2520
    assert first["kgctl_group_members", "payments", None] == 1
    assert first["kgctl_alert_firing", "payments", ""] == 1
    world.at = 90  # half an hour after the last sample
    found.look()
    later = samples(tmp_path / "kgctl.prom")
    names = {name for name, _, _ in later}
    assert {"kgctl_group_lag", "kgctl_partition_lag", "kgctl_group_members"} & names == set()
    assert "kgctl_group_out_of_range" not in names, "two of its partitions may be out of range by now"
    assert dict(found.measured.members) == {"payments": None}
    assert {"kgctl_partition_measured_timestamp_seconds", "kgctl_alert_firing"} <= names


def test_a_group_s_lag_is_what_is_unread(tmp_path: Path) -> None:
    write_gold(tmp_path / "w", past_end(minute(40)), cluster=CLUSTER)
    found = watch(tmp_path / "w", tmp_path, World(), "past-end")
    found.metrics = Metrics(tmp_path / "kgctl.prom")
    (alert,) = found.look()
    told = samples(tmp_path / "kgctl.prom")
    assert alert.summary == "g on t-0 is committed past the log's end"
    assert (told["kgctl_group_lag", "g", None], told["kgctl_group_lag", "other", None]) == (7_713, 5)
    assert ("kgctl_partition_lag", "g", "0") not in told
    statuses = text_string_to_metric_families((tmp_path / "kgctl.prom").read_text())
    out = {
        (sample.labels["group"], sample.labels["status"]): sample.value
        for family in statuses
        for sample in family.samples
        if family.name == "kgctl_group_out_of_range"
    }
    assert out == {("g", "PAST_END"): 1, ("g", "BELOW_START"): 0, ("other", "PAST_END"): 0, ("other", "BELOW_START"): 0}


def samples(file: Path) -> dict[tuple[str, str | None, str | None], float]:
    return {
        (sample.name, sample.labels.get("group"), sample.labels.get("partition")): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }
