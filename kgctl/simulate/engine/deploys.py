"""Deploys: pods restarted one after the other, a new version rolled out as Kubernetes does it, pods that lose their machines.

A Deployment's new pods have new names, and so new instance ids where these are made of names. It starts some above the wanted
number (``max_surge``), and takes old ones away as long as enough are available (``max_unavailable``), without waiting for their
end. A StatefulSet's pods keep their names: the highest number first, each gone before it starts again, and ready before the next.
Blue-green and canary are those of Argo Rollouts without a router: consumers of both versions share the group's partitions.

An eviction goes through the disruption budget, as the eviction API of Kubernetes has it: refused, ``kubectl drain`` asks again
5 s later. A Deployment starts a pod in the place of one that is told to end at once; a StatefulSet the same one, when it is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from kgctl.simulate.engine.events import Countdown, EventRun, bring_back, duration_of, in_a_while, pods_of
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.scenario.event_kinds import Share
from kgctl.simulate.scenario.vocabulary import NODE

LOOK_AGAIN_US = 100_000
WAIT_FOR_STABLE_AT_MOST_US = 600_000_000


class Rolling:
    """A rollout that is under way."""

    def __init__(self, run: EventRun, settings: Mapping[str, str]) -> None:
        self._run = run
        self._settings = settings
        self._pods = pods_of(run)
        batch = run["batch"]
        self._size = max(batch.of(len(self._pods)) if isinstance(batch, Share) else batch, 1)

    def next_batch(self, _: object = None) -> None:
        condition = self._run["abort_if"]
        if self._pods and condition is not None and condition.holds(self._run.simulation.metrics):
            self._run.simulation.log_event(self._run.event, "is aborted")
            self._pods = []
        batch, self._pods = self._pods[: self._size], self._pods[self._size :]
        if not batch:
            self._run.over()
            return
        self._run.next_step()
        wait = self._run["wait"]
        countdown = Countdown(len(batch), self._wait_for_stable if wait == "stable" else self._settle)
        for pod in batch:
            self._replace(pod, countdown, waits=wait != "none")

    def _replace(self, pod: Pod, countdown: Countdown, *, waits: bool) -> None:
        def down() -> None:
            pod.configure(self._settings)
            bring_back(self._run, pod, self._run["down"], countdown.one if waits else _nothing)
            if not waits:
                countdown.one()

        if pod.process is None:
            down()
        else:
            pod.process.stop(down)

    def _wait_for_stable(self) -> None:
        self._look(self._run.simulation.loop.now_us + WAIT_FOR_STABLE_AT_MOST_US)

    def _look(self, give_up_us: int) -> None:
        simulation = self._run.simulation
        if simulation.history.calm.since_us is not None or simulation.loop.now_us >= give_up_us:
            self._settle()
        else:
            in_a_while(self._run, LOOK_AGAIN_US, lambda _: self._look(give_up_us))

    def _settle(self) -> None:
        in_a_while(self._run, self._run["settle"], self.next_batch)


def _nothing() -> None:
    """Do nothing, where nobody waits for a rollout."""


def roll(run: EventRun) -> None:
    Rolling(run, run["set"]).next_batch()


_PPM = 1_000_000


def rollout(run: EventRun) -> None:
    found = _StatefulSet(run) if run["workload"] == "statefulset" else _STRATEGIES[run["strategy"]](run)
    in_a_while(run, run["deadline"], lambda _: found.give_up())
    found.step()


class _Rollout(ABC):
    def __init__(self, run: EventRun) -> None:
        self.run = run
        self.members = run.simulation.members(run.event.target)
        self.old = [pod for pod in run.simulation.sets[run.event.target] if pod.is_wanted]
        self.wanted = len(self.old)
        self.before = dict(run.simulation.versions[run.event.target])
        self._is_over = False

    @abstractmethod
    def step(self) -> None:
        """Stop and start as many pods as the rollout's bounds allow now."""

    def finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self.run.over()

    def is_called_off(self) -> bool:
        """Whether the condition to abort holds, which the log then says."""
        condition = self.run["abort_if"]
        if condition is None or not condition.holds(self.run.simulation.metrics):
            return False
        self.run.simulation.log_event(self.run.event, "is aborted")
        return True

    def new_pod(self) -> Pod:
        return self.run.simulation.add_pod(self.members)

    def give_up(self) -> None:
        """The deadline for progress is over: what is there stays as it is."""
        if not self._is_over:
            self.run.simulation.log_event(self.run.event, "is aborted")
            self.finish()

    def start(self, pod: Pod, then: Callable[[], None]) -> None:
        """Start a pod of the new version; ``then`` when it counts as available."""
        run = self.run
        pod.configure(run["set"])
        run.simulation.versions[run.event.target].update(run["set"])

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
    """As its controller's ``rolling.go``: up as far as the surge allows, down as far as availability does.

    ``goal``: so many pods are to have the new version, for now. ``marks_stages``: its steps are not the pods' turns.
    """

    marks_stages = False

    def __init__(self, run: EventRun) -> None:
        super().__init__(run)
        self._surge = _rounded(run["max_surge"], self.wanted, up=True)
        self._unavailable = _rounded(run["max_unavailable"], self.wanted, up=False)
        if not self._surge and not self._unavailable:
            self._unavailable = 1  # what Kubernetes makes of shares that round to nothing
        self.goal = self.wanted
        self.new: list[Pod] = []
        self._available = 0

    def step(self) -> None:
        while len(self.new) < self.goal and len(self.old) + len(self.new) < self.wanted + self._surge:
            pod = self.new_pod()
            self.new.append(pod)
            self.start(pod, self._one_more)
        for pod in [pod for pod in self.old if pod.process is None]:
            self.old.remove(pod)
            self.stop(pod)
        spare = len(self.old) + self._available - (self.wanted - self._unavailable)
        surplus = len(self.old) - (self.wanted - self.goal)
        going = self.old[::-1][: max(min(spare, surplus), 0)]
        if going and not self.marks_stages:
            self.run.next_step()
        for pod in going:
            self.old.remove(pod)
            self.stop(pod)
        if len(self.old) <= self.wanted - self.goal and self._available == self.goal:
            self.reached()
        elif len(self.new) < self.goal and len(self.old) + len(self.new) < self.wanted + self._surge:
            self.step()

    def reached(self) -> None:
        """As many pods as are to have the new version are available with it."""
        self.finish()

    def _one_more(self) -> None:
        self._available += 1
        self.step()


class _Canary(_Deployment):
    """Step by step, with a pause after each; called off, the old version gets all pods again."""

    marks_stages = True

    def __init__(self, run: EventRun) -> None:
        super().__init__(run)
        goals = [min(max(_rounded(each, self.wanted, up=True), 1), self.wanted) for each in run["steps"]]
        self._goals = [goal for goal in goals if goal < self.wanted]
        self._is_pausing = False
        if self._goals:
            self.goal = self._goals.pop(0)
        run.next_step()

    def reached(self) -> None:
        if self.goal == self.wanted:
            self.finish()
        elif not self._is_pausing:
            self._is_pausing = True
            in_a_while(self.run, self.run["pause"], self._next)

    def _next(self, _: object) -> None:
        self._is_pausing = False
        if self._is_over:
            return
        if self.is_called_off():
            self._back()
            return
        self.goal = self._goals.pop(0) if self._goals else self.wanted
        self.run.next_step()
        self.step()

    def _back(self) -> None:
        """Old pods come back, and each takes the place of a new one when it is there."""
        self.run.simulation.versions[self.run.event.target] = self.before
        missing = min(len(self.new), self.wanted - len(self.old))
        for pod in self.new[missing:]:
            self.stop(pod)
        countdown = Countdown(missing, self.finish)

        def replace(new: Pod) -> None:
            self.stop(new)
            countdown.one()

        for new in self.new[:missing]:
            self.new_pod().boot(lambda new=new: replace(new))  # type: ignore[misc]


class _BlueGreen(_Rollout):
    """All new pods beside all old ones; when they are available and have run for the pause, the old ones end."""

    def step(self) -> None:
        self.run.next_step()
        self._new = [self.new_pod() for _ in range(self.wanted)]
        countdown = Countdown(self.wanted, lambda: in_a_while(self.run, self.run["pause"], self._switch))
        for pod in self._new:
            self.start(pod, countdown.one)

    def _switch(self, _: object) -> None:
        if self._is_over:
            return
        self.run.next_step()
        gone = self.old
        if self.is_called_off():
            self.run.simulation.versions[self.run.event.target] = self.before
            gone = self._new
        countdown = Countdown(len(gone), self.finish)
        for pod in gone:
            self.stop(pod, countdown.one)


class _Recreate(_Rollout):
    """Ends all old pods before it starts the new ones, as strategy Recreate does."""

    def step(self) -> None:
        self.run.next_step()
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
        self.run.next_step()
        missing = self.wanted

        def ready() -> None:
            nonlocal missing
            missing -= 1
            if not missing:
                self.finish()

        for _ in range(self.wanted):
            self.start(self.new_pod(), ready)


class _StatefulSet(_Rollout):
    """From the highest number down to ``partition``, so many at a time as may be unavailable (1 unless it says more)."""

    def __init__(self, run: EventRun) -> None:
        super().__init__(run)
        given = run.event["max_unavailable"]
        self._at_once = 1 if given is None else max(_rounded(given, self.wanted, up=False), 1)
        self._queue = [pod for pod in self.old[::-1] if pod.index >= run["partition"]]
        if not self._queue:
            run.simulation.log_event(run.event, "has no effect")
        self._under_way = 0

    def step(self) -> None:
        while self._queue and self._under_way < self._at_once:
            self._under_way += 1
            self.run.next_step()
            self._replace(self._queue.pop(0))
        if not self._queue and not self._under_way:
            self.finish()

    def _replace(self, pod: Pod) -> None:
        def ready() -> None:
            self._under_way -= 1
            self.step()

        self.stop(pod, lambda: self.start(pod, ready))


_STRATEGIES: Mapping[str, type[_Rollout]] = {
    "rolling": _Deployment,
    "recreate": _Recreate,
    "blue-green": _BlueGreen,
    "canary": _Canary,
}


def _rounded(value: int | Share, number: int, *, up: bool) -> int:
    """A number, or a share of the pods: of ``max_surge`` rounded up, of ``max_unavailable`` down."""
    if isinstance(value, int):
        return value
    return value.of(number) if up else number * value.ppm // _PPM


def drain(run: EventRun) -> None:
    _Drain(run).evict_some()


def spot_loss(run: EventRun) -> None:
    pods = [pod for pod in pods_of(run) if pod.is_wanted]
    nodes = _close_nodes(run)
    wait_us = duration_of(run, "replacement") or 0
    countdown = Countdown(len(pods) + 1, run.over)
    for pod in pods:
        _replace(run, pod, min(run["grace"], run["notice"]), wait_us, countdown.one)

    def machines_come(_: object) -> None:
        for node in nodes:
            run.simulation.nodes.closed.pop(node, None)
        countdown.one()

    in_a_while(run, wait_us, machines_come)


class _Drain:
    """One drain: what is left to evict, and what is not replaced yet."""

    def __init__(self, run: EventRun) -> None:
        self._run = run
        self._left = [pod for pod in pods_of(run) if pod.is_wanted]
        self._is_over = False
        _close_nodes(run)
        self._replaced = Countdown(len(self._left), self._finish)
        in_a_while(run, run["deadline"], self._give_up)

    def evict_some(self, _: object = None) -> None:
        """Evict what the budgets allow now, and ask again for the rest."""
        if self._is_over:
            return
        run = self._run
        refused = []
        for pod in self._left:
            if pod.is_ready and not self._allows(pod):
                refused.append(pod)
            else:
                _replace(run, pod, run["grace"], 0, self._replaced.one)
        self._left = refused
        if refused:
            in_a_while(run, run["retry"], self.evict_some)

    def _allows(self, pod: Pod) -> bool:
        """DisruptionController: the healthy pods of the set, less those that have to be."""
        wanted = [other for other in self._run.simulation.sets[pod.members.name] if other.is_wanted]
        budget = self._run["budget"]
        missing = budget.of(len(wanted)) if isinstance(budget, Share) else budget
        return sum(other.is_ready for other in wanted) > len(wanted) - missing

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._run.over()

    def _give_up(self, _: object) -> None:
        if not self._is_over:
            self._run.simulation.log_event(self._run.event, "is aborted")
            self._finish()


def _close_nodes(run: EventRun) -> tuple[int, ...]:
    """Keep new pods away from the nodes that the event names."""
    selector = run.event.selector
    if selector is None or selector.member_set != NODE or NODE in run.simulation.sets:
        return ()
    nodes = tuple(range(selector.first, selector.last + 1))
    run.simulation.nodes.closed.update(dict.fromkeys(nodes))
    return nodes


def _replace(run: EventRun, pod: Pod, grace_us: int, wait_us: int, then: Callable[[], None]) -> None:
    """End a pod and start another one, or itself, ``wait_us`` later at the earliest; ``then`` when that one is ready."""
    simulation = run.simulation
    not_before_us = simulation.loop.now_us + wait_us

    def start(new: Pod) -> None:
        in_a_while(run, max(not_before_us - simulation.loop.now_us, 0), lambda _: boot(new))

    def boot(new: Pod) -> None:
        new.node = simulation.nodes.place()
        new.boot(lambda: probe(new))

    def probe(new: Pod) -> None:
        delay_us = 0 if run.event.kind == "spot_loss" else run["ready"].sample(new.boot_rng)
        new.ready_from_us = simulation.loop.now_us + delay_us
        in_a_while(run, delay_us, lambda _: then())

    again = run["workload"] == "statefulset"
    on_gone = (lambda: start(pod)) if again else None
    pod.want(is_wanted=again)
    pod.taken_away()
    if pod.process is not None:
        pod.process.stop(on_gone, grace_us=grace_us, on_sigterm=run["sigterm"])
    elif on_gone is not None:
        on_gone()
    if not again:
        new = simulation.add_pod(pod.members)
        new.settings = dict(pod.settings)
        new.want(is_wanted=True)
        start(new)
