"""What works with which release of Apache Kafka, each command beside the release's own tool.

``python -m tests.admin.broker_matrix``

Starts one broker after the other and writes what came out to tests/golden/brokers.json, of which the manual's table is made.
``python -m tests.admin.broker_matrix 2.1.1 4.2.0`` looks at these alone.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

import kgctl
from kgctl.admin.connect import ConnectionSettings, connect
from kgctl.errors import KgctlError, UnsupportedError
from kgctl.group.consumer_group import ConsumerGroup
from kgctl.model.groups import StartOffset, TopicPartition
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient
from kgctl.wire.connection import STREAMS_GROUP_DESCRIBE
from kgctl.wire.settings import WireSettings
from tests.support.kafka.group_types import SHARE_GROUPS, STREAMS_GROUPS
from tests.support.kafka.kgctl import KgctlRun, run_kgctl
from tests.support.kafka.releases import RELEASES, OwnTools, start_release
from tests.support.kafka.streams import streams_member
from tests.support.kafka.tools import kcg_rows
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S

RESULTS = Path(__file__).parents[1] / "golden" / "brokers.json"
TOPIC, RECORDS = "orders", (10, 20, 30)
DONE, LIVE, GONE, SHARED, STREAMS = "done", "live", "gone", "shared", "app"
WORKS = "yes"
RESETS: Mapping[str, tuple[str, ...]] = {
    "--to-earliest": (),
    "--to-latest": (),
    "--to-current": (),
    "--to-offset": ("4",),
    "--shift-by": ("-2",),
    "--by-duration": ("PT0S",),
    "--to-datetime": ("2020-01-01T00:00:00.000",),
}
"""Targets of ``reset-offsets``, as both tools spell them."""
_TOO_OLD = re.compile(r"needs Kafka (\S+?)[.;]?$")


class Lab:
    """A broker with a topic, two groups that have committed and nobody in them, and one with a member."""

    def __init__(self, release: str, bootstrap: str, folder: Path) -> None:
        self.tools, self.bootstrap, self.folder = OwnTools(release), bootstrap, folder
        admin = AdminClient({"bootstrap.servers": bootstrap})
        while admin.list_topics(timeout=PATIENCE_S).controller_id < 0:
            time.sleep(0.1)
        admin.create_topics([NewTopic(TOPIC, len(RECORDS), 1)])[TOPIC].result(PATIENCE_S)
        producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
        for partition, count in enumerate(RECORDS):
            for number in range(count):
                producer.produce(TOPIC, str(number).encode(), partition=partition)
        assert producer.flush(PATIENCE_S) == 0
        with kgctl.connect(bootstrap) as there:
            for group in (DONE, GONE):
                there.alter_offsets(group, {(TOPIC, 0): 7, (TOPIC, 1): 3, (TOPIC, 2): 30}).raise_first()
        self.member = ConsumerGroup(bootstrap, LIVE, [TOPIC])
        self.member.next(timeout_ms=int(PATIENCE_S * 1000))

    def close(self) -> None:
        self.member.close()
        self.tools.close()

    def tool(self, *arguments: str) -> str:
        return self.tools.printed("--bootstrap-server", self.bootstrap, "--timeout", "60000", *arguments)

    def other_tool(self, name: str, *arguments: str) -> list[dict[str, str]]:
        """The rows that the release's tool for groups of another type prints."""
        return kcg_rows(self.tools.printed("--bootstrap-server", self.bootstrap, *arguments, name=name))

    def wait(self, group: str, state: str) -> None:
        """Until the group is in this state, as kgctl has it."""
        wait_until(lambda: [row["state"] for row in self.run_rows(group)] == [state], f"{group} is {state}")

    def run_rows(self, group: str) -> list[dict[str, Any]]:
        return self.run("describe", "group", group, "--state").data or []

    def run(self, *arguments: str) -> KgctlRun:
        home = {name: str(self.folder) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
        with mock.patch.dict(os.environ, home):
            return run_kgctl(self.bootstrap, *arguments, code=None)

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """The rows of a command that has to end well."""
        done = self.run(*arguments)
        assert done.code == 0, f"{arguments}: {done.out}{done.err}"
        rows: list[dict[str, Any]] = done.data
        return rows

    def committed(self, group: str) -> dict[int, tuple[int, int, int]]:
        """Partition -> commit, log end and lag, as the release's own tool shows them."""
        rows = kcg_rows(self.tool("--describe", "--group", group))
        names = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
        found = {int(row["PARTITION"]): [row[name] for name in names] for row in rows if row["CURRENT-OFFSET"] != "-"}
        return {partition: (int(at), int(end), int(lag)) for partition, (at, end, lag) in found.items()}

    def undo_files(self) -> list[str]:
        return sorted(str(path) for path in self.folder.rglob("*.csv"))


def listed(lab: Lab) -> None:
    own = {line.strip() for line in lab.tool("--list").splitlines() if line.strip() and not line.startswith("Note:")}
    assert {row["group"] for row in lab.rows("list", "groups")} == own == {DONE, GONE, LIVE}


def states(lab: Lab) -> None:
    shown = {row["group"]: row["state"] for row in lab.rows("list", "groups")}
    own = {group: kcg_rows(lab.tool("--describe", "--state", "--group", group))[-1]["STATE"] for group in shown}
    assert shown == own == {DONE: "Empty", GONE: "Empty", LIVE: "Stable"}
    assert [row["group"] for row in lab.rows("list", "groups", "--state", "Stable")] == [LIVE]


def types(lab: Lab) -> None:
    assert {row["group"] for row in lab.rows("list", "groups", "--type", "classic")} == {DONE, GONE, LIVE}
    assert not lab.rows("list", "groups", "--type", "consumer")


def described(lab: Lab) -> None:
    for group in (DONE, LIVE):
        rows = lab.rows("describe", "group", group)
        shown = {row["partition"]: (row["current_offset"], row["log_end_offset"], row["lag"]) for row in rows}
        assert {partition: found for partition, found in shown.items() if found[0] is not None} == lab.committed(group)
    members = {row["CONSUMER-ID"] for row in kcg_rows(lab.tool("--describe", "--members", "--group", LIVE))}
    assert {row["consumer_id"] for row in lab.rows("describe", "group", LIVE, "--members")} == members


def planned(lab: Lab) -> None:
    for target, value in RESETS.items():
        words = ("--topic", TOPIC, target, *value, "--dry-run")
        shown = {row["partition"]: row["new_offset"] for row in lab.rows("reset-offsets", DONE, *words)}
        assert shown == _plan_of(lab.tool("--reset-offsets", "--group", DONE, *words)), target


def _plan_of(printed: str) -> dict[int, int]:
    """Partition -> the offset that the tool plans; 3.9's prints its table on one line."""
    words = printed[printed.index("TOPIC ") :].split()
    width = words.index("NEW-OFFSET") + 1
    words = [word for word in words[width:] if word != DONE]
    return {int(words[at + 1]): int(words[at + 2]) for at in range(0, len(words), 3) if words[at] == TOPIC}


def reset_and_undone(lab: Lab) -> None:
    before = lab.committed(DONE)
    lab.rows("reset-offsets", DONE, "--topic", TOPIC, "--to-earliest", "--execute", "--yes")
    assert {at for at, _, _ in lab.committed(DONE).values()} == {0}
    lab.rows("undo", "last", "--execute", "--yes")
    assert lab.committed(DONE) == before


def offsets_deleted(lab: Lab) -> None:
    words = ("delete-offsets", DONE, "--topic", f"{TOPIC}:1")
    _refused_as_one(lab, words)
    lab.rows(*words, "--yes")
    assert sorted(lab.committed(DONE)) == [0, 2]


def members_removed(lab: Lab) -> None:
    words = ("remove-members", LIVE, "--all")
    _refused_as_one(lab, words)
    assert [row["result"] for row in lab.rows(*words, "--yes")] == ["removed"]


def _refused_as_one(lab: Lab, words: tuple[str, ...]) -> None:
    """A release that cannot do it refuses the dry run as well, with one error, and before anything is written.

    Raises:
        UnsupportedError: it does.
    """
    files = lab.undo_files()
    runs = [lab.run(*words, mode) for mode in ("--dry-run", "--yes")] if lab.run(*words, "--dry-run").code else []
    if runs:
        first, second = (run.document["errors"] for run in runs)
        assert first == second
        assert (len(first), lab.undo_files()) == (1, files)
        raise UnsupportedError(first[0]["message"], code=first[0]["code"])


def group_deleted(lab: Lab) -> None:
    lab.rows("delete-groups", GONE, "--yes")
    assert GONE not in lab.tool("--list").split()


def consumer_protocol(lab: Lab) -> None:
    with ConsumerGroup(lab.bootstrap, "new", [TOPIC], protocol="consumer") as group:
        assert len(group.next(timeout_ms=int(PATIENCE_S * 1000)).assignments) == len(RECORDS)


def shared(lab: Lab) -> None:
    with connect(ConnectionSettings(lab.bootstrap)) as admin:
        wanted = {TopicPartition(TOPIC, number): StartOffset(at) for number, at in enumerate((7, 3, 30))}
        failed = admin.alter_offsets(SHARED, wanted).errors
    for error in failed.values():
        raise error.to_exception(group=SHARED)
    assert [row["group"] for row in lab.rows("list", "groups", "--type", "share")] == [SHARED]
    assert _starts(lab) == {0: 7, 1: 3, 2: 30}


def _starts(lab: Lab) -> dict[int, int]:
    """Partition -> start offset, the same for both."""
    own = lab.other_tool(SHARE_GROUPS, "--describe", "--group", SHARED)
    found = {row["partition"]: row["current_offset"] for row in lab.rows("describe", "group", SHARED)}
    assert found == {int(row["PARTITION"]): int(row["START-OFFSET"]) for row in own}
    return found


def shared_and_changed(lab: Lab) -> None:
    shared(lab)
    lab.rows("reset-offsets", SHARED, "--topic", TOPIC, "--to-earliest", "--execute", "--yes")
    assert set(_starts(lab).values()) == {0}
    told = all(row["lag"] is not None for row in lab.rows("describe", "group", SHARED))
    lab.rows("undo", "last", "--execute", "--yes", *(() if told else ("--overwrite",)))
    assert _starts(lab) == {0: 7, 1: 3, 2: 30}
    lab.rows("delete-offsets", SHARED, "--topic", TOPIC, "--yes")
    lab.rows("delete-groups", SHARED, "--yes")
    assert not lab.rows("list", "groups", "--type", "share")


def streams(lab: Lab) -> None:
    with closing(ClusterClient(WireSettings.from_properties({"bootstrap.servers": lab.bootstrap}))) as cluster:
        cluster.ask(lambda connection: connection.version(STREAMS_GROUP_DESCRIBE), Deadline(int(PATIENCE_S * 1000)))
    with streams_member(lab.bootstrap, STREAMS, TOPIC, len(RECORDS)):
        lab.wait(STREAMS, "Stable")
        (member,) = lab.rows("describe", "group", STREAMS, "--members")
        (own,) = lab.other_tool(STREAMS_GROUPS, "--describe", "--group", STREAMS, "--members", "--verbose")
        assert (own["MEMBER"], own["ASSIGNMENTS"]) == (member["consumer_id"], "ACTIVE: 0:[0,1,2]; TARGET-ACTIVE: 0:[0,1,2];")
        assert (member["active_tasks"], member["target_active_tasks"]) == ("0:0,1,2", "0:0,1,2")
    lab.wait(STREAMS, "Empty")


def streams_and_changed(lab: Lab) -> None:
    streams(lab)
    lab.rows("reset-offsets", STREAMS, "--topic", TOPIC, "--to-latest", "--execute", "--yes")
    scope = ("--reset-offsets", "--group", STREAMS, "--all-input-topics", "--to-current", "--dry-run")
    own = lab.other_tool(STREAMS_GROUPS, *scope)
    assert {int(row["PARTITION"]): int(row["NEW-OFFSET"]) for row in own} == dict(enumerate(RECORDS))
    lab.rows("delete-offsets", STREAMS, "--topic", f"{TOPIC}:0", "--yes")
    lab.rows("undo", "last", "--execute", "--yes")
    assert len(lab.other_tool(STREAMS_GROUPS, *scope)) == len(RECORDS)
    lab.rows("delete-groups", STREAMS, "--yes")
    assert not lab.rows("list", "groups", "--type", "streams")


CHECKS: Mapping[str, Callable[[Lab], None]] = {
    "`list groups`": listed,
    "`list groups`: states, `--state`": states,
    "`list groups --type`": types,
    "`describe group`: offsets, lag, members": described,
    "`reset-offsets`: plans of seven targets": planned,
    "`reset-offsets`, `undo`": reset_and_undone,
    "`delete-offsets`": offsets_deleted,
    "`remove-members`": members_removed,
    "`delete-groups`": group_deleted,
    '`ConsumerGroup(protocol="consumer")`': consumer_protocol,
    "share groups: `list`, `describe`": shared,
    "share groups: `reset-offsets`, `delete-offsets`, `delete-groups`, `undo`": shared_and_changed,
    "streams groups: `list`, `describe`": streams,
    "streams groups: `reset-offsets`, `delete-offsets`, `delete-groups`, `undo`": streams_and_changed,
}
"""What the table has a line for, in the order in which it is tried."""


def look_at(release: str) -> dict[str, str]:
    """What works with a release: "yes", or what kgctl says that it needs.

    Raises:
        AssertionError: something is not as the release's own tool has it, or fails without saying so.
    """
    with tempfile.TemporaryDirectory() as folder:
        broker = start_release(release, Path(folder) / "broker")
        try:
            lab = Lab(release, broker.bootstrap, Path(folder) / "home")
            try:
                return {what: _outcome(check, lab) for what, check in CHECKS.items()}
            finally:
                lab.close()
        finally:
            broker.stop()


def _outcome(check: Callable[[Lab], None], lab: Lab) -> str:
    try:
        check(lab)
    except KgctlError as error:
        if error.code != "UNSUPPORTED_VERSION":
            raise AssertionError(f"{check.__name__}: {error}") from error
        found = _TOO_OLD.search(error.message)
        return f"needs {found[1]}" if found else "no"
    return WORKS


def main() -> None:
    known: dict[str, dict[str, str]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for release in sys.argv[1:] or RELEASES:
        known[release] = look_at(release)
        print(release, known[release], flush=True)
        RESULTS.write_text(json.dumps({each: known[each] for each in RELEASES if each in known}, indent=1) + "\n")


if __name__ == "__main__":
    main()
