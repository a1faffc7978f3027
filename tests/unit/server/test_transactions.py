"""Transactional ids, their epochs, and what they leave in a partition."""

from __future__ import annotations

from pathlib import Path

from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.serde.record_batch import Record, build_batch, build_marker, parse_header, place
from kgctl.server.partition_data import AbortedTransaction, TransactionIndex
from kgctl.server.transactions import MAX_EPOCH, ProducerIdentity, Producers, Transactions
from kgctl.storage.files import Documents

T0 = TopicPartition("t", 0)
NEWCOMER = ProducerIdentity("tx", -1, -1)


def documents(folder: Path | None) -> Documents:
    """The small files of a folder, read."""
    found = Documents(folder)
    if folder is not None:
        assert list(found.problems({})) == []
    return found


def begun(folder: Path | None = None) -> Transactions:
    transactions = Transactions(Producers(first_id=10), documents(folder))
    transactions.init(NEWCOMER, 1_000)
    return transactions


def initialized(transactions: Transactions, epoch: int | None = None) -> tuple[int, int] | None:
    """What a producer gets that says this epoch, or none at all."""
    identity = NEWCOMER if epoch is None else ProducerIdentity("tx", 10, epoch)
    found = transactions.init(identity, 1_000)
    return None if found is None else (found.producer_id, found.epoch)


def test_an_id_gets_a_producer_id_and_then_new_epochs() -> None:
    assert initialized(begun()) == (10, 1)


def test_a_producer_that_did_not_hear_of_its_epoch_gets_it_again() -> None:
    transactions = begun()

    assert initialized(transactions, 0) == (10, 1)
    assert initialized(transactions, 0) == (10, 1)
    assert initialized(transactions, 1) == (10, 2)
    assert initialized(transactions, 0) is None
    assert initialized(transactions, 7) is None


def test_a_newcomer_fences_everybody_before_it() -> None:
    transactions = begun()

    assert initialized(transactions) == (10, 1)
    assert initialized(transactions, 0) is None


def test_a_producer_whose_transaction_was_aborted_for_it_gets_the_epoch_of_that() -> None:
    transactions = begun()
    entry = transactions.get("tx")
    assert entry is not None
    transactions.add(entry, [T0], 5_000)
    transactions.begin_end(entry, committed=False, bump=True)
    transactions.finish_end(entry)

    assert initialized(transactions, 0) == (10, 1)


def test_another_producers_id_is_fenced() -> None:
    assert begun().init_error(ProducerIdentity("tx", 11, 0), 1_000) is ErrorCode.PRODUCER_FENCED
    assert begun().init_error(ProducerIdentity("tx", 10, 9), 1_000) is ErrorCode.NONE


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    transactions = begun()
    entry = transactions.get("tx")
    assert entry is not None
    entry.epoch = MAX_EPOCH

    assert initialized(transactions) == (11, 0)


def test_only_the_newest_producer_is_known() -> None:
    find = begun().find

    assert find(ProducerIdentity("tx", 10, 0))[1] is ErrorCode.NONE
    assert find(ProducerIdentity("", 10, 0))[1] is ErrorCode.INVALID_REQUEST
    assert find(ProducerIdentity("other", 10, 0))[1] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert find(ProducerIdentity("tx", 11, 0))[1] is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert find(ProducerIdentity("tx", 10, 1))[1] is ErrorCode.PRODUCER_FENCED


def test_an_open_transaction_is_overdue_after_its_timeout() -> None:
    transactions = begun()
    entry = transactions.get("tx")
    assert entry is not None
    transactions.add(entry, [T0], 5_000)
    transactions.add(entry, [TopicPartition("t", 1)], 5_900)

    assert transactions.overdue(6_000) == []
    assert transactions.overdue(6_001) == [entry]


def test_everything_is_there_after_a_restart_and_a_decided_end_is_not_forgotten(tmp_path: Path) -> None:
    transactions = begun(tmp_path)
    entry = transactions.get("tx")
    assert entry is not None
    transactions.add(entry, [T0], 5_000)
    transactions.begin_end(entry, committed=True, bump=True)
    again = Transactions(Producers(first_id=90), documents(tmp_path))

    assert again.get("tx") == entry
    assert again.touched == {T0}
    assert entry.ending is True


def data(first: int, count: int, producer_id: int) -> bytes:
    records = [Record(first + number, 0, None, b"v") for number in range(count)]
    return build_batch(records, producer_id=producer_id, producer_epoch=0, is_transactional=True)


def test_the_index_of_a_log_is_the_same_read_at_once_or_batch_by_batch() -> None:
    log = (
        data(0, 2, 7)
        + data(2, 1, 8)
        + place(build_marker(TransactionMarker(7, 0, committed=False), 3, 0), 3, 0)
        + place(build_marker(TransactionMarker(8, 0, committed=True), 4, 0), 4, 0)
        + data(5, 1, 9)
    )
    at_once, live = TransactionIndex(), TransactionIndex()

    assert at_once.read(log) == 6

    for first, count, producer_id in ((0, 2, 7), (2, 1, 8)):
        live.wrote(parse_header(data(first, count, producer_id)), first)
    live.ended(TransactionMarker(7, 0, committed=False), 3)
    live.ended(TransactionMarker(8, 0, committed=True), 4)
    live.wrote(parse_header(data(5, 1, 9)), 5)

    assert live == at_once
    assert live == TransactionIndex({9: 5}, [AbortedTransaction(7, 0, 3)])
    assert live.stable_offset(6) == 5
    assert live.aborted_between(0, 6) == live.aborted
    assert live.aborted_between(4, 6) == []
    assert TransactionIndex().stable_offset(6) == 6
