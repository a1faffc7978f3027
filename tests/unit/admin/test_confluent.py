"""What `ConfluentGroupAdmin` makes of librdkafka's answers, where a cluster does not give them on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from kgctl.admin import confluent
from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.librdkafka import client_config
from kgctl.errors import AuthError, TimedOutError
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import GroupListing, GroupState, GroupType, OffsetAndMetadata, TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeClient:
    """Gives the answers that it was made with, one a call."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def poll(self, _: float) -> int:
        return 0

    def alter_consumer_group_offsets(self, request: Sequence[Any], **_: Any) -> dict[str, Future[Any]]:
        self.asked.append([each.partition for each in request[0].topic_partitions])
        return {"g": done(self.answers.pop(0))}

    def list_consumer_groups(self, **_: Any) -> Future[Any]:
        return done(self.answers.pop(0))

    def list_consumer_group_offsets(self, request: Sequence[Any], **_: Any) -> dict[str, Future[Any]]:
        return {request[0].group_id: done(self.answers.pop(0))}


def done(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


class Answer:
    """A partition of an answer: librdkafka's own cannot be given an error."""

    def __init__(self, partition: int, error: int | None = None, offset: int = 0) -> None:
        self.topic, self.partition, self.offset = "t", partition, offset
        self.metadata, self.leader_epoch = "", None
        self.error = KafkaError(error) if error is not None else None


class Answers:
    def __init__(self, *partitions: Answer) -> None:
        self.topic_partitions = list(partitions)


@pytest.fixture
def admin() -> Iterator[ConfluentGroupAdmin]:
    with ConfluentGroupAdmin({"bootstrap.servers": "127.0.0.1:1"}, 400) as made:
        yield made


def answer_with(admin: ConfluentGroupAdmin, *answers: Any) -> FakeClient:
    client = FakeClient(*answers)
    admin._calls._client = client  # type: ignore[assignment]
    return client


def test_a_coordinator_that_has_only_just_got_the_group_is_asked_again(admin: ConfluentGroupAdmin) -> None:
    loading = Answers(Answer(0), Answer(1, KafkaError.COORDINATOR_LOAD_IN_PROGRESS))
    client = answer_with(admin, loading, Answers(Answer(1)))
    found = admin.alter_offsets("g", dict.fromkeys([P0, P1], OffsetAndMetadata(1)))

    assert (found.values, found.errors) == ({P0: None, P1: None}, {})
    assert client.asked == [[0, 1], [1]]


def test_a_coordinator_that_stays_so_is_the_answer_within_the_time(admin: ConfluentGroupAdmin) -> None:
    answer_with(admin, *[Answers(Answer(0, KafkaError.NOT_COORDINATOR)) for _ in range(20)])
    found = admin.alter_offsets("g", {P0: OffsetAndMetadata(1)})

    assert found.errors[P0].code is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.STALE_MEMBER_EPOCH])
def test_what_brokers_say_of_an_active_group_is_translated(admin: ConfluentGroupAdmin, code: int) -> None:
    answer_with(admin, Answers(Answer(0, code)))
    found = admin.alter_offsets("g", {P0: OffsetAndMetadata(1)})

    assert found.errors[P0].code is ErrorCode.NON_EMPTY_GROUP
    assert "is active" in found.errors[P0].message


def test_a_failure_of_the_whole_commit_is_on_each_partition(admin: ConfluentGroupAdmin) -> None:
    answer_with(admin, KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)))
    found = admin.alter_offsets("g", dict.fromkeys([P0, P1], OffsetAndMetadata(1)))

    assert {key: error.code for key, error in found.errors.items()} == dict.fromkeys(
        [P0, P1], ErrorCode.GROUP_AUTHORIZATION_FAILED
    )


class Listing:
    def __init__(self, *errors: int) -> None:
        self.valid: list[Any] = []
        self.errors = [KafkaException(KafkaError(code)) for code in errors]


@pytest.mark.parametrize(("code", "expected"), [(KafkaError._TIMED_OUT, TimedOutError), (KafkaError._AUTHENTICATION, AuthError)])
def test_errors_inside_a_listing_that_succeeded_are_not_overlooked(
    admin: ConfluentGroupAdmin, code: int, expected: type[Exception]
) -> None:
    answer_with(admin, Listing(code))

    with pytest.raises(expected):
        admin.list_groups()


def test_an_error_of_a_partition_is_its_groups(admin: ConfluentGroupAdmin) -> None:
    answer_with(admin, Answers(Answer(0, offset=5), Answer(1, KafkaError.UNSTABLE_OFFSET_COMMIT)))
    found = admin.list_committed_offsets(["g"])

    assert found.errors["g"].code is ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_partitions_without_a_commit_are_left_out(admin: ConfluentGroupAdmin) -> None:
    answer_with(admin, ConsumerGroupTopicPartitions("g", [ConfluentPartition("t", 1, 5), ConfluentPartition("t", 0, -1001)]))

    assert admin.list_committed_offsets(["g"]).values == {"g": {P1: OffsetAndMetadata(5)}}


def listed(
    state: ConsumerGroupState = ConsumerGroupState.EMPTY, kind: ConsumerGroupType | None = ConsumerGroupType.CLASSIC
) -> GroupListing:
    return confluent.listing(SimpleNamespace(group_id="g", is_simple_consumer_group=False, state=state, type=kind))


def test_every_state_has_kafkas_spelling() -> None:
    known = {each: listed(state=each).state for each in ConsumerGroupState}

    assert {each.name for each, found in known.items() if found is GroupState.UNKNOWN} <= {"UNKNOWN", "UNKOWN"}


def test_every_type_has_kafkas_spelling() -> None:
    assert {listed(kind=each).type for each in ConsumerGroupType} == {
        GroupType.UNKNOWN,
        GroupType.CONSUMER,
        GroupType.CLASSIC,
    }
    assert listed(kind=None).type is GroupType.UNKNOWN


@pytest.mark.parametrize("offset", [OffsetAndMetadata(3), OffsetAndMetadata(0, "note"), OffsetAndMetadata(7, "", 0)])
def test_an_offset_survives_the_way_there_and_back(offset: OffsetAndMetadata) -> None:
    made = confluent.to_commit(TopicPartition("t", 1), offset)

    assert (made.topic, made.partition) == ("t", 1)
    assert confluent.committed(made) == offset


def test_the_users_properties_win_and_those_of_consumers_are_left_out() -> None:
    config = client_config({"bootstrap.servers": "a:1", "client.id": "me", "group.id": "g", "reconnect.backoff.ms": "9"})

    assert config["client.id"] == "me"
    assert config["reconnect.backoff.ms"] == "9"
    assert "group.id" not in config
    assert config["log_level"] == 0


def test_debugging_librdkafka_needs_its_log() -> None:
    assert client_config({"debug": "admin"})["log_level"] == "7"
    assert client_config({"debug": "admin", "log_level": "3"})["log_level"] == "3"
