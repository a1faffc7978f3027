"""A fault at each step of each changing command: what is told is what the cluster has, and undo brings back the rest."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kgctl.admin import GroupAdmin, ItemError
from kgctl.errors import AuthError, TimedOutError, UnreachableError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MemberDescription, OffsetAndMetadata, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.cli.harness import Cli
from tests.support.fault_lab import (
    AFTER,
    BEFORE,
    CHANGES,
    FOREIGN,
    OLD,
    Change,
    Killed,
    Scene,
    State,
    Steps,
    Told,
    argv,
    commits,
    disk_full_at,
    lies,
    stepped,
    zookeeper,
)

SCENE = Scene("t", ("a", "b", "c"), "manned")
T0 = TopicPartition("t", 0)
JOINED = MemberDescription("m9", "m9", "/127.0.0.1", assignment={"t": (0, 1)}, subscribed_topics=("t",))


def cluster() -> FakeGroupAdmin:
    """Three groups with 7 committed on both partitions of a topic, and one with a static and a dynamic member."""
    admin = FakeGroupAdmin()
    admin.own_cluster_id = "lab"
    admin.topic("t", FakeLog(0, 10), FakeLog(0, 10))
    partitions = [T0, TopicPartition("t", 1)]
    for group in SCENE.groups:
        admin.group(group, dict.fromkeys(partitions, OLD))
    admin.group("manned", dict.fromkeys(partitions, OLD), [replace(JOINED, member_id=m, assignment={}) for m in ("m1", "m2")])
    return admin


def raises(error: BaseException) -> Callable[[FakeGroupAdmin], None]:
    def act(_: FakeGroupAdmin) -> None:
        raise error

    return act


def from_now_on(error: Exception) -> Callable[[FakeGroupAdmin], None]:
    def act(admin: FakeGroupAdmin) -> None:
        admin.failure = error
        raise error

    return act


def sends(number: signal.Signals) -> Callable[[FakeGroupAdmin], None]:
    return lambda _: os.kill(os.getpid(), number)


def nothing_sent() -> UnreachableError:
    error = UnreachableError("127.0.0.1:9092 does not answer")
    error.nothing_sent = True
    return error


def revoke(admin: FakeGroupAdmin) -> None:
    refused = ItemError(ErrorCode.GROUP_AUTHORIZATION_FAILED, "user 'carol' lacks the right READ on the group")
    admin.group_errors["b"] = admin.offset_errors["b"] = refused


def delete_topic(admin: FakeGroupAdmin) -> None:
    admin.logs.clear()
    for group in admin.groups.values():
        group.offsets.clear()


def commit_elsewhere(admin: FakeGroupAdmin) -> None:
    admin.groups.setdefault("b", admin.groups["manned"])
    admin.groups["b"].offsets[T0] = OffsetAndMetadata(FOREIGN)


FAULTS: dict[str, tuple[str, Callable[[FakeGroupAdmin], None]]] = {
    "ctrl-c": (BEFORE, sends(signal.SIGINT)),
    "ctrl-c-after": (AFTER, sends(signal.SIGINT)),
    "sigterm": (BEFORE, sends(signal.SIGTERM)),
    "lost-before": (BEFORE, raises(nothing_sent())),
    "lost-answer": (AFTER, raises(UnreachableError("the connection was closed"))),
    "lost-for-good": (AFTER, from_now_on(UnreachableError("the connection was closed"))),
    "timed-out": (AFTER, from_now_on(TimedOutError("timed out after 30 s"))),
    "login-refused": (BEFORE, from_now_on(AuthError("user 'carol' is not authenticated"))),
    "right-revoked": (BEFORE, revoke),
    "topic-deleted": (BEFORE, delete_topic),
    "other-commits": (BEFORE, commit_elsewhere),
    "other-deletes": (BEFORE, lambda admin: admin.groups.pop("b", None)),  # type: ignore[dict-item]
    "member-joins": (BEFORE, lambda admin: admin.group("b", {T0: OLD, TopicPartition("t", 1): OLD}, [JOINED])),
}
SOMEBODY_ELSE: dict[str, list[object]] = {
    "topic-deleted": [None],
    "other-commits": [FOREIGN, None],
    "other-deletes": [None],
    "member-joins": [OLD],
}


def prepared(change: Change, folder: Path) -> Cli:
    cli = Cli(folder, cluster())
    if change.first:
        ran = cli.run(argv(change.first, SCENE, folder))
        assert ran.code == 0, ran.err
    return cli


def run(change: Change, cli: Cli, folder: Path, steps: Steps) -> Told:
    assert cli.admin is not None
    whole, old = cli.admin, zookeeper(SCENE)
    plain, cli.connect = cli.connect, lambda settings: stepped(old if settings.zookeeper else whole, steps)
    try:
        ran = cli.run([*argv(change.line, SCENE, folder), "-o", "json"])
    finally:
        cli.connect = plain
    return Told(ran.code, ran.out, ran.err)


def truth(change: Change, admin: GroupAdmin) -> State:
    assert isinstance(admin, FakeGroupAdmin)
    admin.failure = None
    admin.offset_errors.clear()
    admin.group_errors.clear()
    return change.look(admin, SCENE)


@cache
def names_of(change: Change) -> list[str]:
    """The calls that the command makes where nothing goes wrong."""
    with TemporaryDirectory() as folder:
        steps = Steps()
        told = run(change, prepared(change, Path(folder)), Path(folder), steps)
    assert told.code == 0, told.err
    return steps.names


def steps_of(change: Change, *, every: bool = False) -> list[int]:
    """The steps to put a fault at: all of them, or the first, the last look before the change, and those of the change."""
    names = names_of(change)
    first = next(at for at, name in enumerate(names, 1) if name.startswith(("alter", "delete", "remove")))
    return [at for at in range(1, len(names) + 1) if every or at == 1 or at >= first - 1]


FULL = [pytest.param(False, id="short"), pytest.param(True, id="full", marks=pytest.mark.deep)]


@pytest.mark.parametrize("every", FULL)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_is_told_is_so(change: Change, fault: str, every: bool, tmp_path: Path) -> None:
    found = {}
    for at in steps_of(change, every=every):
        folder = tmp_path / str(at)
        folder.mkdir()
        cli = prepared(change, folder)
        fake = cli.admin
        assert isinstance(fake, FakeGroupAdmin)
        before = truth(change, fake)
        when, act = FAULTS[fault]
        steps = Steps(at, when, lambda fake=fake, act=act: act(fake))  # type: ignore[misc]
        told = run(change, cli, folder, steps)
        after = truth(change, fake)
        wrong = lies(told, change, before, after, SOMEBODY_ELSE.get(fault, ()))
        if wrong:
            found[at, names_of(change)[at - 1]] = (wrong, told.out, told.err)
    assert found == {}


def test_a_lie_is_found(tmp_path: Path) -> None:
    """The judge itself: rows, exit code and status that do not go with the cluster."""
    change = CHANGES[0]
    cli = prepared(change, tmp_path)
    assert cli.admin is not None
    before = truth(change, cli.admin)
    told = run(change, cli, tmp_path, Steps())
    after = truth(change, cli.admin)
    assert lies(told, change, before, after) == []
    assert len(lies(told, change, before, before)) == 6
    assert len(lies(replace(told, out=told.out.replace('"reset"', '"failed"')), change, before, after)) == 7
    assert len(lies(replace(told, code=7), change, before, after)) == 3


SAVING = [change for change in CHANGES if change.name != "remove-members"]


@pytest.mark.parametrize("every", FULL)
@pytest.mark.parametrize("fault", ["killed", "lost-answer", "ctrl-c-after"])
@pytest.mark.parametrize("change", SAVING, ids=lambda change: change.name)
def test_undo_brings_back_what_was_changed(change: Change, fault: str, every: bool, tmp_path: Path) -> None:
    """Also where the process was killed: the undo file is there before the first request is."""
    when, act = FAULTS.get(fault, (AFTER, raises(Killed())))
    for at in steps_of(change, every=every):
        folder = tmp_path / str(at)
        folder.mkdir()
        cli = prepared(change, folder)
        fake = cli.admin
        assert isinstance(fake, FakeGroupAdmin)
        before = commits(fake, SCENE)
        with suppress(Killed):
            run(change, cli, folder, Steps(at, when, lambda fake=fake, act=act: act(fake)))  # type: ignore[misc]
        fake.failure = None
        files = sorted((folder / "backups").glob("*.csv"))
        assert len(files) <= 1
        if not files:
            assert commits(fake, SCENE) == before
        for file in files:
            ran = cli.run(["undo", str(file), "--execute"])
            assert (ran.code, commits(fake, SCENE)) == (0, before), (at, ran.err)


@pytest.mark.parametrize("change", SAVING, ids=lambda change: change.name)
def test_what_another_operator_commits_outlives_change_and_undo(change: Change, tmp_path: Path) -> None:
    """At every step up to the last look, but the batch's own requests: it is in the plan, refused, or seen right after."""
    key, names, told_of = ("b", "t", "0"), names_of(change), set()
    writes = [at for at, name in enumerate(names, 1) if name.startswith(("alter", "delete_"))]
    of_b = writes[:2][-1]
    last_look = names.index("list_committed_offsets", of_b) + 1 if change.name != "delete-groups" else of_b
    for at in (at for at in range(1, last_look + 1) if at not in writes):
        folder = tmp_path / str(at)
        folder.mkdir()
        cli = prepared(change, folder)
        fake = cli.admin
        assert isinstance(fake, FakeGroupAdmin)
        told = run(change, cli, folder, Steps(at, BEFORE, lambda fake=fake: commit_elsewhere(fake)))  # type: ignore[misc]
        result = told.results().get(key if key in told.results() else ("b",), "")
        told_of.add(result)
        after = commits(fake, SCENE)
        assert lies(told, change, commits(fake, SCENE), after, [FOREIGN, None]) == [], (at, told.out)
        assert after.get(key) == FOREIGN or result in (change.done, "deleted"), (at, told.out)
        for file in sorted((folder / "backups").glob("*.csv")):
            assert cli.run(["undo", str(file), "--execute", "--no-backup"]).code == 0
        assert commits(fake, SCENE)[key] == FOREIGN, (at, told.out)
    assert {"refused", "moved"} - told_of <= ({"moved"} if change.name == "delete-groups" else set())


def backups(folder: Path) -> dict[str, bytes]:
    """The files that changes so far have left: undo files and the log of changes."""
    return {path.name: path.read_bytes() for path in (folder / "backups").glob("*")}


@pytest.mark.parametrize("size", [0, 1, 200])
@pytest.mark.parametrize("change", SAVING, ids=lambda change: change.name)
def test_nothing_is_changed_where_the_disk_is_full(change: Change, size: int, tmp_path: Path) -> None:
    cli = prepared(change, tmp_path)
    assert cli.admin is not None
    before, kept = truth(change, cli.admin), backups(tmp_path)
    with disk_full_at(size):
        told = run(change, cli, tmp_path, Steps())
    assert [error["code"] for error in told.document["errors"]] == ["BACKUP_FAILED"], told.err
    assert (told.code, truth(change, cli.admin), told.document["data"]) == (1, before, [])
    assert backups(tmp_path) == kept, "a change that was not done leaves nothing behind"
    assert run(change, cli, tmp_path, Steps()).code == 0


def test_a_plan_is_whole_or_not_there(tmp_path: Path) -> None:
    cli = Cli(tmp_path, cluster())
    line = argv("reset-offsets GROUPS --topic TOPIC --to-offset 3 --plan-out FOLDER/plan -o json", SCENE, tmp_path)
    with disk_full_at(100):
        ran = cli.run(line)
    assert (ran.code, ran.data, sorted(path.name for path in tmp_path.iterdir())) == (1, [], []), ran.err
    assert "File too large" in ran.err
    assert cli.run(line).code == 0


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_rows_are_told_on_stderr_where_stdout_is_closed(change: Change, tmp_path: Path) -> None:
    cli = prepared(change, tmp_path)
    assert cli.admin is not None
    before = truth(change, cli.admin)
    cli.stdout_error = BrokenPipeError()
    told = run(change, cli, tmp_path, Steps())
    document = next(line for line in told.err.splitlines() if line.startswith("{"))
    assert (told.code, told.out) == (0, "")
    assert lies(Told(told.code, document, ""), change, before, truth(change, cli.admin)) == []


@pytest.mark.parametrize("more", [[], ["--export"], ["-o", "json"]])
def test_a_disk_that_is_full_under_the_result_is_partial_and_all_is_told(more: list[str], tmp_path: Path) -> None:
    """Everything was changed, and whoever reads the file that stdout was does not see it."""
    cli = prepared(CHANGES[0], tmp_path)
    cli.stdout_error = OSError(errno.ENOSPC, "No space left on device")
    ran = cli.run([*argv(CHANGES[0].line, SCENE, tmp_path), *more])
    assert (ran.code, ran.out) == (3, "")
    assert "cannot write to stdout (No space left on device); this was done:" in ran.err
    assert "Executed on fake:9092 (cluster id lab): 6 reset." in ran.err
    assert {"--export": "a,t,0,3", "-o": '"exit_code": 3'}.get("".join(more[:1]), "reset\n") in ran.err


@pytest.mark.parametrize(
    "line",
    [
        "reset-offsets --match MATCH --all-topics --to-offset 3 --execute",
        "delete-offsets --match MATCH --topic TOPIC",
        "delete-groups GROUPS",
    ],
)
def test_a_second_operator_while_the_question_stands(line: str, tmp_path: Path) -> None:
    fake = cluster()
    cli = Cli(tmp_path, fake)
    cli.while_asked = lambda: commit_elsewhere(fake)
    ran = cli.run([*argv(line, SCENE, tmp_path), "-o", "json"], stdin="y\n")
    expected = {(group, "t", str(number)): OLD for group in SCENE.groups for number in (0, 1)} | {("b", "t", "0"): FOREIGN}
    assert (ran.code, [error["code"] for error in ran.json["errors"]]) == (5, ["CHANGED_MEANWHILE"]), ran.err
    assert commits(fake, SCENE) == expected
    cli.while_asked = lambda: None
    assert cli.run([*argv(line, SCENE, tmp_path), "-o", "json"], stdin="y\n").code == 0


def test_members_that_come_while_the_question_stands(tmp_path: Path) -> None:
    fake = cluster()
    cli = Cli(tmp_path, fake)
    present = fake.groups["manned"].description.members
    cli.while_asked = lambda: fake.group("manned", {}, [*present, JOINED])
    ran = cli.run([*argv("remove-members MANNED --all", SCENE, tmp_path)], stdin="y\n")
    assert (ran.code, len(fake.groups["manned"].description.members)) == (5, 3), ran.err
