"""What a file may say of a Kafka Streams application, and the words for what it may not."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.model import MemberSet
from kgctl.simulate.scenario.streams import TopologyPart, parse_restore, parse_size
from kgctl.yaml_files import FileError, read_yaml

FILE = """
kgctl: 1
name: x
topics: {orders: 6, pays: 3}
members: {app: {count: 3, streams: {store: 1GB}}}
"""


def members_of(*settings: str) -> MemberSet:
    return load(read_yaml(FILE, "s.yaml"), settings=settings).variants[0].scenario.members[0]


def problems(*settings: str, more: str = "") -> list[tuple[str, str]]:
    with pytest.raises(FileError) as refused:
        load(read_yaml(FILE + more, "s.yaml"), settings=settings)
    return [(".".join(map(str, each.path[2:])), each.message) for each in refused.value.problems]


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        ("10GB", (10**10, True)),
        (" 1.5 MB ", (1_500_000, True)),
        ("600", (600, False)),
        (2_000, (2_000, False)),
        ("2k", (2_000, False)),
    ],
)
def test_a_size_is_bytes_or_records(raw: object, size: tuple[int, bool]) -> None:
    assert parse_size(raw) == size


@pytest.mark.parametrize("raw", ["10QB", "GB", -1, True, None, "1e99GB", "99999999TB"])
def test_what_is_no_size_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match=r"is no size|is more than"):
        parse_size(raw)


def test_a_rate_is_of_bytes_or_records() -> None:
    assert parse_restore("50MB/s") == (50_000_000 * 10**6, True)
    assert parse_restore("20k/s") == (20_000 * 10**6, False)
    with pytest.raises(ValueError, match="nothing is ever restored"):
        parse_restore("0MB/s")


def test_streams_make_a_set_of_stream_threads() -> None:
    members = members_of("members.app.streams.record=2kB")
    assert (members.client, members.streams is not None and members.streams.disk) == ("kafka-streams", "kept")
    assert members.streams is not None
    assert members.streams.parts == (TopologyPart(name="all", store=(10**9, True)),)
    assert members.streams.records(members.streams.store) == 500_000
    assert members.streams.restore_uhz == 25_000 * 10**6


def test_a_client_of_that_name_is_an_application_without_stores() -> None:
    members = (
        load(read_yaml(FILE.replace("streams: {store: 1GB}", "client: kafka-streams"), "s.yaml")).variants[0].scenario.members[0]
    )
    assert members.streams is not None
    assert members.streams.store == (0, False)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (
            ("members.app.client=java",),
            [("client", "'java' is no stream thread: beside streams it is kafka-streams, or is left out")],
        ),
        (("members.app.subscribe=^o",), [("subscribe", "Kafka Streams subscribes to the topics of its topology, by name")]),
        (
            ("members.app.commit=after-batch",),
            [("commit", "Kafka Streams commits by itself, every commit.interval.ms: say that in config")],
        ),
        (
            ("members.app.config.num.stream.threads=2",),
            [("config.num.stream.threads", "one stream thread an instance is simulated: write more pods (count) instead")],
        ),
        (
            ("members.app.config.partition.assignment.strategy=range",),
            [("config.partition.assignment.strategy", "Kafka Streams has an assignor of its own")],
        ),
        (
            ('members.b={"count": 1}',),
            [("", "'app' is of the same group and is an application of Kafka Streams")],
        ),
        (
            ('members.b={"count": 1, "streams": {"store": "2GB"}}',),
            [("streams", "has other parts or stores than 'app': the instances of an application are alike in that")],
        ),
        (
            ('members.app.streams.subtopologies={"a": ["orders", "oders"]}',),
            [
                ("streams.store", "each of subtopologies says its own store"),
                ("streams.subtopologies", "no part reads 'pays'"),
                ("streams.subtopologies.a.topics", "the set does not read 'oders'; did you mean 'orders'?"),
            ],
        ),
        (
            ("members.app.streams.store=0", 'members.app.streams.subtopologies={"a": ["orders", "pays"], "b": ["pays"]}'),
            [("streams.subtopologies.b.topics", "'pays' is read by 'a': one part reads a topic")],
        ),
    ],
)
def test_what_cannot_be_is_said_where_it_stands(settings: tuple[str, ...], found: list[tuple[str, str]]) -> None:
    assert sorted(problems(*settings)) == sorted(found)


@pytest.mark.parametrize("event", ["add_partitions: orders, to: 9", "delete_topic: orders"])
def test_topics_of_an_application_stay_as_they_are(event: str) -> None:
    message = "Kafka Streams ends when 'orders', which it reads, gets partitions or goes: not simulated"
    assert problems(more=f"events: [{{at: 5s, {event}}}]") == [("streams", message)]
