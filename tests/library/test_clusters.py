"""`kgctl.connect`: what it connects to, and resets that are planned, done and undone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import kgctl
from kgctl.admin import GroupAdmin
from kgctl.errors import AuthError, ClosedError, MisuseError, NotFoundError, RefusedError, UsageError
from kgctl.library.clusters import AsyncAdmin, _context_settings
from kgctl.testing import EmbeddedServer
from kgctl.zookeeper import Registry
from tests.support.patience import PATIENCE_MS, PATIENCE_S


@pytest.fixture
def cluster() -> Iterator[EmbeddedServer]:
    """Ten records in each of two partitions; the group has read four of one."""
    with EmbeddedServer({"orders": 2}) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(20):
            producer.produce("orders", b"x", partition=number % 2)
        assert producer.flush(PATIENCE_S) == 0
        running.commit("payments", {("orders", 0): 4})
        yield running


def test_a_reset_is_planned_done_and_undone(cluster: EmbeddedServer) -> None:
    with kgctl.connect(cluster.bootstrap) as admin:
        plan = admin.plan_reset("payments", to="latest", topics=["orders"])
        assert [
            (str(row.partition), row.old and row.old.offset, row.new and row.new.offset, row.result) for row in plan.rows
        ] == [
            ("orders-0", 4, 10, "planned"),
            ("orders-1", None, 10, "planned"),
        ]
        assert cluster.committed("payments") == {("orders", 0): 4}
        assert [row.result for row in plan.execute()] == ["reset", "reset"]
        assert cluster.committed("payments") == {("orders", 0): 10, ("orders", 1): 10}
        with pytest.raises(MisuseError, match="executed before"):
            plan.execute()
        plan.undo().execute()
        assert cluster.committed("payments") == {("orders", 0): 4}


@pytest.mark.parametrize(
    ("target", "offset"),
    [
        ({"to": "earliest"}, 0),
        ({"to": 7}, 7),
        ({"to": 99}, 10),
        ({"shift_by": -3}, 1),
        ({"to": datetime(2100, 1, 1, tzinfo=UTC)}, 10),
        ({"to": datetime(2000, 1, 1, tzinfo=UTC)}, 0),
    ],
)
def test_targets(cluster: EmbeddedServer, target: dict[str, Any], offset: int) -> None:
    with kgctl.connect(cluster.bootstrap) as admin:
        (row,) = admin.plan_reset(["payments"], **target).rows
    assert row.new is not None
    assert row.new.offset == offset


def test_active_groups_and_offsets_outside_are_left_alone(cluster: EmbeddedServer) -> None:
    with kgctl.connect(cluster.bootstrap) as admin:
        with pytest.raises(RefusedError, match="nothing was changed"):
            admin.plan_reset("payments", to=99, clamp=False).execute()
        with cluster.consumer_group("payments", "orders") as group:
            group.next(timeout_ms=PATIENCE_MS)
            plan = admin.plan_reset("payments", to="earliest")
            plan.execute()
            assert [type(error) for error in plan.errors] == [RefusedError]
    assert cluster.committed("payments") == {("orders", 0): 4}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, UsageError, "one of to= and shift_by="),
        ({"to": "latest", "shift_by": 1}, UsageError, "one of to= and shift_by="),
        (
            {"to": "newest"},
            UsageError,
            "to must be one of earliest, latest, current or .*, not 'newest'",
        ),
        ({"to": datetime(2100, 1, 1)}, UsageError, "no time zone"),  # noqa: DTZ001
        ({"to": "latest", "topics": ["ordres"]}, NotFoundError, "ordres"),
    ],
)
def test_refused_plans(cluster: EmbeddedServer, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with kgctl.connect(cluster.bootstrap) as admin, pytest.raises(error, match=message):
        admin.plan_reset("payments", **arguments)


def test_a_context_names_the_cluster(cluster: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``kgctl --context`` has it: the file that KGCTL_CONFIG names, its secrets looked up, its time limit."""
    config = tmp_path / "config.yaml"
    properties = "client.id: reporter\n      ssl.key.password: 'env:KEY_PASSWORD'"
    staging = f"bootstrap-server: {cluster.bootstrap}\n    timeout: 7s\n    properties:\n      {properties}"
    config.write_text(f"contexts:\n  staging:\n    {staging}\n  empty: {{}}\n")
    monkeypatch.setenv("KGCTL_CONFIG", str(config))
    with pytest.raises(UsageError, match="the variable KEY_PASSWORD is not set"):
        kgctl.connect(context="staging")
    monkeypatch.setenv("KEY_PASSWORD", "hidden")
    with kgctl.connect(context="staging") as admin:
        assert list(admin.list_groups().values) == ["payments"]
    settings = _context_settings("staging", {"client.id": "mine"}, None)
    assert (settings.timeout_ms, dict(settings.properties)) == (7000, {"client.id": "mine", "ssl.key.password": "hidden"})
    assert _context_settings("staging", {}, 300).timeout_ms == 300
    for name, problem in (("stagin", "unknown context 'stagin'; known contexts: empty, staging"), ("empty", "names no cluster")):
        with pytest.raises(UsageError, match=problem):
            kgctl.connect(context=name)
    with pytest.raises(UsageError, match=r"name one cluster.*given: bootstrap, context"):
        kgctl.connect(cluster.bootstrap, context="staging")


def test_a_projects_file_counts_where_it_is_named(
    cluster: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kgctl.yml").write_text(f"contexts:\n  dev:\n    bootstrap-server: {cluster.bootstrap}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KGCTL_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(UsageError, match="unknown context 'dev'"):
        kgctl.connect(context="dev")
    monkeypatch.setenv("KGCTL_CONFIG", ".kgctl.yml")
    with kgctl.connect(context="dev") as admin:
        assert list(admin.list_groups().values) == ["payments"]


def test_groups_in_zookeeper(cluster: EmbeddedServer, zookeeper: str) -> None:
    with Registry.connect(zookeeper) as registry:
        registry.group("mirror").commit("orders", 0, 7)
    with kgctl.connect(zookeeper=zookeeper) as admin:
        assert list(admin.list_groups().values) == ["mirror"]
        committed = admin.list_committed_offsets(["mirror"]).values["mirror"]
        assert {partition: stored.offset for partition, stored in committed.items()} == {("orders", 0): 7}
        (row,) = admin.plan_reset("mirror", to=3).rows
        assert str(row.result) == "failed"  # only brokers know where logs end
    with kgctl.connect(cluster.bootstrap, zookeeper=zookeeper) as admin:
        plan = admin.plan_reset("mirror", to=3)
        assert [(row.new and row.new.offset, str(row.result)) for row in plan.rows] == [(3, "planned")]


def test_a_data_folder(tmp_path: Path) -> None:
    with EmbeddedServer({"orders": 1}, data=tmp_path) as running:
        running.commit("payments", {("orders", 0): 0})
    with kgctl.connect(embedded=tmp_path) as admin:
        assert list(admin.list_groups().values) == ["payments"]


def test_nothing_to_undo(cluster: EmbeddedServer) -> None:
    with kgctl.connect(cluster.bootstrap) as admin, pytest.raises(MisuseError, match="not executed"):
        admin.plan_reset("payments", to="latest").undo()


def test_coroutines_may_ask_too(cluster: EmbeddedServer) -> None:
    async def ask() -> Any:
        async with AsyncAdmin(kgctl.connect(cluster.bootstrap)) as admin:
            return await asyncio.gather(admin.list_groups(), admin.list_topics(["orders"]))

    groups, topics = asyncio.run(ask())
    assert (list(groups.values), topics) == (["payments"], {"orders": 2})


def test_a_connection_that_cannot_be_made_costs_its_call_and_no_other(cluster: EmbeddedServer) -> None:
    """More calls than there may be at once fail so, while one is under way: the places that they had are free again."""

    def refuse() -> GroupAdmin:
        raise AuthError("no secret")

    async def ask() -> tuple[list[str], list[str]]:
        async with AsyncAdmin(kgctl.connect(cluster.bootstrap)) as admin:
            again, admin.admin._again = admin.admin._again, refuse
            with cluster.freeze(requests=["ListGroups"]) as freeze:
                waiting = asyncio.create_task(admin.list_groups())
                while not freeze.hits:
                    await asyncio.sleep(0.01)
                for _ in range(5):
                    with pytest.raises(AuthError, match="no secret"):
                        await asyncio.wait_for(admin.list_topics(["orders"]), PATIENCE_S / 10)
                admin.admin._again = again
                topics = list(await asyncio.wait_for(admin.list_topics(["orders"]), PATIENCE_S / 10))
            return topics, list((await waiting).values)

    assert asyncio.run(ask()) == (["orders"], ["payments"])


def test_calls_of_coroutines_do_not_wait_for_each_other(cluster: EmbeddedServer) -> None:
    async def ask() -> list[list[str]]:
        async with AsyncAdmin(kgctl.connect(cluster.bootstrap)) as admin:
            found = [list((await admin.list_groups()).values)]
            with cluster.freeze(requests=["ListGroups"]) as freeze:
                waiting = [asyncio.create_task(admin.list_groups()) for _ in range(2)]
                while freeze.hits < len(waiting):
                    await asyncio.sleep(0.01)
                found.append(list(await admin.list_topics(["orders"])))
                assert not any(each.done() for each in waiting)
                waiting[0].cancel()
                await asyncio.wait(waiting[:1])
                found.append(list(await admin.list_topics(["orders"])))
            found.append(list((await waiting[1]).values))
            return [*found, list((await admin.list_groups()).values)]

    assert asyncio.run(ask()) == [["payments"], ["orders"], ["orders"], ["payments"], ["payments"]]


def test_a_closed_admin_says_so(cluster: EmbeddedServer) -> None:
    admin = kgctl.connect(cluster.bootstrap)
    admin.close()

    for ask in (admin.list_groups, lambda: admin.plan_reset("payments", to="earliest")):
        with pytest.raises(ClosedError, match="connect again"):
            ask()


def test_two_threads_do_not_share_an_admin(cluster: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that comes while the other waits for its answer is told; here it comes from inside the other's call."""
    with kgctl.connect(cluster.bootstrap) as admin:

        def inside() -> str | None:
            admin.list_groups()
            return None

        monkeypatch.setattr(admin.groups, "cluster_id", inside)
        with pytest.raises(MisuseError, match="one thread at a time"):
            admin.cluster_id()
        assert admin.list_groups().errors == {}


def test_results_say_what_failed(cluster: EmbeddedServer) -> None:
    admin = cluster.admin
    admin.alter_offsets("g", {("orders", 0): 7}).raise_first()
    found = admin.describe_groups(["g", "nope"])
    assert found["g"].group_id == "g"
    assert (str(found.errors["nope"]), str(found)) == (
        "group 'nope' does not exist",
        "1 answered; nope: group 'nope' does not exist",
    )
    for ask in (lambda: found["nope"], found.raise_first):
        with pytest.raises(NotFoundError, match="group 'nope' does not exist"):
            ask()
    with pytest.raises(MisuseError, match=r"one\(\) is for one answer, and there are 2: g, nope"):
        found.one()
    with pytest.raises(KeyError):
        found["never asked for"]
    assert admin.list_committed_offsets(["g"]).one()["orders", 0] == kgctl.OffsetAndMetadata(7)
    assert admin.list_log_offsets([("orders", 0)])["orders", 0].log_end_offset == 10
    assert admin.list_offsets_at([("orders", 0)], 1_700_000_000_000)["orders", 0] == 0
    with pytest.raises(NotFoundError):
        admin.list_log_offsets([("nope", 0)]).one()
    assert admin.delete_offsets("g", [("orders", 0)]).status == "ok"
    assert repr(admin.plan_reset("g", to=0, topics=["orders:0"])) == "<Plan: 1 planned>"


@pytest.mark.parametrize("offsets", [{("orders", 0): -1}, {("orders",): 1}, {"orders": 1}, {("orders", 0): "7"}])
def test_offsets_to_commit_are_offsets_of_partitions(cluster: EmbeddedServer, offsets: Any) -> None:
    with pytest.raises(UsageError):
        cluster.admin.alter_offsets("g", offsets)
