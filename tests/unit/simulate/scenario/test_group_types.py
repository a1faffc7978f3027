"""What a file may not say of a group of its type."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kgctl.member.config import STREAMS
from kgctl.simulate.scenario.fields import changed
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.streams import StreamsApplication, TopologyPart
from kgctl.simulate.scenario.vocabulary import OnPoison
from kgctl.yaml_files import FileError, read_yaml

HEAD = "kgctl: 1\nname: x\ntopics: {orders: 4}\n"
SHARE = "group: {type: share}\n"


def members(more: str) -> str:
    return f"{SHARE}members: {{app: {{{more}}}}}\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (members("config: {auto.offset.reset: earliest}"), "cannot be set when using a share group; the group has share.auto"),
        (members("config: {partition.assignment.strategy: [range]}"), "partition.assignment.strategy cannot be set when"),
        (members("config: {group.protocol: consumer}"), "group.protocol cannot be set when using a share group"),
        (members("config: {share.record.lock.duration.ms: 15s}"), "is the group's own: write group: {type: share, con"),
        (
            "members: {app: {config: {consumer.session.timeout.ms: 50s}}}\n",
            "is the group's own: write cluster: {config: {group.consumer.session.timeout.ms: 50000}}",
        ),
        (members("instance_id: $name"), "share groups have no static members"),
        (members("rack: spread"), "the coordinator assigns share groups without looking at racks"),
        (members("callbacks: {revoked: 1s}"), "a share consumer has no rebalance callbacks"),
        (members("subscribe: ^ord.*"), "a share consumer subscribes to topics by name"),
        (members("client: librdkafka"), "what librdkafka does in a share group is not known here; java is"),
        (members("commit: every 5s"), "a share consumer acknowledges: auto (with the next poll()) or after-batch (commitSync())"),
        (members("on_poison: release"), "release needs config: {share.acknowledgement.mode: explicit}: with"),
        (members("on_poison: explode"), "must be one of crash, release, reject, not 'explode'"),
        (members("config: {share.acknowledgement.mode: maybe}"), "share.acknowledgement.mode"),
        ("broker_version: 4.1\n" + members(""), "share groups from 4.2 on, and these are of 4.1: broker_version: 4.2"),
        (
            "group: {type: streams}\nmembers: {app: {}}\n",
            "there is no type of groups 'streams'; an application of Kafka Streams is a set of members with streams: {sto",
        ),
        ("group: {type: shared}\nmembers: {app: {}}\n", "there is no type of groups 'shared'; did you mean 'share'?"),
        ("members: {app: {on_poison: crash}}\n", "is for share groups: write group: {type: share}"),
        (
            "members: {app: {}}\nvariants: {a: {topics: {orders: {poisoned: 0.1%}}}}\n",
            "records that nobody can process are for share groups: write group: {type: share}",
        ),
        ("members: {app: {on_poison: crash, streams: {}}}\n", "is for share groups: write group: {type: share}"),
        (members("streams: {store: 1GB}"), "what kafka-streams does in a share group is not known here; java is"),
        (
            "group: {type: share, config: {share.delivery.count.limit: 1}}\nmembers: {app: {}}\n",
            "share.delivery.count.limit",
        ),
        ("group: {type: share, config: {share.record.lock.ms: 1}}\nmembers: {app: {}}\n", "Unknown group config name"),
    ],
)  # fmt: skip
def test_what_such_a_group_has_not_is_refused_in_clear_words(text: str, why: str) -> None:
    with pytest.raises(FileError, match=re.escape(why)):
        load(read_yaml(HEAD + text, "f.yaml"))


def test_members_that_their_group_cannot_have_are_known_without_a_file() -> None:
    def may_have(members: str, event: str = "", first: Any = None, **second: Any) -> bool:
        text = f"{HEAD.replace('}', ', pays: 2}')}members: {{app: {{{members}}}}}\nevents: [{event}]\n"
        (variant,) = load(read_yaml(text, "f.yaml")).variants
        (app,) = variant.scenario.members
        app = changed(app, **(first or {}))
        scenario = changed(variant.scenario, members=(app, changed(app, name="b", **second)))
        return type_of_group(scenario).may_have(scenario)

    modern, grows = "streams: {}, config: {group.protocol: streams}", "{at: 1s, add_partitions: orders, to: 9}"
    streams = {"streams": StreamsApplication(), "client": STREAMS}
    parts = (TopologyPart(name="a", topics=("orders",)), TopologyPart(name="b", topics=("pays",)))
    assert [may_have(""), may_have(modern), may_have("streams: {}", instance_id="x")] == [True, True, True]
    assert [may_have("", on_poison=OnPoison.CRASH), may_have(modern, instance_id="x")] == [False, False]
    others = (StreamsApplication(subtopologies=parts), None)
    assert [may_have("streams: {}", streams=other) for other in others] == [False, False]
    assert [may_have("", grows), may_have("", first=streams), may_have("", grows, first=streams)] == [True, True, False]


def test_a_share_group_may_say_this() -> None:
    text = "group: {type: share, config: {share.auto.offset.reset: earliest, max.poll.records: 10}}\n"
    (variant,) = load(
        read_yaml(f"{HEAD}{text}members: {{app: {{config: {{share.acquire.mode: record_limit}}}}}}\n", "f")
    ).variants
    group, (app,) = variant.scenario.group, variant.scenario.members
    assert group.settings == {"share.auto.offset.reset": "earliest"}
    assert app.config == {"max.poll.records": "10", "share.acquire.mode": "record_limit"}
