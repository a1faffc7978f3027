"""What an operator asks a server that runs: status, completing a rebalance, the commit log."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kgctl.errors import AuthError, RefusedError, TimedOutError, UnreachableError
from kgctl.server import operator
from kgctl.server.background import BackgroundServer
from kgctl.wire import Deadline
from kgctl.wire.connection import Connection, open_connection
from kgctl.wire.settings import WireSettings
from tests.cli.harness import Cli
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import RawClient
from tests.wire.differential.talk import commit_values

OFFSET_COMMIT = 8
CONFIG = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[BackgroundServer]:
    with BackgroundServer(topics={"t": 1}, config=CONFIG, data=tmp_path / "data") as running:
        yield running


@pytest.fixture
def stuck(server: BackgroundServer) -> Iterator[tuple[str, str]]:
    """A group whose rebalance waits for its first member: its name, and the member's."""
    with RawClient(server.bootstrap) as raw, RawClient(server.bootstrap) as other:
        first = ClassicMember(raw, "g", ["t"])
        first.join(3)
        ClassicMember(other, "g", ["t"]).send_join(3)
        wait_until(lambda: server.server.describe()["rebalances"] != [], "the join has been read")
        yield "g", first.member_id


def test_status_names_whom_a_rebalance_waits_for(cli: Cli, server: BackgroundServer, stuck: tuple[str, str]) -> None:
    ran = cli(f"serve status {server.bootstrap} -o json")
    (row,) = ran.data

    assert (row["group"], row["state"], row["members"]) == ("g", "PreparingRebalance", 2)
    assert (row["waiting_for"], row["awaited"], row["stuck"]) == ("join", [stuck[1]], False)
    assert ran.json["summary"]["connections"] == 3
    assert "connections, " in ran.err


def test_status_of_some_groups_and_of_their_members(cli: Cli, server: BackgroundServer, stuck: tuple[str, str]) -> None:
    (row,) = cli(f"serve status {server.bootstrap} --rebalancing --group g -o json").data
    members = cli(f"serve status {server.bootstrap} --group g --members -o json").data
    missing = cli(f"serve status {server.bootstrap} --group g --group nosuch -o json")

    assert row["group"] == "g"
    assert sorted((one["group"], one["waits"]) for one in members) == [("g", False), ("g", True)]
    first = next(one for one in members if one["member"] == stuck[1])
    assert row["created"] <= first["joined"] <= first["last_heartbeat"]
    assert row["created"] <= row["last_activity"]
    assert [one["joined"] for one in members if one["waits"]] == [None]  # it has not joined before it is answered
    assert (missing.code, [error["group"] for error in missing.json["errors"]]) == (3, ["nosuch"])


def test_a_group_that_is_not_there_is_none_without_a_rebalance(
    cli: Cli, server: BackgroundServer, stuck: tuple[str, str]
) -> None:
    with RawClient(server.bootstrap) as raw:
        raw.call(OFFSET_COMMIT, 8, commit_values("t", None, group_id="quiet"))
    assert cli(f"serve status {server.bootstrap} --rebalancing --group quiet").code == 0
    ran = cli(f"serve status {server.bootstrap} --rebalancing --group {stuck[0]} --group quiet --group nosuch -o json")
    assert (ran.code, [error["group"] for error in ran.json["errors"]]) == (3, ["nosuch"])


def test_two_servers_are_not_asked_as_one(cli: Cli, server: BackgroundServer) -> None:
    ran = cli(f"serve status {server.bootstrap} --bootstrap-server other:9092")
    assert (ran.code, "both say which server is meant" in ran.err) == (2, True), ran.err


def test_a_group_from_before_the_start_has_no_time_of_making(cli: Cli, tmp_path: Path) -> None:
    for asked in (commit_values("t", None, group_id="g"), None):
        with BackgroundServer(topics={"t": 1}, config=CONFIG, data=tmp_path) as server, RawClient(server.bootstrap) as raw:
            if asked is not None:
                raw.call(OFFSET_COMMIT, 8, asked)
            (row,) = cli(f"serve status {server.bootstrap} -o json").data
            assert [row[key] is not None for key in ("created", "last_activity")] == [asked is not None] * 2


def test_status_over_thousands_of_groups_goes_in_pieces(cli: Cli, server: BackgroundServer) -> None:
    with RawClient(server.bootstrap) as raw:
        for number in range(2_000):
            raw.call(OFFSET_COMMIT, 8, commit_values("t", None, group_id=f"g{number}"))

    assert len(cli(f"serve status {server.bootstrap} -o json").data) == 2_000
    assert cli(f"serve status {server.bootstrap} --group g7 -o name").out == "g7\n"


def test_status_finds_the_server_of_a_data_folder(
    cli: Cli, server: BackgroundServer, stuck: tuple[str, str], tmp_path: Path
) -> None:
    (row,) = cli(f"serve status {tmp_path / 'data'} -o json").data

    assert row["waiting_for"] == "join"


def test_a_folder_that_no_server_has_open_tells_of_the_groups_that_were_asked_about(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with BackgroundServer(data=folder):
        pass
    assert cli(f"serve status {folder} --group g1 -o name").out == "g1\n"
    gone = cli(f"serve status {folder} --group nosuch")
    assert (gone.code, gone.err.splitlines()[0]) == (4, "kgctl: group 'nosuch' does not exist")
    for option in ("--members", "--rebalancing"):
        ran = cli(f"serve status {folder} {option}")
        message = f"kgctl: no server has {folder} open: only one that runs has rebalances and sessions\n"
        assert (ran.code, ran.out, ran.err) == (7, "", message)


def test_a_rebalance_is_completed_when_the_question_is_answered(
    cli: Cli, server: BackgroundServer, stuck: tuple[str, str]
) -> None:
    refused = cli(f"serve complete-rebalance g {server.bootstrap}", stdin="n\n")
    assert (refused.code, stuck[1] in refused.err) == (1, True)
    done = cli(f"serve complete-rebalance g {server.bootstrap} -o json", stdin="y\n")

    assert (done.code, done.data) == (0, [{"group": "g", "member": stuck[1], "status": "removed"}])


def test_completing_is_shown_first_and_changes_nothing(cli: Cli, server: BackgroundServer, stuck: tuple[str, str]) -> None:
    shown = cli(f"serve complete-rebalance g {server.bootstrap} --dry-run -o json")
    assert (shown.code, shown.data) == (0, [{"group": "g", "member": stuck[1], "status": "removable"}])
    assert cli(f"serve status {server.bootstrap} -o json").data[0]["awaited"] == [stuck[1]]


def test_somebody_else_completes_it_while_the_question_stands(
    cli: Cli, server: BackgroundServer, stuck: tuple[str, str], tmp_path: Path
) -> None:
    other = Cli(tmp_path)
    cli.while_asked = lambda: other(f"serve complete-rebalance g {server.bootstrap} --yes")
    ran = cli(f"serve complete-rebalance g {server.bootstrap}", stdin="y\n")
    assert (ran.code, f"on {server.bootstrap}" in ran.err) == (5, True), ran.err


def test_an_authorizer_is_asked(cli: Cli) -> None:
    """Who may not read a group does not put its members out, and who may not see the cluster does not hear of its groups."""
    with BackgroundServer(topics={"t": 1}, config=CONFIG, acls=["allow bob read group:g"]) as server:
        seen = cli(f"serve status {server.bootstrap} -o json")
        put_out = cli(f"serve complete-rebalance g {server.bootstrap} --yes")
        assert (seen.code, [error["code"] for error in seen.json["errors"]]) == (8, ["CLUSTER_AUTHORIZATION_FAILED"])
        assert put_out.code == 8, put_out.err
    with BackgroundServer(topics={"t": 1}, config=CONFIG, acls=["allow User:* describe cluster"]) as server:
        settings, deadline = WireSettings.from_properties({"bootstrap.servers": server.bootstrap}), Deadline(PATIENCE_MS)
        with (
            closing(open_connection(settings.bootstrap[0], settings, deadline)) as connection,
            pytest.raises(AuthError, match="READ of group 'g' is not allowed"),
        ):
            operator.ask_to_complete(connection, "g", deadline)
    rules = ["allow User:* describe cluster", "allow User:* read group:g"]
    with BackgroundServer(topics={"t": 1}, config=CONFIG, acls=rules) as server:
        assert cli(f"serve status {server.bootstrap} -o json").data == []
        assert cli(f"serve complete-rebalance g {server.bootstrap} --yes").code == 4


FAULTS: dict[str, tuple[BaseException | int, int, str]] = {
    "lost before": (UnreachableError("the connection was closed"), 3, "unknown"),
    "lost behind": (UnreachableError("the connection was closed"), 0, "removed"),
    "timed out": (TimedOutError("no answer within 1 s"), 3, "unknown"),
    "refused": (RefusedError("group 'g' has no rebalance under way"), 5, "failed"),
    "ctrl-c": (signal.SIGINT, 130, "removed"),
    "sigterm": (signal.SIGTERM, 143, "removed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_became_of_the_members_is_told_whatever_ends_it(
    cli: Cli, server: BackgroundServer, stuck: tuple[str, str], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, code, status = FAULTS[fault]
    ask = operator.ask_to_complete

    def faulty(connection: Connection, group_id: str, deadline: Deadline) -> list[str]:
        removed = ask(connection, group_id, deadline) if status == "removed" else []
        if isinstance(act, BaseException):
            raise act
        os.kill(os.getpid(), act)
        return removed

    monkeypatch.setattr(operator, "ask_to_complete", faulty)
    ran = cli(f"serve complete-rebalance g {server.bootstrap} --yes -o json")
    (row,) = cli(f"serve status {server.bootstrap} -o json").data

    told = [{"group": "g", "member": stuck[1], "status": status}]
    assert (ran.code, ran.json["exit_code"], ran.data) == (code, code, told), ran.err
    assert (row["waiting_for"] == "join" and row["awaited"] == [stuck[1]]) == (status != "removed")


@pytest.mark.parametrize(("group", "code"), [("nosuch", 4), ("idle", 5)])
def test_only_a_rebalance_under_way_is_completed(cli: Cli, server: BackgroundServer, group: str, code: int) -> None:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}
    with RawClient(server.bootstrap) as raw:
        raw.call(8, 8, {"group_id": "idle", "topics": [{"name": "t", "partitions": [partition]}]})

    assert cli(f"serve complete-rebalance {group} {server.bootstrap} --yes").code == code


def test_what_is_no_server_is_said(cli: Cli, tmp_path: Path) -> None:
    assert cli("serve status 127.0.0.1:1").code == 7
    assert cli("serve status ./typo").err == "kgctl: there is no folder './typo', and it is no HOST:PORT\n"
    assert cli(f"serve complete-rebalance g {tmp_path} --yes").code == 7


def test_the_commit_log_is_filtered_and_replayed(cli: Cli, server: BackgroundServer, tmp_path: Path) -> None:
    with RawClient(server.bootstrap) as raw:
        for group, offset in (("a", 1), ("b", 2), ("a", 3)):
            partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
            raw.call(8, 8, {"group_id": group, "topics": [{"name": "t", "partitions": [partition]}]})
    data = tmp_path / "data"
    rows = cli(f"serve commits {data} -o json").data
    (first, _, last) = rows

    assert [(row["group"], row["offset"]) for row in rows] == [("a", 1), ("b", 2), ("a", 3)]
    assert [row["offset"] for row in cli(f"serve commits {data} --group a -o json").data] == [1, 3]
    assert [row["offset"] for row in cli(f"serve commits {data} --since {last['time']} -o json").data][-1] == 3
    assert [row["offset"] for row in cli(f"serve commits {data} --at {last['time']} --group a -o json").data] == [3]
    assert [row["offset"] for row in cli(f"serve commits {data} --at 1970-01-01T00:00:00Z -o json").data] == []
    assert cli(f"serve commits {data} --at {first['time']} --since {first['time']}").code == 2
    assert cli(f"serve commits {tmp_path / 'nosuch'}").code == 4
    ran = cli(f"serve commits {data} --group a --group nosuch -o json")
    assert (ran.code, [error["message"] for error in ran.json["errors"]]) == (3, ["group 'nosuch' has never committed"])
    assert cli(f"serve commits {data} --group nosuch --at {last['time']}").code == 4
    assert cli(f"serve commits {data} --group a --until 1970-01-01T00:00:00Z").err == "No commits.\n"
