"""Sequences of idempotent producers, as Kafka's ProducerAppendInfo checks them."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.server.transactions import Producers, ProducerWrite, SequenceCheck

T0 = TopicPartition("t", 0)
OK = SequenceCheck()
OUT_OF_ORDER = SequenceCheck(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def write(sequence: int, count: int = 2, *, epoch: int = 0, producer_id: int = 7) -> ProducerWrite:
    return ProducerWrite(T0, producer_id, epoch, sequence, count)


def with_batches(*writes: ProducerWrite) -> Producers:
    producers = Producers(first_id=100)
    for offset, batch in enumerate(writes):
        assert producers.check(batch) == OK
        producers.appended(batch, offset * 10)
    return producers


def test_ids_are_new_each_time() -> None:
    producers = Producers(first_id=100)

    assert [producers.new_id(), producers.new_id()] == [100, 101]


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    assert Producers(1).check(write(40)) == OK


def test_batches_follow_one_another() -> None:
    producers = with_batches(write(0), write(2))

    assert producers.check(write(4)) == OK
    assert producers.check(write(5)) == OUT_OF_ORDER
    assert producers.check(write(3)) == OUT_OF_ORDER


def test_a_batch_sent_again_has_the_offset_of_its_first_copy() -> None:
    producers = with_batches(write(0), write(2), write(4))

    assert producers.check(write(2)) == SequenceCheck(duplicate_of=10)


def test_only_the_last_five_batches_are_remembered() -> None:
    producers = with_batches(*(write(2 * number) for number in range(6)))

    assert producers.check(write(0)) == OUT_OF_ORDER
    assert producers.check(write(2)) == SequenceCheck(duplicate_of=10)


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    producers = with_batches(write(0), write(0, epoch=1))

    assert producers.check(write(2)) == SequenceCheck(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert producers.check(write(2, epoch=1)) == OK
    assert producers.check(write(2, epoch=2)) == OUT_OF_ORDER


def test_sequences_wrap_around_after_the_largest_int32() -> None:
    producers = with_batches(write(2**31 - 1, 2))

    assert producers.check(write(1)) == OK


def test_a_deleted_topic_is_forgotten() -> None:
    producers = with_batches(write(0))
    producers.forget("t")

    assert producers.check(write(40)) == OK
