"""No record of a share group is lost on the way, and a run in which one is does not pass."""

from __future__ import annotations

import pytest

from kgctl.errors import InvariantViolation
from kgctl.simulate.engine.share.accounts import ShareAccounts
from tests.support.simulate.shared import APP, run_text

TEXT = f"{APP}traffic: {{orders: 20/s}}\nduration: 20s\nevents: [{{at: 5s, crash: app/1, for: 5s}}]\n"


@pytest.mark.parametrize("method", ["changed", "_come_back"])
def test_a_record_that_is_forgotten_is_found_missing(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    def forgets(self: ShareAccounts, number: int, *rest: object) -> None:
        self._of[number].held.clear()

    monkeypatch.setattr(ShareAccounts, method, forgets)
    with pytest.raises(InvariantViolation, match=r"S1 broke at 20\.000000 s: orders-\d: \d+ records were delivered, "):
        run_text(TEXT.replace("20/s", "200/s"))


def test_what_came_again_says_from_whom_and_why() -> None:
    result = run_text("members: {app: {count: 4, process_time: 100ms}}\ntraffic: {orders: 30/s}\nduration: 1m\n"
                      "events: [{at: 20s, crash: app/1, for: 5s}]\n")  # fmt: skip
    share = result.share
    assert {(each.before, each.why.label, each.deliveries) for each in share.redelivered} == {(1, "crashed", 2)}
    again, back = ([(each.number, each.first, each.last) for each in found] for found in (share.redelivered, share.returned))
    assert again == back


def test_the_sums_of_records_follow_what_happens() -> None:
    result = run_text(
        "members: {app: {count: 2, process_time: 100ms}}\ntraffic: {orders: {0s: 0/s, 10s: 100/s, 20s: 0/s}}\nduration: 25s\n"
    )
    lag, free, held = (result.metric(name, ("at 20s",)) for name in ("lag", "backlog", "in_flight"))
    assert lag == pytest.approx(1_000 - 150, abs=50)
    assert free + held == pytest.approx(lag, abs=1)
