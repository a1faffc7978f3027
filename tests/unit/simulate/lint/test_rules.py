"""Each rule of the linter finds its own kind of doubt, and nothing else."""

from __future__ import annotations

import pytest

from kgctl.simulate.lint.rules import RULES, lint
from kgctl.simulate.scenario.load import load
from kgctl.yaml_files import FileError, read_yaml

GOOD = """\
kgctl: 1
name: x
topics: {orders: 12}
members: {app: {count: 3}}
warmup: 60s
"""
HAPPENS = f"{GOOD}events: [{{at: 5s, restart: app}}]\n"

DOUBTS = {
    "session-below-boot": "members: {app: {instance_id: $name, boot: 40s..50s}}",
    "heartbeat-above-third": "group: {config: {heartbeat.interval.ms: 20s}}",
    "session-out-of-bounds": "group: {config: {session.timeout.ms: 5s, heartbeat.interval.ms: 1s}}",
    "poll-beyond-limit": "members: {app: {poll: 6m}}",
    "no-warmup": "{warmup: 1s, events: [{at: 0s, restart: app}]}",
    "event-after-end": "{duration: 5m, events: [{at: 5m, restart: app}]}",
    "ids-not-unique": "members: {app: {instance_id: one}}",
    "static-rollout": "{members: {app: {instance_id: $name}}, events: [{at: 60s, rollout: app}]}",
    "mixed-assignors": "members: {b: {config: {partition.assignment.strategy: [sticky]}}}",
    "mixed-protocols": "group: {config: {partition.assignment.strategy: [range, cooperative-sticky]}}",
    "client-refuses": "members: {app: {client: kafka-go, config: {group.protocol: consumer}}}",
    "setting-without-effect": "members: {app: {client: librdkafka, config: {group.remote.assignor: range}}}",
    "setting-of-fetching": "members: {app: {config: {fetch.min.bytes: 5}}}",
    "no-members": "members: {app: {count: 0}}",
    "standbys": "members: {app: {streams: {store: 1GB}, config: {num.standby.replicas: 3}}}",
    "idle-members": "members: {app: {count: 13}}",
    "event-without-effect": "events: [{at: 5s, network: app, loss: 0%}]",
    "drain-stuck": "{cluster: {nodes: 2}, events: [{at: 5s, drain: node/1, budget: 0}]}",
    "selects-nobody": "events: [{at: 5s, crash: app/3, for: 9s}]",
    "subscribes-to-nothing": "members: {app: {subscribe: '^order'}, b: {count: 1}}",
    "nobody-subscribes": "members: {app: {subscribe: [orders]}}, topics: {audit: 3}",
    "crash-for-good": "events: [{at: 5s, crash: app/2}]",
    "variant-adds": "members: {ap: {count: 1}}",
    "no-such-rack": "{cluster: {racks: [a, b]}, members: {app: {rack: c}}}",
    "overload": "{members: {app: {rate: 10/s}}, traffic: {orders: 31/s}}",
    "no-traffic": "members: {app: {rate: 10/s}}",
    "no-rate": "events: [{at: 5s, slow: app, factor: 9}]",
    "autoscale-max": "{traffic: {orders: 1/s}, autoscale: {members: app, target: 10, max: 13}}",
    "autoscale-target": "{members: {app: {rate: 10/s}}, traffic: {orders: 1/s}, autoscale: {members: app, target: 24}}",
    "autoscale-window": (
        "{members: {app: {boot: 20s..40s}}, traffic: {orders: 1/s}, autoscale: {members: app, target: 10, "
        "scale_down: {stabilize: 42s}}}"
    ),
    "few-faults": "nemesis: {rate: 1 per 5h, of: [stall], until: 4h}",
    "no-other-broker": "{cluster: {brokers: 1}, events: [{at: 5s, broker_down: 1, for: 9s}]}",
    "autoscale-poll": "{traffic: {orders: 1/s}, autoscale: {members: app, target: 10, poll: 1m}}",
    "autoscale-hot-partition": (
        "{members: {app: {rate: 10/s}}, traffic: {orders: {rate: 22/s, keys: 'weights([11, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])'}}, "
        "autoscale: {members: app, target: 100}}"
    ),
}


OF_THE_FILE = {
    "report-one-value": "{sweep: {warmup: [60s]}, report: {x: warmup, y: max_gap}}",
    "expect-no-traffic": "{expect: [max_gap < 20s, lag < 100]}",
    "expect-always-holds": "{expect: [max_gap < 20s, moves >= 0]}",
    "report-no-traffic": "{sweep: {warmup: [60s, 90s]}, report: {y: [max_gap, lag_peak, lag]}}",
}


def rules_of(patch: str) -> set[str]:
    tree = read_yaml(f"{GOOD}variants:\n  v: {patch if patch.startswith('{') else '{' + patch + '}'}\n", "f")
    return {problem.rule for problem in lint(load(tree))}


def test_every_rule_has_its_case() -> None:
    of_events = {"crash-for-good", "drain-stuck", "no-other-broker", "event-without-effect"}
    assert (
        DOUBTS.keys() | OF_THE_FILE.keys() == RULES.keys() - {"manifest-says", "expect-no-events"} | of_events
    )  # have tests of their own


@pytest.mark.parametrize("rule", DOUBTS)
def test_rule_finds_its_doubt(rule: str) -> None:
    assert rules_of(DOUBTS[rule]) == {rule}


def test_a_full_batch_that_takes_longer_than_the_poll_limit_is_told() -> None:
    patch = "members: {app: {rate: 5/s, config: {max.poll.interval.ms: 30s}}}, traffic: {orders: 9/s}"
    (problem,) = lint(load(read_yaml(f"{GOOD}variants:\n  v: {{{patch}}}\n", "f")))
    assert problem.rule == "poll-beyond-limit"
    assert problem.message == (
        "a full batch, 500 records (max.poll.records), at 5/s, takes 1m40s and reaches max.poll.interval.ms (30000 ms): "
        "a backlog ends the membership"
    )
    assert rules_of(patch.replace("5/s", "500/s")) == set()


@pytest.mark.parametrize("rule", OF_THE_FILE)
def test_rule_about_the_whole_file_finds_its_doubt(rule: str) -> None:
    (problem,) = lint(load(read_yaml(HAPPENS + OF_THE_FILE[rule][1:-1].replace("}, report", "}\nreport"), "f")))
    assert (problem.rule, problem.location.line) == (rule, 7 if rule.startswith("expect-") else 8)


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("1 < 2", "'1 < 2' asks about no metric: it holds or fails whatever happens"),
        ("max_gap <= max_gap", "'max_gap <= max_gap' compares a metric with itself"),
        ("max_gap >= 0s", "'max_gap >= 0s' holds whatever happens: max_gap is never below 0"),
        ("0 <= moves", "'0 <= moves' holds whatever happens: moves is never below 0"),
        ("moves > 0", None),
        ("moves >= 1", None),
        ("moves <= 0", None),
        ("max_gap <= gap_p50", None),
    ],
)
def test_an_expectation_that_holds_whatever_happens_is_doubtful(check: str, told: str | None) -> None:
    doubts = [problem.message for problem in lint(load(read_yaml(f"{HAPPENS}expect: ['{check}']\n", "f")))]
    assert doubts == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("max_gap < 5m", "holds whatever happens: max_gap is at most 2m"),
        ("always: max_gap <= 2m", "holds whatever happens: max_gap is at most 2m"),
        ("max_gap > 2m", "fails whatever happens: max_gap is at most 2m"),
        ("max_gap(before 30s) < 40s", "holds whatever happens: max_gap(before 30s) is at most 30s"),
        ("unavailable / 2 <= 12m", "holds whatever happens: unavailable is at most 1,440"),
        ("availability <= 100%", "holds whatever happens: availability is at most 1"),
        ("1 - availability >= 0", "holds whatever happens: availability is at most 1"),
        ("flaps == 0", "holds whatever happens: flaps is at most 0"),
        ("thrash < 10", "holds whatever happens: thrash is at most 0"),
        ("not kicked < 0", "holds whatever happens: kicked is never below 0"),
        ("moves < 9 and max_gap < 5m", "holds whatever happens: max_gap is at most 2m"),
        ("max_gap < 3 * session.timeout.ms", "holds whatever happens: max_gap is at most 2m"),
        ("moves < 9 or max_gap < 5m", "holds whatever happens: moves is never below 0, max_gap is at most 2m"),
        ("max_gap < 119s", ""),
        ("max_gap < 2 * session.timeout.ms", ""),
        ("thrash(members) < 10", ""),
        ("stuck_members == 0", ""),
        ("time_to_stable < 1h", ""),
        ("detection_time < 1h", ""),
        ("b.max_gap <= max_gap + 1s", ""),
    ],
)
def test_an_expectation_that_no_run_can_break_or_keep_is_doubtful(check: str, why: str) -> None:
    kind, _, text = check.rpartition(": ")
    line = f"{{{kind}: {text}}}" if kind else f"'{text}'"
    variants = "variants: {a: {}, b: {}}\n" if "b." in check else ""
    doubts = [each.message for each in lint(load(read_yaml(f"{HAPPENS}duration: 2m\nexpect: [{line}]\n{variants}", "f")))]
    assert doubts == ([f"{text!r} {why}"] if why else [])


@pytest.mark.parametrize(
    ("more", "is_told"),
    [
        ("", True),
        ("traffic: {orders: 9/s}\n", True),
        ("traffic: {orders: 9/s}\nmembers: {app: {count: 3, rate: 9/s}}\n", False),
        ("warmup: 0s\n", False),
        ("nemesis: {rate: 1 per 1m, of: [crash], until: 5m}\n", False),
    ],
)
def test_a_run_in_which_nothing_happens_proves_nothing(more: str, *, is_told: bool) -> None:
    text = "kgctl: 1\nname: x\ntopics: {orders: 12}\nexpect: [max_gap < 5s]\n" + more
    text += "" if "members" in more else "members: {app: {count: 3}}\n"
    assert [each.rule for each in lint(load(read_yaml(text, "f")))] == ["expect-no-events"] * is_told


def test_what_a_variant_permits_is_its_own() -> None:
    long = "{autoscale: {members: app, target: 10}, traffic: {orders: 1/s}}"
    text = f"{HAPPENS}expect: [stuck_members == 0, flaps < 9]\nvariants: {{short: {{duration: 50s}}, long: {long}}}\n"
    assert [each.message for each in lint(load(read_yaml(text, "f")))] == [
        "'stuck_members == 0' holds whatever happens: stuck_members is at most 0 (variant short)",
        "'flaps < 9' holds whatever happens: flaps is at most 0 (variant short)",
    ]


def test_traffic_of_nothing_is_none() -> None:
    found = lint(load(read_yaml(f"{HAPPENS}traffic: {{orders: 0/s}}\nexpect: [lag < 100]\n", "f")))
    assert [problem.rule for problem in found] == ["expect-no-traffic"]


def test_a_sweep_of_traffic_has_records_to_show() -> None:
    assert lint(load(read_yaml(GOOD + "sweep: {traffic.orders: [1/s, 2/s]}\nreport: {y: lag}", "f"))) == []


NO_DOUBTS = {
    "the end of another broker": (
        "{cluster: {config: {offsets.topic.replication.factor: 1}}, group: {id: group}, events: [{at: 5s, broker_down: 1}]}"
    ),
    "a broker among several": "{events: [{at: 5s, broker_down: coordinator}, {at: 1m, coordinator_move: 3, for: 9s}]}",
    "an autoscaler that may": "{traffic: {orders: 1/s}, autoscale: {members: app, target: 10, max: 12, min: 0, poll: 1m}}",
    "more traffic than the pods at first": (
        "{members: {app: {rate: 10/s}}, traffic: {orders: 60/s}, autoscale: {members: app, target: 100, max: 12}}"
    ),
    "a window that is long enough": (
        "{members: {app: {boot: 20s..40s}}, traffic: {orders: 1/s}, autoscale: {members: app, target: 10, "
        "scale_down: {stabilize: 43s}}}"
    ),
    "by cpu": "{members: {app: {rate: 10/s}}, traffic: {orders: 1/s}, autoscale: {members: app, metric: cpu, target: 1%}}",
}
MORE_DOUBTS = {
    "a topic of commits with one replica": (
        "cluster: {config: {offsets.topic.replication.factor: 1}}, events: [{at: 5s, broker_down: coordinator}]"
    ),
    "as old as commits leave it": "autoscale: {members: app, metric: lag-age, target: 5s}",
    "a window within one value": (
        "autoscale: {members: app, target: 25, use_cached_metrics: true, poll: 2m, scale_down: {stabilize: 1m}}"
    ),
}


@pytest.mark.parametrize("patch", NO_DOUBTS.values(), ids=NO_DOUBTS)
def test_what_is_just_about_right_is_beyond_doubt(patch: str) -> None:
    assert rules_of(patch) == set()


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("as old as commits leave it", "autoscale-target"),
        ("a window within one value", "autoscale-poll"),
        ("a topic of commits with one replica", "no-other-broker"),
    ],
)
def test_rules_have_more_than_one_case(case: str, rule: str) -> None:
    assert rules_of(f"{{members: {{app: {{rate: 10/s}}}}, traffic: {{orders: 1/s}}, {MORE_DOUBTS[case]}}}") == {rule}


def test_a_plain_file_is_beyond_doubt() -> None:
    assert lint(load(read_yaml(GOOD, "f"))) == []


def test_a_doubt_about_some_variants_names_them() -> None:
    tree = read_yaml(GOOD + "variants: {a: {}, b: {members: {app: {count: 13}}}}\n", "f")
    (problem,) = lint(load(tree))
    assert str(problem) == "f:6:23: members: 13 members for 12 partitions: 1 of them are idle (variant b)"


def test_a_doubt_about_one_of_several_groups_names_it() -> None:
    groups = (
        "groups: {pay: {}, audit: {}}\nmembers: {a: {group: pay, count: 2}, b: {group: audit, count: 5, subscribe: [small]}}\n"
    )
    tree = read_yaml("kgctl: 1\nname: x\ntopics: {orders: 12, small: 3}\nwarmup: 60s\n" + groups, "f")
    assert [problem.message for problem in lint(load(tree))] == ["5 members for 3 partitions: 2 of them are idle (group audit)"]


def test_a_topic_that_another_group_reads_is_read() -> None:
    groups = (
        "groups: {pay: {}, audit: {}}\nmembers: {a: {group: pay, subscribe: [orders]}, b: {group: audit, subscribe: [small]}}\n"
    )
    tree = read_yaml("kgctl: 1\nname: x\ntopics: {orders: 12, small: 3}\nwarmup: 60s\n" + groups, "f")
    assert lint(load(tree)) == []


def test_setting_of_the_group_has_an_effect_in_another_variant() -> None:
    text = GOOD.replace("count: 3", "count: 3, client: librdkafka") + "group: {config: {group.remote.assignor: range}}\n"
    other = "variants: {a: {}, b: {group: {config: {group.protocol: consumer}}}}\n"
    found = [[problem.rule for problem in lint(load(read_yaml(each, "f")))] for each in (text, text + other)]
    assert found == [["setting-without-effect"], []]


@pytest.mark.parametrize(
    ("client", "config", "rule"),
    [
        ("java", "group.protocol: consumer, heartbeat.interval.ms: 1s", "client-refuses"),
        ("librdkafka", "group.protocol: consumer, partition.assignment.strategy: [range]", "client-refuses"),
        ("java", "group.remote.assignor: range", "client-refuses"),
        ("librdkafka", "group.remote.assignor: range", "setting-without-effect"),
    ],
)
def test_clients_that_do_not_start_with_settings_of_the_other_protocol_are_told(client: str, config: str, rule: str) -> None:
    text = GOOD.replace("count: 3", f"count: 3, client: {client}, config: {{{config}}}")
    (problem,) = lint(load(read_yaml(text, "f")))
    assert problem.rule == rule


@pytest.mark.parametrize("name", ["new", "app-new", "app2"])
def test_variant_may_add_a_set_of_its_own(name: str) -> None:
    assert rules_of(f"members: {{{name}: {{count: 1}}}}") == set()


def test_doubt_about_several_sets_names_each_variant_once() -> None:
    patch = "{members: {b: {count: 1}}, group: {config: {heartbeat.interval.ms: 20s}}}"
    (problem,) = lint(load(read_yaml(f"{GOOD}variants: {{v: {patch}, w: {{}}}}\n", "f")))
    assert problem.message.endswith("(45000 ms) (variant v)")


def test_a_rule_that_many_events_break_is_told_once() -> None:
    events = ", ".join(f"{{at: {number}m, rollout: app}}" for number in range(3))
    text = GOOD.replace("count: 3", "count: 3, instance_id: $name") + f"events: [{events}]\n"
    found = [each for each in lint(load(read_yaml(text, "f"))) if each.rule == "static-rollout"]
    assert [each.message.rpartition("; ")[2] for each in found] == ["so with 2 more"]


def test_settings_that_an_event_brings_and_no_client_starts_with_are_told() -> None:
    text = GOOD + "events: [{at: 5s, upgrade: app, set: {session.timeout.ms: 1s}}]\n"
    (found,) = lint(load(read_yaml(text, "f")))
    assert (found.rule, found.location.line, found.path) == ("client-refuses", 6, ("events", 0, "set"))


def test_a_brokers_setting_in_the_group_is_told_where_it_belongs() -> None:
    with pytest.raises(FileError, match=r"is a setting of brokers: write cluster: \{config: \{group.max.size: 3\}\}"):
        load(read_yaml(GOOD + "group: {config: {group.max.size: 3}}\n", "f"))


def test_a_rollout_whose_partition_is_above_all_pods_is_told() -> None:
    text = GOOD + "events: [{at: 5s, rollout: app, workload: statefulset, partition: 3}]\n"
    (found,) = lint(load(read_yaml(text, "f")))
    assert (found.rule, found.message) == ("selects-nobody", "all pods of 'app' are below it: none gets the new version")
