"""``simulate run --against`` before anything is played: what is refused, and what is asked."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.admin import ItemError
from kgctl.cli.simulate.against import ClusterGroups
from kgctl.errors import AuthError
from kgctl.model.error_codes import ErrorCode
from kgctl.simulate.against import fleet
from tests.cli.fake_admin import FakeGroupAdmin
from tests.cli.harness import Cli

FILE = """\
kgctl: 1
name: tiny
topics: {orders: 4}
members: {app: {count: 2}}
duration: 30s
warmup: 10s
"""


@pytest.fixture(autouse=True)
def _scenario(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    (cli.folder / "tiny.yaml").write_text(FILE)
    monkeypatch.chdir(cli.folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--client java", "--client is what --against HOST:PORT plays with; without it nothing is played"),
        ("--against b:1 --client franz-go", "--client franz-go: it is one of java, librdkafka, kafka-python, aiokafka"),
        ("--against b:1 --client java", "--client java needs --kafka-libs DIR"),
        ("--against b:1 --client java --kafka-libs /no/libs", "--kafka-libs /no/libs: there is no such folder"),
        (
            "--against b:1 --yes --client aiokafka -X security.protocol=SSL",
            "--client aiokafka takes no settings of a connection: security.protocol",
        ),
        (
            "--against b:1 --client kafka-python --set group.config.group.protocol=consumer",
            "tiny.yaml:1:1: members app: this client does not speak the consumer protocol",
        ),
        (
            "--against b:1 --set nemesis={rate:1_per_1m,of:[network]}",
            "tiny.yaml:1:1: nemesis: faults of the network are not made against real clients",
        ),
        (
            "--against b:1 --set group.config.partition.assignment.strategy=sticky",
            "tiny.yaml:1:1: members app: this client has no assignor 'sticky'; it has range, roundrobin, cooperative-sticky",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_contacted(cli: Cli, line: str, message: str) -> None:
    ran = cli.run(["simulate", "run", "tiny.yaml", *(word.replace(":1_per_1m,of:", ": 1 per 1m, of: ") for word in line.split())])
    assert ran.code == 2, ran.err
    assert message in ran.err
    assert cli.settings == []


@pytest.mark.parametrize(("client", "package"), [("kafka-python", "kafka"), ("aiokafka", "aiokafka")])
def test_a_client_that_is_not_installed_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch, client: str, package: str) -> None:
    monkeypatch.setattr(fleet, "find_spec", lambda name: None if name == package else object())
    ran = cli(f"simulate run tiny.yaml --against b:1 --client {client}")
    assert (ran.code, cli.settings) == (2, [])
    assert f"the client {client} is not installed: there is no Python package {package}" in ran.err


def test_the_help_names_every_client(cli: Cli) -> None:
    told = " ".join(cli("simulate run --help").out.split()).partition("--client NAME")[2].partition("--kafka-libs DIR ")[0]
    assert [name for name in ("java", *fleet.PythonClient.names) if name not in told] == []


@pytest.mark.parametrize("right", ["describe", "delete"])
def test_a_right_on_groups_that_is_missing_is_told_before_anything_is_made(right: str) -> None:
    """Of a group whose name begins as those of plays do: rights may be given by that prefix."""

    class Refusing(FakeGroupAdmin):
        def _called(self, name: str, arguments: Any) -> None:
            if name.startswith(right):
                self.group_errors["kgctl-rehearsal-check"] = ItemError(ErrorCode.GROUP_AUTHORIZATION_FAILED, f"not to {right}")

    admin = Refusing()
    with pytest.raises(AuthError, match=f"not to {right}"):
        ClusterGroups(admin).check()


def test_a_cluster_without_such_a_group_may_be_played_on() -> None:
    ClusterGroups(FakeGroupAdmin()).check()


def test_a_cluster_elsewhere_is_asked_about_first(cli: Cli) -> None:
    ran = cli("simulate run tiny.yaml --against kafka.example.org:9092 --plays 2", stdin="n\n")
    assert (ran.code, cli.settings) == (1, [])
    assert "Play tiny with 2 pods (librdkafka) on kafka.example.org:9092, for about 1m 20s?" in ran.err
    assert "removed afterwards. [y/N]" in ran.err
