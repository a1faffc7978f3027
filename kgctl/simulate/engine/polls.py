"""When the application of a process calls poll(), and what it finds there.

Its loop: poll(), which waits inside as long as there are no records, or for its time-out; the batch, which takes as long as its
records do; a pause. A batch is what the partitions hold, ``max.poll.records`` at most. Calls that nothing depends on are left
out: where in its loop the application is, is drawn when somebody asks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kgctl.member.config import MemberConfig
from kgctl.member.runtime import draw
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.recording.trace import Waited
from kgctl.simulate.recording.traffic import Flow
from kgctl.simulate.scenario.quantities import UNIT_PR, Exponential
from kgctl.simulate.scenario.vocabulary import WaitedFor

_FAR_ABOVE_MEAN = 50
"""A gap of a distribution without a bound is taken as shorter than so many times its mean."""
_LATENESS_DRAWS = 4
"""Commits of one quiet time share their lateness: the mean of so many."""
_MANY_CALLS = 20
"""In an interval: then a commit is as late as any moment is from the next call."""
_LOOKS_AGAIN_US = 1_000_000
"""A poll() without a time-out, while nothing is written."""
_FEW_TURNS = 32
"""So many full batches are gone through one by one: after more of them nothing is left of where they began."""
_USUAL_PPM = 1_000_000
_TOLD_US = 100_000
"""What a member waits for so short a time is not told: it explains nothing."""


class PollCadence:
    """The poll loop of one process, which reads the partitions of ``consuming`` as ``flow`` says.

    ``last_us`` is when it called poll() last, ``returned_us`` when that call came or comes back, with ``batch`` records;
    ``next_us`` when it calls again. Below 0: not yet.
    """

    __slots__ = (
        "_awaited_us", "_before_us", "_consuming", "_fetches_itself", "_from_us", "_has_traffic", "_looks_every_us", "_most",
        "_pause", "_pod", "_rate_uhz", "batch", "flow", "is_continuous", "last_us", "looks_now_and_then", "next_us",
        "returned_us", "timeout_us",
    )  # fmt: skip

    def __init__(self, pod: Pod, config: MemberConfig, flow: Flow, consuming: Mapping[int, None]) -> None:
        self._pod = pod
        self._fetches_itself = config.behaviour.joins_itself
        self._pause = pod.members.poll
        self._rate_uhz = pod.members.rate_uhz
        self._most = config.max_poll_records
        self._has_traffic = pod.context.has_traffic
        self.flow = flow
        self._consuming = consuming
        self.is_continuous = self._pause.upper_us == 0 and self._rate_uhz is None
        """Whether one call follows the other at once."""
        self.looks_now_and_then = config.group_protocol == "consumer" and not config.behaviour.joins_itself
        """Whether a call that waits looks at what its thread has every retry.backoff.ms (AsyncKafkaConsumer#pollForFetches)."""
        self._looks_every_us = config.retry_backoff_ms * 1000
        self.timeout_us = pod.members.poll_timeout_us
        """How long a call waits for records; None: as long as there are none."""
        self.last_us = -1
        self.next_us = -1
        self.returned_us = -1
        self.batch = 0
        self._awaited_us = self._before_us = self._from_us = -1

    # --- how fast

    @property
    def capacity_uhz(self) -> int | None:
        """How many records it works off if there are always enough: a full batch a turn. None: as many as come."""
        turn_us = self._work_us(self._most) + self._slowed(self._pause.mean_us)
        return self._most * UNIT_PR // turn_us if turn_us else None

    def may_exceed(self, limit_us: int) -> bool:
        """Whether a gap may be longer than this: then every call is an event."""
        pause = self._pause
        upper_us = pause.mean_us * _FAR_ABOVE_MEAN if pause.upper_us is None else pause.upper_us
        work_us = self._work_us(self._most) if self._has_traffic else 0
        return self._slowed(upper_us) + work_us > limit_us

    def left(self, now_us: int) -> int:
        """How many records of the batch under way are not processed yet."""
        work_us = self._work_us(self.batch)
        left_us = self.returned_us + work_us - now_us
        return self.batch * left_us // work_us if 0 < left_us <= work_us else 0

    # --- calls

    def reads_from(self, now_us: int) -> None:
        """It begins to read: what was written before is a backlog, or nothing to it."""
        self._from_us = now_us

    def called(self, now_us: int, *, drops: bool = False) -> int:
        """poll() is called: when it will be called again. ``drops``: it loses what it has fetched, and finds nothing."""
        found, wait_us = self._outcome(now_us, drops=drops)
        self.last_us = now_us
        self._returns(now_us + wait_us, found)
        return self.next_us

    def held_until(self, end_us: int) -> None:
        """A call that has begun runs a callback until then, and comes back no earlier."""
        later_us = max(end_us - self.returned_us, 0)
        self.returned_us += later_us
        self.next_us += later_us

    def is_inside(self, now_us: int) -> bool:
        """Whether the application waits for records in a call now, rather than being between two."""
        if self.timeout_us is None and not self._has_traffic:
            return True
        if self.next_us < now_us:
            self._draw_phase(now_us)
        return now_us < self.returned_us

    def upcoming_us(self, now_us: int) -> int:
        """When the next call comes, or the one that waits looks again at what has come."""
        if self.looks_now_and_then and self.timeout_us is None and not self._consuming:
            return now_us + draw(self._pod.rng("idle poll"), self._looks_every_us)
        if self.next_us < now_us:
            self._draw_phase(now_us)
        return self.next_us

    def free_us(self, now_us: int) -> int:
        """When the application is through with its batch and sees that it is to end; a poll() without a time-out is woken up."""
        is_woken = self.timeout_us is None and self._has_traffic and self.is_inside(now_us)
        return now_us if is_woken else self.upcoming_us(now_us)

    def held_up(self, length_us: int, why: WaitedFor) -> None:
        """The application keeps its member waiting, from now on."""
        if length_us >= _TOLD_US:
            self._pod.context.emit(Waited, self._pod.name, length_us, why)

    def awaited(self, at_us: int, *, is_stuck: bool) -> None:
        """The member goes on in the call that comes then: what is left of the batch, or the pause, is in its way."""
        now_us = self._pod.context.loop.now_us
        if at_us > now_us and at_us != self._awaited_us:
            self._awaited_us = at_us
            batch_us = self.returned_us + self._work_us(self.batch) - now_us
            why = WaitedFor.BATCH if 2 * batch_us > self.next_us - now_us else WaitedFor.POLL
            self.held_up(at_us - now_us, WaitedFor.STALL if is_stuck else why)

    def previous_us(self, now_us: int) -> int:
        """When the last call was; drawn, where calls were left out since."""
        if self.next_us < now_us:
            self.last_us = max(now_us - self._residual_us(), self.last_us)
        return self.last_us

    def away_since_us(self, now_us: int) -> int:
        """When the last call came back, from which on ``max.poll.interval.ms`` counts; now: the application is in one."""
        if self.next_us < now_us:
            self._draw_phase(now_us)
        return min(self.returned_us, now_us)

    def committed_us(self, now_us: int, last_us: int, every_us: int) -> int:
        """When an application that commits every so often did last, in calls that nobody watched; as it was: it did not."""
        at_us = now_us - (now_us - last_us) % every_us
        is_before = at_us <= now_us - self._turn_us()
        return at_us if last_us >= 0 and is_before else last_us

    def usual_wait_us(self) -> int:
        """How long it is in the mean to the next call, seen from any moment; nothing is drawn."""
        return 0 if self.is_continuous else int(sum(self._means())) // 2

    def commits_late_us(self, interval_us: int, *, in_every_other: bool) -> int:
        """By how much the automatic commits of a quiet time are late: each is made by a call that comes after its interval.

        ``in_every_other``: it is made by every other call only, as measured of the Java client with the consumer protocol.
        """
        if self.is_continuous:
            return 0
        is_rare = sum(self._means()) * _MANY_CALLS > interval_us
        if is_rare:
            late_us = [self._late_by_calls_us(interval_us, in_every_other) for _ in range(_LATENESS_DRAWS)]
        else:
            late_us = self._late_draws_us(in_every_other=in_every_other)
        return sum(late_us) // _LATENESS_DRAWS

    def _late_draws_us(self, *, in_every_other: bool) -> list[int]:
        """After so many calls that nothing is left of how the first ones fell."""
        found = []
        for _ in range(_LATENESS_DRAWS):
            late_us = self._residual_us()
            if in_every_other and self._pod.poll_rng.getrandbits(1):
                late_us += self._turn_us()
            found.append(late_us)
        return found

    def _late_by_calls_us(self, interval_us: int, in_every_other: bool) -> int:  # noqa: FBT001
        passed_us = 0
        while passed_us < interval_us:
            passed_us += max(self._turn_us() + (self._turn_us() if in_every_other else 0), 1)
        return passed_us - interval_us

    # --- what a call finds

    def _outcome(self, now_us: int, *, drops: bool) -> tuple[int, int]:
        """How many records a call finds, and how long it waits for the first."""
        if not self._has_traffic:
            return 0, self.timeout_us or 0
        longest_us = _LOOKS_AGAIN_US if self.timeout_us is None else self.timeout_us
        if drops or not self._consuming:
            return 0, longest_us
        from_us, asked_us = self._fetched(now_us)
        found, every_us = self._supply(now_us, asked_us)
        wait_us = 0
        if not found:
            if not every_us:
                return 0, longest_us
            first_us = from_us + Exponential(every_us).sample(self._pod.poll_rng)
            found = max((asked_us - from_us) // every_us, 1) if first_us <= asked_us else 1
            wait_us = max(first_us - now_us, 0)
        if self.timeout_us is not None and wait_us > self.timeout_us:
            return 0, self.timeout_us
        return min(found, self._most), wait_us

    def _fetched(self, now_us: int) -> tuple[int, int]:
        """From when until when what was written is here, of partitions that it keeps up with.

        A client that fetches in poll() asks for what its next call returns when a call comes back (Java: AbstractFetch): the
        answer is what was there then, or the first record to come.
        """
        if self.next_us >= now_us or self.returned_us < 0:
            returned_us, before_us = min(self.returned_us, now_us), self._before_us
        else:  # nobody watched
            returned_us = now_us - int(sum(self._means()[1:]))
            before_us = 2 * returned_us - now_us
        times = (returned_us, now_us) if self._fetches_itself else (before_us, returned_us)
        return max(times[0], self._from_us), max(times[1], self._from_us)

    def _supply(self, now_us: int, asked_us: int) -> tuple[int, int]:
        """How many records wait in partitions that it lags behind in; the mean time between two that are new, 0: none come."""
        self.flow.advance(now_us)
        waiting_pr, rate_uhz = self.flow.supply(self._consuming, now_us, asked_us)
        return waiting_pr // UNIT_PR, max(UNIT_PR // rate_uhz, 1) if rate_uhz else 0

    def _returns(self, at_us: int, found: int) -> None:
        self._before_us = self.returned_us if self.returned_us >= 0 else at_us
        self.returned_us = at_us
        self.batch = found
        self.next_us = at_us + self._work_us(found) + self._slowed(self._pause.sample(self._pod.poll_rng))

    # --- the phase, of a loop that nobody watched

    def _means(self) -> tuple[float, float, float]:
        """How long a turn of the loop waits for records, processes them and pauses, in the mean."""
        pause_us = float(self._slowed(self._pause.mean_us))
        if not self._has_traffic:
            return float(self.timeout_us or 0), 0.0, pause_us
        now_us = self._pod.context.loop.now_us
        waiting, every_us = self._supply(now_us, now_us)
        if waiting:
            return 0.0, float(self._work_us(min(waiting, self._most))), pause_us
        if not every_us:
            return float(_LOOKS_AGAIN_US if self.timeout_us is None else self.timeout_us), 0.0, pause_us
        busy = min(self._work_us(1) / every_us, 1.0)
        if busy >= 1:
            return 0.0, float(self._work_us(self._most)), pause_us
        longest_us = every_us if self.timeout_us is None else every_us * -math.expm1(-self.timeout_us / every_us)
        wait_us, work_us = longest_us, 0.0
        for _ in range(2):  # what comes while it works is there when it polls
            turn_us = (wait_us + pause_us) / (1 - busy)
            work_us = turn_us * busy
            wait_us = longest_us * math.exp(-(work_us + pause_us) / every_us)
        return wait_us, work_us, pause_us

    def _draw_phase(self, now_us: int) -> None:
        """Where in its loop the application is, of which nothing was seen for a while."""
        rng = self._pod.poll_rng
        wait_us, work_us, pause_us = self._means()
        full_us = self._work_us(self._most)
        turns = (now_us - self.next_us) // int(full_us + pause_us) if 0 < full_us <= work_us and self.next_us >= 0 else -1
        if turns >= 0 and (turns < _FEW_TURNS or self._pause.upper_us == 0):
            self._go_on(now_us, turns)
            return
        at_us = rng.random() * (wait_us + work_us + pause_us)
        self.last_us = max(now_us - int(at_us if at_us < wait_us else at_us - wait_us), self.last_us)
        if at_us < wait_us:
            self.returned_us = now_us - int(at_us + work_us + pause_us)  # the call before, from which on it has not read
            self._returns(now_us + int(wait_us - at_us), 1 if self._has_traffic and self._consuming else 0)
            return
        self.returned_us = now_us - int(at_us - wait_us)
        self._before_us = self.returned_us - int(work_us + pause_us)
        self.batch = 0
        if at_us < wait_us + work_us:
            left_us = int(wait_us + work_us - at_us)
            self.next_us = now_us + left_us + self._slowed(self._pause.sample(rng))
            if self._rate_uhz is not None:
                self.batch = int(work_us * self._rate_uhz) // UNIT_PR
        else:
            self.next_us = now_us + self._slowed(self._pause.residual(rng))

    def _go_on(self, now_us: int, turns: int) -> None:
        """Batch followed batch since it was seen last: members that began together are still in step."""
        if self._pause.upper_us == 0:
            self.next_us += turns * self._work_us(self._most)
        while self.next_us < now_us:
            self.last_us = self.next_us
            self._returns(self.next_us, self._most)

    def _turn_us(self) -> int:
        """One turn of the loop."""
        wait_us, work_us, _ = self._means()
        return int(wait_us + work_us) + self._slowed(self._pause.sample(self._pod.poll_rng))

    def _residual_us(self) -> int:
        """How long it is still to the next call, seen from any moment."""
        rng = self._pod.poll_rng
        wait_us, work_us, pause_us = self._means()
        other_us = wait_us + work_us
        if other_us and rng.random() * (other_us + pause_us) < other_us:
            return int(rng.random() * other_us) + self._slowed(self._pause.sample(rng))
        return self._slowed(self._pause.residual(rng))

    def _work_us(self, records: int) -> int:
        rate_uhz = self._rate_uhz
        return 0 if rate_uhz is None else self._slowed(records * UNIT_PR // max(rate_uhz, 1))

    def _slowed(self, gap_us: int) -> int:
        return gap_us * self._pod.factor_ppm // _USUAL_PPM
