"""A user who lacks a right: a preview says so as the deed does, for what lacks it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgctl.admin import GroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.testing import EmbeddedServer
from tests.cli.harness import Cli, Ran
from tests.support.kafka import produce
from tests.support.patience import PATIENCE_MS

GROUPS, TOPICS = ("mine", "yours"), ("open", "shut")
ALL = [(group, topic) for group in GROUPS for topic in TOPICS]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(dict.fromkeys(TOPICS, 1), quick=True) as server:
        for topic in TOPICS:
            produce(server.bootstrap, topic, {0: 5})
        yield server


@pytest.fixture
def admin(server: EmbeddedServer) -> Iterator[GroupAdmin]:
    """Two groups have committed 3 on two topics each."""
    with connect(ConnectionSettings(server.bootstrap, timeout_ms=PATIENCE_MS)) as admin:
        for group in GROUPS:
            commits = {TopicPartition(topic, 0): OffsetAndMetadata(3) for topic in TOPICS}
            assert not admin.alter_offsets(group, commits).errors
        yield admin
        admin.delete_groups(GROUPS)


@pytest.fixture
def cli(server: EmbeddedServer, admin: GroupAdmin, tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    cli.connect = lambda _: connect(ConnectionSettings(server.bootstrap, timeout_ms=PATIENCE_MS))
    return cli


def failed(ran: Ran) -> list[tuple[Any, ...]]:
    """The rows that failed: what they are about; and the errors, without the words about a row."""
    rows = [tuple(row.get(name) for name in ("group", "topic")) for row in ran.data if row["result"] == "failed"]
    return [*rows, *((error["code"], error["group"], error["topic"]) for error in ran.json["errors"])]


READ_GROUP, DELETE_GROUP, READ_TOPIC = "read group:yours", "delete group:yours", "read topic:shut"
NO_GROUP, NO_TOPIC = "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"
RESET = "reset-offsets mine yours --all-topics --to-earliest"
CASES = [
    (READ_GROUP, RESET, "--execute", [("yours", topic) for topic in TOPICS], NO_GROUP),
    (READ_TOPIC, RESET, "--execute", [(group, "shut") for group in GROUPS], NO_TOPIC),
    (DELETE_GROUP, RESET, "--execute", [], NO_GROUP),
    (DELETE_GROUP, "delete-groups mine yours", "--yes", [("yours", None)], NO_GROUP),
    (READ_TOPIC, "delete-groups mine yours", "--yes", [], NO_TOPIC),
    (DELETE_GROUP, "delete-offsets mine yours --topic open", "--yes", [("yours", "open")], NO_GROUP),
    (READ_TOPIC, "delete-offsets mine --topic open --topic shut", "--yes", [("mine", "shut")], NO_TOPIC),
    (READ_GROUP, "delete-offsets mine yours --topic open", "--yes", [], NO_GROUP),
    (READ_GROUP, "undo {folder}/u.csv", "--execute", [("yours", topic) for topic in TOPICS], NO_GROUP),
    (READ_TOPIC, "undo {folder}/u.csv", "--execute", [(group, "shut") for group in GROUPS], NO_TOPIC),
]


@pytest.mark.parametrize(("rule", "line", "answer", "rows", "code"), CASES)
def test_a_preview_fails_where_the_deed_does(
    server: EmbeddedServer, admin: GroupAdmin, cli: Cli, rule: str, line: str, answer: str, rows: list[tuple[str, str]], code: str
) -> None:
    """Nothing that is denied is asked for, either."""
    if "undo" in line:
        assert cli(f"delete-groups mine yours --yes --backup {cli.folder}/u.csv").code == 0
    line = line.format(folder=cli.folder)
    before = admin.list_committed_offsets(GROUPS).values
    with server.deny(rule):
        preview = cli(f"{line} --dry-run -o json")
        assert admin.list_committed_offsets(GROUPS).values == before
        deed = cli(f"{line} {answer} -o json")
    assert failed(preview) == failed(deed)
    assert failed(preview)[: len(rows)] == rows
    assert {error["code"] for error in preview.json["errors"]} == ({code} if rows else set())
    assert preview.code == deed.code == (3 if rows else 0)
    after = admin.list_committed_offsets(GROUPS).values
    kept = {key for key in ALL if before[key[0]].get(_place(key)) == after[key[0]].get(_place(key))}
    denied = {(group, topic) for group, of in rows for topic in ((of,) if of else TOPICS)}
    assert kept & denied == denied


def _place(key: tuple[str, str]) -> TopicPartition:
    return TopicPartition(key[1], 0)


def test_what_an_undo_takes_away_needs_the_rights_of_a_deletion(server: EmbeddedServer, admin: GroupAdmin, cli: Cli) -> None:
    line = f"reset-offsets new --topic open --to-earliest --create --execute --backup {cli.folder}/u.csv"
    assert cli(line).code == 0
    with server.deny("delete group:new"):
        preview, deed = (cli(f"undo {cli.folder}/u.csv {answer} -o json") for answer in ("--dry-run", "--execute"))
    assert (preview.code, failed(preview)) == (deed.code, failed(deed))
    assert (preview.code, failed(preview)) == (8, [("new", "open"), (NO_GROUP, "new", "open")])
    assert not admin.delete_groups(["new"]).errors


def test_a_group_that_is_still_to_be_made_needs_rights_too(server: EmbeddedServer, cli: Cli) -> None:
    with server.deny("read group:new"):
        ran = cli("reset-offsets new --topic open --to-earliest --create -o json")
    assert (ran.code, failed(ran)) == (8, [("new", "open"), (NO_GROUP, "new", "open")])
    assert "this user lacks the right READ on the group" in ran.err


def test_members_are_removed_by_who_may_read_the_group(server: EmbeddedServer, cli: Cli) -> None:
    with server.consumer_group("manned", "open") as group:
        group.next()
        with server.deny("read group:manned"):
            preview, deed = (cli(f"remove-members manned --all {answer}") for answer in ("--dry-run", "--yes"))
    told = "kgctl: not authorised for group 'manned': this user lacks the right READ on the group\n"
    assert preview == deed == Ran(8, "", told)


HIDDEN = [
    ("undo {0}/u.csv", 3),
    ("undo {0}/u.csv --execute", 3),
    ("reset-offsets --plan {0}/p.csv", 3),
    ("reset-offsets --from-file {0}/f.csv --skip-missing", 3),
    ("reset-offsets mine --topic open --topic shut --to-latest --skip-missing", 8),
    ("reset-offsets mine --topic shut --to-latest --skip-missing --execute", 8),
    ("reset-offsets yours --from-group mine --topic open --topic shut --skip-missing", 8),
    ("reset-offsets yours --from-group mine --topic shut", 8),
    ("diff-offsets mine yours --topic shut", 8),
    ("diff-offsets mine yours --topic shut --fail-if-different", 8),
    ("diff-offsets {0}/f.csv --all", 3),
    ("diff-offsets {0}/f.csv --topic shut", 8),
    ("diff-offsets {0}/f.csv yours --all", 3),
]


@pytest.mark.parametrize(("line", "code"), HIDDEN)
def test_a_topic_that_this_user_may_not_see_is_not_one_that_is_gone(
    server: EmbeddedServer, cli: Cli, line: str, code: int
) -> None:
    """It is named, in a file or on the command line, and neither left out nor without commits."""
    assert cli(f"reset-offsets mine --all-topics --to-earliest --execute --backup {cli.folder}/u.csv").code == 0
    assert cli(f"reset-offsets yours --all-topics --to-earliest --plan-out {cli.folder}/p.csv").code == 0
    (cli.folder / "f.csv").write_text("group,topic,partition,offset\nmine,open,0,1\nmine,shut,0,1\n")
    with server.deny("describe topic:shut"):
        ran = cli(f"{line.format(cli.folder)} -o json")
    assert (ran.code, [row["topic"] for row in ran.data if row["result"] != "failed"]) == (code, ["open"] if code == 3 else [])
    assert {error["code"] for error in ran.json["errors"]} == {NO_TOPIC}
    assert "not authorised for topic 'shut': this user lacks the right DESCRIBE on the topic" in ran.err
