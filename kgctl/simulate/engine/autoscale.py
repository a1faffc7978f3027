"""Kubernetes' HorizontalPodAutoscaler (autoscaling/v2) and KEDA's Kafka scaler: recommendations in, decisions out; their loop.

Modelled as in Kubernetes 1.33: the tolerance; ``minReplicas`` and ``maxReplicas``, which are restored at once when the number is
outside of them; stabilisation windows in both directions, the first number counting as a recommendation; policies of pods and
per cent by period, with what was added and removed in the period; ``selectPolicy``. Whole numbers throughout, where
Kubernetes has floating point ones. Not modelled: several metrics at once, annotations, a failing metrics server, an HPA without
``behavior`` (its limits are nearly those of the defaults here: twice the pods, at least 4, within a sync).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from kgctl.member.config import MemberConfig
from kgctl.model.values import quick_enum
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process, ProcessPhase
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.recording.trace import Scaled
from kgctl.simulate.scenario.autoscale import Autoscale, ScaleMetric, ScalingPolicy, ScalingRules, Select
from kgctl.simulate.scenario.quantities import UNIT_PR

_PPM = 1_000_000


@quick_enum
class Why(StrEnum):
    """What decided, in Kubernetes' own words (conditions of the HPA), where it has one."""

    WITHIN_TOLERANCE = "WithinTolerance"
    AS_DESIRED = "DesiredWithinRange"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    TOO_MANY = "TooManyReplicas"
    TOO_FEW = "TooFewReplicas"
    DISABLED = "ScalingDisabled"
    NO_METRICS = "FailedGetResourceMetric"
    ACTIVATED = "KEDAScaleTargetActivated"
    DEACTIVATED = "KEDAScaleTargetDeactivated"


class Decision(NamedTuple):
    """``replicas``: so many from now on. ``desired``: what the metric alone asks for."""

    replicas: int
    desired: int
    why: Why


class ScaleChange(NamedTuple):
    """Pods were added (more than 0) or removed at this time."""

    at_us: int
    amount: int


def is_within(usage: int, target: int, tolerance_ppm: int) -> bool:
    """Whether a value is as near to its target as the tolerance is wide, both ends included."""
    return (_PPM - tolerance_ppm) * target <= usage * _PPM <= (_PPM + tolerance_ppm) * target


def by_average(total: int, target: int, replicas: int, tolerance_ppm: int) -> int:
    """``AverageValue`` of an external metric: as many pods as bring the average to the target. Pods that boot count as pods."""
    if replicas and is_within(total, target * replicas, tolerance_ppm):
        return replicas
    return -(-total // target)


def by_value(value: int, target: int, replicas: int, ready: int, tolerance_ppm: int) -> int:
    """``Value`` of an external metric: the pods that are ready, in the proportion of value and target."""
    if is_within(value, target, tolerance_ppm):
        return replicas
    return -(-value * ready // target)


def by_utilization(used_ppm: Sequence[int], target: int, replicas: int, tolerance_ppm: int) -> int | None:
    """``Utilization``: what each pod that is ready uses, in millionths; the target in per cent. None: no pod is ready.

    Pods that are not ready yet count as idle before pods are added, and not at all before pods are removed.
    """
    ready = len(used_ppm)
    if not ready:
        return None
    percent = 100 * sum(used_ppm) // (_PPM * ready)
    counted = replicas if percent > target else ready
    again = 100 * sum(used_ppm) // (_PPM * counted)
    if is_within(again, target, tolerance_ppm) or (percent > target and again < target):
        return replicas
    wanted = -(-again * counted // target)
    return max(wanted, replicas) if again > target else min(wanted, replicas)


class Autoscaler:
    """One HPA with its memory: what it recommended, and what it did, as long as a window or a period can ask for it."""

    def __init__(self, spec: Autoscale) -> None:
        self._spec = spec
        self._minimum = max(spec.minimum, 1)
        self._recommended: list[tuple[int, int]] = []
        self._changes: list[ScaleChange] = []

    def decide(self, now_us: int, replicas: int, desired: int) -> Decision:
        """Decide how many pods there shall be, at one sync. The caller makes it so, and then tells `changed`."""
        if not self._recommended:
            self._recommended.append((now_us, replicas))
        if not replicas:
            return Decision(0, desired, Why.DISABLED)
        if replicas > self._spec.maximum:
            return Decision(self._spec.maximum, desired, Why.TOO_MANY)
        if replicas < self._minimum:
            return Decision(self._minimum, desired, Why.TOO_FEW)
        stable, why = self._stabilized(now_us, replicas, desired)
        return self._limited(now_us, replicas, desired, stable, why)

    def changed(self, now_us: int, amount: int) -> None:
        """Remember that a decision added so many pods, or (below 0) removed them."""
        longest_us = max((policy.period_us for rules in (self._spec.up, self._spec.down) for policy in rules.policies), default=0)
        self._changes = [change for change in self._changes if change.at_us > now_us - longest_us]
        self._changes.append(ScaleChange(now_us, amount))

    def _stabilized(self, now_us: int, replicas: int, desired: int) -> tuple[int, Why]:
        up_us, down_us = self._spec.up.stabilize_us, self._spec.down.stabilize_us
        self._recommended = [entry for entry in self._recommended if entry[0] > now_us - max(up_us, down_us)]
        lowest = min([desired, *(number for at_us, number in self._recommended if at_us > now_us - up_us)])
        highest = max([desired, *(number for at_us, number in self._recommended if at_us > now_us - down_us)])
        self._recommended.append((now_us, desired))
        stable = min(max(replicas, lowest), highest)
        if stable == desired:
            return stable, Why.AS_DESIRED
        return stable, Why.SCALE_UP_STABILIZED if desired >= replicas else Why.SCALE_DOWN_STABILIZED

    def _limited(self, now_us: int, replicas: int, desired: int, stable: int, why: Why) -> Decision:
        """Return what policies and bounds leave of a desired number of replicas."""
        if stable > replicas:
            limit = max(limit_of(self._spec.up, replicas, self._changes, now_us, direction=1), replicas)
            most = min(limit, self._spec.maximum)
            if stable > most:
                return Decision(most, desired, Why.SCALE_UP_LIMIT if limit < self._spec.maximum else Why.TOO_MANY)
        elif stable < replicas:
            limit = min(limit_of(self._spec.down, replicas, self._changes, now_us, direction=-1), replicas)
            fewest = max(limit, self._minimum)
            if stable < fewest:
                return Decision(fewest, desired, Why.SCALE_DOWN_LIMIT if limit > self._minimum else Why.TOO_FEW)
        return Decision(stable, desired, why)


def limit_of(rules: ScalingRules, replicas: int, changes: list[ScaleChange], now_us: int, *, direction: int) -> int:
    """How far these rules let the number go up (``direction`` 1) or down (-1) now."""
    if rules.select is Select.DISABLED or not rules.policies:
        return replicas
    limits = [_limit(policy, replicas - _changed(changes, now_us - policy.period_us), direction) for policy in rules.policies]
    return max(limits) if (rules.select is Select.MAX) == (direction > 0) else min(limits)


def _changed(changes: list[ScaleChange], since_us: int) -> int:
    return sum(change.amount for change in changes if change.at_us > since_us)


def _limit(policy: ScalingPolicy, at_start: int, direction: int) -> int:
    """Of one policy, from the number at its period's beginning. More pods are rounded up, what is left is rounded down."""
    if not policy.is_percent:
        return at_start + direction * policy.amount
    return -(-at_start * (100 + policy.amount) // 100) if direction > 0 else _down(at_start, policy.amount)


def _down(at_start: int, percent: int) -> int:
    left = at_start * (100 - percent)
    return left // 100 if left >= 0 else -(-left // 100)


class Offsets(NamedTuple):
    """One partition: its number, its log end offset, what is committed (None: nothing yet)."""

    partition: int
    end: int
    committed: int | None


class Lag(NamedTuple):
    """``total``: what the HPA gets. ``present``: the lag with what ``exclude_persistent_lag`` leaves out, for the activation."""

    total: int
    present: int


class KafkaScaler:
    """One trigger. Remembers the offsets of its last measurement, for ``exclude_persistent_lag``, and when it was last active."""

    def __init__(self, spec: Autoscale, *, from_start: bool) -> None:
        self._spec = spec
        self._from_start = from_start
        self._seen: dict[int, int] = {}
        self._active_us: int | None = None

    def lag(self, offsets: Iterable[Offsets]) -> Lag:
        spec = self._spec
        partitions = with_lag = total = present = 0
        for each in offsets:
            records = self._records(each)
            counted = 0 if self._is_persistent(each) else records
            partitions += 1
            with_lag += counted > 0
            total += counted
            present += records
        if not spec.allow_idle_consumers or spec.limit_to_partitions_with_lag:
            most = with_lag if spec.limit_to_partitions_with_lag else partitions
            if total // spec.target > most:
                total = most * spec.target
        return Lag(total, present)

    def _records(self, each: Offsets) -> int:
        if each.committed is None:
            return each.end if self._from_start else 1
        return each.end - each.committed

    def _is_persistent(self, each: Offsets) -> bool:
        """Whether nothing was committed since the last measurement: then it is taken for a record that nobody can process."""
        if not self._spec.exclude_persistent_lag or each.committed is None:
            return False
        before = self._seen.get(each.partition)
        self._seen[each.partition] = each.committed
        return before == each.committed

    def polled(self, now_us: int, replicas: int, present: int) -> int:
        """KEDA's own loop: how many pods there are to be, which differs from ``replicas`` only on the way from and to 0."""
        spec = self._spec
        if present > spec.activation:
            self._active_us = now_us
            return replicas or max(spec.minimum, 1)
        if spec.minimum:
            return max(replicas, spec.minimum)
        is_over = self._active_us is None or now_us >= self._active_us + spec.cooldown_us
        return 0 if is_over else replicas


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
        if simulation.partitions.counted[number]
    ]


def oldest_us(simulation: Simulation) -> int:
    """The age of the oldest record that is not committed."""
    now_us, arrivals = simulation.loop.now_us, simulation.ledger.arrivals
    behind = [each for each in offsets_of(simulation) if each.end > (each.committed or 0)]
    return max((now_us - arrivals.arrived_us(each.partition, (each.committed or 0) * UNIT_PR) for each in behind), default=0)


def is_ready(pod: Pod) -> bool:
    """Whether its consumer runs: booting pods are not ready, and those that are told to stop do not count any more."""
    return pod.process is not None and pod.process.phase is ProcessPhase.RUNNING


def utilization_ppm(process: Process) -> int:
    """Return for which part of the time the process processes records at this moment, in millionths."""
    flow, rate_uhz = process.flow, process.pod.members.rate_uhz
    flow.advance(process.context.loop.now_us)
    if not flow.rate_uhz or not rate_uhz:
        return 0
    return sum(flow.shares().values()) * process.pod.factor_ppm // rate_uhz


NOTHING = Lag(0, 0)


class AutoscaleLoop:
    """Runs one ``autoscale:`` of a scenario."""

    def __init__(self, simulation: Simulation, spec: Autoscale) -> None:
        self._simulation = simulation
        self._spec = spec
        self._hpa = Autoscaler(spec)
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
        replicas = simulation.replicas_of(spec.members)
        wanted = self._scaler.polled(simulation.loop.now_us, replicas, lag.present)
        if wanted != replicas:
            why = Why.ACTIVATED if wanted > replicas else Why.DEACTIVATED
            self._apply(replicas, Decision(wanted, wanted, why), lag.present)

    def _sync(self, _: object) -> None:
        simulation, spec = self._simulation, self._spec
        now_us = simulation.loop.now_us
        simulation.loop.at(now_us + spec.every_us, self._sync)
        replicas = simulation.replicas_of(spec.members)
        value, desired = self._measured(replicas)
        if desired is None:
            self._apply(replicas, Decision(replicas, replicas, Why.NO_METRICS), value)
            return
        decision = self._hpa.decide(now_us, replicas, desired)
        if decision.why is Why.AS_DESIRED and decision.replicas == replicas:
            decision = decision._replace(why=Why.WITHIN_TOLERANCE)
        self._apply(replicas, decision, value)
        if decision.replicas != replicas:
            self._hpa.changed(now_us, decision.replicas - replicas)

    def _measured(self, replicas: int) -> tuple[int, int | None]:
        """(the value, the number of pods that it asks for)."""
        spec = self._spec
        target, tolerance = spec.target, spec.tolerance_ppm
        if spec.metric is ScaleMetric.LAG:
            total = self._lag()
            return total, by_average(total, target, replicas, tolerance)
        ready = [pod for pod in self._simulation.wanted_pods(spec.members) if is_ready(pod)]
        if spec.metric is ScaleMetric.LAG_AGE:
            age_us = oldest_us(self._simulation)
            return age_us, by_value(age_us, target, replicas, len(ready), tolerance)
        self._simulation.fast_forward.settle_commits()  # nothing here depends on it; who watches the lag does
        used_ppm = [utilization_ppm(pod.process) for pod in ready if pod.process is not None]
        return sum(used_ppm) // max(len(ready), 1), by_utilization(used_ppm, target, replicas, tolerance)

    def _lag(self) -> int:
        if self._spec.use_cached_metrics and self._cached is not None:
            self._simulation.fast_forward.settle_commits()
            return self._cached
        return self._scaler.lag(offsets_of(self._simulation)).total

    def _apply(self, replicas: int, decision: Decision, value: int) -> None:
        """Log a new decision, and scale the set as it says."""
        simulation, spec = self._simulation, self._spec
        simulation.loop.has_changed = True  # whoever watches the lag gets to see it
        if decision.replicas == replicas and decision == self._said:
            return
        self._said = decision
        simulation.emit(Scaled, spec.members, str(spec.metric), value, replicas, *decision)
        if decision.replicas != replicas:
            simulation.resize(spec.members, decision.replicas)


def _reads_from_start(simulation: Simulation, spec: Autoscale) -> bool:
    """KEDA's ``offsetResetPolicy``, which is to be that of the consumers."""
    members = simulation.members(spec.members)
    return MemberConfig.from_properties(members.config, members.client).auto_offset_reset == "earliest"
