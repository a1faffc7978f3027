"""What the language has words for: why nobody consumes a partition, what sets a rebalance off, metrics, selectors of pods.

And what others call all that, for whoever guesses a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kgctl import errors
from kgctl.model.values import quick_enum
from kgctl.simulate.scenario.quantities import parse_share, shown


@quick_enum
class Cause(IntEnum):
    """The causes of a gap. A gap is split where its cause changes."""

    REBALANCE = 0
    HANDOVER = 1
    DETECTION = 2
    STATIC_WAIT = 3
    BOOT = 4
    STALL = 5
    DISCOVERY = 6
    COORDINATOR = 7
    FETCH = 8
    BROKER = 9

    @property
    def label(self) -> str:
        """Return the cause's name in metrics and logs."""
        return self.name.lower()


MEANINGS = {
    Cause.REBALANCE: "the owner lives and had to give the partition up for a rebalance",
    Cause.HANDOVER: "given up to move, the next owner does not have it yet",
    Cause.DETECTION: "the owner is gone and the coordinator does not know",
    Cause.STATIC_WAIT: "the owner is down, the partition is kept for its instance id",
    Cause.BOOT: "no member is there that could take it",
    Cause.STALL: "the owner's process does not go on, or is past max.poll.interval.ms",
    Cause.DISCOVERY: "the partition exists and the group has not seen it",
    Cause.COORDINATOR: "there is no coordinator",
    Cause.FETCH: "the owner runs its callback or fetches its offset",
    Cause.BROKER: "a broker with the partition is away, and nobody can read it",
}


FAILOVER = "CoordinatorFailover"
"""Begins the trigger of a rebalance that there is because the coordinator failed."""


REBALANCE_CAUSES: Mapping[str, str] = {
    FAILOVER: "coordinator_failover",
    "JoinGroup": "join",
    "LeaveGroup": "leave",
    "timer": "timeout",
    "SyncGroup": "sync",
    "TopicsChanged": "topics",
}
"""What sets a rebalance off -> its name in ``rebalances(cause ...)``; other requests have their own."""


def rebalance_causes() -> tuple[str, ...]:
    """Return the names that ``rebalances(cause ...)`` takes."""
    return (*REBALANCE_CAUSES.values(), "ConsumerGroupHeartbeat", "Heartbeat", "RegexResolved")


@dataclass(frozen=True, slots=True)
class TroubleKind:
    """What fails a run without being asked for, unless the file's ``allow`` has its name.

    ``check``: what is expected, in the words of a report; ``metric``: an expectation that names it takes its place; "": none.
    """

    name: str
    check: str
    metric: str
    help: str


TROUBLES: Mapping[str, TroubleKind] = {
    kind.name: kind
    for kind in (
        TroubleKind("failed", "no consumer fails", "errors", "a consumer has thrown what its application does not survive"),
        TroubleKind("kicked", "no member is kicked", "kicked", "a member was taken out of the group while its process lived"),
        TroubleKind("stuck", "no member is stuck", "stuck_members", "a consumer ran for more than 60 s outside of the group"),
        TroubleKind(
            "missing", "all pods are in the group at the end", "", "a pod that is wanted was not there for the last 60 s"
        ),
        TroubleKind("no_effect", "each event has an effect", "", "an event found nothing that it could do, or was given up"),
        TroubleKind("not_started", "all begins before the end", "", "a pod's start or an event lies after the end of the run"),
        TroubleKind("unsettled", "the group settles", "", "the run was ended by a limit, before the group was stable"),
    )
}


S, PS, SHARE, COUNT, RECORDS = "seconds", "partition-seconds", "share", "count", "records"
TIME = ("after", "before", "during", "step")
WHERE = ("topic", "selector", *TIME)
BALANCE = ("topic", "selector", "at", "mean", "worst")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """``filters``: which kinds make sense. ``is_summary``: it stands in a result's list of metrics, without filters."""

    name: str
    unit: str
    filters: tuple[str, ...] = TIME
    is_summary: bool = True


METRIC_SPECS: Mapping[str, MetricSpec] = {
    spec.name: spec
    for spec in (
        MetricSpec("unavailable", PS, ("cause", *WHERE)),
        MetricSpec("availability", SHARE, WHERE),
        MetricSpec("max_gap", S, WHERE),
        MetricSpec("gap_p50", S, WHERE),
        MetricSpec("gap_p95", S, WHERE),
        MetricSpec("gap_p99", S, WHERE),
        MetricSpec("gaps", COUNT, WHERE),
        MetricSpec("partition_gap", S, ("percentile", "mean", "max", "min", *WHERE)),
        MetricSpec("takeover_min", S, WHERE),
        MetricSpec("takeover_p50", S, WHERE),
        MetricSpec("takeover_max", S, WHERE),
        MetricSpec("first_owned", S, ("topic",)),
        MetricSpec("all_owned", S, ("topic",)),
        MetricSpec("stop_the_world", S, ("share", "topic", *TIME)),
        MetricSpec("collateral", PS, WHERE),
        MetricSpec("generations", COUNT),
        MetricSpec("rebalances", COUNT, ("cause", *TIME)),
        MetricSpec("rebalance_time", S, ("percentile", "mean", "max", *TIME)),
        MetricSpec("rounds", COUNT),
        MetricSpec("aborted", COUNT),
        MetricSpec("callbacks", COUNT, ("callback", "selector", *TIME)),
        MetricSpec("heartbeat_time", S, ("percentile", "mean", "max", "min", "selector", *TIME)),
        MetricSpec("time_to_stable", S, ("event", "at")),
        MetricSpec("kicked", COUNT, ("selector", *TIME)),
        MetricSpec("fenced", COUNT, ("selector", *TIME)),
        MetricSpec("stuck_members", COUNT, ("selector", *TIME)),
        MetricSpec("detection_time", S, ("selector", *TIME)),
        MetricSpec("discovery_delay", S, ("topic", *TIME)),
        MetricSpec("moves", COUNT, ("topic", *TIME)),
        MetricSpec("moves_min", COUNT, ("topic", *TIME)),
        MetricSpec("excess_moves", COUNT, ("topic", *TIME)),
        MetricSpec("stickiness", SHARE, ("topic", *TIME)),
        MetricSpec("ping_pong", COUNT, ("topic", *TIME)),
        MetricSpec("r_score", "consumers", ("topic", *TIME)),
        MetricSpec("state_moved", "bytes", ("topic", *TIME)),
        MetricSpec("spread", "partitions", BALANCE),
        MetricSpec("max_mean", SHARE, BALANCE),
        MetricSpec("jain", SHARE, BALANCE),
        MetricSpec("load_jain", SHARE, BALANCE),
        MetricSpec("kip54", "partitions", BALANCE),
        MetricSpec("idle_members", COUNT, BALANCE),
        MetricSpec("members", COUNT, ("selector", "at")),
        MetricSpec("cross_rack", SHARE, ("topic", "at")),
        MetricSpec("copartitioned", SHARE, ("topic", "topic", "at"), is_summary=False),
        MetricSpec("lag", RECORDS, ("topic", "at", "mean", "peak", *TIME)),
        MetricSpec("lag_peak", RECORDS, ("topic", *TIME)),
        MetricSpec("backlog", RECORDS, ("topic", "at", "mean", "peak", *TIME)),
        MetricSpec("backlog_peak", RECORDS, ("topic", *TIME)),
        MetricSpec("lag_area", "record-seconds", ("topic", *TIME)),
        MetricSpec("lag_age", S, ("topic",)),
        MetricSpec("latency_mean", S, ("topic", *TIME)),
        MetricSpec("latency_p99", S, ("topic", *TIME)),
        MetricSpec("drain_time", S, ("event", "at", "topic")),
        MetricSpec("processed", RECORDS, ("topic",)),
        MetricSpec("duplicates", RECORDS, WHERE),
        MetricSpec("duplicates_bound", RECORDS, ("selector", *TIME)),
        MetricSpec("double_owned", PS, ("selector", *TIME)),
        MetricSpec("fenced_commits", COUNT, ("error", "selector", *TIME)),
        MetricSpec("lost", RECORDS, WHERE),
        MetricSpec("errors", COUNT, ("error", "selector", *TIME)),
        MetricSpec("thrash", "per cent", ("series", *TIME)),
        MetricSpec("flaps", COUNT, ("selector", *TIME)),
        MetricSpec("replicas", COUNT, ("selector", "at", "max", "min", *TIME)),
        MetricSpec("member_seconds", S, ("selector", *TIME)),
        MetricSpec("requests", COUNT, ("api", "peak", "selector", *TIME)),
        MetricSpec("record_bytes", "bytes", ()),
        MetricSpec("owners", COUNT, ("partition",), is_summary=False),
        MetricSpec("state", "state", ("at",), is_summary=False),
    )
}
"""Name -> metric, in the order in which results list them. `kgctl.simulate.metrics.result` has what computes each."""


NODE = "node"
"""Stands for a set of members in ``node/2``: all pods on that node, of whatever set."""


class Choice(StrEnum):
    """How a selector picks among the pods of its set."""

    ALL = "all"
    RANGE = "range"
    SHARE = "share"
    OLDEST = "oldest"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Pods of one set of members, or (``negated``) all others, those of other sets included.

    ``member_set`` None: of every set. ``first`` and ``last``, both included, are for RANGE (one pod: both the same);
    ``share_ppm`` is for SHARE, in millionths: that many of the pods, at least one, drawn by the seed. ``oldest`` is the pod that
    has run longest; ``leader`` the one that leads the classic group. ``text`` is what the file says.
    """

    text: str
    member_set: str | None = None
    choice: Choice = Choice.ALL
    first: int = 0
    last: int = 0
    share_ppm: int = 0
    negated: bool = False

    def matches(self, member_set: str, index: int) -> bool:
        """Whether a pod is meant; only for selectors that are fixed."""
        inside = self.member_set is None or self.member_set == member_set
        if self.choice is Choice.RANGE:
            inside = inside and self.first <= index <= self.last
        return inside != self.negated


_SELECTOR = re.compile(r"(not\s+)?([^\s/]+)(?:/(\S+))?")


def parse_selector(raw: object) -> Selector:
    """Which pods are meant. Whether there is such a set of members is for the reader of the file to check.

    Raises:
        ValueError: it is no selector.
    """
    match = _SELECTOR.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no selector; write app, app/3, app/0..9, app/50%, app/oldest, app/leader or not app/3")
    negated, member_set, which = match.groups()
    named = None if member_set == "*" else member_set
    text = " ".join(str(raw).split())
    if which is None:
        return Selector(text=text, member_set=named, negated=bool(negated))
    choice, first, last, share_ppm = _which(which, text)
    return Selector(
        text=text, member_set=named, choice=choice, first=first, last=last, share_ppm=share_ppm, negated=bool(negated)
    )


def _which(which: str, text: str) -> tuple[Choice, int, int, int]:
    if re.fullmatch(r"\d{1,9}", which):
        return Choice.RANGE, int(which), int(which), 0
    if match := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", which):
        first, last = int(match.group(1)), int(match.group(2))
        if first > last:
            raise ValueError(f"{text!r} ends before it begins")
        return Choice.RANGE, first, last, 0
    if which.endswith("%"):
        return Choice.SHARE, 0, 0, parse_share(which)
    if which in ("oldest", "leader"):
        return Choice(which), 0, 0, 0
    raise ValueError(f"{text!r}: after the slash stands a number, a range 0..9, a share 50%, oldest or leader")


def did_you_mean(word: str, known: Iterable[str], *, list_up_to: int = 0) -> str:
    """Return ``; did you mean 'members'?``: the same word in other letters, another's word for it, or one that is near.

    Where there is none, and the choice has at most ``list_up_to`` words, the whole choice.
    """
    choice = list(known)
    if meant := _in_other_words(word, choice):
        return f"; did you mean {meant!r}?"
    is_small = 0 < len(choice) <= list_up_to
    return errors.did_you_mean(word, choice, quoted=True) or (f"; known: {', '.join(choice)}" if is_small else "")


def _in_other_words(word: str, choice: Sequence[str]) -> str:
    plain = _plain(word)
    same = next((each for each in choice if _plain(each) == plain), "")
    named = next((each for each in OTHER_WORDS.get(plain, ()) if each.partition(":")[0] in choice), "")
    return same or named or _setting_of_config(word, choice)


def _setting_of_config(word: str, choice: Sequence[str]) -> str:
    """Return where a setting with dots in its name belongs: below ``config``, or ``set``."""
    place = next((each for each in ("config", "set", "with") if each in choice), "")
    return f"{place}: {{{word}: ...}}" if place and "." in word else ""


def _plain(word: str) -> str:
    return re.sub(r"[\s_.-]", "", word).lower()


OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    _plain(word): meant
    for words, meant in {
        # Kubernetes
        "replicas instances pods size number n": ("count", "to"),
        "deployment deploy rollingupdate rolling_update update new_version release": ("rollout", "rolling"),
        "statefulset": ("rollout",),
        "rollback": ("rollout", "abort_if"),
        "kind type controller": ("workload",),
        "updateStrategy": ("strategy", "workload"),
        "surge": ("max_surge",),
        "unavailable": ("max_unavailable", "unavailable"),
        "terminationGracePeriodSeconds terminationGracePeriod termination_grace_period gracePeriod grace_period "
        "graceful_shutdown shutdown_timeout": ("grace",),
        "minReadySeconds minReady": ("min_ready",),
        "readinessProbe readinessDelay readiness initialDelaySeconds initial_delay ready_delay ready_after": ("ready",),
        "readiness_failure readinessFailure fails failing unhealthy never_healthy probe_fails": ("never_ready",),
        "progressDeadlineSeconds progressDeadline timeout": ("deadline", "for"),
        "pdb podDisruptionBudget disruption_budget minAvailable": ("budget", "max_unavailable"),
        "interval wait analysis_interval step_time": ("pause", "every"),
        "analysis abort rollback_if": ("abort_if",),
        "batch batch_size": ("max_unavailable", "batch"),
        "settle": ("min_ready", "settle"),
        "preStop signal on_sigterm term shutdown": ("sigterm", "on_stop", "stop"),
        "drain_node node_drain evict eviction cordon": ("drain",),
        "spot preemption interruption spot_interruption node_loss node_lost": ("spot_loss",),
        "warning notification notice_period": ("notice",),
        "hpa keda scaler autoscaler autoscaling": ("autoscale",),
        "minReplicas minReplicaCount minimum": ("min",),
        "maxReplicas maxReplicaCount maximum": ("max",),
        "lagThreshold threshold targetValue averageValue": ("target",),
        "activationLagThreshold activation_threshold": ("activation",),
        "pollingInterval": ("poll",),
        "cooldownPeriod": ("cooldown",),
        "stabilizationWindowSeconds stabilization": ("stabilize",),
        "scaleTargetRef scale_target deployment_name": ("members",),
        "env image": ("set",),
        "weights weight percent": ("steps",),
        "blue_green": ("blue-green", "rollout: ..., strategy: blue-green"),
        "canary": ("rollout: ..., strategy: canary",),
        "recreate": ("rollout: ..., strategy: recreate",),
        "ignore": ("ignored",),
        "kill": ("crash",),
        "podManagementPolicy pod_management parallel ordered": ("max_unavailable", "statefulset"),
        # members
        "topic topics subscription subscribes": ("subscribe", "topics"),
        "group.instance.id static static_id static_membership instance": ("instance_id: $name",),
        "assignor partition.assignment.strategy assignment_strategy": ("config: {partition.assignment.strategy: ...}",),
        "protocol group_protocol": ("config: {group.protocol: consumer}",),
        "startup startup_time start_time boot_time bootDelay": ("boot",),
        "throughput capacity processing_rate speed records_per_second": ("rate",),
        "properties settings consumer_config": ("config",),
        "library language": ("client",),
        # events
        "time when_at": ("at",),
        "duration during lasts": ("for", "duration"),
        "freeze pause gc gc_pause": ("pause_process", "pause"),
        "hang stuck block": ("stall",),
        "delay": ("latency", "boot", "ready", "pause"),
        "disconnect cut isolate network_partition": ("network",),
        "broker_crash broker_failure kill_broker": ("broker_down",),
        "failover coordinator_failover": ("coordinator_move", "broker_down"),
        "resize expand_topic add_partition": ("add_partitions",),
        "reboot": ("restart",),
        "rolling rolling_deploy": ("rolling_restart", "rolling"),
        "scale_out scale_up scale_in scale_down": ("scale",),
        "traffic_change traffic_spike": ("set_traffic",),
        # the file
        "consumers": ("members", "count"),
        "description title": ("question",),
        "version apiVersion": ("kgctl", "set"),
        "timeline actions scenario faults": ("events",),
        "assertions asserts assert checks expectations expected": ("expect",),
        "load producers rates": ("traffic",),
        "brokers nodes network": ("cluster",),
        "config": ("group: {config: ...}", "set", "with"),
        "seeds": ("runs",),
        # metrics
        "downtime unavailability unavailable_time": ("unavailable",),
        "gap longest_gap": ("max_gap",),
        "max_unavailable": ("budget", "max_gap"),
        "partitions_moved moved movements": ("moves",),
        "rebalance rebalance_count": ("rebalances",),
        "stable settle_time stabilization_time": ("time_to_stable",),
        "max_lag": ("lag_peak",),
        "duplicate reprocessed": ("duplicates",),
    }.items()
    for word in words.split()
}
"""What others call a thing, in small letters and without separators -> what it is here; the first that may stand there."""
