"""The brokers of a cluster: bootstrap, one connection each, all asked at the same time."""

from __future__ import annotations

import socket
import threading

import pytest

from kgctl.errors import AuthError, KgctlError, TimedOutError, UnreachableError
from kgctl.model.groups import Node
from kgctl.wire import Deadline
from kgctl.wire.cluster import ClusterClient, ClusterLayout, TopicLayout
from kgctl.wire.connection import API_VERSIONS, LIST_GROUPS, METADATA, SASL_HANDSHAKE, Connection
from kgctl.wire.settings import Address, SaslSettings, WireSettings
from tests.support.fake_broker import CLOSE, SILENCE, FakeBroker, metadata
from tests.support.patience import PATIENCE_MS, PATIENCE_S


def cluster_of(*ports: int) -> ClusterClient:
    return ClusterClient(WireSettings(tuple(Address("127.0.0.1", port) for port in ports)))


def dead_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def some_broker(cluster: ClusterClient, deadline: Deadline) -> Connection:
    return cluster.ask(lambda connection: connection, deadline)


def soon() -> Deadline:
    return Deadline(PATIENCE_MS)


def test_the_first_bootstrap_server_that_answers_is_used() -> None:
    with FakeBroker() as broker:
        cluster = cluster_of(dead_port(), broker.port)

        assert some_broker(cluster, soon()).address.port == broker.port
        cluster.close()


def test_a_silent_bootstrap_server_leaves_time_for_the_next() -> None:
    with FakeBroker({API_VERSIONS: lambda _: SILENCE}) as silent, FakeBroker() as broker:
        cluster = cluster_of(silent.port, broker.port)

        assert some_broker(cluster, Deadline(4_000)).address.port == broker.port
        cluster.close()


def test_no_bootstrap_server_at_all_names_each_with_its_reason() -> None:
    first, second = dead_port(), dead_port()

    with pytest.raises(UnreachableError, match=rf"no bootstrap server answers: .*:{first}: .*:{second}: ") as caught:
        some_broker(cluster_of(first, second), soon())
    assert not isinstance(caught.value, TimedOutError)


def test_silence_of_all_bootstrap_servers_is_a_time_out() -> None:
    with (
        FakeBroker({API_VERSIONS: lambda _: SILENCE}) as one,
        FakeBroker({API_VERSIONS: lambda _: SILENCE}) as other,
        pytest.raises(TimedOutError, match="no bootstrap server answers"),
    ):
        some_broker(cluster_of(one.port, other.port), Deadline(200))


def test_a_refused_login_ends_the_search() -> None:
    with FakeBroker({SASL_HANDSHAKE: lambda _: {"error_code": 34}}) as strict, FakeBroker() as other:
        addresses = (Address("127.0.0.1", strict.port), Address("127.0.0.1", other.port))
        cluster = ClusterClient(WireSettings(addresses, sasl=SaslSettings("PLAIN", "u", "p")))

        with pytest.raises(AuthError):
            some_broker(cluster, soon())
        assert other.requests == []


def test_a_connection_is_made_once_and_again_after_it_was_lost() -> None:
    with FakeBroker() as broker:
        cluster = cluster_of(broker.port)
        first = some_broker(cluster, soon())

        assert some_broker(cluster, soon()) is first
        assert cluster.broker(Node(1, "127.0.0.1", broker.port), soon()) is first
        first.close()
        assert some_broker(cluster, soon()) is not first
        cluster.close()


def test_a_connection_that_the_broker_gave_up_in_a_pause_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.wire.connection.IDLE_S", 0.0)
    with FakeBroker() as broker:
        cluster = cluster_of(broker.port)
        first = some_broker(cluster, soon())
        assert some_broker(cluster, soon()) is first
        broker.hang_up()
        second = some_broker(cluster, soon())
        cluster.close()

    assert second is not first
    assert first.is_closed


def test_a_lost_connection_is_one_more_try() -> None:
    with FakeBroker() as broker:
        answers = [CLOSE, CLOSE, {"groups": []}]
        broker.handlers[LIST_GROUPS] = lambda _: answers.pop(0)
        cluster = cluster_of(broker.port)
        assert list(cluster.call(LIST_GROUPS, {}, soon()).groups) == []
        cluster.close()


def test_a_cluster_that_has_never_answered_is_given_up_soon_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.wire.cluster.FIRST_PATIENCE_S", 0.2)
    with FakeBroker({METADATA: lambda _: CLOSE}) as broker:
        deadline = soon()
        with pytest.raises(UnreachableError, match=r"at Metadata \(does this listener want SASL\? .*\); asked \d times"):
            cluster_of(broker.port).layout([], deadline)
        assert not deadline.is_over


def test_a_cluster_that_has_answered_is_asked_until_the_time_is_over_and_wants_no_login() -> None:
    with FakeBroker({LIST_GROUPS: lambda _: CLOSE}) as broker:
        cluster, deadline = cluster_of(broker.port), Deadline(600)
        cluster.layout([], deadline)
        with pytest.raises(UnreachableError) as caught:
            cluster.call(LIST_GROUPS, {}, deadline)
        cluster.close()
    assert deadline.is_over
    assert "SASL" not in caught.value.message
    assert "closed the connection at ListGroups; asked" in caught.value.message


def test_brokers_that_were_found_stand_in_for_bootstrap_servers_that_are_gone() -> None:
    with FakeBroker(node_id=2) as other:
        with FakeBroker() as first:
            first.handlers[METADATA] = lambda _: metadata([first, other])
            cluster = cluster_of(first.port)
            cluster.layout([], soon())
        assert cluster.layout([], soon()).nodes[2].port == other.port
        cluster.close()


def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.wire.connection.MOST_IDLE_S", 0.0)
    with FakeBroker() as broker:
        cluster = cluster_of(broker.port)
        assert some_broker(cluster, soon()) is not some_broker(cluster, soon())
        cluster.close()


def test_layout_tells_brokers_partitions_and_leaders() -> None:
    with FakeBroker() as broker:
        answer = metadata([broker], {"t": {0: 1, 1: -1}, "gone": {}})
        answer["topics"][0]["partitions"][1]["replica_nodes"] = [7, 8]
        broker.handlers[METADATA] = lambda _: answer
        cluster = cluster_of(broker.port)
        layout = cluster.layout(["t", "gone"], soon())
        cluster.close()

        node = Node(1, "127.0.0.1", broker.port)
        topic = TopicLayout(0, {0: 1, 1: -1}, {0: (), 1: (7, 8)})
        assert layout == ClusterLayout({1: node}, {"t": topic, "gone": TopicLayout(3, {})})
        (asked,) = broker.asked(METADATA)
        assert ([topic.name for topic in asked.topics], asked.allow_auto_topic_creation) == (["t", "gone"], False)


@pytest.mark.parametrize(("topics", "expected"), [(None, None), ([], ())])
def test_layout_asks_for_all_topics_or_for_none(topics: list[str] | None, expected: tuple[str, ...] | None) -> None:
    with FakeBroker() as broker:
        cluster = cluster_of(broker.port)
        cluster.layout(topics, soon())
        cluster.close()

        assert broker.asked(METADATA)[0].topics == expected


def test_brokers_are_asked_at_the_same_time() -> None:
    """Each answers only when the other has been asked as well."""
    both_asked = threading.Barrier(2, timeout=PATIENCE_S)

    def handler(_: object) -> dict[str, object]:
        both_asked.wait()
        return {}

    with FakeBroker({LIST_GROUPS: handler}) as one, FakeBroker({LIST_GROUPS: handler}, node_id=2) as two:
        cluster = cluster_of(one.port)
        nodes = [Node(1, "127.0.0.1", one.port), Node(2, "127.0.0.1", two.port)]
        answers = cluster.on_each(
            dict.fromkeys(nodes, "x"), lambda c, item: (c.node, item, c.call(LIST_GROUPS, {}, soon())), soon()
        )
        cluster.close()

    assert [(node, answer[:2]) for node, answer in answers.items() if isinstance(answer, tuple)] == [
        (nodes[0], (nodes[0], "x")),
        (nodes[1], (nodes[1], "x")),
    ]


def test_a_broker_that_fails_harms_no_other() -> None:
    with FakeBroker({LIST_GROUPS: lambda _: {}}) as broker:
        cluster = cluster_of(broker.port)
        good, bad = Node(1, "127.0.0.1", broker.port), Node(2, "127.0.0.1", dead_port())
        answers = cluster.on_each({bad: 0, good: 0}, lambda c, _: c.call(LIST_GROUPS, {}, soon()).error_code, soon())
        cluster.close()

    assert isinstance(answers[bad], UnreachableError)
    assert answers[good] == 0


def test_a_broker_that_was_silent_is_not_waited_for_by_the_other_calls_of_a_command() -> None:
    limit, over = Deadline(60_000), threading.Event()

    def silent(_: object) -> dict[str, object]:
        over.wait(PATIENCE_S)
        return {}

    with FakeBroker({LIST_GROUPS: silent}) as broker, FakeBroker({LIST_GROUPS: lambda _: {}}, node_id=2) as other:
        cluster = cluster_of(broker.port)
        nodes = [Node(1, "127.0.0.1", broker.port), Node(2, "127.0.0.1", other.port)]

        def ask(deadline: Deadline) -> dict[Node, int | KgctlError]:
            def code(connection: Connection, _: object) -> int:
                return int(connection.call(LIST_GROUPS, {}, deadline).error_code)

            return cluster.on_each(dict.fromkeys(nodes), code, deadline)

        tries = [ask(Deadline.of_call(limit, 0).within(0.3)), ask(Deadline.of_call(limit, 0))]
        over.set()
        tries.append(ask(soon()))
        cluster.close()

    first, second, third = (each[nodes[0]] for each in tries)
    assert (type(first), type(second), third) == (TimedOutError, TimedOutError, 0)
    assert isinstance(second, TimedOutError)
    assert (second.message.endswith("has not answered, and is not asked again"), second.nothing_sent) == (True, True)
    assert [each[nodes[1]] for each in tries] == [0, 0, 0]
    assert (limit.is_troubled, Deadline(1).is_troubled) == (True, False)


def test_a_bug_in_a_thread_is_not_lost() -> None:
    def fails(connection: Connection, _: object) -> None:
        raise ZeroDivisionError(connection.address)

    with FakeBroker() as one, FakeBroker(node_id=2) as two:
        cluster = cluster_of(one.port)
        nodes = [Node(1, "127.0.0.1", one.port), Node(2, "127.0.0.1", two.port)]
        with pytest.raises(ZeroDivisionError):
            cluster.on_each(dict.fromkeys(nodes), fails, soon())
        cluster.close()
