"""From a selector to pods, at one moment of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.simulate.engine.pods.pod import Pod
from kgctl.simulate.scenario.selectors import Choice, Selector

if TYPE_CHECKING:
    from kgctl.simulate.engine.world import World


def select(world: World, selector: Selector) -> list[Pod]:
    """The pods that are meant now, in their order. A share is drawn by the seed, each time anew."""
    pods = world.pods if selector.member_set is None else world.sets.get(selector.member_set, [])
    chosen = _choose(world, selector, list(pods))
    if not selector.negated:
        return chosen
    return [pod for pod in world.pods if pod not in chosen]


def _choose(world: World, selector: Selector, pods: list[Pod]) -> list[Pod]:
    if selector.choice is Choice.RANGE:
        return [pod for pod in pods if selector.first <= pod.index <= selector.last]
    if selector.choice is Choice.SHARE:
        return _share(world, selector, pods)
    if selector.choice is Choice.OLDEST:
        started = [(world.history.pods[pod.number].running.since_us, pod.number, pod) for pod in pods]
        running = [(since, number, pod) for since, number, pod in started if since is not None]
        return [min(running, key=lambda entry: entry[:2])[2]] if running else []
    if selector.choice is Choice.LEADER:
        return [pod for pod in pods if pod is world.broker.view.leader]
    return pods


def _share(world: World, selector: Selector, pods: list[Pod]) -> list[Pod]:
    wanted = -(-len(pods) * selector.share_ppm // 1_000_000)
    rng = world.randomness.stream("share", selector.text, str(world.loop.now_us))
    order = sorted(pods, key=lambda pod: (rng.random(), pod.number))
    return sorted(order[:wanted], key=lambda pod: pod.number)
