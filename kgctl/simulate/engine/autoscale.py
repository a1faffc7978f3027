"""What an autoscaler can see of a run: offsets, ages, the work of pods. Looking wakes nobody up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.member.config import MemberConfig
from kgctl.simulate.engine import autoscalers
from kgctl.simulate.engine.autoscalers import Decision, KafkaScaler, Lag, Offsets, Why
from kgctl.simulate.engine.flow import max_min_shares
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Phase
from kgctl.simulate.recording.history import Scaling
from kgctl.simulate.recording.trace import Scaled
from kgctl.simulate.recording.traffic import UNIT_PR
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods import Pod
    from kgctl.simulate.engine.process import Process
    from kgctl.simulate.engine.simulation import Simulation


def offsets_of(simulation: Simulation) -> list[Offsets]:
    """The partitions that the group subscribes to, with what is committed at this moment."""
    simulation.account_traffic()
    simulation.fast_forward.settle_commits()
    now_us, ledger = simulation.loop.now_us, simulation.ledger
    return [
        Offsets(
            number,
            ledger.arrivals.total_pr(number, now_us) // UNIT_PR,
            None if ledger.committed[number] < 0 else ledger.committed[number],
        )
        for number in simulation.partitions.existing()
    ]


def oldest_us(simulation: Simulation) -> int:
    """The age of the oldest record that is not committed."""
    now_us, arrivals = simulation.loop.now_us, simulation.ledger.arrivals
    behind = [each for each in offsets_of(simulation) if each.end > (each.committed or 0)]
    return max((now_us - arrivals.arrived_us(each.partition, (each.committed or 0) * UNIT_PR) for each in behind), default=0)


def is_ready(pod: Pod) -> bool:
    """Whether its consumer runs: booting pods are not ready, and those that are told to stop do not count any more."""
    return pod.process is not None and pod.process.phase is Phase.RUNNING


def utilization_ppm(process: Process) -> int:
    """What it processes at this moment, in millionths of what it could."""
    flow, ledger = process.flow, process.simulation.ledger
    flow.advance(process.simulation.loop.now_us)
    if not flow.rate_uhz:
        return 0
    needs = {number: ledger.arrivals.rate_uhz[number] if ledger.is_caught_up[number] else None for number in flow.partitions}
    return sum(max_min_shares(flow.rate_uhz, needs).values()) * 1_000_000 // flow.rate_uhz


def replicas_of(simulation: Simulation, name: str) -> list[Pod]:
    """The pods of this set that are wanted, running or not."""
    return [pod for pod in simulation.sets[name] if pod.is_wanted]


def resize(simulation: Simulation, name: str, replicas: int) -> None:
    """So many pods from now on."""
    present = replicas_of(simulation, name)
    for pod in present[replicas:][::-1]:
        pod.want(is_wanted=False)
        if pod.process is not None:
            pod.process.stop()
    missing = replicas - len(present)
    if missing > 0:
        idle = [pod for pod in simulation.sets[name] if not pod.is_wanted][:missing]
        members = simulation.members(name)
        for pod in [*idle, *(simulation.add_pod(members) for _ in range(missing - len(idle)))]:
            _start(pod)
    simulation.changed()


def _start(pod: Pod) -> None:
    pod.want(is_wanted=True)
    if pod.process is None:
        pod.boot()
    else:
        pod.process.on_closed.append(lambda: _again(pod))


def _again(pod: Pod) -> None:
    if pod.is_wanted:
        pod.boot()


NOTHING = Lag(0, 0)


class AutoscaleLoop:
    """One ``autoscale:`` in a run."""

    def __init__(self, simulation: Simulation, spec: Autoscale) -> None:
        self._simulation = simulation
        self._spec = spec
        self._hpa = autoscalers.Autoscaler(spec)
        self._scaler = KafkaScaler(spec, from_start=_reads_from_start(simulation, spec))
        self._cached: int | None = None
        self._said: Decision | None = None

    def begin(self) -> None:
        """Put the first poll and the first sync into the loop."""
        rng = self._simulation.randomness.stream("autoscale", self._spec.members)
        first_poll_us, first_sync_us = (int(rng.random() * length) for length in (self._spec.poll_us, self._spec.every_us))
        if self._spec.metric is ScaleMetric.LAG:
            self._simulation.loop.at(first_poll_us, self._poll)
        self._simulation.loop.at(first_sync_us, self._sync)

    def _poll(self, _: object) -> None:
        """KEDA's own loop. It measures only where that decides something."""
        simulation, spec = self._simulation, self._spec
        simulation.loop.at(simulation.loop.now_us + spec.poll_us, self._poll)
        lag = NOTHING
        if not spec.minimum or spec.use_cached_metrics or spec.exclude_persistent_lag:
            lag = self._scaler.lag(offsets_of(simulation))
            self._cached = lag.total
        replicas = len(replicas_of(simulation, spec.members))
        wanted = self._scaler.polled(simulation.loop.now_us, replicas, lag.present)
        if wanted != replicas:
            why = Why.ACTIVATED if wanted > replicas else Why.DEACTIVATED
            self._apply(replicas, Decision(wanted, wanted, why), lag.present)

    def _sync(self, _: object) -> None:
        simulation, spec = self._simulation, self._spec
        now_us = simulation.loop.now_us
        simulation.loop.at(now_us + spec.every_us, self._sync)
        pods = replicas_of(simulation, spec.members)
        value, desired = self._measured(pods)
        if desired is None:
            self._apply(len(pods), Decision(len(pods), len(pods), Why.NO_METRICS), value)
            return
        decision = self._hpa.decide(now_us, len(pods), desired)
        if decision.why is Why.AS_DESIRED and decision.replicas == len(pods):
            decision = decision._replace(why=Why.WITHIN_TOLERANCE)
        self._apply(len(pods), decision, value)
        if decision.replicas != len(pods):
            self._hpa.changed(now_us, decision.replicas - len(pods))

    def _measured(self, pods: list[Pod]) -> tuple[int, int | None]:
        """(the value, the number of pods that it asks for)."""
        spec, replicas = self._spec, len(pods)
        target, tolerance = spec.target, spec.tolerance_ppm
        if spec.metric is ScaleMetric.LAG:
            total = self._lag()
            return total, autoscalers.by_average(total, target, replicas, tolerance)
        ready = [pod for pod in pods if is_ready(pod)]
        if spec.metric is ScaleMetric.LAG_AGE:
            age_us = oldest_us(self._simulation)
            return age_us, autoscalers.by_value(age_us, target, replicas, len(ready), tolerance)
        self._simulation.fast_forward.settle_commits()  # nothing here depends on it; who watches the lag does
        used_ppm = [utilization_ppm(pod.process) for pod in ready if pod.process is not None]
        return sum(used_ppm) // max(len(ready), 1), autoscalers.by_utilization(used_ppm, target, replicas, tolerance)

    def _lag(self) -> int:
        if self._spec.use_cached_metrics and self._cached is not None:
            self._simulation.fast_forward.settle_commits()
            return self._cached
        return self._scaler.lag(offsets_of(self._simulation)).total

    def _apply(self, replicas: int, decision: Decision, value: int) -> None:
        """Say it, if it is new, and do it."""
        simulation, spec = self._simulation, self._spec
        simulation.has_changed = True  # whoever watches the lag gets to see it
        if decision.replicas == replicas and decision == self._said:
            return
        self._said = decision
        simulation.log(Scaled(simulation.log_time, spec.members, replicas, *decision, spec.metric, value))
        if decision.replicas != replicas:
            simulation.history.scalings.append(
                Scaling(simulation.loop.now_us, spec.members, replicas, decision.replicas, str(spec.metric), value)
            )
            simulation.disturbed()
            resize(simulation, spec.members, decision.replicas)


def _reads_from_start(simulation: Simulation, spec: Autoscale) -> bool:
    """KEDA's ``offsetResetPolicy``, which is to be that of the consumers."""
    members = simulation.members(spec.members)
    return MemberConfig.from_properties(members.config, members.client).auto_offset_reset == "earliest"
