"""Whole files: every mistake with its place, variants, what is not supported yet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgctl.errors import UsageError
from kgctl.simulate.metrics.result import run
from kgctl.simulate.scenario.load import LoadedFile, load
from kgctl.simulate.scenario.sources import read_source
from kgctl.yaml_files import FileError, read_yaml

GOOD = """\
kgctl: 1
name: x
topics: {orders: 12}
members: {app: {count: 3}}
"""


def loaded(text: str) -> LoadedFile:
    return load(read_yaml(text, "f"))


def problems(text: str) -> list[str]:
    with pytest.raises(FileError) as caught:
        loaded(text)
    return [str(problem) for problem in caught.value.problems]


MISTAKES = {
    "topcs: {a: 1}": "5:1: topcs: unknown key; did you mean 'topics'?",
    "seed: -1": "5:1: seed: must be at least 0, not -1",
    "warmup: 5": "5:1: warmup: 5 has no unit; write 5s, or 5ms",
    "duration: 0s": "5:1: duration: a run takes more than 0s; auto: until 60s after the group is stable",
    "events: [{name: a, restart: app}, {name: a, restart: app}]": "5:36: events[1].name: events[0] is called 'a', too",
    "expect: [{chek: lag < 5}]": (
        "5:10: expect[0]: an expectation has exactly one of check, always, eventually, steady; did you mean 'check'?"
    ),
    "{events: [{name: deploy, restart: app}], expect: [time_to_stable(deplyo) < 5s]}"[1:-1].replace("}], ", "}]\n"): (
        "6:10: expect[0]: time_to_stable: there is no event 'deplyo'; did you mean 'deploy'?"
    ),
    "events: {}": "5:1: events: must be a list, not an empty mapping",
    "events: [crash]": "5:10: events[0]: an event is a mapping such as {at: 0s, restart: app}",
    "events: [{at: 0s, crsh: app}]": "5:19: events[0].crsh: unknown kind of event 'crsh'; did you mean 'crash'?",
    "variants: {a: {members: {app: {subscribe: ord.*}}}}": (
        "5:32: members.app.subscribe: there is no topic 'ord.*'; a pattern begins with ^: ^ord.*"
    ),
    "events: [{crash: ap/3}]": "5:11: events[0].crash: there is no set of members 'ap'; did you mean 'app'?",
    "events: [{crash: app/x}]": "5:11: events[0].crash: 'app/x': after the slash stands a number, a range 0..9, a share 50%, ol",
    "events: [{crash: app, stop: app}]": "5:23: events[0].stop: an event has one kind; this is 'crash' and 'stop'",
    "events: [{stall: app}]": "5:10: events[0]: a 'stall' event needs 'for': how long",
    "events: [{rollout: app, ready: never}]": "5:25: events[0].ready: a readiness probe that never succeeds is never_ready: true",
    "events: [{rollout: app, max_surge: 0, max_unavailable: 0%}]": (
        "5:39: events[0].max_unavailable: must not be 0 beside max_surge: 0, as Kubernetes says: no pod could be replaced"
    ),
    "events: [{rollout: app, workload: statefulset, max_unavailable: 0}]": (
        "5:48: events[0].max_unavailable: must not be 0 beside workload: statefulset, as Kubernetes says"
    ),
    "events: [{rollout: app/0..1}]": "5:11: events[0].rollout: a 'rollout' event is of a whole set of members: write 'app'",
    "events: [{rolling_restart: app, max_surge: 1}]": (
        "5:33: events[0].max_surge: unknown key of a 'rolling_restart' event; 'rollout' events have it"
    ),
    "cluster: {nodes: 3}\nevents: [{drain: node-2}]": (
        "6:11: events[0].drain: there is no set of members 'node-2'; did you mean 'node/2'?"
    ),
    "variants: {a: {members: {b: {count: 1, sigterm: exit}}}}": (
        "5:40: members.b.sigterm: unknown key of members; an event says it: {rollout: b, sigterm: ...}"
    ),
    "group: {members: {app: {count: 1}}}": "5:9: group.members: unknown key of a group: members stands beside group",
    "variants: {a: {members: {app: {instance_id: true}}}}": "5:32: members.app.instance_id: must be text with $name, which",
    "variants: {a: {members: {app: {config: {group.instance.id: $name}}}}}": (
        "5:41: members.app.config.group.instance.id: group.instance.id is not said in config, where"
    ),
    "events: [{crash: app, fro: 5s}]": "5:23: events[0].fro: unknown key of a 'crash' event; did you mean 'for'?",
    "events: [{scale: app}]": "5:10: events[0]: needs exactly one of to, by beside 'scale'",
    "events: [{crash: app, after: previous}]": "5:23: events[0].after: there is no event before the first one",
    "events: [{crash: app, every: 5s}]": "5:10: events[0]: `every` and `times` go together: {every: 20s, times: 5}",
    "events: [{add_partitions: ordes, to: 20}]": "5:11: events[0].add_partitions: there is no topic 'ordes'; did you mean 'orde",
    "events: [{upgrade: app, set: {sesion.timeout.ms: 5s}}]": (
        "5:31: events[0].set.sesion.timeout.ms: unknown consumer setting 'sesion.timeout.ms'; did you mean session.timeout.ms"
    ),
    "events: [{broker_down: 4}]": "5:11: events[0].broker_down: names a broker (1 to 3), or coordinator, not 4",
    "events: [{broker_down: 0}]": "5:11: events[0].broker_down: names a broker (1 to 3), or coordinator, not 0",
    "events: [{broker_down: cordinator}]": (
        "5:11: events[0].broker_down: names a broker (1 to 3), or coordinator, not 'cordinator'; did you mean 'coordinator'?"
    ),
    "cluster: {brokers: 1}\nevents: [{coordinator_move: true}]": "6:11: events[0].coordinator_move: names a broker (1), or",
    "events: [{crash: app, when: lga > 3}]": (
        "5:23: events[0].when: unknown metric 'lga'; did you mean 'lag'?, at letter 1 of `lga > 3`"
    ),
    "group: {config: {heartbeat.interval.ms: often}}": (
        "5:18: group.config.heartbeat.interval.ms: setting 'heartbeat.interval.ms' must be a whole number of milliseconds"
    ),
    "cluster: {config: {group.min.sesion.timeout.ms: 5s}}": (
        "5:20: cluster.config.group.min.sesion.timeout.ms: unknown setting 'group.min.sesion.timeout.ms'; did you mean "
    ),
    "variants: {a: {topics: {orders: {replicas: 9}}}}": (
        "5:34: topics.orders.replicas: 9 replicas need as many brokers, and there are 3"
    ),
    "variants: {a: {topics: {orders: {placement: {0: [4]}}}}}": (
        "5:46: topics.orders.placement.0: names brokers, each once: 1 to 3"
    ),
    "variants: {a: {topics: {orders: {placement: {12: [1]}}}}}": (
        "5:46: topics.orders.placement.12: there is no partition 12: 'orders' has 12"
    ),
    "variants: {a: {topics: {orders: {placement: near}}}}": (
        "5:34: topics.orders.placement: must be spread, or {partition: [brokers]}, not 'near'"
    ),
    "events: [{crsh: app, name: a}, {after: a, crash: app}, {after: previous, stop: app}]": "5:11: events[0].crsh: unknown kind",
    "events: [{crash: app, every: 0s, times: 3}]": "5:23: events[0].every: must be more than 0s",
    "events: [{crash: true}]": "5:11: events[0].crash: true is no selector; write app,",
    "events: [{crash: yes}]": "5:11: events[0].crash: there is no set of members 'yes'; known: app",
    "events: [{scale: app, by: 0}]": "5:23: events[0].by: must be a whole number with its sign, such as +10, not 0",
    "events: [{scale: app, by: 1, to: 3}]": "5:10: events[0]: needs exactly one of to, by beside 'scale'",
    "events: [{add_partitions: orders, to: 12}]": "5:35: events[0].to: 'orders' has 12 partitions: to add some, write more",
    "events: [{create_topic: orders}]": "5:11: events[0].create_topic: there is a topic 'orders' already",
    "events: [{create_topic: or ders}]": "5:11: events[0].create_topic: 'or ders' is no name: letters, digits,",
    "variants: {a: {topics: {orders: six}}}": "5:25: topics.orders: must be a number of partitions, or a mapping such as",
    "variants: {a: {members: null}}": "5:16: members: there are no members: write members: {app: {count: 3}}",
    "variants: {a: {members: {app: {boot: normal(2s, 1s)}}}}": (
        "5:32: members.app.boot: 'normal(2s' is no duration; write 45s, 20s..40s, normal(35s, 3s), lognormal(2ms, 1ms) or exp(5m)"
        "; inside { } it needs quotes, for its comma"
    ),
    "traffic: {orders: sine(1/s, 2/s, 24h)}": (
        "5:11: traffic.orders.rate: 'sine(1/s': a sine has a lowest rate, a highest one and a period: sine(1000/s, 5000/s, 24h)"
    ),
    "question: a\x07b": "5:12: not YAML: control characters are not allowed: '\\x07'",
    "expect: [max_gap = 5s]": "5:10: expect[0]: cannot read '= 5s'; two values are compared by ==, at letter 9 of `max_gap = 5s`",
    "expect: [max_gap < session.timeout.ms + 5]": (
        "5:10: expect[0]: session.timeout.ms is a time: give the number a unit, such as 5ms, at letter 30 of"
    ),
    f"expect: [{'1 + ' * 30}lagg < 3{' + 1' * 30}]": (
        "5:10: expect[0]: unknown metric 'lagg'; did you mean 'lag'?, at letter 121 of "
        "`... 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + lagg < 3 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 ...`"
    ),
    "group: {config: {partition.assignment.strategy: [range, round-robin]}}": (
        "5:18: group.config.partition.assignment.strategy: unknown assignor 'round-robin'; did you mean 'roundrobin'?"
    ),
    "output: {gantt: big}": "5:10: output.gantt: must be terminal, true or false, not 'big'",
    "sweep: {members.ap.count: [1, 2]}": "5:9: sweep.members.ap.count: there is no set of members 'ap'; did you mean 'app'?",
    "sweep: {'': [1, 2]}": "5:9: sweep.: '' is no path; write one like",
    "traffic: {ordes: 5/s}": "5:11: traffic.ordes: there is no topic 'ordes'; did you mean 'orders'?",
    "traffic: {orders: 'ramp(1/s, 2/s)'}": "5:11: traffic.orders.rate: 'ramp(1/s, 2/s)': a ramp has a first rate, a last one and",
    "traffic: {orders: 'ramp(1/s, 2/s, 5ms)'}": "5:11: traffic.orders.rate: 'ramp(1/s, 2/s, 5ms)': a ramp takes 1s or more",
    "events: [{rollout: app, workload: statefulset, max_surge: 1}]": (
        "5:48: events[0].max_surge: goes with workload: deployment, not statefulset"
    ),
    "events: [{rollout: app, steps: [1]}]": "5:25: events[0].steps: goes with strategy: canary, not rolling",
    "events: [{rollout: app, strategy: canary, steps: [2, 1]}]": "5:43: events[0].steps: must grow from step to step, not 2, 1",
    "events: [{rollout: app, strategy: canary, steps: 3}]": "5:43: events[0].steps: must be a list of numbers or shares, such as",
    "events: [{drain: node/1}]": "5:11: events[0].drain: there are no nodes: say how many, cluster: {nodes: 4}",
    "traffic: {orders: 'sine(1/s, 2/s)'}": "5:11: traffic.orders.rate: 'sine(1/s, 2/s)': a sine has a lowest rate,",
    "events: [{set_traffic: orders, rate: 'sine(1/s, 2/s, 24h)'}]": "5:32: events[0].rate: sine(...) is a rate of traffic",
    "autoscale: {members: app}": "5:1: autoscale.target: this key is missing",
    "sweep: {members.app.count: 3}": "5:9: sweep.members.app.count: a parameter takes a list of values, or a range such as 10s..",
    "sweep: {members.app.count: 1..9 step -1}": "5:9: sweep.members.app.count: '1..9 step -1' never ends: its step leads away",
    "variants: {a: {sweep: {}}}": "5:16: variants.a.sweep: stands for the whole file, not in a variant",
    "nemesis: {rate: 1 per 5m, of: [crush]}": "5:32: nemesis.of[0]: unknown kind of fault 'crush'; did you mean 'crash'?",
    "nemesis: {rate: 1 per 5m, of: [scale]}": "5:32: nemesis.of[0]: unknown kind of fault 'scale'; did you mean 'stall'?",
    "events: [{after: b, crash: app}, {name: b, crash: app}]": "5:11: events[0].after: 'b' stands further down: an event waits",
    "events: [{name: last, crash: app}]": "5:11: events[0].name: no event can be called 'last': `after: last` means another one",
    "events: [{name: 5m, crash: app}]": "5:11: events[0].name: no event can be called '5m': that is a time",
    "events: [{at: 0s, scale: app, to: -1}]": "5:31: events[0].to: must be a whole number from 0 on, not -1",
    "variants: {a: {members: {app: {subscribe: {pattern: ord.*, by: me}}}}}": (
        "5:32: members.app.subscribe: `by` says who matches the pattern, broker or client; not 'me'"
    ),
    "variants: {a: {members: {app: {subscribe: {pattern: ord.*, by: broker}}}}}": (
        "5:32: members.app.subscribe: brokers match patterns in the consumer protocol alone (group.protocol: consumer); leave out"
    ),
    "variants: {a: {members: {app: {client: franz-go, subscribe: {pattern: o, by: client}, config: {group.protocol: consumer}}}}}": (  # noqa: E501
        "5:50: members.app.subscribe: franz-go has the brokers match its pattern in the consumer protocol; leave out `by`"
    ),
    "variants: {a: {members: {app: {rate: 5/s, process_time: 5ms}}}}": (
        "5:26: members.app: say `rate` or `process_time`, which is 1 / rate, not both"
    ),
    "variants: {a: {members: {app: {process_time: soon}}}}": "5:32: members.app.process_time: 'soon' is no duration",
    "variants: {a: {members: {app: {subscribe: '^('}}}}": "5:32: members.app.subscribe: '^(' is no regular expression: missing )",
    "variants: {a: {name: y}}": "5:16: variants.a.name: stands for the whole file, not in a variant",
    "variants: {1st: {}}": "5:12: variants.1st: a variant is named with letters, digits, - and _, a letter first",
    "expect: [max_gap < ]": "5:10: expect[0]: expected a number or a metric, not the end, at letter 10 of `max_gap <`",
    "expect: [5]": "5:10: expect[0]: an expectation is a text such as `max_gap < 15s`, or a mapping with one",
    "expect: [{steady: lag, last: 0s}]": "5:24: expect[0].last: must be a time above 0: in none nothing is seen",
    "expect: [{check: lag < 5, at: p42}]": "5:27: expect[0].at: must be one of worst, p99, p95, p90, p75, p50, median, mean, be",
    "expect: [{check: lag < 5, variant: [a]}]": "5:27: expect[0].variant: unknown key of check; did you mean 'variants'?",
    "expect: [{check: lag < 5, always: lag < 5}]": "5:10: expect[0]: an expectation has exactly one of check, always, eventuall",
    "expect: [{eventually: lag < 5, after: depoly}]": "5:32: expect[0].after: must be a time or the name of an event, not 'depo",
    "expect: ['unavailable(cause rebalanc) < 3']": "5:10: expect[0]: unavailable: there is no cause 'rebalanc'; did you mean 'r",
    "expect: ['rebalances(cause coordinator_failure) < 3']": (
        "5:10: expect[0]: rebalances: there is no cause 'coordinator_failure'; did you mean 'coordinator_failover'?"
    ),
    "expect: [max_gap(ap/3) < 3s]": "5:10: expect[0]: max_gap: there is no set of members 'ap'; did you mean 'app'?",
    "expect: [spread(ordrs) < 3]": "5:10: expect[0]: spread: 'ordrs' is no filter of it; did you mean 'orders'?",
}


def test_members_below_one_of_several_groups_are_told_their_place() -> None:
    (problem,) = problems("kgctl: 1\nname: x\ntopics: {orders: 12}\ngroups: {pay: {members: {app: {count: 1}}}}\n")
    told = "unknown key of a group: members stands beside groups, {group: pay} in each set"
    assert problem.endswith(told)


MEANT_ELSEWHERE = {
    "brokers: 3": "5:1: brokers: unknown key; did you mean 'cluster: {brokers: 3}'?",
    "zones: [a, b]": "5:1: zones: unknown key; did you mean 'cluster: {racks: ...}'?",
    "partitions: 4": "5:1: partitions: unknown key; did you mean 'topics: {orders: {partitions: 4}}'?",
    "group.id: pay": "5:1: group.id: unknown key; did you mean 'group: {id: pay}'?",
    "session.timeout.ms: 9s": "5:1: session.timeout.ms: unknown key; did you mean 'group: {config: {session.timeout.ms: 9s}}'?",
    "group.initial.rebalance.delay.ms: 0": (
        "5:1: group.initial.rebalance.delay.ms: unknown key; did you mean "
        "'cluster: {config: {group.initial.rebalance.delay.ms: 0}}'?"
    ),
    "rate: 5/s": "5:1: rate: unknown key; did you mean 'members: {app: {rate: 5/s}}' or 'traffic: {orders: {rate: 5/s}}'?",
    "hpa: {target: 5}": "5:1: hpa: unknown key; did you mean 'autoscale'?",
    "deployments: {app: {count: 3}}": "5:1: deployments: unknown key; did you mean 'members'? such as members: {app: {count: 3}}",
    "group: {client: java}": "5:9: group.client: unknown key; did you mean 'members: {app: {client: java}}'?",
    "events: [{at: 0s, pause: app, for: 5s}]": (
        "5:19: events[0].pause: unknown kind of event 'pause'; did you mean 'stall': The applications are stuck in a batch: no "
        "poll(), nothing processed; the heartbeat thread goes on, or 'pause_process': The processes are frozen: no heartbeats, "
        "no polls; then they go on as if nothing had been?"
    ),
    "events: [{canary: app, pause: 5m}]": (
        "5:11: events[0].canary: unknown kind of event 'canary'; did you mean {rollout: app, strategy: canary}?"
    ),
    "events: [{crash: app-2}]": "5:11: events[0].crash: there is no set of members 'app-2'; did you mean 'app/2'?",
    "events: [{scale: app, replicas: 5}]": "5:23: events[0].replicas: unknown key of a 'scale' event; did you mean 'to'?",
    "events: [{stall: app, duration: 5s}]": "5:23: events[0].duration: unknown key of a 'stall' event; did you mean 'for'?",
    "autoscale: {target: 5}": "5:1: autoscale.members: this key is missing; write members: app",
}
"""What a new user writes -> the whole of what is said: the line to write in its place."""


@pytest.mark.parametrize("line", MEANT_ELSEWHERE)
def test_a_new_users_words_are_answered_with_what_to_write(line: str) -> None:
    assert problems(GOOD + line + "\n") == [f"f:{MEANT_ELSEWHERE[line]}"]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("static", "true", "unknown key; did you mean 'instance_id: $name'?"),
        ("zone", "a", "unknown key; did you mean 'rack'?"),
        ("client", "confluent-kafka", "unknown client 'confluent-kafka'; did you mean 'librdkafka'?"),
        ("slow", "3", "unknown key of members; an event says it: {slow: app}"),
        ("terminationGracePeriodSeconds", "30", "unknown key of members; an event says it: {rollout: app, grace: ...}"),
    ],
)
def test_words_of_members_that_others_use(key: str, value: str, told: str) -> None:
    (problem,) = problems(GOOD.replace("{count: 3}", f"{{{key}: {value}}}"))
    assert problem.partition(f"members.app.{key}: ")[2] == told


def test_topics_and_traffic_as_others_write_them() -> None:
    text = GOOD.replace("{orders: 12}", "{orders: {partitions: 12, rate: 5/s}}")
    assert problems(text)[0].endswith("unknown key; did you mean 'traffic: {orders: {rate: 5/s}}'?")
    listed = problems(GOOD.replace("{orders: 12}", "[orders, pay]"))
    assert listed == ["f:3:1: topics: must be a mapping, not a list: write {orders: 12, pay: 12}"]


def test_without_its_first_lines_a_file_is_told_them_and_all_else() -> None:
    text = "topics: {orders: 12}\nmembers: {app: {}}\nevents: [{crsh: app}]\n"
    assert [problem.partition(": ")[2] for problem in problems(text)] == [
        "name: this key is missing; write name: orders-deploy",
        "kgctl: this key is missing; write kgctl: 1",
        "events[0].crsh: unknown kind of event 'crsh'; did you mean 'crash'?",
    ]


@pytest.mark.parametrize("line", MISTAKES)
def test_mistake_is_told_with_its_place(line: str) -> None:
    (problem,) = problems(GOOD + line + "\n")
    assert problem.startswith(f"f:{MISTAKES[line]}")


def test_all_mistakes_are_told_at_once_each_once_in_the_order_of_the_file() -> None:
    text = GOOD.replace("count: 3", "cuont: 3, boot: soon") + "variants: {a: {}, b: {members: {app: {poll: 3}}}}\n"
    assert [problem.partition(": ")[0] for problem in problems(text)] == ["f:4:17", "f:4:27", "f:5:39"]


def test_one_mistake_is_not_told_as_several() -> None:
    """The rest of the file is read as if the wrong part did not stand there."""
    text = GOOD.replace("{count: 3}", "{cuont: 3}") + (
        "events: [{at: 0s, crsh: app}, {at: 1m, name: deploy, rolling_restart: app, settel: 3s}]\n"
        "expect: [lag(orders) < 5, max_gap(app/3) < 5s, max_gap(ap) < 5s, {eventually: state == Stable, after: deploy}]\n"
    )
    found = [problem.split(";")[0] for problem in problems(text)]
    assert found == [
        "f:4:17: members.app.cuont: unknown key",
        "f:5:19: events[0].crsh: unknown kind of event 'crsh'",
        "f:5:76: events[1].settel: unknown key of a 'rolling_restart' event",
        "f:6:48: expect[2]: max_gap: 'ap' is no filter of it",
    ]


@pytest.mark.parametrize("line", ["members: {app: 5}", "members: [app]", "member: {app: {count: 3}}", "topics: 12"])
def test_a_file_without_its_members_or_topics_is_not_blamed_for_naming_them(line: str) -> None:
    key = line.partition(":")[0]
    lines = [each for each in GOOD.splitlines() if not each.startswith(key)]
    (problem,) = problems(
        "\n".join([*lines, line, "events: [{crash: app}]", "expect: [lag(orders) < 5, max_gap(app) < 5s]"]) + "\n"
    )
    assert problem.startswith(f"f:{len(lines) + 1}:")


def test_variants_are_merged_and_keep_the_names_of_the_file() -> None:
    file = loaded(GOOD + "variants: {a: {}, b: {members: {app: {count: 5}, more: {}}}, c: null}\n")
    assert file.variant_names == ("a", "b", "c")
    counts = [[members.count for members in variant.scenario.members] for variant in file.variants]
    assert counts == [[3], [5, 1], [3]]


def test_settings_of_members_are_over_those_of_the_group_with_times_in_milliseconds() -> None:
    text = (
        GOOD.replace("{count: 3}", "{config: {session.timeout.ms: 1m}}")
        + "group: {config: {session.timeout.ms: 10s, enable.auto.commit: false}}\n"
    )
    (variant,) = loaded(text).variants
    (members,) = variant.scenario.members
    assert members.config == {"session.timeout.ms": "60000", "enable.auto.commit": "false"}
    assert (variant.settings["session.timeout.ms"], members.commit.mode) == (60.0, "after-batch")


def test_times_of_kafka_go_are_durations_or_milliseconds() -> None:
    config = "{SessionTimeout: 10s, JoinGroupBackoff: 1500, PartitionWatchInterval: 2m, RetentionTime: -1}"
    (variant,) = loaded(GOOD.replace("{count: 3}", f"{{client: kafka-go, config: {config}}}")).variants
    assert variant.scenario.members[0].config == {
        "SessionTimeout": "10000",
        "JoinGroupBackoff": "1500",
        "PartitionWatchInterval": "120000",
        "RetentionTime": "-1",
    }


def test_file_extends_a_builtin(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "kgctl: 1\nname: mine\nextends: builtin:node-drain\n"
        "members: {app: {count: 13}}\nvariants: {static: null, no-budget: null}\nexpect: []\n"
    )
    file = load(read_source(str(path)))
    assert (file.name, file.variant_names, file.checks) == ("mine", ("one-at-a-time",), ())
    assert file.variants[0].scenario.members[0].count == 13


def test_file_that_extends_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("kgctl: 1\nname: mine\nextends: mine.yaml\n")
    with pytest.raises(FileError, match="extends itself"):
        read_source(str(path))


def test_replicas_decide_about_the_racks_that_partitions_are_in() -> None:
    """Two pods, one in each rack; all partitions are in one of them, or in both."""
    text = GOOD.replace("topics: {orders: 12}", "topics: {orders: {partitions: 2, placement: {0: [1], 1: [3]}}}").replace(
        "{count: 3}", "{count: 2, rack: spread}"
    )
    variants = (
        "variants: {one: {}, both: {topics: {orders: {placement: null}}}, own: {topics: {orders: {placement: {1: [2]}}}}}\n"
    )
    file = loaded(f"{text}cluster: {{racks: [a, b]}}\nduration: 60s\n{variants}")
    shares = {variant.name: run(variant.scenario, 1).metric("cross_rack") for variant in file.variants}
    assert shares == {"one": 0.5, "both": 0.0, "own": 0.0}


def test_names_about_which_nothing_is_said_have_the_defaults() -> None:
    (variant,) = loaded("kgctl: 1\nname: x\ntopics:\n  orders:\nmembers:\n  app:\n").variants
    assert [(topic.name, topic.partitions) for topic in variant.scenario.topics] == [("orders", 12)]
    assert [(members.name, members.count) for members in variant.scenario.members] == [("app", 1)]


def test_event_waits_for_one_before_it_by_name() -> None:
    (variant,) = loaded(
        f"{GOOD}events: [{{name: a, stop: app/0}}, {{name: b, after: a, start: app/0}}, {{after: a, crash: app/1}}]\n"
    ).variants
    assert [event.after for event in variant.scenario.events] == [None, "a", "a"]


def test_topic_that_was_deleted_can_be_created_again() -> None:
    events = (
        "[{at: 1m, delete_topic: orders}, {at: 2m, create_topic: orders, partitions: 4}, {at: 3m, add_partitions: orders, to: 6}]"
    )
    (variant,) = loaded(f"{GOOD}events: {events}\n").variants
    assert [event.kind for event in variant.scenario.events] == ["delete_topic", "create_topic", "add_partitions"]


CANARY = f"{GOOD}variants: {{plain: {{}}, more: {{members: {{canary: {{count: 1}}}}}}}}\n"


@pytest.mark.parametrize(
    ("setting", "counts"),
    [
        ("members.app.count=5", {"plain": {"app": 5}, "more": {"app": 5, "canary": 1}}),
        ("members.canary.count=5", {"plain": {"app": 3}, "more": {"app": 3, "canary": 5}}),
        ("members.new={count: 2}", {"plain": {"app": 3, "new": 2}, "more": {"app": 3, "canary": 1, "new": 2}}),
    ],
)
def test_setting_changes_what_is_there_in_the_variants_that_have_it(setting: str, counts: dict[str, dict[str, int]]) -> None:
    file = load(read_yaml(CANARY, "f"), settings=[setting])
    found = {each.name: {members.name: members.count for members in each.scenario.members} for each in file.variants}
    assert found == counts


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("members.ap.count=5", "there is no set of members 'ap'; did you mean 'app'?"),
        ("topics.ordrs.partitions=5", "there is no topic 'ordrs'; did you mean 'orders'?"),
        ("variants.plan.warmup=5s", "there is no variant 'plan'; did you mean 'plain'?"),
    ],
)
def test_setting_below_a_name_that_is_not_there_is_refused(setting: str, why: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--set {setting}: {why}")):
        load(read_yaml(CANARY, "f"), settings=[setting])


@pytest.mark.parametrize("faults", ["nemesis crash", "nemesis stall"])
def test_faults_of_a_nemesis_may_be_asked_about(faults: str) -> None:
    assert loaded(GOOD + f"nemesis: {{rate: 1 per 5m}}\nexpect: [time_to_stable({faults}) < 5s]\n").checks


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: x\nquestion: caf\xe9\n", "is not UTF-8 text (line 2, byte 21)"),
        ("name: x".encode("utf-16"), "is not UTF-8 text (line 1, byte 0); it looks like UTF-16: save it as UTF-8"),
    ],
)
def test_text_in_another_encoding_is_told_with_its_line(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path / 'x.yaml'} {said}")):
        read_source(str(tmp_path / "x.yaml"))


@pytest.mark.parametrize("content", ["just words\n", "\xff"])
def test_base_that_is_no_scenario_is_told_where_it_is_named(content: str, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(content, encoding="latin-1")
    (tmp_path / "own.yaml").write_text("kgctl: 1\nname: x\nextends: base.yaml\n")
    with pytest.raises(
        FileError, match=r"own\.yaml:3:1: extends: .*base\.yaml is (no scenario: it is no mapping|not UTF-8 text)"
    ):
        read_source(str(tmp_path / "own.yaml"))


@pytest.mark.parametrize(("given", "wanted"), [("terminal", True), ("true", True), ("false", False)])
def test_a_file_may_ask_for_the_picture(given: str, wanted: bool) -> None:
    assert ("gantt" in loaded(f"{GOOD}output: {{gantt: {given}}}\n").output) is wanted


def test_broker_settings_that_are_not_the_coordinators_are_no_hindrance() -> None:
    (variant,) = loaded(
        f"{GOOD}cluster: {{config: {{message.max.bytes: 1000, offsets.retention.minutes: 7d}}}}\nduration: 1s\n"
    ).variants
    assert variant.settings["offsets.retention.minutes"] == 7 * 24 * 3_600
    assert run(variant.scenario, 1).stopped == ""


@pytest.mark.parametrize(("given", "rate"), [("5ms", 200_000_000), ("3ms", 333_333_333), ("2s", 500_000), ("0s", None)])
def test_the_time_of_a_record_is_one_over_the_rate(given: str, rate: int | None) -> None:
    (variant,) = load(read_yaml(GOOD + f"variants: {{a: {{members: {{app: {{process_time: {given}}}}}}}}}\n", "f")).variants
    assert variant.scenario.members[0].rate_uhz == rate


@pytest.mark.parametrize(
    ("patch", "settings", "expected"),
    [
        ("{topics: {orders: {replicas: 2}}}", [], (12, 2, 90_000_000, (3, 1))),
        ("{topics: {orders: 20}}", [], (20, 3, 90_000_000, (3, 1))),
        ("{traffic: {orders: 50/s}}", [], (12, 3, 50_000_000, (3, 1))),
        ("{}", ["topics.orders.partitions=7"], (7, 3, 90_000_000, (3, 1))),
        ("{}", ["topics.orders=7", "traffic.orders.rate=1/s"], (7, 3, 1_000_000, (3, 1))),
    ],
)
def test_short_forms_lose_nothing_when_they_are_changed(patch: str, settings: list[str], expected: tuple[object, ...]) -> None:
    text = f"{GOOD}traffic: {{orders: {{rate: 90/s, keys: 'weights([3, 1])'}}}}\nvariants: {{a: {patch}}}\n"
    (variant,) = load(read_yaml(text, "f"), settings=settings).variants
    (topic,), (traffic,) = variant.scenario.topics, variant.scenario.traffic
    assert (topic.partitions, topic.replicas, traffic.steps[0][1], traffic.weights) == expected
