"""From a number of replicas to pods that start and stop.

As a StatefulSet with ``podManagementPolicy: Parallel`` does it: the highest numbers stop first, which are the newest; numbers
that are free are taken again, the lowest first, and all at once. A pod that is still on its way out starts again when it is out.
A Deployment differs in what it stops first: pods that are not ready, then those that became ready last. The two are the same as
long as no pod with a low number was restarted in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.simulate.engine.pods.pod import Pod

if TYPE_CHECKING:
    from kgctl.simulate.engine.world import World


def replicas_of(world: World, name: str) -> list[Pod]:
    """The pods of this set that are wanted, running or not."""
    return [pod for pod in world.sets[name] if pod.is_wanted]


def resize(world: World, name: str, replicas: int) -> None:
    """So many pods from now on."""
    present = replicas_of(world, name)
    for pod in present[replicas:][::-1]:
        pod.want(is_wanted=False)
        if pod.process is not None:
            pod.process.stop()
    missing = replicas - len(present)
    if missing > 0:
        idle = [pod for pod in world.sets[name] if not pod.is_wanted][:missing]
        members = world.members(name)
        for pod in [*idle, *(world.add_pod(members) for _ in range(missing - len(idle)))]:
            _start(pod)
    world.changed()


def _start(pod: Pod) -> None:
    pod.want(is_wanted=True)
    if pod.process is None:
        pod.boot()
    else:
        pod.process.on_closed.append(lambda: _again(pod))


def _again(pod: Pod) -> None:
    if pod.is_wanted:
        pod.boot()
