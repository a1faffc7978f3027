"""The linter's rules by name, and how they are applied. A new rule is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kgctl.simulate.lint import membership, settings
from kgctl.simulate.lint.context import Context, Finding
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.yaml_files import Problem

RULES: Mapping[str, Callable[[Context], Iterator[Finding]]] = {
    "session-below-boot": settings.session_below_boot,
    "heartbeat-above-third": settings.heartbeat_above_third,
    "session-out-of-bounds": settings.session_outside_of_the_brokers_bounds,
    "poll-beyond-limit": settings.poll_beyond_its_limit,
    "no-warmup": settings.no_warmup,
    "event-after-end": settings.event_after_the_end,
    "ids-not-unique": membership.ids_not_unique,
    "static-rollout": membership.new_ids_in_each_rollout,
    "mixed-assignors": membership.mixed_assignor_lists,
    "mixed-protocols": membership.mixes_eager_and_cooperative,
    "client-refuses": membership.client_refuses,
    "setting-without-effect": membership.settings_without_effect,
    "idle-members": membership.more_members_than_partitions,
    "selects-nobody": membership.selects_nobody,
    "drain-stuck": membership.drains_that_evict_nobody,
    "subscribes-to-nothing": membership.patterns_without_topics,
    "variant-adds": membership.names_nearly_there,
    "no-such-rack": membership.racks_without_racks,
    "overload": settings.more_traffic_than_the_members_can_take,
    "no-traffic": settings.rates_without_traffic,
    "autoscale-max": settings.maximum_above_partitions,
    "autoscale-target": settings.target_below_what_commits_leave,
    "autoscale-window": settings.window_below_boot,
    "autoscale-poll": settings.poll_without_effect,
    "autoscale-hot-partition": settings.no_target_in_reach,
    "no-other-broker": settings.nobody_takes_over,
    "report-one-value": settings.one_value_along,
    "report-no-traffic": settings.records_without_traffic,
}


def lint(loaded: LoadedFile) -> list[Problem]:
    """What is doubtful in a file, in its order; the same doubt about several variants once, with their names."""
    found: dict[Problem, dict[str, None]] = {}
    for variant in loaded.variants:
        context = Context(variant, loaded.report, is_lone=len(loaded.variant_names) == 1)
        for rule, function in RULES.items():
            for finding in function(context):
                place = variant.tree.location(finding.path)
                found.setdefault(Problem(place, finding.path, finding.message, "warning", rule), {})[variant.name] = None
    problems = [_named(problem, list(variants), loaded) for problem, variants in found.items()]
    return sorted(problems, key=lambda problem: (problem.location.file, problem.location.line, problem.location.column))


def _named(problem: Problem, variants: list[str], loaded: LoadedFile) -> Problem:
    if len(variants) == len(loaded.variants):
        return problem
    message = f"{problem.message} (variant {', '.join(variants)})"
    return Problem(problem.location, problem.path, message, problem.severity, problem.rule)
