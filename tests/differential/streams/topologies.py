"""Topologies of Streams applications, good and bad ones, and the topics that they find; and what the core makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from kgctl.coordinator.modern.member import Refusal
from kgctl.coordinator.streams.topology.configured import ConfiguredTopology, partitions_of_tasks, sizes
from kgctl.coordinator.streams.topology.internal_topics import configure_topics
from kgctl.coordinator.streams.topology.known import known_topology
from kgctl.model.groups import MetadataImage, TopicMetadata
from kgctl.model.streams_topology import CopartitionGroup, DeclaredSubtopology, StreamsTopology, TopicInfo
from tests.differential.choices import Choice

Question = dict[str, Any]
Answer = dict[str, Any]
IDS = ("0", "1", "2", "10", "Aa", "BB", "word-count", "ä", "")
SOURCES = ("in", "orders", "Aa", "BB", "AaBB", "BBAa", "users.v1", "clicks-2", "z", "payments", "t17", "t33")
REPARTITION = (*(f"app-{name}-repartition" for name in ("a", "b", "Aa", "BB", "c", "d")), "bad name!")
CHANGELOGS = (*(f"app-{name}-changelog" for name in ("x", "y", "Aa", "BB", "KSTREAM-0", "KSTREAM-1", "w", "v", "u")), "..")
CONFIGS = (("cleanup.policy", "compact"), ("retention.ms", "-1"), ("segment.bytes", "52428800"), ("Aa", "1"), ("BB", "2"))
WORDS = (
    "Existing topic",
    "Following topics do not have the same number of partitions",
    "of repartition topic",
    "Internal topics are missing",
    "and 1 additional topics are missing",
    "Source topics",
    "Topic name is invalid",
    "never used as a sink topic",
    "loops in the topology",
    "No source topics found",
)
"""Kafka's, for what a topology led to."""
COUNTS = (1, 2, 3, 3, 3, 4, 16, 24)


class TopologyChoice:
    """One question. Most of what is chosen fits together: else nothing would come further than the first check."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._is_bad = choice.chance(3)
        self._count = choice.of(COUNTS)

    def question(self) -> Question:
        choice = self._choice
        ids = choice.some(IDS) or ["0"]
        if self._bad(10):
            ids.append(ids[0])
        sinks = {topic: choice.of(ids) for topic in choice.some(REPARTITION[:-1])}
        if self._bad(12):
            sinks[REPARTITION[-1]] = ids[0]
        subtopologies = [self._subtopology(name, sinks) for name in ids]
        topics = {topic: self._partitions() for each in subtopologies for topic in each["sources"]}
        if self._bad(5) and topics:
            del topics[choice.of(list(topics))]
        missing = choice.of((1, 2, 2, 9))
        for each in subtopologies:
            for topic, partitions, *_ in (*each["repartition"], *each["changelogs"]):
                if missing == 9 or not choice.chance(missing):
                    topics[topic] = max(partitions, 0) or self._partitions()
        seen = {topic: count for topic, count in topics.items() if not choice.chance(40)}
        seen.update({topic: self._partitions() for topic in (*REPARTITION, *CHANGELOGS) if not choice.chance(30)})
        return {
            "kind": "topology",
            "topology": {"epoch": choice.number(0, 3), "subtopologies": subtopologies},
            "hash": choice.of((0, 1, -(2**63), 2**63 - 1)),
            "topics": topics,
            "seen": seen,
            "members": [self._member(ids) for _ in range(choice.number(0, 2))],
        }

    def _bad(self, one_in: int) -> bool:
        return self._is_bad and self._choice.chance(one_in)

    def _partitions(self) -> int:
        return (
            self._choice.often(self._count, self._choice.of(COUNTS)) if self._is_bad or self._choice.chance(20) else self._count
        )

    def _subtopology(self, name: str, sinks: dict[str, str]) -> Question:
        choice = self._choice
        sources = choice.some(SOURCES)[: choice.number(1, 4)]
        repartition = [self._topic(topic, fixed=4) for topic in sinks if choice.chance(2)]
        if not sources and not repartition:
            sources = [choice.of(SOURCES)]
        if self._bad(12):
            sources, repartition = [], []
        if self._bad(15):
            repartition.append(self._topic(choice.of(REPARTITION), fixed=2))
        if self._bad(15):
            sources.append(choice.of((*SOURCES, *REPARTITION)))
        changelogs = [self._topic(topic, fixed=0) for topic in choice.some(CHANGELOGS[:-1])[: choice.number(0, 9)]]
        if self._bad(15):
            changelogs.append(self._topic(choice.of(CHANGELOGS), fixed=2))
        return {
            "id": name,
            "sources": sources,
            "sinks": [topic for topic, writer in sinks.items() if writer == name],
            "repartition": repartition,
            "changelogs": changelogs,
            "copartition": [self._group(len(sources), len(repartition)) for _ in range(choice.of((0, 0, 1, 2)))],
        }

    def _topic(self, name: str, *, fixed: int) -> list[Any]:
        choice = self._choice
        partitions = self._partitions() if fixed and choice.chance(fixed) else 0
        if self._bad(40):
            partitions = -1
        configs = [list(each) for each in choice.some(CONFIGS)]
        if self._bad(40) and configs:
            configs.append(configs[0])
        return [name, partitions, choice.of((0, 0, 1, 3, -1)), configs]

    def _group(self, sources: int, repartition: int) -> list[list[int]]:
        group = [self._choice.some(range(sources)), self._choice.some(range(repartition))]
        if self._bad(20):
            group[0].append(self._choice.of((-1, sources, 17)))
        return group

    def _member(self, ids: list[str]) -> Question:
        choice = self._choice
        numbers = {name: [int(number) for number in choice.some("0123456789")[:6]][:: choice.of((1, -1))] for name in ids}
        return {
            "active": {name: numbers[name] for name in ids[:1]},
            "standby": {name: numbers[name] for name in choice.some(ids)},
        }


def topology_question(choice: Choice) -> Question:
    """A topology and the topics of a cluster."""
    return TopologyChoice(choice).question()


def declared(node: Question) -> StreamsTopology:
    """The topology of a question."""
    return StreamsTopology(
        node["epoch"],
        tuple(
            DeclaredSubtopology(
                subtopology_id=each["id"],
                source_topics=tuple(each["sources"]),
                state_changelog_topics=_infos(each["changelogs"]),
                repartition_sink_topics=tuple(each["sinks"]),
                repartition_source_topics=_infos(each["repartition"]),
                copartition_groups=tuple(
                    CopartitionGroup(tuple(sources), (), tuple(repartition)) for sources, repartition in each["copartition"]
                ),
            )
            for each in node["subtopologies"]
        ),
    )


def _infos(topics: Iterable[Any]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(name, partitions, replicas, tuple((key, value) for key, value in configs))
        for name, partitions, replicas, configs in topics
    )


def _image(topics: dict[str, int]) -> MetadataImage:
    return MetadataImage({name: TopicMetadata(name, UUID(int=1), count) for name, count in topics.items()})


def topology_answer(question: Question) -> Answer:
    """What the core makes of it, in the form of the oracle's answer."""
    answer: Answer = {}
    try:
        topology = known_topology(declared(question["topology"]))
        answer["required"] = topology.required_topics()
        answer["sources"] = {topic: each.subtopology_id for topic, each in topology.source_topic_map().items()}
        answer["described"] = _described(topology.described())
        configured = configure_topics(topology, _image(question["topics"]), question["hash"])
        answer["configured"] = _configured(configured)
        if configured.subtopologies is not None:
            answer["endpoints"] = [_endpoint(member, configured, _image(question["seen"])) for member in question["members"]]
    except Refusal as refusal:
        answer["thrown"] = [refusal.error.name, refusal.message]
    return answer


def _configured(configured: ConfiguredTopology) -> Answer:
    answer: Answer = {
        "epoch": configured.topology_epoch,
        "hash": configured.metadata_hash,
        "described": _described(configured.described()),
        "create": [
            [topic.name, topic.num_partitions, topic.replication_factor, [list(config) for config in topic.configs]]
            for topic in configured.internal_topics_to_create
        ],
    }
    if configured.problem is not None:
        answer["problem"] = [configured.problem.status.name, configured.problem.message]
    if configured.subtopologies is not None:
        answer["sizes"] = [[each.subtopology_id, each.partitions, each.is_stateful] for each in sizes(configured.subtopologies)]
    return answer


def _described(subtopologies: Iterable[DeclaredSubtopology]) -> list[Any]:
    return [
        [
            each.subtopology_id,
            list(each.source_topics),
            list(each.repartition_sink_topics),
            _topics(each.repartition_source_topics),
            _topics(each.state_changelog_topics),
        ]
        for each in subtopologies
    ]


def _topics(topics: Iterable[TopicInfo]) -> list[Any]:
    return [
        [topic.name, topic.partitions, topic.replication_factor, [list(config) for config in topic.topic_configs]]
        for topic in topics
    ]


def _endpoint(member: Question, configured: ConfiguredTopology, image: MetadataImage) -> Any:
    assert configured.subtopologies is not None
    try:
        return [
            [[topic, list(numbers)] for topic, numbers in partitions_of_tasks(tasks, configured.subtopologies, image)]
            for tasks in (_some(member["active"]), member["standby"])
        ]
    except Refusal as refusal:
        return {"thrown": [refusal.error.name, refusal.message]}


def _some(tasks: dict[str, list[int]]) -> dict[str, list[int]]:
    """Active tasks are kept with their epochs: a subtopology without any is not there."""
    return {name: numbers for name, numbers in tasks.items() if numbers}


def topology_reached(answer: Answer) -> Iterable[str]:
    """What a question led to, in Kafka's words without names."""
    if "thrown" in answer:
        yield f"thrown {answer['thrown'][0]} {shortened(answer['thrown'][1])}"
        return
    problem = answer["configured"].get("problem")
    yield "ready" if problem is None else f"{problem[0]} {shortened(problem[1])}"
    for endpoint in answer.get("endpoints", ()):
        yield "endpoint without a topic" if "thrown" in endpoint else "endpoint"
    if len(answer["configured"]["create"]) > 12:
        yield "more than twelve topics to be made"


def shortened(message: str) -> str:
    """An error without the names in it."""
    return next((words for words in WORDS if words in message), message)
