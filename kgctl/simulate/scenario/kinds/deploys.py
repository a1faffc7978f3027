"""New versions of a set, as Kubernetes rolls them out, and pods that lose their machines.

A Deployment's new pods have new names, and so new instance ids where these are made of names. It starts some above the wanted
number (``max_surge``), and takes old ones away as long as enough are available (``max_unavailable``), without waiting for their
end. A StatefulSet's pods keep their names: the highest number first, each gone before it starts again, and ready before the next.
Blue-green and canary are those of Argo Rollouts without a router: consumers of both versions share the group's partitions.

An eviction goes through the disruption budget, as the eviction API of Kubernetes has it: refused, ``kubectl drain`` asks again
5 s later. A Deployment starts a pod in the place of one that is told to end at once; a StatefulSet the same one, when it is gone.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Literal

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.event import (
    MEMBER_SET,
    Abortable,
    Doubt,
    EventSurroundings,
    GoesWith,
    Sets,
    Share,
    Size,
    SizeOrShare,
    Steps,
    Terminates,
    When,
)
from kgctl.simulate.scenario.event_port import Countdown, EventPort, PodPort
from kgctl.simulate.scenario.fields import key
from kgctl.simulate.scenario.quantities import UNITS_US, Constant, Distribution
from kgctl.simulate.scenario.vocabulary import NODE

_S = UNITS_US["s"]
_PPM = 1_000_000
_DEPLOYMENT = {"workload": ("deployment",)}
PAUSING = ("canary", "blue-green")
"""Strategies that no Deployment has: other controllers roll out so."""
_PAUSES = GoesWith({**_DEPLOYMENT, "strategy": PAUSING})


class Rollout(Terminates, Abortable, Sets):
    """A new version of a set, as Kubernetes rolls it out: a Deployment (new pods, new names) or a StatefulSet."""

    kind = "rollout"
    target_type = MEMBER_SET
    is_planned = is_deploy = is_playable = starts_pods = renumbers = True
    also = ("deployment", "statefulset", "update", "deploy", "release", "rolling_update", "new_version")

    strategy: Annotated[Literal["rolling", "recreate", "blue-green", "canary"], GoesWith(_DEPLOYMENT)] = key(
        "of a deployment: rolling (RollingUpdate), recreate (all end, then all start), blue-green (all new "
        "ones beside the old ones, then these end) or canary (by steps)",
        "rolling",
    )
    max_surge: Annotated[SizeOrShare, GoesWith({**_DEPLOYMENT, "strategy": ("rolling", "canary")})] = key(
        "maxSurge of a deployment: pods above the wanted number; a share is rounded up", Share(250_000)
    )
    max_unavailable: Annotated[SizeOrShare, GoesWith({"strategy": ("rolling", "canary")})] = key(
        "maxUnavailable: pods that may be missing; a share is rounded down; 25% of a deployment, 1 of a statefulset",
        Share(250_000),
    )
    steps: Annotated[Steps, GoesWith({**_DEPLOYMENT, "strategy": ("canary",)})] = key(
        "of a canary: how many pods, or which share of them, have the new version at each step; then all have it",
        (Share(100_000), Share(500_000)),
    )
    pause_us: Annotated[fields.Duration, _PAUSES] = key(
        "of a canary: how long after each step the next one begins; of blue-green: how long both versions run", 0, of="pause"
    )
    abort_if: Annotated[When | None, _PAUSES] = key(
        "looked at when each pause is over: if it holds, the new pods go, and old ones come back where they are missing", None
    )
    ready: fields.Varying = key("from subscribe() until the readiness probe succeeds", Constant(0))
    never_ready: bool = key("the probe of the new version never succeeds", default=False)
    min_ready_us: fields.Duration = key("minReadySeconds: ready for so long counts as available", 0, of="min_ready")
    partition: Annotated[Size, GoesWith({"workload": ("statefulset",)})] = key(
        "of a statefulset: pods below this number stay as they are", 0
    )
    deadline_us: fields.Duration = key(
        "after this time the rollout is given up, as it stands (progressDeadlineSeconds, of the whole rollout)",
        1_800_000_000,
        of="deadline",
    )
    given: fields.ConfigChange = key("consumer settings that the new version has", {}, of="set")

    def begin(self, run: EventPort) -> None:
        found = _StatefulSet(self, run) if self.workload == "statefulset" else _STRATEGIES[self.strategy](self, run)
        run.later(self.deadline_us, lambda _: found.give_up())
        found.step()

    def contradictions(self, around: EventSurroundings) -> Iterator[tuple[str, str]]:  # noqa: ARG002  # looks at itself only
        """A rollout that could replace no pod."""
        beside = "workload: statefulset" if self.workload == "statefulset" else "max_surge: 0"
        nought = (0, Share(0))
        is_stuck = self.workload == "statefulset" or self.max_surge in nought
        if self.max_unavailable in nought and is_stuck:
            yield "max_unavailable", f"must not be 0 beside {beside}, as Kubernetes says: no pod could be replaced"

    def doubts(self, counts: Mapping[str, int], coordinators: tuple[int, ...]) -> Iterator[Doubt]:  # noqa: ARG002
        if self.partition >= counts.get(self.target, 0) > 0:
            text = f"all pods of {self.target!r} are below it: none gets the new version"
            yield Doubt("selects-nobody", "partition", text)


class _Rollout(ABC):
    def __init__(self, event: Rollout, run: EventPort) -> None:
        self.event = event
        self.run = run
        self.old = [pod for pod in run.all_pods(event.target) if pod.is_wanted]
        self.new: list[PodPort] = []
        self.wanted = self.replicas = run.replicas_of(event.target)
        self._is_over = False
        if (overtaken := run.deploys.get(event.target)) is not None:
            overtaken.give_up()
        run.deploys[event.target] = self
        self.before = run.versions[event.target]
        run.versions[event.target] = fields.changed_settings(self.before, event.given)

    @abstractmethod
    def step(self) -> None:
        """Stop and start as many pods as the rollout's bounds allow now."""

    def resize(self, replicas: int) -> None:
        """Have so many pods; unless a strategy knows better, when the rollout is over."""
        self.replicas = replicas

    def finish(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        deploys, target = self.run.deploys, self.event.target
        if deploys.get(target) is self:
            del deploys[target]
        self.run.over()

    def done(self) -> None:
        """All pods have the version that they are to have."""
        if not self._is_over:
            self.finish()
            self.run.resize(self.event.target, self.replicas)

    def replaced(self, pod: PodPort, by: PodPort) -> None:
        """An evicted pod's place in the rollout is that of the pod that comes for it."""
        for pods in (self.old, self.new):
            pods[:] = [by if each is pod else each for each in pods]

    def ready_again(self, pod: PodPort) -> None:  # noqa: B027  # concerns those alone that count who is available
        """A pod that came for an evicted one is ready."""

    def new_pod(self) -> PodPort:
        return self.run.add_pod(self.event.target)

    def go_back(self) -> None:
        """New pods have the old version again."""
        self.run.versions[self.event.target] = self.before

    def give_up(self) -> None:
        """The deadline for progress is over, or a newer version is rolled out: what is there stays as it is."""
        if not self._is_over:
            self.run.abort()
            self.finish()

    def start(self, pod: PodPort, then: Callable[[], None]) -> None:
        """Start a pod of the new version; ``then`` when it counts as available."""
        event = self.event
        pod.become(self.run.versions[event.target])

        def ready() -> None:
            if not event.never_ready:
                delay_us = event.ready.sample(pod.rng("boot")) + event.min_ready_us
                self.run.later(delay_us, lambda _: None if self._is_over else then())

        pod.boot(ready)

    def stop(self, pod: PodPort, then: Callable[[], None] | None = None) -> None:
        """Take a pod away: SIGTERM, and SIGKILL when its grace is over."""
        pod.want(is_wanted=False)
        if pod.process is not None:
            pod.process.stop(then, grace_us=self.event.grace_us, on_sigterm=self.event.sigterm)
        elif then is not None:
            then()


class _Deployment(_Rollout):
    """As its controller's ``rolling.go``: up as far as the surge allows, down as far as availability does.

    ``goal``: so many pods are to have the new version, for now. ``marks_stages``: its steps are not the pods' turns.
    """

    marks_stages = False

    def __init__(self, event: Rollout, run: EventPort) -> None:
        super().__init__(event, run)
        self._set_bounds()
        self.goal = self.wanted
        self._available: list[PodPort] = []

    def _set_bounds(self) -> None:
        self._surge = _rounded(self.event.max_surge, self.wanted, up=True)
        self._unavailable = _rounded(self.event.max_unavailable, self.wanted, up=False)
        if not self._surge and not self._unavailable:
            self._unavailable = 1  # what Kubernetes makes of shares that round to nothing

    def resize(self, replicas: int) -> None:
        """Both versions get their share of the change (proportional scaling), then the rollout goes on towards the new number."""
        allowed = self.wanted + self._surge
        self.goal = replicas if self.goal == self.wanted else min(self.goal, replicas)
        self.wanted = self.replicas = replicas
        self._set_bounds()
        old, new = (round(len(pods) * (replicas + self._surge) / allowed) for pods in (self.old, self.new))
        old = max(old, replicas - self.goal)
        for _ in range(old - len(self.old)):
            pod = self.new_pod()
            pod.become(self.before)
            self.old.append(pod)
            pod.boot()
        for pod in self.new[min(new, self.goal) :][::-1]:
            self.stop(pod)
            self.new.remove(pod)
        self._available = [pod for pod in self._available if pod in self.new]
        self.step()

    def step(self) -> None:
        while len(self.new) < self.goal and len(self.old) + len(self.new) < self.wanted + self._surge:
            pod = self.new_pod()
            self.new.append(pod)
            self.start(pod, partial(self._one_more, pod))
        for pod in [pod for pod in self.old if pod.process is None]:
            self.old.remove(pod)
            self.stop(pod)
        spare = len(self.old) + len(self._available) - (self.wanted - self._unavailable)
        surplus = len(self.old) - (self.wanted - self.goal)
        going = self.old[::-1][: max(min(spare, surplus), 0)]
        if going and not self.marks_stages:
            self.run.next_step()
        for pod in going:
            self.old.remove(pod)
            self.stop(pod)
        if len(self.old) <= self.wanted - self.goal and len(self._available) == self.goal:
            self.reached()
        elif len(self.new) < self.goal and len(self.old) + len(self.new) < self.wanted + self._surge:
            self.step()

    def reached(self) -> None:
        """As many pods as are to have the new version are available with it."""
        self.done()

    def _one_more(self, pod: PodPort) -> None:
        if pod in self.new and pod not in self._available:
            self._available.append(pod)
            self.step()

    def replaced(self, pod: PodPort, by: PodPort) -> None:
        super().replaced(pod, by)
        self._available = [each for each in self._available if each is not pod]

    def ready_again(self, pod: PodPort) -> None:
        if not self.event.never_ready:
            self._one_more(pod)


class _Canary(_Deployment):
    """Step by step, with a pause after each; called off, the old version gets all pods again."""

    marks_stages = True

    def __init__(self, event: Rollout, run: EventPort) -> None:
        super().__init__(event, run)
        goals = [min(max(_rounded(each, self.wanted, up=True), 1), self.wanted) for each in event.steps]
        self._goals = [goal for goal in goals if goal < self.wanted]
        self._is_pausing = self._goes_back = False
        if self._goals:
            self.goal = self._goals.pop(0)
        run.next_step()

    def resize(self, replicas: int) -> None:
        if self._goes_back:
            self.replicas = replicas
            return
        self._goals = [goal for goal in self._goals if goal < replicas]
        super().resize(replicas)

    def reached(self) -> None:
        if self.goal == self.wanted:
            self.done()
        elif not self._is_pausing:
            self._is_pausing = True
            self.run.later(self.event.pause_us, self._next)

    def _next(self, _: object) -> None:
        self._is_pausing = False
        if self._is_over:
            return
        if self.event.is_called_off(self.run):
            self._back()
            return
        self.goal = self._goals.pop(0) if self._goals else self.wanted
        self.run.next_step()
        self.step()

    def _back(self) -> None:
        """Old pods come back, and each takes the place of a new one when it is there."""
        self.go_back()
        self._goes_back = True
        missing = min(len(self.new), self.wanted - len(self.old))
        for pod in self.new[missing:]:
            self.stop(pod)
        countdown = Countdown(missing, self.done)

        def replace(new: PodPort) -> None:
            self.stop(new)
            countdown.one()

        for new in self.new[:missing]:
            self.new_pod().boot(lambda new=new: replace(new))  # type: ignore[misc]


class _BlueGreen(_Rollout):
    """All new pods beside all old ones; when they are available and have run for the pause, the old ones end."""

    def step(self) -> None:
        self.run.next_step()
        self.new = [self.new_pod() for _ in range(self.wanted)]
        countdown = Countdown(self.wanted, lambda: self.run.later(self.event.pause_us, self._switch))
        for pod in list(self.new):
            self.start(pod, countdown.one)

    def _switch(self, _: object) -> None:
        if self._is_over:
            return
        self.run.next_step()
        gone = self.old
        if self.event.is_called_off(self.run):
            self.go_back()
            gone = self.new
        countdown = Countdown(len(gone), self.done)
        for pod in gone:
            self.stop(pod, countdown.one)


class _Recreate(_Rollout):
    """Ends all old pods before it starts the new ones, as strategy Recreate does."""

    def step(self) -> None:
        self.run.next_step()
        countdown = Countdown(len(self.old), self._start_all)
        for pod in list(self.old):
            self.stop(pod, countdown.one)

    def _start_all(self) -> None:
        if self._is_over:
            return
        self.run.next_step()
        self.new = [self.new_pod() for _ in range(self.wanted)]
        countdown = Countdown(self.wanted, self.done)
        for pod in list(self.new):
            self.start(pod, countdown.one)


class _StatefulSet(_Rollout):
    """From the highest number down to ``partition``, so many at a time as may be unavailable (1 unless it says more)."""

    def __init__(self, event: Rollout, run: EventPort) -> None:
        super().__init__(event, run)
        is_given = "max_unavailable" in event.model_fields_set
        self._at_once = max(_rounded(event.max_unavailable, self.wanted, up=False), 1) if is_given else 1
        self.old = [pod for pod in self.old[::-1] if pod.index >= event.partition]
        if not self.old:
            run.found_nothing()
        self._under_way = 0

    def step(self) -> None:
        while self.old and self._under_way < self._at_once:
            self._under_way += 1
            self.run.next_step()
            self._replace(self.old.pop(0))
        if not self.old and not self._under_way:
            self.done()

    def _replace(self, pod: PodPort) -> None:
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


class _Evicts(Terminates):
    is_playable = renumbers = True

    def close_nodes(self, run: EventPort) -> tuple[int, ...]:
        """Keep new pods away from the nodes that the event names."""
        selector = self.selector
        if selector is None or selector.member_set != NODE or run.all_pods(NODE):
            return ()
        nodes = tuple(range(selector.first, selector.last + 1))
        run.nodes.closed.update(dict.fromkeys(nodes))
        return nodes

    def replace(self, pod: PodPort, comeback: "_Comeback", grace_us: int) -> None:
        """End a pod and start another one, or itself."""
        run, again = comeback.run, not self.makes_new_pods
        on_gone = partial(comeback.start, pod) if again else None
        pod.want(is_wanted=again)
        pod.taken_away()
        if pod.process is not None:
            pod.process.stop(on_gone, grace_us=grace_us, on_sigterm=self.sigterm)
        elif on_gone is not None:
            on_gone()
        if not again:
            new = run.add_pod(pod.member_set)
            new.become(pod.settings)
            new.want(is_wanted=True)
            if pod.member_set in run.deploys:
                run.deploys[pod.member_set].replaced(pod, new)
            comeback.start(new)


class _Comeback:
    """How the pods of an eviction come back: not before this time, and ``then`` is called when one is ready, or not wanted."""

    def __init__(self, run: EventPort, ready: Distribution, not_before_us: int, then: Callable[[], None]) -> None:
        self.run = run
        self._ready = ready
        self._not_before_us = not_before_us
        self._then = then

    def start(self, pod: PodPort) -> None:
        self.run.later(max(self._not_before_us - self.run.now_us, 0), self._boot, pod)

    def _boot(self, pod: PodPort) -> None:
        if pod.is_wanted:
            pod.node = self.run.nodes.place()
            pod.boot(partial(self._probe, pod))
        else:
            self._then()

    def _probe(self, pod: PodPort) -> None:
        delay_us = self._ready.sample(pod.rng("boot"))
        pod.ready_from_us = self.run.now_us + delay_us
        self.run.later(delay_us, self._succeeds, pod)

    def _succeeds(self, pod: PodPort) -> None:
        self._then()
        if pod.member_set in self.run.deploys:
            self.run.deploys[pod.member_set].ready_again(pod)


class Drain(_Evicts):
    """kubectl drain: the pods, usually those of a node (node/2), are evicted as fast as the disruption budget allows, and
    others start in their place on other nodes."""

    kind = "drain"
    is_planned = is_deploy = True
    also = ("evict", "cordon")

    budget: SizeOrShare = key("maxUnavailable of the PodDisruptionBudget of each set of members; a share is rounded up", 1)
    ready: fields.Varying = key("from subscribe() until the readiness probe succeeds", Constant(0))
    retry_us: fields.Duration = key("how long until a refused eviction is tried again", 5 * _S, of="retry")
    deadline_us: fields.Duration = key("after this time the drain is given up, as it stands", 3_600 * _S, of="deadline")

    def begin(self, run: EventPort) -> None:
        _Draining(self, run).evict_some()

    def doubts(self, counts: Mapping[str, int], coordinators: tuple[int, ...]) -> Iterator[Doubt]:  # noqa: ARG002
        """A disruption budget of nought: kubectl drain asks again and again, and gives up at its deadline."""
        if self.budget in (0, Share(0)):
            text = "no pod may be missing (budget: 0), so none is evicted: the drain changes nothing"
            yield Doubt("drain-stuck", self.kind, text)


class _Draining:
    """One drain: what is left to evict, and what is not replaced yet."""

    def __init__(self, event: Drain, run: EventPort) -> None:
        self._event = event
        self._run = run
        self._left = [pod for pod in run.pods() if pod.is_wanted]
        self._is_over = False
        event.close_nodes(run)
        self._replaced = Countdown(len(self._left), self._finish)
        run.later(event.deadline_us, self._give_up)

    def evict_some(self, _: object = None) -> None:
        """Evict what the budgets allow now, and ask again for the rest."""
        if self._is_over:
            return
        event = self._event
        refused = []
        for pod in self._left:
            if not pod.is_wanted:
                self._replaced.one()
            elif pod.is_ready and not self._allows(pod):
                refused.append(pod)
            else:
                event.replace(pod, _Comeback(self._run, event.ready, self._run.now_us, self._replaced.one), event.grace_us)
        self._left = refused
        if refused:
            self._run.later(event.retry_us, self.evict_some)

    def _allows(self, pod: PodPort) -> bool:
        """DisruptionController: the healthy pods of the set, less those that have to be."""
        wanted = [other for other in self._run.all_pods(pod.member_set) if other.is_wanted]
        budget = self._event.budget
        missing = budget.of(len(wanted)) if isinstance(budget, Share) else budget
        return sum(other.is_ready for other in wanted) > len(wanted) - missing

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._run.over()

    def _give_up(self, _: object) -> None:
        if not self._is_over:
            self._run.abort()
            self._finish()


class SpotLoss(_Evicts):
    """Machines are taken away: all pods at once get SIGTERM, are dead when the notice is over, and others start when there are
    new machines."""

    kind = "spot_loss"
    also = ("spot", "preemption", "node_loss")

    notice_us: fields.Duration = key(
        "from the notice, at which the pods get SIGTERM, until their machines are gone; 0s: no warning", 120 * _S, of="notice"
    )
    replacement: fields.Varying = key("from the notice until there is a machine that new pods start on", Constant(90 * _S))

    def begin(self, run: EventPort) -> None:
        pods = [pod for pod in run.pods() if pod.is_wanted]
        nodes = self.close_nodes(run)
        wait_us = run.length(self.replacement) or 0
        countdown = Countdown(len(pods) + 1, run.over)
        grace_us = min(self.grace_us, self.notice_us)
        for pod in pods:
            self.replace(pod, _Comeback(run, Constant(0), run.now_us + wait_us, countdown.one), grace_us)

        def machines_come(_: object) -> None:
            for node in nodes:
                run.nodes.closed.pop(node, None)
            countdown.one()

        run.later(wait_us, machines_come)
