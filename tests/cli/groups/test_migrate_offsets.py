"""``kgctl migrate-offsets``, where what it wrote cannot be looked at."""

from __future__ import annotations

import pytest

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupType, StartOffset, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, error
from tests.cli.harness import Cli

LINE = "migrate-offsets --zookeeper zk:2181 --bootstrap-server fake:9092 g1 g3 --execute -o json"
AWAY = error(ErrorCode.COORDINATOR_NOT_AVAILABLE, "group 'g1' has no coordinator at the moment")


@pytest.fixture
def old(cli: Cli, cluster: FakeGroupAdmin) -> FakeGroupAdmin:
    """ZooKeeper, whose groups g1 and g3 are at other places."""
    old = FakeGroupAdmin()
    old.group("g1", {TopicPartition("t1", 0): 7})
    old.group("g3", {TopicPartition("t2", 0): 60})
    cli.connect = lambda settings: old if settings.zookeeper else cluster
    return old


@pytest.mark.parametrize("side", ["there", "commits", "members"])
def test_a_group_that_cannot_be_read_back_is_not_told_as_copied(
    cli: Cli, cluster: FakeGroupAdmin, old: FakeGroupAdmin, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    admin, name, errors = {
        "there": (cluster, "list_committed_offsets", cluster.offset_errors),
        "commits": (old, "list_committed_offsets", old.offset_errors),
        "members": (old, "describe_groups", old.group_errors),
    }[side]
    look = getattr(admin, name)

    def looking(*given: object) -> object:
        if cluster.commits("g1").get(("t1", 0)) == 7 and cluster.commits("g3").get(("t2", 0)) == 60:
            errors["g1"] = AWAY
        return look(*given)

    monkeypatch.setattr(admin, name, looking)
    ran = cli(LINE)
    told = [(each["code"], each["group"], each["message"]) for each in ran.json["errors"]]
    what = "what was written could not be read back: group 'g1' has no coordinator at the moment"
    assert (ran.code, told) == (3, [("NOT_VERIFIED", "g1", what)])
    assert "as copied" not in ran.err


@pytest.mark.parametrize("deed", ["", " --execute"])
def test_a_share_group_that_is_there_is_named_as_one(cli: Cli, cluster: FakeGroupAdmin, old: FakeGroupAdmin, deed: str) -> None:
    cluster.group("g1", {TopicPartition("t1", 0): StartOffset(40)}, type=GroupType.SHARE)
    ran = cli(LINE.replace(" --execute", deed))
    assert (ran.code, ran.err.count("is a share group")) == (0, 1)
    assert "Group 'g1' is a share group: its start offsets are set.\n" in ran.err


def test_what_could_be_read_back_is_said(cli: Cli, old: FakeGroupAdmin) -> None:
    ran = cli(LINE)
    assert (ran.code, len(old.groups)) == (0, 2)
    assert "Read back: 2 partitions of 2 groups as copied.\n" in ran.err
