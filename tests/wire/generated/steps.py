"""Scripts of raw requests, good and bad, as plain data: who says what, without the ids that only a server can give.

``member`` is "own" (what the server called this actor), a literal, or another actor's name after "@"; ``epoch`` is "right" (what
the server said last), a number to add to that ("+1", "-1"), or a literal.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kgctl.server.service import default_registry

Step = dict[str, Any]
Steps = st.SearchStrategy[Step]

APIS = {
    "commit": 8,
    "fetch": 9,
    "coordinator": 10,
    "join": 11,
    "heartbeat": 12,
    "leave": 13,
    "sync": 14,
    "describe": 15,
    "list": 16,
    "init producer": 22,
    "add group": 25,
    "end": 26,
    "commit in transaction": 28,
    "delete groups": 42,
    "delete offsets": 47,
    "consumer heartbeat": 68,
    "consumer describe": 69,
}
CLASSIC = ("c0", "c1", "c2")
CONSUMERS = ("k0", "k1", "k2")
PRODUCERS = ("t0", "t1")
TOPICS = {"wire-a": 3, "wire-b": 2, "wire-c": 1}
TOPIC_NAMES = (*TOPICS, "nosuch")


def _often(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Mostly the first one."""
    return st.sampled_from((usual,) * 6 + others)


def _version(api: str) -> st.SearchStrategy[int]:
    """What is served, now and then one too many or one too few."""
    spec = default_registry().get(APIS[api])
    assert spec is not None
    wrong = [spec.max_version + 1, *([spec.min_version - 1] if spec.min_version else [])]
    return st.sampled_from([*sorted(range(spec.min_version, spec.max_version + 1), reverse=True)] * 4 + wrong)


DAMAGE = st.sampled_from((None,) * 60 + ("cut", "cut more", "longer", "forged"))
"""What is done to the frame's bytes."""


def _step(api: str, actors: tuple[str, ...], **fields: st.SearchStrategy[Any]) -> Steps:
    common = {"api": st.just(api), "actor": st.sampled_from(actors), "v": _version(api), "group": _often("g", "g", "g", "", "h")}
    common["damage"] = DAMAGE
    return st.fixed_dictionaries({**common, **fields})


def _actors_step(actors: tuple[str, ...]) -> Steps:
    """What anybody may send about offsets."""
    return st.one_of(
        _step("commit", actors, member=MEMBER, epoch=EPOCH, instance=INSTANCE, offsets=OFFSETS, metadata=METADATA),
        _step(
            "fetch", actors, member=_often("own", None, "ghost"), epoch=EPOCH, topics=st.none() | OFFSETS, stable=st.booleans()
        ),
    )


MEMBER = _often("own", "own", "", "ghost", "@c0", "@k0")
EPOCH = _often("right", "right", "+1", "-1", -1, 0)
INSTANCE = _often(None, None, "i-0", "i-1")
OFFSETS = st.lists(st.tuples(st.sampled_from(TOPIC_NAMES), st.integers(0, 3)), min_size=1, max_size=3, unique=True)
METADATA = _often("m", None, "", "x" * 4097)
PROTOCOLS = st.sampled_from((["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["sticky"], []))
SOME_TOPICS = st.lists(st.sampled_from(TOPIC_NAMES), unique=True, max_size=3)

JOIN = _step(
    "join",
    CLASSIC,
    member=_often("own", "own", "own", "", "ghost", "@c0"),
    protocols=st.sampled_from((["range"], ["range", "roundrobin"])) | PROTOCOLS,
    protocol_type=_often("consumer", "consumer", "consumer", "connect", ""),
    session=_often(60_000, 60_000, 1, 2_000_000),
    instance=INSTANCE,
    topics=SOME_TOPICS,
)
SYNC = _step(
    "sync",
    CLASSIC,
    member=MEMBER,
    epoch=EPOCH,
    instance=INSTANCE,
    protocol_type=_often("right", None, "connect"),
    protocol=_often("right", None, "other"),
    assign=st.booleans(),
)
HEARTBEAT = _step("heartbeat", CLASSIC, member=MEMBER, epoch=EPOCH, instance=INSTANCE)
LEAVE = _step("leave", (*CLASSIC, *CONSUMERS), members=st.lists(st.tuples(MEMBER, INSTANCE), max_size=3))
CONSUMER_JOIN = _step(
    "consumer heartbeat",
    CONSUMERS,
    member=_often("own", "own", "own", ""),
    epoch=st.just(0),
    instance=INSTANCE,
    topics=_often(["wire-a"], None, []) | SOME_TOPICS,
    regex=_often(None, None, "wire-.*", "wire-[ab]", "(", ""),
    assignor=_often("range", None, "uniform", "nosuch"),
    owned=_often([], [], [], None, "right"),
    rebalance=_often(60_000, 60_000, 60_000, -1),
    rack=_often(None, None, "r1", ""),
)
CONSUMER_BEAT = _step(
    "consumer heartbeat",
    CONSUMERS,
    member=_often("own", "own", "own", "ghost", ""),
    epoch=_often("right", "right", "right", "right", "-1", "+1", -1, -2, -3),
    instance=INSTANCE,
    topics=_often(None, None, ["wire-b"], ["wire-a", "wire-b"]),
    regex=_often(None, None, None, "wire-.*", ""),
    assignor=_often(None, None, "uniform", "nosuch"),
    owned=_often("right", "right", "right", None, [], [["wire-a", 0]]),
    rebalance=_often(-1, -1, 30_000),
    rack=_often(None, None, None, "r1"),
)
LOOKS = st.one_of(
    _step("describe", CLASSIC, groups=_often(["g"], ["g", "h", ""], []), operations=st.booleans()),
    _step("consumer describe", CLASSIC, groups=_often(["g"], ["g", "h", ""], []), operations=st.booleans()),
    _step(
        "list", CLASSIC, states=_often([], ["Stable"], ["stable", "Empty"], ["x"]), types=_often([], ["consumer"], ["Classic"])
    ),
    _step("coordinator", CLASSIC, key_type=_often(0, 1, 7)),
    _step("delete groups", CLASSIC, groups=_often(["g"], ["g", "h"], ["", "g"], [])),
    _step("delete offsets", CLASSIC, offsets=OFFSETS),
)
OFFSET_STEPS = _actors_step((*CLASSIC, *CONSUMERS))

WHO = {
    "producer": _often("own", "own", "own", "none", "other"),
    "producer_epoch": _often("right", "right", "right", "+1", "-1", -1),
}
INIT_PRODUCER = _step(
    "init producer",
    PRODUCERS,
    timeout=_often(60_000, 60_000, 0, 1_000_000_000),
    who=_often("new", "new", "own", "own", "older", "wrong"),
)
TRANSACTION_STEPS = st.one_of(
    _step("add group", PRODUCERS, **WHO),
    _step(
        "commit in transaction",
        PRODUCERS,
        **WHO,
        member=_often("", "", "", "ghost", "@c0", "@k0"),
        epoch=_often(-1, -1, 0, 1, "@c0", "@k0"),
        instance=INSTANCE,
        offsets=OFFSETS,
        metadata=METADATA,
    ),
    _step("end", PRODUCERS, **WHO, committed=st.booleans()),
)

_TRANSACTION_STEPS = st.one_of(
    INIT_PRODUCER, TRANSACTION_STEPS, TRANSACTION_STEPS, TRANSACTION_STEPS, OFFSET_STEPS, JOIN, SYNC, CONSUMER_JOIN, LOOKS
)
_CLASSIC_STEPS = st.one_of(JOIN, JOIN, JOIN, SYNC, SYNC, HEARTBEAT, LEAVE, OFFSET_STEPS, LOOKS)
_CONSUMER_STEPS = st.one_of(CONSUMER_JOIN, CONSUMER_BEAT, CONSUMER_BEAT, CONSUMER_BEAT, OFFSET_STEPS, LOOKS)
_MIXED_STEPS = st.one_of(JOIN, JOIN, SYNC, HEARTBEAT, LEAVE, CONSUMER_JOIN, CONSUMER_BEAT, CONSUMER_BEAT, OFFSET_STEPS, LOOKS)

SHORTEST, LONGEST = 5, 18


def scripts() -> st.SearchStrategy[list[Step]]:
    """A group of either protocol, or of both, or one with transactions."""
    kinds = (_CLASSIC_STEPS, _CONSUMER_STEPS, _MIXED_STEPS)
    of_groups = [st.lists(kind, min_size=SHORTEST, max_size=LONGEST) for kind in kinds]
    transactions = st.lists(_TRANSACTION_STEPS, min_size=SHORTEST, max_size=LONGEST)
    first = st.just(INIT_PRODUCER).flatmap(lambda step: st.tuples(step, transactions)).map(lambda both: [both[0], *both[1]])
    return st.one_of([*of_groups, first])
