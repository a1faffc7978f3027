"""``drain`` and ``spot_loss``: pods lose their machines, and others start in their place.

An eviction goes through the disruption budget, as the eviction API of Kubernetes has it: refused, ``kubectl drain`` asks again
5 s later. A Deployment starts a pod in the place of one that is told to end at once; a StatefulSet the same one, when it is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from kgctl.simulate.engine.events.event_run import Countdown, EventRun, duration_of, in_a_while, pods_of
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.scenario.event_kinds import Share
from kgctl.simulate.scenario.vocabulary import NODE


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
    if pod.process is not None:
        pod.process.stop(on_gone, grace_us=grace_us, on_sigterm=run["sigterm"])
    elif on_gone is not None:
        on_gone()
    if not again:
        new = simulation.add_pod(pod.members)
        new.settings = dict(pod.settings)
        new.want(is_wanted=True)
        start(new)
