"""``rollout``: a new version as Kubernetes rolls it out, by a Deployment's or a StatefulSet's rules.

A Deployment's new pods have new names, and so new instance ids where these are made of names. It starts some above the wanted
number (``max_surge``), and takes old ones away as long as enough are available (``max_unavailable``), without waiting for their
end. A StatefulSet's pods keep their names: the highest number first, each gone before it starts again, and ready before the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from kgctl.simulate.engine.events.event_run import EventRun, in_a_while
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.scenario.event_kinds import Share

_PPM = 1_000_000


def rollout(run: EventRun) -> None:
    if run["workload"] == "statefulset":
        found: _Rollout = _StatefulSet(run)
    else:
        found = _Recreate(run) if run["strategy"] == "recreate" else _Deployment(run)
    in_a_while(run, run["deadline"], lambda _: found.give_up())
    found.step()


class _Rollout(ABC):
    def __init__(self, run: EventRun) -> None:
        self.run = run
        self.members = run.simulation.members(run.event.target)
        self.old = [pod for pod in run.simulation.sets[run.event.target] if pod.is_wanted]
        self.wanted = len(self.old)
        self._is_over = False

    @abstractmethod
    def step(self) -> None:
        """Do what the rules allow now."""

    def finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.run.over()

    def give_up(self) -> None:
        """The deadline for progress is over: what is there stays as it is."""
        if not self._is_over:
            self.run.simulation.log_event(self.run.event, "is aborted")
            self.finish()

    def start(self, pod: Pod, then: Callable[[], None]) -> None:
        """Start a pod of the new version; ``then`` when it counts as available."""
        run = self.run
        pod.configure(run["set"])

        def ready() -> None:
            if not run["never_ready"]:
                delay_us = run["ready"].sample(pod.boot_rng) + run["min_ready"]
                in_a_while(run, delay_us, lambda _: None if self._is_over else then())

        pod.boot(ready)

    def stop(self, pod: Pod, then: Callable[[], None] | None = None) -> None:
        """Take a pod away: SIGTERM, and SIGKILL when its grace is over."""
        pod.want(is_wanted=False)
        if pod.process is not None:
            pod.process.stop(then, grace_us=self.run["grace"], on_sigterm=self.run["sigterm"])
        elif then is not None:
            then()


class _Deployment(_Rollout):
    """As its controller's ``rolling.go``: up as far as the surge allows, down as far as availability does."""

    def __init__(self, run: EventRun) -> None:
        super().__init__(run)
        self._surge = _rounded(run["max_surge"], self.wanted, up=True)
        self._unavailable = _rounded(run["max_unavailable"], self.wanted, up=False)
        if not self._surge and not self._unavailable:
            self._unavailable = 1  # what Kubernetes makes of shares that round to nothing
        self._new = 0
        self._available = 0

    def step(self) -> None:
        grow = min(self.wanted - self._new, self.wanted + self._surge - len(self.old) - self._new)
        for _ in range(max(grow, 0)):
            self._new += 1
            self.start(self.run.simulation.add_pod(self.members), self._one_more)
        for pod in [pod for pod in self.old if pod.process is None]:
            self.old.remove(pod)
            self.stop(pod)
        spare = len(self.old) + self._available - (self.wanted - self._unavailable)
        for pod in self.old[::-1][: max(spare, 0)]:
            self.old.remove(pod)
            self.stop(pod)
        if not self.old and self._available == self.wanted:
            self.finish()
        elif self._new < self.wanted and len(self.old) + self._new < self.wanted + self._surge:
            self.step()

    def _one_more(self) -> None:
        self._available += 1
        self.step()


class _Recreate(_Rollout):
    """All old pods end, then all new ones start."""

    def step(self) -> None:
        left = len(self.old)
        if not left:
            self.finish()

        def gone() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._start_all()

        for pod in self.old:
            self.stop(pod, gone)

    def _start_all(self) -> None:
        missing = self.wanted

        def ready() -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self.finish()

        for _ in range(self.wanted):
            self.start(self.run.simulation.add_pod(self.members), ready)


class _StatefulSet(_Rollout):
    """From the highest number down to ``partition``, so many at a time as may be unavailable (1 unless it says more)."""

    def __init__(self, run: EventRun) -> None:
        super().__init__(run)
        given = run.event["max_unavailable"]
        self._at_once = 1 if given is None else max(_rounded(given, self.wanted, up=False), 1)
        self._queue = [pod for pod in self.old[::-1] if pod.index >= run["partition"]]
        self._under_way = 0

    def step(self) -> None:
        while self._queue and self._under_way < self._at_once:
            self._under_way += 1
            self._replace(self._queue.pop(0))
        if not self._queue and not self._under_way:
            self.finish()

    def _replace(self, pod: Pod) -> None:
        def ready() -> None:
            self._under_way -= 1
            self.step()

        self.stop(pod, lambda: self.start(pod, ready))


def _rounded(value: int | Share, number: int, *, up: bool) -> int:
    """A number, or a share of the pods: of ``max_surge`` rounded up, of ``max_unavailable`` down."""
    if isinstance(value, int):
        return value
    return value.of(number) if up else number * value.ppm // _PPM
