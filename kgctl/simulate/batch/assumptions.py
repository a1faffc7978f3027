"""What a run goes by that nobody measured in the user's own house: latencies, the poll loop, how the client behaves."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.member.config import HeartbeatDrift, MemberConfig
from kgctl.simulate.scenario.fields import RANDOM_DRIFT, CommitMode
from kgctl.simulate.scenario.load import Variant
from kgctl.simulate.scenario.model import AssignTime, MemberSet, Scenario
from kgctl.simulate.scenario.quantities import distribution_text, format_duration
from kgctl.simulate.scenario.settings import client_id_of, commit_of, member_config, read_broker_settings


def assumptions_of(variant: Variant) -> dict[str, str]:
    """Return what the variant's runs assume: what it is about -> the value, in the words of a scenario file."""
    scenario = variant.scenario
    found = dict(_of_the_cluster(scenario))
    for members in scenario.members:
        found |= {f"{members.name}: {what}": value for what, value in _of_members(members, scenario)}
    return found


def _of_the_cluster(scenario: Scenario) -> Iterator[tuple[str, str]]:
    cluster = scenario.cluster
    network, broker = cluster.network, read_broker_settings(cluster.config)
    yield "a message between pod and broker, one way", distribution_text(network.client)
    yield "a message between brokers, one way", distribution_text(network.broker)
    yield "messages lost", f"{network.loss_ppm / 10_000:g}%"
    yield "a record of the group is written in", distribution_text(cluster.append)
    yield "group.initial.rebalance.delay.ms", _ms(broker.group_initial_rebalance_delay_ms)
    yield "a leader's assignor computes for", _assign_time(scenario.assign_time)


def _assign_time(time: AssignTime) -> str:
    parts = ((time.base_ns, ""), (time.per_partition_ns, " a partition"), (time.per_member_ns, " a member"))
    return " + ".join(f"{number / 1_000_000:g}ms{each}" for number, each in parts)


def _of_members(members: MemberSet, scenario: Scenario) -> Iterator[tuple[str, str]]:
    config = member_config(members, members.config)
    yield "client", f"{members.client}, {config.group_protocol} protocol"
    yield "client.id", client_id_of(members, scenario.group_id, "$name", members.instance_id)
    if config.group_protocol == "classic":
        yield "partition.assignment.strategy", ", ".join(config.partition_assignment_strategy)
        yield "session.timeout.ms", _ms(config.session_timeout_ms)
        yield "heartbeat.interval.ms", _ms(config.heartbeat_interval_ms)
    yield "max.poll.interval.ms", _ms(config.max_poll_interval_ms)
    yield "boot, then client start", f"{distribution_text(members.boot)}, then {distribution_text(members.client_start)}"
    timeout = "waits for records" if members.poll_timeout_us is None else f"waits {format_duration(members.poll_timeout_us)}"
    yield "poll()", f"{timeout}, then a pause of {distribution_text(members.poll)}"
    rate = members.rate_uhz
    yield "processes", "as fast as records come" if rate is None else f"{rate / 1_000_000:g}/s"
    yield "commits", _commit(members, config)
    yield "callbacks", ", ".join(f"{kind} {distribution_text(getattr(members.callbacks, kind))}" for kind in _CALLBACKS)
    yield "each heartbeat is late by", _drift(members, config)
    yield "a clean stop", "closes the consumer" if members.leaves_on_stop else "ends the process without close()"
    if config.behaviour.close_lag_us:
        yield "close() takes longer, without traffic, by up to", format_duration(config.behaviour.close_lag_us)


_CALLBACKS = ("revoked", "assigned", "lost")


def _commit(members: MemberSet, config: MemberConfig) -> str:
    commit = commit_of(members, config)
    if commit.mode is CommitMode.EVERY:
        return f"every {format_duration(commit.interval_us)}"
    return f"auto, every {_ms(config.auto_commit_interval_ms)}" if commit.mode is CommitMode.AUTO else str(commit.mode)


def _drift(members: MemberSet, config: MemberConfig) -> str:
    given = members.heartbeat_drift_us
    if given is not None:
        return "anything: phases are random" if given == RANDOM_DRIFT else f"up to {format_duration(given)}"
    behaviour = config.behaviour
    drift = behaviour.classic_drift if config.group_protocol == "classic" else behaviour.consumer_drift
    return _measured_drift(drift)


def _measured_drift(drift: HeartbeatDrift) -> str:
    parts = [
        format_duration(drift.constant_us),
        f"±{format_duration(drift.walk_us)} that adds up" if drift.walk_us else "",
        f"±{format_duration(drift.jitter_us)}" if drift.jitter_us else "",
    ]
    locked = "beats begin anew with each generation" if drift.phase_locked else "phases are kept from each start"
    return f"{', '.join(filter(None, parts))}; {locked}"


def _ms(number: int) -> str:
    return format_duration(number * 1_000)
