"""From the values of all runs to what reports and the JSON result show: spreads, assumptions, what is rehearsed."""

from __future__ import annotations

import hashlib
import math
import shlex
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from kgctl import __version__
from kgctl.member.config import HeartbeatDrift, MemberConfig, SettingValue, settings
from kgctl.simulate.batch.judge import Judge, Judgement, RunValues, let_through
from kgctl.simulate.engine.pods import with_drift
from kgctl.simulate.report.outcome import Expectation, Measured, Outcome, Spread, VariantOutcome
from kgctl.simulate.report.tables import beside
from kgctl.simulate.scenario.checks import Check, CheckKind
from kgctl.simulate.scenario.fields import (
    RANDOM_DRIFT,
    CommitMode,
    client_id_of,
    client_start_of,
    commit_of,
    full_batch_us,
    member_config,
    read_broker_settings,
)
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.load import DEFAULT, LoadedFile, Variant
from kgctl.simulate.scenario.metric import OWNERS, kind_of
from kgctl.simulate.scenario.model import AssignTime, MemberSet, Scenario
from kgctl.simulate.scenario.quantities import distribution_text, format_duration, share_text
from kgctl.simulate.scenario.schema import question_of
from kgctl.simulate.scenario.vocabulary import TROUBLES, Identity


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
    if scenario.broker_version is not None:
        yield "broker version", scenario.broker_version
    yield "a message between pod and broker, one way", distribution_text(network.client)
    yield "a message between brokers, one way", distribution_text(network.broker)
    yield "messages lost", share_text(network.loss_ppm)
    yield "a record of the group is written in", distribution_text(cluster.append)
    yield "group.initial.rebalance.delay.ms", _ms(broker.group_initial_rebalance_delay_ms)
    yield "a leader's assignor computes for", _assign_time(scenario.assign_time)


def _assign_time(time: AssignTime) -> str:
    parts = ((time.base_ns, ""), (time.per_partition_ns, " a partition"), (time.per_member_ns, " a member"))
    return " + ".join(f"{number / 1_000_000:g}ms{each}" for number, each in parts)


def _of_members(members: MemberSet, scenario: Scenario) -> Iterator[tuple[str, str]]:
    config, kind = member_config(members, members.config), type_of_group(scenario)
    protocol = kind.protocol_of(config)
    yield "client", f"{members.client}, {protocol} protocol"
    yield "client.id", client_id_of(members, scenario.group_id, "$name", members.instance_id)
    if protocol == "classic":
        yield "partition.assignment.strategy", ", ".join(config.partition_assignment_strategy)
        yield "session.timeout.ms", _ms(config.session_timeout_ms)
        yield "heartbeat.interval.ms", _ms(config.heartbeat_interval_ms)
    if config.behaviour.limits_poll_interval:
        yield "max.poll.interval.ms", _ms(config.max_poll_interval_ms)
    if members.pattern is not None:
        looks = f"each client, which looks at the topics every {_ms(config.metadata_max_age_ms)}"
        yield "pattern", f"{members.pattern}, matched by {looks if members.matches_pattern else 'the brokers'}"
    yield from _own_settings(config)
    yield "boot, then client start", f"{distribution_text(members.boot)}, then {distribution_text(client_start_of(members))}"
    timeout = "waits for records" if members.poll_timeout_us is None else f"waits {format_duration(members.poll_timeout_us)}"
    yield "poll()", f"{timeout}, then the batch, then a pause of {distribution_text(members.poll)}"
    rate, batch = members.rate_uhz, f"batches of up to {config.max_poll_records}"
    length = f"a full one takes {format_duration(full_batch_us(members, config))}"
    yield "processes", f"{batch}, as fast as records come" if rate is None else f"{rate / 1_000_000:g}/s, {batch}: {length}"
    if OWNERS in kind.has:
        yield "commits", _commit(members, config)
        yield "callbacks", ", ".join(f"{which} {distribution_text(getattr(members.callbacks, which))}" for which in _CALLBACKS)
    else:
        is_told = members.commit.mode is CommitMode.AFTER_BATCH
        yield "acknowledges", "after each batch (commitSync())" if is_told else "with the next poll()"
    yield "each heartbeat is late by", _drift(members, config, is_classic=protocol == "classic")
    stop = "closes the consumer" if members.leaves_on_stop else "ends the process without close()"
    yield "a clean stop", f"preStop for {format_duration(members.pre_stop_us)}, then {stop}" if members.pre_stop_us else stop
    yield "a poll() that throws for good", "the pod starts again" if members.restarts_on_failure else "the pod does nothing more"
    if members.on_poison is not None:
        yield "a record that nobody can process", members.on_poison
    if config.behaviour.close_lag_us:
        yield "close() takes longer, without traffic, by up to", format_duration(config.behaviour.close_lag_us)


def _own_settings(config: MemberConfig) -> Iterator[tuple[str, str]]:
    for name, entry in settings().items():
        if entry.metadata["client"] == config.profile:
            yield name, _setting(name, getattr(config, entry.name))
    if config.behaviour.adds_timeouts:
        parked = f"JoinGroup {_ms(config.join_timeout_ms)}, SyncGroup {_ms(config.sync_timeout_ms)}"
        yield "Timeout", f"{_ms(config.request_timeout_ms)} ({parked})"


def _setting(name: str, value: SettingValue) -> str:
    """A number is a time, unless Kafka's name of the setting says otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value).lower()
    if value < 0:
        return "the brokers'"
    return str(value) if "." in name and not name.endswith(".ms") else _ms(value)


_CALLBACKS = ("revoked", "assigned", "lost")


def _commit(members: MemberSet, config: MemberConfig) -> str:
    commit = commit_of(members, config)
    if commit.mode is CommitMode.EVERY:
        return f"every {format_duration(commit.interval_us)}"
    return f"auto, every {_ms(config.auto_commit_interval_ms)}" if commit.mode is CommitMode.AUTO else str(commit.mode)


def _drift(members: MemberSet, config: MemberConfig, *, is_classic: bool) -> str:
    given = members.heartbeat_drift_us
    if given is not None:
        return "anything: phases are random" if given == RANDOM_DRIFT else f"up to {format_duration(given)}"
    behaviour = with_drift(members, config).behaviour
    drift = behaviour.classic_drift if is_classic else behaviour.consumer_drift
    return _measured_drift(drift)


def _measured_drift(drift: HeartbeatDrift) -> str:
    parts = [
        format_duration(drift.constant_us),
        f"±{format_duration(drift.walk_us)} that adds up" if drift.walk_us else "",
        f"±{format_duration(drift.jitter_us)}" if drift.jitter_us else "",
    ]
    is_kept = drift.goes_on or not drift.phase_locked
    locked = "phases are kept from each start" if is_kept else "beats begin anew with each generation"
    return f"{', '.join(filter(None, parts))}; {locked}"


def _ms(number: int) -> str:
    return format_duration(number * 1_000)


NEVER_STABLE = "not stable after its last event"
"""Why a run without a duration ended though the group never settled: a result, not a limit of whoever runs it."""


def outcome_of(
    loaded: LoadedFile,
    seeds: Sequence[int],
    values: Sequence[RunValues],
    *,
    replay_of: Sequence[str] = (),
    identity: Identity = Identity.POD,
) -> Outcome:
    """All that came of the runs. ``replay_of``: the words of the command line that replays begin with.

    Seeds that a time limit kept from being run in every variant are left out, and a note says so.
    """
    runs: dict[str, dict[int, RunValues]] = {variant.name: {} for variant in loaded.variants}
    for one in values:
        runs[one.variant][one.seed] = one
    complete = [seed for seed in seeds if all(seed in by_seed for by_seed in runs.values())]
    kept = {name: {seed: by_seed[seed] for seed in complete} for name, by_seed in runs.items()}
    digest = digest_of(values)
    settings = {variant.name: variant.settings for variant in loaded.variants}
    counted = () if identity is Identity.POD else (f"moves counted by {identity}",)
    told = {each.name: (assumptions_of(each), (*question_of(each.scenario), *counted)) for each in loaded.variants}
    stopped = tuple(_stopped(seeds, complete, values))
    verdicts = Judge(kept, settings, complete).verdicts(loaded.checks) if complete else []
    return Outcome(
        scenario=loaded.name,
        question=loaded.question,
        kgctl=__version__,
        digest=digest,
        seeds=tuple(complete),
        variants={
            name: replace(_variant(by_seed, complete), assumptions=told[name][0], rehearsed=told[name][1])
            for name, by_seed in kept.items()
        },
        expectations=(
            *_unasked(loaded, kept, complete, replay_of),
            *_left_out(kept, complete),
            *(_expectation(each, loaded, kept, replay_of) for each in verdicts),
        ),
        notes=(*stopped, *_notes(loaded, seeds, values)),
        stopped="; ".join(stopped),
    )


def digest_of(values: Sequence[RunValues]) -> str:
    """One digest of all event logs: variants and seeds with the digest of each."""
    lines = "".join(f"{one.variant}\t{one.seed}\t{one.digest}\n" for one in values)
    return hashlib.sha256(lines.encode()).hexdigest()


def _variant(by_seed: Mapping[int, RunValues], seeds: Sequence[int]) -> VariantOutcome:
    if not seeds:
        return VariantOutcome({})
    first = by_seed[seeds[0]]
    names = [name for name in first.metrics if any(_says(name, by_seed[seed].metrics.get(name)) for seed in seeds)]
    spreads = {name: spread_of(name, [by_seed[seed].metrics.get(name) for seed in seeds]) for name in names}
    took_s = sum(by_seed[seed].took_s for seed in seeds)
    return VariantOutcome(spreads, first.final_assignment, first.picture, took_s=took_s, longest_gaps=first.longest_gaps)


def _says(name: str, value: float | None) -> bool:
    """Whether a metric has something to say: of the causes, those that there were."""
    return bool(value) if name.startswith("unavailable(") else value is not None


def is_better_higher(name: str) -> bool:
    """Whether more of it is better, of a metric with its filters or without."""
    kind = kind_of(name)
    return kind is not None and kind.is_better_higher


def spread_of(name: str, values: Sequence[float | None]) -> Spread:
    """A metric over the seeds; NaN stands for a seed in which there was nothing to measure."""
    per_seed = tuple(math.nan if value is None else value for value in values)
    known = sorted(value for value in per_seed if not math.isnan(value))
    p95 = known[max(math.ceil(len(known) * 0.95), 1) - 1]
    worst = known[0] if is_better_higher(name) else known[-1]
    return Spread(known[0], statistics.median(known), p95, known[-1], per_seed, worst)


def _unasked(
    loaded: LoadedFile, runs: Mapping[str, Mapping[int, RunValues]], seeds: Sequence[int], replay_of: Sequence[str]
) -> Iterator[Expectation]:
    """What went wrong unasked, of each variant and kind once: as it was with the first seed that has it; and then the same of
    what is let through."""
    for passed, (name, by_seed) in product((False, True), runs.items()):
        told = {seed: let_through(by_seed[seed], loaded.checks) if passed else by_seed[seed].troubles for seed in seeds}
        for kind in TROUBLES.values():
            found = [(seed, each) for seed in seeds for each in told[seed] if each.kind == kind.name]
            if found:
                seed, first = found[0]
                note = first.text + (f" (with {len(found)} of {len(seeds)} seeds)" if len(seeds) > 1 else "")
                replay = "" if passed else _command(loaded, replay_of, (name,), seed) + _stamp([by_seed[seed]])
                yield Expectation(kind.check, name, passed, first.number, seed, replay=replay, note=note, is_unasked=True)


def never_happened(left_out: Sequence[Sequence[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What was left out in each of some runs, and why: what was to be rehearsed with it was not."""
    return [event for event in left_out[0] if all(event in each for each in left_out)] if left_out else []


def _left_out(runs: Mapping[str, Mapping[int, RunValues]], seeds: Sequence[int]) -> Iterator[Expectation]:
    for name, by_seed in runs.items():
        for check, why in never_happened([by_seed[seed].left_out for seed in seeds]):
            yield Expectation(check, name, False, None, seeds[0], "warn", note=why, was_asked=False)  # noqa: FBT003


def _expectation(
    verdict: Judgement, loaded: LoadedFile, runs: Mapping[str, Mapping[int, RunValues]], replay_of: Sequence[str]
) -> Expectation:
    check = verdict.check
    observed = verdict.observed
    return Expectation(
        check=check.shown,
        variant=verdict.variant,
        passed=verdict.passed and verdict.is_asked,
        observed=observed,
        seed=verdict.seed,
        severity=check.severity if verdict.is_asked else "warn",
        replay="" if verdict.passed else _replay(verdict, loaded, runs, replay_of),
        note=verdict.note,
        was_asked=verdict.is_asked,
        held_in=verdict.held_in,
    )


def _replay(verdict: Judgement, loaded: LoadedFile, runs: Mapping[str, Mapping[int, RunValues]], replay_of: Sequence[str]) -> str:
    """The command that runs this check again with this seed; what the digest is then is in the comment behind it."""
    check = verdict.check
    variants = dict.fromkeys((verdict.variant, *check.named_variants))
    named = variants if loaded.variant_names != (DEFAULT,) else runs
    asked = "'" + check_argument(check).replace("'", "'\\''") + "'"
    runs_again = [runs[variant.name][verdict.seed] for variant in loaded.variants if variant.name in named]
    return f"{_command(loaded, replay_of, [*variants], verdict.seed)} --check {asked}{_stamp(runs_again)}"


def _command(loaded: LoadedFile, replay_of: Sequence[str], variants: Sequence[str], seed: int) -> str:
    named = [word for name in variants for word in ("--variant", name)] if loaded.variant_names != (DEFAULT,) else []
    return " ".join(map(shlex.quote, (*replay_of, *named, "--seed", str(seed))))


def _stamp(values: Sequence[RunValues]) -> str:
    return f"   # kgctl {__version__}, digest {digest_of(values)[:8]}"


def check_argument(check: Check) -> str:
    options: dict[str, Any] = {}
    if check.kind is CheckKind.CHECK:
        if check.at == "worst":
            return check.text
        options["at"] = "worst"
    if check.kind is CheckKind.EVENTUALLY:
        options["after"] = check.after if isinstance(check.after, str) else format_duration(check.after)
        if check.within_us is not None:
            options["within"] = format_duration(check.within_us)
    if check.kind is CheckKind.STEADY:
        options["within"] = share_text(check.within_ppm)
        if check.last_us is not None:
            options["last"] = format_duration(check.last_us)
    inner = "".join(f", {key}: {value}" for key, value in options.items())
    return f'{{{check.kind}: "{check.text}"{inner}}}'


def _stopped(seeds: Sequence[int], complete: Sequence[int], values: Sequence[RunValues]) -> Iterator[str]:
    if len(complete) < len(seeds):
        yield f"stopped at the time limit: {len(complete)} of {len(seeds)} seeds were run in every variant"
    limited = [one for one in values if one.stopped and one.stopped != NEVER_STABLE]
    if limited:
        first = limited[0]
        yield f"{len(limited)} of {len(values)} runs stopped at a limit ({first.variant}, seed {first.seed}: {first.stopped})"


def _notes(loaded: LoadedFile, seeds: Sequence[int], values: Sequence[RunValues]) -> tuple[str, ...]:
    notes = []
    odd = Counter(text for one in values for text in dict.fromkeys(f"{one.variant}\t{event}" for event in one.odd_events))
    for text, count in odd.items():
        variant, _, event = text.partition("\t")
        where = "" if variant == DEFAULT else f" in {variant}"
        notes.append(f"event {event}{where}{'' if len(seeds) == 1 else f', with {count} of {len(seeds)} seeds'}")
    if spinning := [variant.name for variant in loaded.variants if _spins(variant.scenario)]:
        which = "" if spinning == [DEFAULT] else f" ({', '.join(spinning)})"
        notes.append(
            f"not simulated: Java clients of the consumer protocol spin while a broker is away, and take processor time{which}"
        )
    skipped = [check.shown for check in loaded.checks if not loaded.can_ask(check)]
    if skipped:
        notes.append(f"not asked, as their variants were not run: {'; '.join(skipped)}")
    return tuple(notes)


def _spins(scenario: Scenario) -> bool:
    members = [member_config(each, each.config) for each in scenario.members if each.client == "java"]
    is_away = any(event.kills_broker for event in scenario.events)
    return is_away and any(config.group_protocol == "consumer" for config in members)


def result_of(outcome: Outcome) -> dict[str, Any]:
    data = {
        "scenario": outcome.scenario,
        "kgctl": outcome.kgctl,
        "digest": outcome.digest,
        "seeds": list(outcome.seeds),
        "variants": {name: _variant_data(variant, outcome.seeds) for name, variant in outcome.variants.items()},
        "troubles": [_trouble_data(each) for each in outcome.troubles],
        "allowed": [_allowed_data(each) for each in outcome.allowed],
        "expectations": [_expectation_data(each) for each in outcome.asked],
    }
    return data if outcome.measured is None else {**data, "measured": _measured_data(outcome, outcome.measured)}


def _measured_data(outcome: Outcome, measured: Measured) -> dict[str, Any]:
    places: dict[str, dict[str, str]] = {}
    for each in beside(outcome):
        places.setdefault(each.variant, {})[each.metric] = str(each.place)
    return {
        "cluster": measured.cluster,
        "client": measured.client,
        "plays": measured.runs,
        "variants": {name: _variant_data(variant, range(1, measured.runs + 1)) for name, variant in measured.variants.items()},
        "places": places,
        "expectations": [_expectation_data(each) for each in measured.expectations],
    }


def _variant_data(variant: VariantOutcome, seeds: Sequence[int]) -> dict[str, Any]:
    assignment = {
        member: {topic: list(partitions) for topic, partitions in topics.items()}
        for member, topics in variant.final_assignment.items()
    }
    return {
        "metrics": {name: _spread(each, seeds) for name, each in variant.metrics.items()},
        "final_assignment": assignment,
        "longest_gaps": {partition: number(length) for partition, length in variant.longest_gaps.items()},
        **({"assumptions": dict(variant.assumptions)} if variant.assumptions else {}),
        **({} if variant.rehearsed is None else {"rehearsed": list(variant.rehearsed)}),
    }


def figures_of(spread: Spread) -> dict[str, float | None]:
    """What a row has of a metric over the seeds."""
    figures = {"min": spread.minimum, "median": spread.median, "p95": spread.p95, "max": spread.maximum}
    return {key: number(value) for key, value in figures.items()}


def _spread(spread: Spread, seeds: Sequence[int]) -> dict[str, Any]:
    """``never``: the seeds of which null stands for a time that never ends, not for nothing to measure."""
    never = [seed for seed, value in zip(seeds, spread.per_seed, strict=False) if math.isinf(value)]
    return {
        **figures_of(spread),
        "per_seed": [number(value) for value in spread.per_seed],
        **({"never": never} if never else {}),
    }


def _trouble_data(each: Expectation) -> dict[str, Any]:
    return {"check": each.check, "variant": each.variant, "text": each.note, "seed": each.seed, "replay": each.replay}


def _allowed_data(each: Expectation) -> dict[str, Any]:
    return {key: told for key, told in _trouble_data(each).items() if key != "replay"}


def _expectation_data(each: Expectation) -> dict[str, Any]:
    observed = each.observed
    if isinstance(observed, int | float) and not isinstance(observed, bool):
        observed = number(observed)
    return {
        "check": each.check,
        "variant": each.variant,
        "passed": each.passed,
        "observed": observed,
        "seed": each.seed,
        "severity": each.severity,
        "replay": each.replay or None,
    }


def number(value: float | None, digits: int = 9) -> int | float | None:
    """A JSON number: whole where it is whole, else of at most so many decimals; null for never and for nothing to measure."""
    if value is None or not math.isfinite(value):
        return None
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded
