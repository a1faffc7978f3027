"""A process's consumer: its calls, its polls, its callbacks and commits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from kgctl.member.api import Action, Answer, Member, RunCallback
from kgctl.model.partitions import MetadataImage
from kgctl.model.quick_enum import quick_enum
from kgctl.simulate.engine.pods.actions import ACTIONS
from kgctl.simulate.engine.pods.polling import PollCadence
from kgctl.simulate.engine.traffic.flow import Flow
from kgctl.simulate.scenario.distributions import Distribution
from kgctl.simulate.scenario.model import CommitMode

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.pod import Pod
    from kgctl.simulate.engine.pods.process import Process


@quick_enum
class Phase(Enum):
    """Where a process is in its life."""

    BOOTING = "booting"
    RUNNING = "running"
    CLOSING = "closing"
    FAILED = "failed"
    GONE = "gone"


_RUNNING, _CLOSING = Phase.RUNNING, Phase.CLOSING
_OUT = (Phase.GONE, Phase.FAILED)


class DrivenMember(ABC):
    """The duties of `kgctl.member.api`'s driver, for one consumer. What comes when the process is gone does nothing."""

    def __init__(self, pod: Pod) -> None:
        self._me = cast("Process", self)
        self.pod = pod
        self.world = pod.world
        self.loop = pod.world.loop
        self.phase = Phase.BOOTING
        self.member: Member | None = None
        self.config = pod.member_config()
        self.commit = pod.commit_of(self.config)
        self.polls = PollCadence(pod)
        self.flow = Flow(pod.world.ledger, pod.members.rate_uhz, pod.world.loop.now_us)
        self.consuming: dict[int, None] = {}
        self.is_frozen = False
        self.is_suspended = False
        self.is_cut_off = False
        self.image_version = -1
        self.stalled_until_us = -1
        self.callback_over = False
        self.on_closed: list[Callable[[], None]] = []
        self.last_commit_us = -1
        """When the application committed last, or a commit was taken as done."""
        self.unseen_commit_us = -1
        """When the last commit was that the coordinator has not been told of, if any."""
        self.stop_wanted = False
        self.is_counted = False
        self.gone_us = -1
        self.lost: tuple[int, ...] = ()
        """What it consumed when it went."""
        self._held: list[tuple[Callable[[Any], None], Any]] = []
        self._armed_us = -1
        self._poll_task = 0
        self._is_poll_armed = False
        self._polls_each = False

    @abstractmethod
    def thaw(self) -> object:
        """Something is about to happen to it: what it did unwatched is taken as done."""

    # --- calls of the member

    def act(self, actions: list[Action]) -> None:
        """Do what the member wants done, and what it leads to at once: callbacks that take no time, a poll() that waits."""
        member = self.member
        assert member is not None
        self._perform(member, actions)
        if self.phase is _RUNNING and not self._is_poll_armed and self._polls_now(member):
            self._perform(member, self._call_poll(member))
        phase = self.phase
        if phase is _RUNNING or phase is _CLOSING:
            self._look_ahead(member)

    def _perform(self, member: Member, actions: list[Action]) -> None:
        me = self._me
        while True:
            for action in actions:
                ACTIONS[type(action)](me, action)
            if not self.callback_over:
                return
            self.callback_over = False
            actions = member.callback_done(self.loop.now_us)

    def on_reply(self, answer: tuple[int, Answer]) -> None:
        """An answer has come."""
        member = self.member
        if member is None or self.phase in _OUT or (self.is_suspended and self._hold(self.on_reply, answer)):
            return
        if self.is_frozen:
            self.thaw()
        self.act(member.on_reply(answer[0], answer[1], self.loop.now_us))

    def on_metadata(self, image: MetadataImage) -> None:
        """The topics have come."""
        if self.member is None or self._is_out() or self._hold(self.on_metadata, image):
            return
        self.image_version = image.version
        self.act(self.member.on_metadata(image, self.loop.now_us))

    def callback_done(self, _: object) -> None:
        """A callback, or the assignor, is done."""
        if self.member is None or self._is_out() or self._hold(self.callback_done, None):
            return
        self.act(self.member.callback_done(self.loop.now_us))

    def run_callback(self, duration_us: int) -> None:
        """The application's thread is busy for this long."""
        self._cancel_poll()
        if duration_us:
            self.loop.at(self.loop.now_us + duration_us, self.callback_done)
        else:
            self.callback_over = True

    def callback_us(self, action: RunCallback) -> int:
        """How long this callback takes."""
        duration: Distribution = getattr(self.pod.members.callbacks, action.kind)
        return duration.sample(self.pod.callback_rng)

    # --- what comes next

    def _polls_now(self, member: Member) -> bool:
        """Whether the application, which has nothing to process, sits in a poll() that has something to do at once."""
        return not self.consuming and not self.stop_wanted and self.stalled_until_us <= self.loop.now_us and member.needs_poll

    def _look_ahead(self, member: Member) -> None:
        if not self._is_poll_armed and self.phase is _RUNNING and not member.in_callback:
            has_to = self.stop_wanted or member.needs_poll
            if has_to or self._polls_each:
                now_us = self.loop.now_us
                self._arm_poll(now_us if has_to and self._waits_in_poll else self.polls.upcoming_us(now_us))
            elif not self.is_frozen and member.is_quiet:
                self.world.quiet.freeze(self._me)
        self._arm_deadline(member)

    def _arm_deadline(self, member: Member) -> None:
        deadline_us = member.next_loud_deadline_us() if self.is_frozen else member.next_deadline_us()
        if deadline_us is None:
            return
        now_us, armed_us = self.loop.now_us, self._armed_us
        deadline_us = max(deadline_us, now_us)
        if armed_us < now_us or deadline_us < armed_us:
            self._armed_us = deadline_us
            self.loop.at(deadline_us, self._on_deadline, deadline_us)

    def _on_deadline(self, armed_us: int) -> None:
        if armed_us != self._armed_us or self.member is None or self._is_out() or self._hold(self._on_deadline, armed_us):
            return
        self._armed_us = -1
        due_us = self.member.next_loud_deadline_us() if self.is_frozen else self.member.next_deadline_us()
        if due_us is None or due_us > self.loop.now_us:
            self._arm_deadline(self.member)
            return
        if self.is_frozen:
            self.thaw()
        self.act(self.member.expire(self.loop.now_us))

    # --- polls

    def _arm_poll(self, at_us: int) -> None:
        now_us = self.loop.now_us
        if self.stalled_until_us > now_us:
            at_us = self.stalled_until_us
        self._is_poll_armed = True
        self._poll_task += 1
        self.loop.at(max(now_us, at_us), self._poll, self._poll_task)

    def _cancel_poll(self) -> None:
        self._is_poll_armed = False
        self._poll_task += 1

    def _poll(self, task: int) -> None:
        member = self.member
        if task != self._poll_task or self._is_out() or member is None or (self.is_suspended and self._hold(self._poll, task)):
            return
        self._is_poll_armed = False
        if self.world.has_traffic:
            self._commit_batch(member)
        if self.stop_wanted and self.phase is _RUNNING:
            self.phase = Phase.CLOSING
            self.act(member.close(self.loop.now_us))
            return
        self.act(self._call_poll(member))

    def _call_poll(self, member: Member) -> list[Action]:
        """poll(): it waits for answers where there is nothing to process."""
        now_us = self.loop.now_us
        next_us = self.polls.polled(now_us)
        actions = member.poll(now_us, now_us if self._waits_in_poll else None)
        if self._polls_each and next_us - now_us > self.config.max_poll_interval_ms * 1000:
            actions = actions + member.application_busy(now_us)
        return actions

    def _commit_batch(self, member: Member) -> None:
        """The application commits what it has processed, where it is due, before it polls."""
        commit, now_us = self.commit, self.loop.now_us
        if commit.mode is CommitMode.AUTO or not self.consuming:
            return
        if commit.mode is CommitMode.EVERY and now_us - self.last_commit_us < commit.interval_us:
            self.world.ownership.materialise(self._me)
            return
        self.last_commit_us = now_us
        self._is_poll_armed = True
        self.act(member.commit(now_us))
        self._is_poll_armed = False

    # --- small things

    @property
    def _waits_in_poll(self) -> bool:
        """Whether one poll() follows the other at once: there is no batch to process where nothing is read."""
        return not self.consuming or self.polls.is_continuous

    def _is_out(self) -> bool:
        return self.phase in _OUT

    def _hold(self, task: Callable[[Any], None], argument: object) -> bool:
        """While it is suspended, what comes to it waits."""
        if self.is_suspended:
            self._held.append((task, argument))
        return self.is_suspended
