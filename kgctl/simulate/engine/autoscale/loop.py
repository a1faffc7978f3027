"""The autoscaler of a run: KEDA's polls and the HPA's syncs as events, from the run's beginning on.

Each loop begins at a phase that the seed draws, as nothing ties it to the traffic. Decisions are logged where they change
something or say something new; a sync that comes to the same as the one before leaves no line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgctl.member.config import MemberConfig
from kgctl.simulate.engine.autoscale import hpa, measures
from kgctl.simulate.engine.autoscale.hpa import Decision, Why
from kgctl.simulate.engine.autoscale.keda import KafkaScaler, Lag
from kgctl.simulate.engine.autoscale.pods import replicas_of, resize
from kgctl.simulate.engine.recorder.history import Scaling
from kgctl.simulate.engine.trace import Scaled
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.pod import Pod
    from kgctl.simulate.engine.world import World


NOTHING = Lag(0, 0)


class AutoscaleLoop:
    """One ``autoscale:`` in a run."""

    def __init__(self, world: World, spec: Autoscale) -> None:
        self._world = world
        self._spec = spec
        self._hpa = hpa.Autoscaler(spec)
        self._scaler = KafkaScaler(spec, from_start=_reads_from_start(world, spec))
        self._cached: int | None = None
        self._said: Decision | None = None

    def begin(self) -> None:
        """Put the first poll and the first sync into the loop."""
        rng = self._world.randomness.stream("autoscale", self._spec.members)
        first_poll_us, first_sync_us = (int(rng.random() * length) for length in (self._spec.poll_us, self._spec.every_us))
        if self._spec.metric is ScaleMetric.LAG:
            self._world.loop.at(first_poll_us, self._poll)
        self._world.loop.at(first_sync_us, self._sync)

    def _poll(self, _: object) -> None:
        """KEDA's own loop. It measures only where that decides something."""
        world, spec = self._world, self._spec
        world.loop.at(world.loop.now_us + spec.poll_us, self._poll)
        lag = NOTHING
        if not spec.minimum or spec.use_cached_metrics or spec.exclude_persistent_lag:
            lag = self._scaler.lag(measures.offsets_of(world))
            self._cached = lag.total
        replicas = len(replicas_of(world, spec.members))
        wanted = self._scaler.polled(world.loop.now_us, replicas, lag.present)
        if wanted != replicas:
            why = Why.ACTIVATED if wanted > replicas else Why.DEACTIVATED
            self._apply(replicas, Decision(wanted, wanted, why), lag.present)

    def _sync(self, _: object) -> None:
        world, spec = self._world, self._spec
        now_us = world.loop.now_us
        world.loop.at(now_us + spec.every_us, self._sync)
        pods = replicas_of(world, spec.members)
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
            return total, hpa.by_average(total, target, replicas, tolerance)
        ready = [pod for pod in pods if measures.is_ready(pod)]
        if spec.metric is ScaleMetric.LAG_AGE:
            age_us = measures.oldest_us(self._world)
            return age_us, hpa.by_value(age_us, target, replicas, len(ready), tolerance)
        self._world.quiet.settle_commits()  # nothing here depends on it; who watches the lag does
        used_ppm = [measures.utilization_ppm(pod.process) for pod in ready if pod.process is not None]
        return sum(used_ppm) // max(len(ready), 1), hpa.by_utilization(used_ppm, target, replicas, tolerance)

    def _lag(self) -> int:
        if self._spec.use_cached_metrics and self._cached is not None:
            self._world.quiet.settle_commits()
            return self._cached
        return self._scaler.lag(measures.offsets_of(self._world)).total

    def _apply(self, replicas: int, decision: Decision, value: int) -> None:
        """Say it, if it is new, and do it."""
        world, spec = self._world, self._spec
        world.has_changed = True  # whoever watches the lag gets to see it
        if decision.replicas == replicas and decision == self._said:
            return
        self._said = decision
        world.log(Scaled(world.log_time, spec.members, replicas, *decision, spec.metric, value))
        if decision.replicas != replicas:
            world.history.scalings.append(
                Scaling(world.loop.now_us, spec.members, replicas, decision.replicas, str(spec.metric), value)
            )
            world.disturbed()
            resize(world, spec.members, decision.replicas)


def _reads_from_start(world: World, spec: Autoscale) -> bool:
    """KEDA's ``offsetResetPolicy``, which is to be that of the consumers."""
    members = world.members(spec.members)
    return MemberConfig.from_properties(members.config, members.client).auto_offset_reset == "earliest"
