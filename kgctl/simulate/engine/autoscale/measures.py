"""What an autoscaler can see of a run: offsets, ages, the work of pods. Looking wakes nobody up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.simulate.engine.autoscale.keda import Offsets
from kgctl.simulate.engine.pods.driven_member import Phase
from kgctl.simulate.engine.traffic.arrivals import UNIT_PR
from kgctl.simulate.engine.traffic.flow import max_min_shares

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.pod import Pod
    from kgctl.simulate.engine.pods.process import Process
    from kgctl.simulate.engine.world import World


def offsets_of(world: World) -> list[Offsets]:
    """The partitions that the group subscribes to, with what is committed at this moment."""
    world.account_traffic()
    world.quiet.settle_commits()
    now_us, ledger = world.loop.now_us, world.ledger
    return [
        Offsets(
            number,
            ledger.arrivals.total_pr(number, now_us) // UNIT_PR,
            None if ledger.committed[number] < 0 else ledger.committed[number],
        )
        for number in world.partitions.existing()
    ]


def oldest_us(world: World) -> int:
    """The age of the oldest record that is not committed."""
    now_us, arrivals = world.loop.now_us, world.ledger.arrivals
    behind = [each for each in offsets_of(world) if each.end > (each.committed or 0)]
    return max((now_us - arrivals.arrived_us(each.partition, (each.committed or 0) * UNIT_PR) for each in behind), default=0)


def is_ready(pod: Pod) -> bool:
    """Whether its consumer runs: booting pods are not ready, and those that are told to stop do not count any more."""
    return pod.process is not None and pod.process.phase is Phase.RUNNING


def utilization_ppm(process: Process) -> int:
    """What it processes at this moment, in millionths of what it could."""
    flow, ledger = process.flow, process.world.ledger
    flow.advance(process.world.loop.now_us)
    if not flow.rate_uhz:
        return 0
    needs = {number: ledger.arrivals.rate_uhz[number] if ledger.is_caught_up[number] else None for number in flow.partitions}
    return sum(max_min_shares(flow.rate_uhz, needs).values()) * 1_000_000 // flow.rate_uhz
