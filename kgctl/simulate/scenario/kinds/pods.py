"""Pods that start, end, are restarted, get stuck or lose their network, and sets that get more of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.event import (
    MEMBER_SET,
    Abortable,
    Change,
    CountOrShare,
    Doubt,
    Event,
    Factor,
    NemesisFault,
    Sets,
    Share,
    Size,
    StartsWith,
    When,
)
from kgctl.simulate.scenario.event_port import (
    FOREVER_US,
    Countdown,
    EventPort,
    LinkFault,
    PodPort,
    bring_back,
    end_after,
    stop_all,
    without_effect,
)
from kgctl.simulate.scenario.fields import key
from kgctl.simulate.scenario.quantities import UNITS_US, Constant, Uniform
from kgctl.simulate.scenario.vocabulary import PodChange

_S = UNITS_US["s"]


class Start(StartsWith):
    """Start pods that do not run; it is over when they have subscribed."""

    kind = "start"
    is_planned = is_playable = starts_pods = forms_group = True
    may_kill = False

    def begin(self, run: EventPort) -> None:
        pods = run.pods(lacks_process=True)
        countdown = Countdown(len(pods), run.over)
        for pod in pods:
            pod.configure(self.given)
            pod.boot(countdown.one)


class _Ends(StartsWith):
    """Ends pods, for a time or for good."""

    is_playable = True

    length: fields.Varying | None = key("how long they stay down; without it, for good", None, of="for")

    def _back(self, run: EventPort, down_us: int | None, countdown: Countdown, pod: PodPort) -> None:
        pod.configure(self.given)
        bring_back(run, pod, down_us, countdown.one)


class Stop(_Ends):
    """Stop pods as SIGTERM does; what on_stop says is done. With for: start them again."""

    kind = "stop"
    is_planned = True
    may_kill = False
    fault = NemesisFault(Uniform(0, 120 * _S))
    also = ("shutdown", "terminate", "sigterm", "delete_pod")

    def begin(self, run: EventPort) -> None:
        processes = run.processes()
        countdown = Countdown(len(processes), run.over)
        down_us = run.length(self.length)
        stop_all([pod for pod, _ in processes], lambda pod: self._back(run, down_us, countdown, pod))


class Crash(_Ends):
    """Kill pods: no callbacks, no commit, no LeaveGroup. With for: start them again after that time."""

    kind = "crash"
    fault = NemesisFault(Uniform(0, 120 * _S), is_usual=True)
    also = ("kill", "sigkill", "oom", "oom_kill")

    def begin(self, run: EventPort) -> None:
        processes = run.processes()
        countdown = Countdown(len(processes), run.over)
        down_us = run.length(self.length)
        for pod, process in processes:
            process.die(PodChange.CRASH)
            self._back(run, down_us, countdown, pod)

    def doubts(self, counts: Mapping[str, int], coordinators: tuple[int, ...]) -> Iterator[Doubt]:  # noqa: ARG002
        """A container that crashes is started again by what runs it."""
        if self.length is None:
            yield Doubt("crash-for-good", "", "the pods stay down until an event starts them; Kubernetes does at once: for: 10s")


class Restart(_Ends):
    """Stop these pods, all at the same time, and start each again when it has stopped."""

    kind = "restart"
    is_planned = True
    may_kill = False
    fault = NemesisFault(Uniform(0, 30 * _S))
    also = ("reboot",)

    length: fields.Varying = key("how long they are down between", Constant(0), of="for")

    def begin(self, run: EventPort) -> None:
        pods = run.pods()
        countdown = Countdown(len(pods), run.over)
        down_us = run.length(self.length)
        stop_all(pods, lambda pod: self._back(run, down_us, countdown, pod))


class Stall(Event):
    """The applications are stuck in a batch: no poll(), nothing processed; the heartbeat thread goes on."""

    kind = "stall"
    is_lasting = is_playable = True
    may_kill = False
    fault = NemesisFault(Uniform(5 * _S, 420 * _S), is_usual=True)
    also = ("hang", "pause", "stuck")

    length: fields.Varying = key("how long", of="for")

    def begin(self, run: EventPort) -> None:
        duration_us = run.length(self.length) or 0
        for pod, process in run.processes():
            run.tell(pod, PodChange.STALL)
            process.stall(run.now_us + duration_us)
        run.later(duration_us, run.over)


_USUAL_PPM = _ALL_PPM = 1_000_000


class Slow(Event):
    """Batches take so many times as long, and so fewer records are processed. No effect on pods without a rate."""

    kind = "slow"
    needs_rate = is_lasting = may_stay = is_playable = True
    may_kill = False
    fault = NemesisFault(Uniform(10 * _S, 300 * _S), {"factor": 10})

    length: fields.Varying | None = key("how long; without it, for good", None, of="for")
    factor: Factor = key("how many times as long")

    def in_vain(self, usual: LinkFault) -> str:
        return "its factor is 1" if self.factor == _USUAL_PPM else super().in_vain(usual)

    def begin(self, run: EventPort) -> None:
        found = run.pods()
        pods = [pod for pod in found if pod.takes_time]
        if found and not pods:
            run.found_nothing()
        for pod in pods:
            _set(pod, pod.factor_ppm * self.factor // _USUAL_PPM)
            run.tell(pod, PodChange.SLOW)

        def end() -> None:
            for pod in pods:
                _set(pod, max(pod.factor_ppm * _USUAL_PPM // self.factor, 1))
                run.tell(pod, PodChange.UNSLOW)

        end_after(run, run.length(self.length), end)


def _set(pod: PodPort, factor_ppm: int) -> None:
    pod.factor_ppm = factor_ppm
    if pod.process is not None:
        pod.process.slow()


class PauseProcess(Event):
    """The processes are frozen: no heartbeats, no polls; then they go on as if nothing had been."""

    kind = "pause_process"
    is_lasting = is_playable = True
    fault = NemesisFault(Uniform(_S, 90 * _S))
    also = ("freeze", "pause", "gc_pause")

    length: fields.Varying = key("how long", of="for")

    def begin(self, run: EventPort) -> None:
        processes = run.processes()
        for _, process in processes:
            process.suspend()

        def end() -> None:
            for _, process in processes:
                process.resume()

        end_after(run, run.length(self.length) or 0, end)


class BadNetwork(Event):
    """Between these pods and the brokers messages are slower, get lost, or do not come through at all."""

    kind = "network"
    one_of = ("latency", "loss", "partition")
    is_lasting = may_stay = True
    fault = NemesisFault(Uniform(_S, 90 * _S), {"partition": True}, is_usual=True)
    also = ("disconnect", "network_partition", "partition", "latency")

    latency: fields.Varying | None = key("of one direction", None)
    loss_ppm: fields.ShareOf | None = key("of the packets; they are sent again as TCP does", None, of="loss")
    partition: bool = key("nothing comes through", default=False)
    length: fields.Varying | None = key("how long; without it, for good", None, of="for")

    @property
    def _is_cut(self) -> bool:
        return self.partition or self.loss_ppm == _ALL_PPM

    def in_vain(self, usual: LinkFault) -> str:
        is_usual = self.latency in (None, usual.latency) and self.loss_ppm in (None, usual.loss_ppm)
        return "the network has this latency and loss anyway" if is_usual and not self._is_cut else super().in_vain(usual)

    def begin(self, run: EventPort) -> None:
        pods = run.pods()
        duration_us = run.length(self.length)
        until_us = FOREVER_US if duration_us is None else run.now_us + duration_us
        # Where all is lost nothing comes through, what a process fetches neither.
        loss_ppm = None if self._is_cut else self.loss_ppm
        told = f"{self.title} {self.target}"
        fault = LinkFault(latency=self.latency, loss_ppm=loss_ppm, is_partition=self._is_cut, until_us=until_us, event=told)
        for pod in pods:
            pod.harm(fault)

        def end() -> None:
            for pod in pods:
                pod.heal(fault)

        end_after(run, duration_us, end)


LOOK_AGAIN_US = 100_000
WAIT_FOR_STABLE_AT_MOST_US = 600_000_000


class _Rolling(Abortable, Sets):
    is_planned = is_deploy = is_playable = True
    may_kill = False

    batch: CountOrShare = key("how many pods at the same time, or which share of them", 1)
    wait: Literal["ready", "stable", "none"] = key(
        "what the next batch waits for: ready (the pods have subscribed), stable (the group is, with every "
        "partition consumed; 10 minutes at most), none",
        "ready",
    )
    settle_us: fields.Duration = key("how long after that the next batch begins", 0, of="settle")
    down_us: fields.Duration = key("how long a pod is down before its process starts again", 0, of="down")
    abort_if: When | None = key("looked at before each batch: if it holds, the rest is left as it is", None)

    def begin(self, run: EventPort) -> None:
        _Batches(self, run).next()


class RollingRestart(_Rolling):
    """Restart pods batch by batch, as a deployment does."""

    kind = "rolling_restart"
    also = ("rolling", "rolling_deploy")


class Upgrade(_Rolling):
    """Restart pods batch by batch with other settings."""

    kind = "upgrade"

    given: fields.ConfigChange = key("consumer settings that the new processes have", of="set")


class _Batches:
    """The batches of a restart that is under way."""

    def __init__(self, event: _Rolling, run: EventPort) -> None:
        self._event = event
        self._run = run
        self._pods = run.pods()
        batch = event.batch
        self._size = max(batch.of(len(self._pods)) if isinstance(batch, Share) else batch, 1)
        self._renew_versions()

    def _renew_versions(self) -> None:
        """Pods that come later have the new settings too, where all of their set are given them."""
        given = {pod.number for pod in self._pods}
        for name in dict.fromkeys(pod.member_set for pod in self._pods):
            if all(pod.number in given for pod in self._run.all_pods(name) if pod.is_wanted):
                self._run.versions[name] = fields.changed_settings(self._run.versions[name], self._event.given)

    def next(self, _: object = None) -> None:
        if self._pods and self._event.is_called_off(self._run):
            self._pods = []
        batch, self._pods = self._pods[: self._size], self._pods[self._size :]
        if not batch:
            self._run.over()
            return
        self._run.next_step()
        wait = self._event.wait
        countdown = Countdown(len(batch), self._wait_for_stable if wait == "stable" else self._settle)
        for pod in batch:
            self._replace(pod, countdown, waits=wait != "none")

    def _replace(self, pod: PodPort, countdown: Countdown, *, waits: bool) -> None:
        def down() -> None:
            pod.configure(self._event.given)
            bring_back(self._run, pod, self._event.down_us, countdown.one if waits else _nothing)
            if not waits:
                countdown.one()

        if pod.process is None:
            down()
        else:
            pod.process.stop(down)

    def _wait_for_stable(self) -> None:
        self._look(self._run.now_us + WAIT_FOR_STABLE_AT_MOST_US)

    def _look(self, give_up_us: int) -> None:
        if self._run.is_calm or self._run.now_us >= give_up_us:
            self._settle()
        else:
            self._run.later(LOOK_AGAIN_US, self._look, give_up_us)

    def _settle(self) -> None:
        self._run.later(self._event.settle_us, self.next)


def _nothing() -> None:
    """Do nothing, where nobody waits for a pod."""


class Scale(Event):
    """Change the number of pods: the highest numbers go first, new ones come last."""

    kind = "scale"
    target_type = MEMBER_SET
    one_of = ("to", "by")
    is_planned = is_playable = starts_pods = renumbers = forms_group = True
    may_kill = False
    also = ("scale_out", "scale_up", "scale_in", "scale_down")

    to: Size | None = key("so many pods", None)
    by: Change | None = key("so many more, or fewer", None)
    over_us: fields.Duration = key("spread evenly over this time", 0, of="over")

    def begin(self, run: EventPort) -> None:
        present = [pod for pod in run.all_pods(self.target) if pod.is_wanted]
        replicas = run.replicas_of(self.target)
        wanted = self.to if self.to is not None else max(replicas + (self.by or 0), 0)
        if self.target in run.deploys and wanted != replicas:
            run.resize(self.target, wanted)
            run.over()
        else:
            self._scale(run, present, len(present) + wanted - replicas)

    def _scale(self, run: EventPort, present: Sequence[PodPort], wanted: int) -> None:
        grows = wanted > len(present)
        changes = run.idle_and_new(self.target, wanted - len(present)) if grows else present[wanted:][::-1]
        if not changes:
            without_effect(run)
            return
        countdown = Countdown(len(changes), run.over)
        for number, pod in enumerate(changes):
            pod.want(is_wanted=grows)
            run.later(self.over_us * number // len(changes), lambda pod: _change(pod, countdown), pod)


def _change(pod: PodPort, countdown: Countdown) -> None:
    if pod.is_wanted:
        pod.start(countdown.one)
    elif pod.process is None:
        countdown.one()
    else:
        pod.process.stop(countdown.one)
