"""The process of a pod with a share consumer: poll(), the records one by one, what is said of each, poll() again.

Processing goes on at the pod's pace, stands while the process does, and counts per record: a process that dies in the middle of
a batch has processed the records before, and acknowledged none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from kgctl.member.api import Action, Member, StartConsuming
from kgctl.member.config import MemberConfig
from kgctl.member.share_member import ShareConsumerMember
from kgctl.model.values import quick_enum
from kgctl.share.partition import AcknowledgementBatch, AcknowledgeType
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase, Surroundings
from kgctl.simulate.engine.share.accounts import ShareAccounts
from kgctl.simulate.engine.share.client import Batches, ShareClient
from kgctl.simulate.engine.share.poison import Poison
from kgctl.simulate.engine.share.requests import Grant
from kgctl.simulate.recording.trace import Erred
from kgctl.simulate.scenario.fields import CommitMode
from kgctl.simulate.scenario.vocabulary import OnPoison, PodChange

_USUAL_PPM = 1_000_000
_SAYS = {OnPoison.RELEASE: AcknowledgeType.RELEASE, OnPoison.REJECT: AcknowledgeType.REJECT}
"""What an application that goes on says of a record that it cannot process."""


@quick_enum
class _Doing(Enum):
    """Where the application is in its loop."""

    NOTHING = auto()
    WAITING = auto()
    WORKING = auto()
    COMMITTING = auto()
    PAUSING = auto()
    CLOSING = auto()


class ShareProcess(Process):
    """``client`` fetches for it. Its application polls in a loop as `kgctl.simulate.scenario.model.PollLoop` says."""

    __slots__ = (
        "_accounts", "_batch", "_call", "_doing", "_done_us", "_each_us", "_factor_ppm", "_is_explicit", "_on_poison", "_poison",
        "_since_us", "_work_us", "client", "said",
    )  # fmt: skip

    def __init__(
        self,
        pod: Pod,
        around: Surroundings,
        client: Callable[[ShareProcess], ShareClient],
        accounts: ShareAccounts,
        poison: Poison,
    ) -> None:
        super().__init__(pod, around)
        pod.context.history.pods[pod.number].heartbeat_ms = 0
        self.client = client(self)
        self.client.on_records = self._records_came
        self._accounts = accounts
        self._poison = poison
        self._is_explicit = self.config.share_acknowledgement_mode == "explicit"
        self._on_poison = pod.members.on_poison or (OnPoison.RELEASE if self._is_explicit else OnPoison.CRASH)
        self._factor_ppm = pod.factor_ppm
        self._doing = _Doing.NOTHING
        self._call: object = None
        self._batch: list[Grant] = []
        self.said: Batches = {}
        """What the application has said of records, which the consumer has not sent yet."""
        rate_uhz = pod.members.rate_uhz
        self._each_us = 0 if rate_uhz is None else 1_000_000_000_000 // max(rate_uhz, 1)
        self._work_us = self._done_us = self._since_us = 0

    def new_member(self) -> Member:
        """A member that takes what it is assigned, and has positions of nothing."""
        config = MemberConfig.from_properties(self.pod.settings, self.pod.members.client)
        ids = self.context.request_ids
        return ShareConsumerMember(config, self.pod.identity(), self.pod.member_rng, lambda _, __: {}, ids)

    def holds(self, task: Callable[[Any], None], argument: object) -> bool:
        """Whether the process stands: what comes to it waits."""
        return self._hold(task, argument)

    # --- the loop

    def _subscribe(self, argument: object) -> None:
        super()._subscribe(argument)
        if self.phase is ProcessPhase.RUNNING and self._doing is _Doing.NOTHING:
            self._turn()

    def act(self, actions: list[Action]) -> None:
        """As the base does; what it may fetch from now on is fetched at once, where records are wanted."""
        super().act(actions)
        if any(type(action) is StartConsuming for action in actions):
            self.client.pump()

    def _may_poll_now(self) -> bool:
        return False

    def _look_ahead(self, member: Member) -> None:
        if self.phase in (ProcessPhase.RUNNING, ProcessPhase.CLOSING):
            self._arm_deadline(member)

    def _do(self, what: _Doing) -> None:
        if (what is _Doing.WAITING) is not (self._doing is _Doing.WAITING):
            self._accounts.waits(self.pod.number, is_so=what is _Doing.WAITING)
        self._doing = what

    def _after(self, wait_us: int, task: Callable[[], None]) -> None:
        """Do this later, unless the application does something else by then."""
        self._call = call = object()

        def due(_: object) -> None:
            if self._call is call and self.phase in (ProcessPhase.RUNNING, ProcessPhase.CLOSING) and not self._hold(due, None):
                task()

        self.loop.at(self.loop.now_us + wait_us, due)

    def _turn(self) -> None:
        """The application calls poll(), or sees that it is to end."""
        member, now_us = self.member, self.loop.now_us
        if member is None or self.phase is not ProcessPhase.RUNNING:
            return
        if self.stop_wanted:
            self._close()
            return
        if self.stalled_until_us > now_us:
            self._do(_Doing.PAUSING)
            self._after(self.stalled_until_us - now_us, self._turn)
            return
        said, self.said = self.said, {}
        self._do(_Doing.WAITING)
        self._since_us = now_us
        self.act(member.poll(now_us))
        self._take([grant for _, grant in self.client.poll(said)])

    def _records_came(self) -> None:
        if self._doing is _Doing.WAITING:
            self._take([grant for _, grant in self.client.poll({})])

    def _take(self, batch: list[Grant]) -> None:
        """What poll() has found; without records it waits, and a loop that pauses looks whether its time is over."""
        if batch:
            self._work(batch)
        elif self.pod.members.poll.upper_us != 0 and self.pod.members.poll_timeout_us is not None:
            self._after(self.pod.members.poll_timeout_us, self._rest)

    def _rest(self) -> None:
        """The pause between two calls of poll()."""
        self._do(_Doing.PAUSING)
        pause_us = self.pod.members.poll.sample(self.pod.poll_rng) * self.pod.factor_ppm // _USUAL_PPM
        if pause_us:
            self._after(pause_us, self._turn)
        else:
            self._turn()

    # --- processing

    def _work(self, batch: list[Grant]) -> None:
        """Process these, up to the first that the application does not survive."""
        self._do(_Doing.WORKING)
        self._batch = batch
        self._since_us, self._done_us = self.loop.now_us, 0
        records = sum(grant.amount for grant in batch)
        until = self._fatal(batch)
        self._work_us = (records if until is None else until + 1) * self._each_us
        limit_us = self.config.max_poll_interval_ms * 1000
        if self.member is not None and self._work_us * self.pod.factor_ppm // _USUAL_PPM > limit_us:
            self.act(self.member.application_busy(self.loop.now_us))
        self._go_on()

    def _fatal(self, batch: list[Grant]) -> int | None:
        """The place of the first record that ends the process; None: there is none."""
        if self._on_poison is not OnPoison.CRASH:
            return None
        before = 0
        for grant in batch:
            bad = self._poison.first(grant.number, grant.first, grant.last)
            if bad is not None:
                return before + bad - grant.first
            before += grant.amount
        return None

    @property
    def _stands(self) -> bool:
        return self.is_suspended or self.stalled_until_us > self.loop.now_us

    def _go_on(self) -> None:
        """Be through with the batch when what is left of it has taken its time."""
        if self._stands:
            self._call = None
        else:
            self._factor_ppm = self.pod.factor_ppm
            left_us = self._work_us - self._done_us
            self._after(-(-left_us * self._factor_ppm // _USUAL_PPM), self._batch_over)

    def settle_work(self) -> None:
        """Count what was processed until now."""
        now_us = self.loop.now_us
        if self._doing is _Doing.WORKING and self._call is not None:
            self._done_us = min(self._done_us + (now_us - self._since_us) * _USUAL_PPM // self._factor_ppm, self._work_us)
        self._since_us = now_us

    def set_reading_rate(self) -> None:
        """The process stands, or goes on, or is faster or slower than before."""
        if self._doing is _Doing.WORKING:
            self.settle_work()
            self._go_on()

    def _batch_over(self) -> None:
        self._done_us = self._work_us
        batch, self._batch = self._batch, []
        crashes = self._fatal(batch)
        self._finish(batch, crashes)
        if crashes is not None:
            self._exit()
        elif self.pod.members.commit.mode is CommitMode.AFTER_BATCH and self.said:
            self._do(_Doing.COMMITTING)
            said, self.said = self.said, {}
            self.client.commit(said, self._rest)
        else:
            self._rest()

    def _finish(self, batch: list[Grant], most: int | None) -> None:
        """The application is through with the first records of a batch (None: all): what it says of each."""
        left = sum(grant.amount for grant in batch) if most is None else most
        for grant in batch:
            last = min(grant.last, grant.first + left - 1)
            if last < grant.first:
                return
            left -= last - grant.first + 1
            self._say(grant, last)

    def _say(self, grant: Grant, last: int) -> None:
        kind = self._on_poison
        bad = set(self._poison.within(grant.number, grant.first, last)) if kind is not OnPoison.CRASH else set()
        offsets = range(grant.first, last + 1)
        self._accounts.processed(grant.number, (offset for offset in offsets if offset not in bad), self.pod.number)
        if not bad:
            types: tuple[int, ...] = (AcknowledgeType.ACCEPT,)
        else:
            types = tuple(_SAYS[kind] if offset in bad else AcknowledgeType.ACCEPT for offset in offsets)
        self.said.setdefault(grant.number, []).append(AcknowledgementBatch(grant.first, last, types))

    def _exit(self) -> None:
        """A record has ended the process, as an exception that nobody catches does."""
        self.context.emit(Erred, self.pod.name, what="POISON_RECORD")
        self.die(PodChange.EXIT)
        if self.pod.is_wanted:
            self.pod.boot_after_failure()

    # --- its end, and what is done to it

    def _end_soon(self) -> None:
        """SIGTERM: a poll() that waits comes back when its time is over, a batch is worked off."""
        timeout_us = self.pod.members.poll_timeout_us
        if self._doing is _Doing.WAITING:
            waited_us = self.loop.now_us - self._since_us
            self._after(0 if not timeout_us else timeout_us - waited_us % timeout_us, self._close)

    def _close(self) -> None:
        """close(): what was acknowledged is sent, sessions end, the consumer leaves. What was not is given back."""
        self._do(_Doing.CLOSING)
        self.phase = ProcessPhase.CLOSING
        said = self.said if self._is_explicit else {}
        self.said = {}
        self.client.close(said, self._leave_group)

    def _leave_group(self) -> None:
        if self.member is not None and self.phase is ProcessPhase.CLOSING:
            self.act(self.member.close(self.loop.now_us))

    def die(self, what: PodChange, *, is_silent: bool = False) -> None:
        """End at once. Its connections end with it, unless the machine has gone (``is_silent``): then nobody is told."""
        if self.phase is ProcessPhase.GONE:
            return
        if self._doing is _Doing.WORKING:
            self.settle_work()
            most = self._done_us // self._each_us if self._each_us else 0
            self._finish(self._batch, most)
            self._batch = []
        super().die(what)
        self._do(_Doing.NOTHING)
        self._call = None
        if not is_silent and not self.is_cut_off:
            self.client.connections_end()

    def stall(self, until_us: int) -> None:
        """The application is stuck until then; the client's own threads go on."""
        if self.phase is not ProcessPhase.RUNNING or self.member is None:
            return
        self.settle_work()
        self.stalled_until_us = max(until_us, self.stalled_until_us)
        if self._doing is _Doing.WAITING:
            self._do(_Doing.PAUSING)
            self._after(self.stalled_until_us - self.loop.now_us, self._turn)
        self.set_reading_rate()
        self.loop.at(self.stalled_until_us, self._unstall)
        self.act(self.member.application_busy(self.loop.now_us))

    def _unstall(self, _: object) -> None:
        if self.phase is not ProcessPhase.RUNNING or self._stands or self._hold(self._unstall, None):
            return
        self.pod.tell(PodChange.UNSTALL)
        self.set_reading_rate()
