"""What programs hand in is a border: assignors that raise or answer wrongly, in a live group, alone and in a simulation."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import kgctl
from kgctl import GroupSpec, MemberSpec
from kgctl.errors import InvariantViolation, KgctlError, UserCodeError
from kgctl.testing import EmbeddedServer
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_MS

HERE = "tests.group.test_users_code"
TOPICS = {"orders": 2, "others": 1}


class Everything:
    """Gives everything to everybody."""

    name = "everything"

    def assign(self, group: GroupSpec) -> Any:
        return {
            member.member_id: {name: list(range(group.topics[name].partition_count)) for name in member.topics}
            for member in group.members
        }


class NotThere(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {member.member_id: {"orders": [7]} for member in group.members}


class NotSubscribed(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {member.member_id: {"others": [0]} for member in group.members}


class Stranger(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {"nobody": {"orders": [0]}}


class Nothing(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return None


class Texts(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {member.member_id: {"orders": ["0"]} for member in group.members}


class Flat(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {member.member_id: [0, 1] for member in group.members}


class Raises(Everything):
    def assign(self, group: GroupSpec) -> Any:
        empty: dict[str, int] = {}
        return empty["boom"]  # the place that is told


class Exits(Everything):
    def assign(self, group: GroupSpec) -> Any:
        raise SystemExit(3)  # of which a thread would tell nobody


class SaysNumbers(Everything):
    def assign(self, group: GroupSpec) -> Any:
        return {group.members[0].member_id: {"orders": [0, 1]}}

    def user_data(self, member: MemberSpec) -> Any:
        return 7


class Forgets(Everything):
    """Leaves one partition to nobody."""

    def assign(self, group: GroupSpec) -> Mapping[str, Mapping[str, list[int]]]:
        return {group.members[0].member_id: {"orders": [0]}}


PLACE = rf"{HERE.replace('.', '/')}\.py:\d+"
WRONG = {
    "Everything": rf"\(.*{PLACE}\): gives orders-0 to '.*' and '.*'",
    "NotThere": rf"\(.*{PLACE}\): gives orders-7 to '.*', but it does not exist",
    "NotSubscribed": rf"\(.*{PLACE}\): gives member '.*' topic 'others', which is not its own",
    "Stranger": rf"\(.*{PLACE}\): gives partitions to 'nobody', which is no member",
    "Nothing": rf"\(.*{PLACE}\): assign\(\) answers None, not a mapping of member -> topic -> partitions",
    "Texts": rf"\(.*{PLACE}\): gives member '.*' \['0'\] of topic 'orders', not a list of numbers",
    "Flat": rf"\(.*{PLACE}\): gives member '.*' \[0, 1\], not a mapping of topic -> partitions",
    "Raises": rf"failed \(.*{PLACE}\): KeyError: 'boom'",
    "Exits": rf"failed \(.*{PLACE}\): SystemExit: 3",
}
CASES = pytest.mark.parametrize(("name", "words"), WRONG.items(), ids=WRONG)


@pytest.fixture
def cluster() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(TOPICS) as running:
        yield running


@CASES
def test_kgctl_assign(name: str, words: str) -> None:
    with pytest.raises(UserCodeError, match=rf"the assignor {HERE}:{name}\W.*{words}") as caught:
        kgctl.assign(f"{HERE}:{name}", topics=TOPICS, members={"a": ["orders"], "b": ["orders"]})
    assert isinstance(caught.value.__cause__, (KeyError, SystemExit)) == (name in ("Raises", "Exits"))


@CASES
def test_a_simulation(name: str, words: str) -> None:
    scenario = {
        "kgctl": 1,
        "name": "own",
        "topics": {"orders": {"partitions": 2}, "others": {"partitions": 1}},
        "members": {"app": {"count": 2, "subscribe": ["orders"], "config": {"partition.assignment.strategy": f"{HERE}:{name}"}}},
        "duration": "60s",
    }
    with pytest.raises(UserCodeError, match=rf"seed 3: at \d+\.\d+ s: the assignor {HERE}:{name}\W.*{words}"):
        kgctl.simulate(scenario, seed=3)


@CASES
def test_a_live_group(cluster: EmbeddedServer, name: str, words: str) -> None:
    """Nothing goes out, and the member leaves and says why."""
    with cluster.consumer_group("g", "orders", assignors=[f"{HERE}:{name}"]) as group:
        if name == "Everything":  # right as long as it is alone
            group.next(timeout_ms=PATIENCE_MS)
            with cluster.consumer_group("g", "orders", assignors=[f"{HERE}:{name}"]) as second:
                error = error_of(group)
                assert len(second.next(timeout_ms=PATIENCE_MS).assignments) == 2
        else:
            error = error_of(group)
        with pytest.raises(UserCodeError, match=rf"the assignor {HERE}:{name}\W.*{words}"):
            raise error
        assert isinstance(error.__cause__, (KeyError, SystemExit)) == (name in ("Raises", "Exits"))
        wait_until(lambda: not cluster.describe("g").members, "it has left")


def error_of(group: kgctl.ConsumerGroup) -> KgctlError:
    """What ends the member; one that was alone first may have had generations."""
    while True:
        try:
            group.next(timeout_ms=PATIENCE_MS)
        except KgctlError as error:
            return error


def test_what_members_say_of_themselves(cluster: EmbeddedServer) -> None:
    with cluster.consumer_group("g", "orders", assignors=[f"{HERE}:SaysNumbers"]) as group:
        said = str(error_of(group))
        assert re.fullmatch(rf"the assignor {HERE}:SaysNumbers \(.*{PLACE}\): user_data\(\) answers 7, not bytes", said)


def test_what_is_left_over_is_told(cluster: EmbeddedServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kgctl.group")
    with cluster.consumer_group("g", "orders", assignors=[f"{HERE}:Forgets"]) as group:
        assert dict(group.next(timeout_ms=PATIENCE_MS).assignments) == {("orders", 0): 0}
    assert [line.getMessage() for line in caplog.records] == ["group 'g': the assignor leaves 1 partition(s) to nobody"]


def test_only_kgctls_own_failures_are_bugs_of_kgctl(cluster: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that fails in kgctl's own code says so, with the cause, and leaves as well."""
    from kgctl.member.leader import LeaderAssignor

    monkeypatch.setattr(LeaderAssignor, "assign", lambda self: None)  # does not fit its call, which is in kgctl's code
    with cluster.consumer_group("g", "orders") as group:
        error = error_of(group)
    assert (type(error), type(error.__cause__)) == (InvariantViolation, TypeError)
    assert str(error).startswith("a bug in kgctl ended the member: TypeError(")
    wait_until(lambda: not cluster.describe("g").members, "it has left")
