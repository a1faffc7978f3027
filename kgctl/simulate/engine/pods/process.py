"""One life of a pod's process: boot, run, stop, crash, freeze, and its end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kgctl.member.api import Skipped
from kgctl.member.factory import make_member
from kgctl.member.validation import is_cooperative
from kgctl.simulate.engine.pods.driven_member import DrivenMember, Phase
from kgctl.simulate.engine.pods.pod import Pod
from kgctl.simulate.engine.recorder.causes import Cause
from kgctl.simulate.engine.trace import PodChanged
from kgctl.simulate.engine.traffic.flow import Flow

GRACE_US = 30_000_000
"""A pod that is told to stop is killed when it has not ended by itself after so long, as Kubernetes does."""


class Process(DrivenMember):
    """A consumer's process. ``on_ready`` is called when it has subscribed."""

    def __init__(self, pod: Pod, on_ready: Callable[[], None] | None) -> None:
        super().__init__(pod)
        self._on_ready = on_ready

    @property
    def hands_over(self) -> bool:
        """Whether it gives up only what is to move."""
        return self.config.group_protocol == "consumer" or is_cooperative(self.config.partition_assignment_strategy)

    @property
    def end_cause(self) -> Cause:
        """Why its partitions are nobody's when it has closed its consumer."""
        if self.pod.instance_id is not None and self.config.close_operation != "leave":
            return Cause.STATIC_WAIT
        return Cause.DETECTION if self.config.close_operation == "remain" else Cause.HANDOVER

    # --- its life

    def boot(self) -> None:
        """The process starts; after the boot time it subscribes."""
        pod = self.pod
        self.world.log(PodChanged(self.world.log_time, pod.name, "boot"))
        self.loop.at(self.loop.now_us + pod.members.boot.sample(pod.boot_rng), self._subscribe)

    def _subscribe(self, _: object) -> None:
        if self.phase is not Phase.BOOTING or self._hold(self._subscribe, None):
            return
        pod, world = self.pod, self.world
        self.phase = Phase.RUNNING
        self.flow = Flow(world.ledger, pod.members.rate_uhz, self.loop.now_us)
        self.polls.next_us = self.polls.last_us = self.loop.now_us
        self.member = make_member(
            self.config,
            pod.identity(),
            pod.member_rng,
            position_of=partial(world.ownership.position_of, self.flow),
            request_ids=world.request_ids,
        )
        self._polls_each = self.polls.may_exceed(self.config.max_poll_interval_ms * 1000)
        world.log(PodChanged(world.log_time, pod.name, "start"))
        world.on_running(self)
        self.act(self.member.start(self.loop.now_us))
        if self._on_ready is not None:
            self._on_ready()

    def stop(self, then: Callable[[], None] | None = None) -> None:
        """SIGTERM: close() at the end of the batch under way, or, where the application has no such handler, the end at once."""
        if then is not None:
            self.on_closed.append(then)
        if self.phase in (Phase.BOOTING, Phase.FAILED) or not self.pod.members.leaves_on_stop:
            self.die("stopped")
        elif self.phase is Phase.RUNNING and not self.stop_wanted:
            self.stop_wanted = True
            self.world.log(PodChanged(self.world.log_time, self.pod.name, "stop"))
            self.loop.at(self.loop.now_us + GRACE_US, self._kill)
            self.thaw()
            self._cancel_poll()
            if self.member is not None and not self.member.in_callback:
                self._arm_poll(self.polls.upcoming_us(self.loop.now_us))

    def _kill(self, _: object) -> None:
        if self.phase is not Phase.GONE:
            self.die("killed")

    def die(self, what: str) -> None:
        """The process is gone, whatever it was doing."""
        if self.phase is Phase.GONE:
            return
        self.thaw()
        self.phase = Phase.GONE
        self.gone_us = self.loop.now_us
        self.lost = tuple(self.consuming) or self.lost
        self.pod.process = None
        self.world.log(PodChanged(self.world.log_time, self.pod.name, what))
        self.world.on_gone(self)
        self._held.clear()
        for then in self.on_closed:
            then()

    def fail(self, error: str) -> None:
        """The consumer has thrown; the process is still there and does nothing more, or it ends and is started again."""
        self.phase = Phase.FAILED
        self._cancel_poll()
        self.world.on_failed(self, error)
        if self.stop_wanted:
            self.die("stopped")
        elif self.pod.members.restarts_on_failure:
            self.die("exit")
            self.pod.boot_after_failure()

    # --- faults

    def stall(self, until_us: int) -> None:
        """The application does not call poll() until then, and processes nothing."""
        if self.phase is not Phase.RUNNING or self.member is None:
            return
        now_us = self.loop.now_us
        is_stalled = now_us < self.stalled_until_us
        since_us = self.polls.previous_us(now_us)
        self.thaw()
        self.world.ownership.materialise(self)
        self.stalled_until_us = max(until_us, self.stalled_until_us)
        self.set_reading_rate()
        was_armed = self._is_poll_armed
        self._cancel_poll()
        self.loop.at(self.stalled_until_us, self._unstall)
        if was_armed:
            self._arm_poll(self.stalled_until_us)
        self.act([] if is_stalled else self.member.application_busy(max(since_us, 0)))

    def _unstall(self, _: object) -> None:
        if self._is_out() or self.loop.now_us < self.stalled_until_us or self._hold(self._unstall, None):
            return
        self.world.log(PodChanged(self.world.log_time, self.pod.name, "unstall"))
        self.set_reading_rate()
        self._cancel_poll()
        self._arm_poll(self.loop.now_us)

    def suspend(self) -> None:
        """SIGSTOP, or a long garbage collection: nothing goes on."""
        if self.is_suspended or self.phase is Phase.GONE:
            return
        self.thaw()
        self.world.ownership.materialise(self)
        self.is_suspended = True
        self.set_reading_rate()
        self.world.log(PodChanged(self.world.log_time, self.pod.name, "pause"))
        if not self.is_cut_off:
            self.world.ownership.suspend(self, Cause.STALL)

    def resume(self, _: object = None) -> None:
        """It goes on: everything that came meanwhile happens now."""
        if not self.is_suspended or self.phase is Phase.GONE:
            return
        self.is_suspended = False
        self.set_reading_rate()
        self.world.log(PodChanged(self.world.log_time, self.pod.name, "resume"))
        if not self.is_cut_off:
            self.world.ownership.resume(self)
        held, self._held = self._held, []
        for task, argument in held:
            task(argument)

    def cut_off(self) -> None:
        """Nothing comes through to the brokers: the process runs, and reads nothing."""
        if self.is_cut_off or self.phase is Phase.GONE:
            return
        self.is_cut_off = True
        self.set_reading_rate()
        if not self.is_suspended:
            self.world.ownership.suspend(self, Cause.DETECTION)

    def connect_again(self) -> None:
        """The network is there again."""
        if not self.is_cut_off or self.phase is Phase.GONE:
            return
        self.is_cut_off = False
        self.set_reading_rate()
        if not self.is_suspended:
            self.world.ownership.resume(self)

    def slow(self) -> None:
        """How long processing takes has changed."""
        if self.phase is Phase.RUNNING:
            self.thaw()
            self._polls_each = self.polls.may_exceed(self.config.max_poll_interval_ms * 1000)
            self.set_reading_rate()
            self.act([])

    def set_reading_rate(self) -> None:
        """What it processes a second at present."""
        now_us = self.loop.now_us
        self.flow.advance(now_us)
        rate_uhz = self.pod.members.rate_uhz
        if self.is_suspended or self.is_cut_off or now_us < self.stalled_until_us:
            self.flow.rate_uhz = 0
        elif rate_uhz is None:
            self.flow.rate_uhz = None
        else:
            self.flow.rate_uhz = rate_uhz * 1_000_000 // max(self.pod.factor_ppm, 1)

    # --- quiet times

    def thaw(self) -> Skipped | None:
        """Something is about to happen to it: what it did unwatched is taken as done."""
        if not self.is_frozen:
            return None
        skipped = self.world.quiet.thaw(self)
        if self.member is not None:
            self._arm_deadline(self.member)
        return skipped
