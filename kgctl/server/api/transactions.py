"""The APIs of transactional producers, and what ends a transaction: markers into partitions, then into the coordinator's log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.coordinator_records import TransactionMarker
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.model.requests import Done, EndTransaction, OffsetCommitPartition, TxnOffsetCommit
from kgctl.server.api.fields import TopicErrors, known_to, refuse, transaction_of
from kgctl.server.api.offset_commit import commit_in_pieces, fills_more_than_a_batch
from kgctl.server.cluster import INTERNAL_TOPICS, OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Answer, Values
from kgctl.server.traffic import Work, all_of, each, waited
from kgctl.server.transactions import ProducerIdentity, Transaction

if TYPE_CHECKING:
    from kgctl.server.request_context import Services


def end_transaction(services: Services, transaction: Transaction, render: Callable[[], Values]) -> Answer:
    """Write the markers of the outcome that was decided; ``render`` makes the answer when all of them are written.

    Where one cannot be written the answer is the same, as in Kafka, which answers when the outcome is kept: `finish_unfinished`
    goes on with it, and the producer's requests are answered CONCURRENT_TRANSACTIONS until then.
    """
    result = finish(services, transaction)
    if isinstance(result, Awaitable):
        return _rendered(result, render)
    return render()


async def _rendered(finished: Awaitable[object], render: Callable[[], Values]) -> Values:
    await finished
    return render()


def abort(services: Services, transaction: Transaction) -> Awaitable[None] | None:
    """Abort for the producer: it was replaced, was too slow, or its server died. It is fenced. Raises `StorageError`."""
    services.transactions.begin_end(transaction, committed=False, bump=True)
    return finish(services, transaction)


def finish(services: Services, transaction: Transaction) -> Awaitable[None] | None:
    """Carry out an end that was decided, as far as it can be written; the rest is for `finish_unfinished`."""
    services.transactions.unfinished.discard(transaction.transactional_id)
    try:
        request = _write_markers(services, transaction)
    except StorageError as error:
        _leave_unfinished(services, transaction, error)
        return None
    result = Done() if request is None else services.runtime.result(request)
    if isinstance(result, Awaitable):
        return _finished_later(services, transaction, result)
    _finished(services, transaction, result)
    return None


async def _finished_later(services: Services, transaction: Transaction, result: Awaitable[Any]) -> None:
    _finished(services, transaction, await result)


def _finished(services: Services, transaction: Transaction, result: Any) -> None:
    if result.error is not ErrorCode.NONE:
        services.transactions.unfinished.add(transaction.transactional_id)
        return
    try:
        services.transactions.finish_end(transaction)
    except StorageError as error:
        _leave_unfinished(services, transaction, error)


def _leave_unfinished(services: Services, transaction: Transaction, error: StorageError) -> None:
    services.data.storage_failed(error)
    services.transactions.unfinished.add(transaction.transactional_id)


async def finish_unfinished(services: Services) -> None:
    """Go on with ends that could not be written everywhere."""
    for transactional_id in list(services.transactions.unfinished):
        transaction = services.transactions.get(transactional_id)
        services.transactions.unfinished.discard(transactional_id)
        if transaction is not None and transaction.ending is not None:
            await _done_with(finish(services, transaction))


def recover(services: Services) -> None:
    """At a start: learn what is open in the logs, and carry out what was decided before the server ended."""
    for partition in sorted(services.transactions.touched):
        if partition.topic != OFFSETS_TOPIC and services.catalog.has_partition(partition):
            services.data.index_transactions(partition)
    for transaction in services.transactions:
        if transaction.ending is not None:
            services.transactions.unfinished.add(transaction.transactional_id)


async def abort_overdue(services: Services) -> None:
    """Abort what has been open for longer than its producer said that it would be."""
    for transaction in services.transactions.overdue(services.runtime.clock()):
        await _done_with(abort(services, transaction))


async def _done_with(work: Awaitable[None] | None) -> None:
    if work is not None:
        await work


def _write_markers(services: Services, transaction: Transaction) -> EndTransaction | None:
    """Markers into the topics; the request that does the same for committed offsets, where there are any."""
    committed = bool(transaction.ending)
    marker = TransactionMarker(transaction.producer_id, transaction.epoch, committed)
    for partition in sorted(transaction.partitions):
        if partition.topic != OFFSETS_TOPIC and services.catalog.has_partition(partition):
            services.data.append_marker(partition, marker, services.runtime.clock())
    if not any(partition.topic == OFFSETS_TOPIC for partition in transaction.partitions):
        return None
    return EndTransaction(
        request_id=services.runtime.next_request_id(),
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        committed=committed,
    )


INIT_FENCED_SINCE = 4


NONE_YET = -1


def init_producer_id(context: RequestContext, body: Any) -> Work[Values]:
    """A new producer id, or the next epoch of a transactional id, whose earlier producer is fenced."""
    known_id, known_epoch = getattr(body, "producer_id", NONE_YET), getattr(body, "producer_epoch", NONE_YET)
    error = _right_to_begin(context, body.transactional_id)
    if error is ErrorCode.NONE and (known_id == NONE_YET) != (known_epoch == NONE_YET):
        error = ErrorCode.INVALID_REQUEST
    if error is not ErrorCode.NONE:
        return _refused(context, error)
    if body.transactional_id is None:
        return {"error_code": ErrorCode.NONE, "producer_id": context.services.producers.new_id(), "producer_epoch": 0}
    transactions = context.services.transactions
    timeout_ms = body.transaction_timeout_ms
    identity = ProducerIdentity(body.transactional_id, known_id, known_epoch)
    error = transactions.init_error(identity, timeout_ms)
    if error is not ErrorCode.NONE:
        return _refused(context, error)
    known = transactions.get(body.transactional_id)
    if known is not None and known.is_ongoing and known.ending is None:
        # As Kafka does before it looks at the epoch: a fenced producer ends what is open, too.
        yield from waited(abort(context.services, known))
        known = transactions.get(body.transactional_id)
    if known is not None and known.ending is not None:
        return _refused(context, ErrorCode.CONCURRENT_TRANSACTIONS)
    transaction = transactions.init(identity, timeout_ms)
    if transaction is None:
        return _refused(context, ErrorCode.PRODUCER_FENCED)
    return {"error_code": ErrorCode.NONE, "producer_id": transaction.producer_id, "producer_epoch": transaction.epoch}


def _right_to_begin(context: RequestContext, name: str | None) -> ErrorCode:
    if name is not None:
        is_allowed = context.may(AclOperation.WRITE, Resource.TRANSACTIONAL_ID, name)
        return ErrorCode.NONE if is_allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    is_allowed = context.may(AclOperation.IDEMPOTENT_WRITE, Resource.CLUSTER) or context.may_with_any(
        AclOperation.WRITE, Resource.TOPIC
    )
    return ErrorCode.NONE if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


UNWRITTEN = ErrorCode.NOT_COORDINATOR
"""Kafka's answer where the log of transactions cannot be written (TransactionStateManager#appendTransactionToLog): try again."""


def _unwritten_producer(_context: RequestContext, _body: Any) -> Values:
    return {"error_code": UNWRITTEN, "producer_id": -1, "producer_epoch": -1}


def _refused(context: RequestContext, error: ErrorCode) -> Values:
    if error is ErrorCode.PRODUCER_FENCED and context.version < INIT_FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return {"error_code": error, "producer_id": -1, "producer_epoch": -1}


INIT_PRODUCER_ID = ApiSpec(22, "InitProducerId", 0, 5, init_producer_id, storage_failed=_unwritten_producer)


BATCHED_SINCE = 4


def add_partitions(context: RequestContext, body: Any) -> Work[Values]:
    """All partitions of a transaction are added, or none."""
    if context.version >= BATCHED_SINCE:
        return {"results_by_transaction": (yield from all_of(_transaction(context, entry) for entry in body.transactions))}
    identity = ProducerIdentity(
        body.v3_and_below_transactional_id, body.v3_and_below_producer_id, body.v3_and_below_producer_epoch
    )
    results = yield from _results(context, identity, body.v3_and_below_topics, verify_only=False)
    return {"results_by_topic_v3_and_below": results}


def _transaction(context: RequestContext, entry: Any) -> Work[dict[str, Any]]:
    identity = ProducerIdentity(entry.transactional_id, entry.producer_id, entry.producer_epoch)
    yield None
    results = yield from _results(context, identity, entry.topics, verify_only=entry.verify_only)
    return {"transactional_id": entry.transactional_id, "topic_results": results}


def _results(
    context: RequestContext, identity: ProducerIdentity, topics: Any, *, verify_only: bool
) -> Work[list[dict[str, Any]]]:
    problems: dict[TopicPartition, ErrorCode] = {}
    for topic in topics:
        may_write = context.version >= BATCHED_SINCE or context.may(AclOperation.WRITE, Resource.TOPIC, topic.name)
        may_write = may_write and topic.name not in INTERNAL_TOPICS
        for partition in (TopicPartition(topic.name, number) for number in topic.partitions):
            is_there = context.services.catalog.has_partition(partition)
            known = ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            problems[partition] = known if may_write else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            yield None
        yield None
    errors = _errors(context, identity, problems, verify_only=verify_only)
    results = []
    for topic in topics:
        partitions = yield from each(topic.partitions, partial(_result, errors, topic.name))
        results.append({"name": topic.name, "results_by_partition": partitions})
        yield None
    return results


def _unwritten_partitions(context: RequestContext, body: Any) -> Values:
    if context.version < BATCHED_SINCE:
        return {"results_by_topic_v3_and_below": _all_unwritten(body.v3_and_below_topics)}
    results = [
        {"transactional_id": entry.transactional_id, "topic_results": _all_unwritten(entry.topics)} for entry in body.transactions
    ]
    return {"results_by_transaction": results}


def _all_unwritten(topics: Any) -> list[dict[str, Any]]:
    def partitions(topic: Any) -> list[dict[str, Any]]:
        return [{"partition_index": number, "partition_error_code": UNWRITTEN} for number in topic.partitions]

    return [{"name": topic.name, "results_by_partition": partitions(topic)} for topic in topics]


def _result(errors: Mapping[TopicPartition, ErrorCode], topic: str, partition: int) -> dict[str, Any]:
    return {"partition_index": partition, "partition_error_code": errors[TopicPartition(topic, partition)]}


def _errors(
    context: RequestContext, identity: ProducerIdentity, problems: Mapping[TopicPartition, ErrorCode], *, verify_only: bool
) -> dict[TopicPartition, ErrorCode]:
    transactions, partitions = context.services.transactions, list(problems)
    name = identity.transactional_id
    if context.version < BATCHED_SINCE and not context.may(AclOperation.WRITE, Resource.TRANSACTIONAL_ID, name):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if any(problems.values()):
        return {partition: problem or ErrorCode.OPERATION_NOT_ATTEMPTED for partition, problem in problems.items()}
    transaction, error = known_to(context, *transactions.find(identity))
    if transaction is None:
        return dict.fromkeys(partitions, error)
    if verify_only:
        return {
            partition: ErrorCode.NONE if partition in transaction.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }
    transactions.add(transaction, partitions, context.services.runtime.clock())
    return dict.fromkeys(partitions, ErrorCode.NONE)


ADD_PARTITIONS_TO_TXN = ApiSpec(
    *(24, "AddPartitionsToTxn", 0, 5, add_partitions),
    storage_failed=_unwritten_partitions,
    right=ClusterRight(AclOperation.CLUSTER_ACTION, refuse, since=BATCHED_SINCE),
)


def add_offsets(context: RequestContext, body: Any) -> Values:
    """What is added is the partition of ``__consumer_offsets`` that the group's commits go to."""
    transaction, error = transaction_of(context, body)
    may_use = context.may(AclOperation.READ, Resource.GROUP, body.group_id)
    if not may_use and error is not ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return {"error_code": ErrorCode.GROUP_AUTHORIZATION_FAILED}
    if transaction is not None:
        partition = context.services.cluster.offsets_partition(body.group_id)
        context.services.transactions.add(transaction, [partition], context.services.runtime.clock())
    return {"error_code": error}


ADD_OFFSETS_TO_TXN = ApiSpec(25, "AddOffsetsToTxn", 0, 4, add_offsets, storage_failed=lambda *_: {"error_code": UNWRITTEN})


ABORTABLE_SINCE = 4
"""From this version on a client knows that there are errors after which it has to abort."""
IMPLICIT_SINCE = 5
"""From this version on (KIP-890) the group need not have been added to the transaction before."""


def txn_offset_commit(context: RequestContext, body: Any) -> Work[Answer]:
    """Unknown topics and partitions are answered here, as for OffsetCommit."""
    errors = TopicErrors()
    partitions: list[OffsetCommitPartition] = []
    refused = _right_to_commit(context, body)
    for topic in body.topics:
        error = refused or _right_to_read(context, topic.name)
        for entry in topic.partitions:
            partition = TopicPartition(topic.name, entry.partition_index)
            if error:
                errors.add(topic.name, None, entry.partition_index, error)
            elif context.services.catalog.has_partition(partition):
                partitions.append(_to_core(partition, entry))
            else:
                errors.add(topic.name, None, entry.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            yield None
        yield None
    if not partitions:
        return {"topics": errors.topics()}
    error = context.not_coordinator(body.group_id) or _transaction_error(context, body)
    if error is not ErrorCode.NONE:
        yield from errors.merge([(TopicPartition(partition.topic, partition.partition), error) for partition in partitions], {})
        return {"topics": errors.topics()}
    too_large = yield from fills_more_than_a_batch(context, body.group_id, partitions)
    request = partial(_request, context, body, is_too_large=too_large)
    return (yield from commit_in_pieces(context, partitions, request, errors, {}))


def _right_to_commit(context: RequestContext, body: Any) -> ErrorCode:
    if not context.may(AclOperation.WRITE, Resource.TRANSACTIONAL_ID, body.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    is_allowed = context.may(AclOperation.READ, Resource.GROUP, body.group_id)
    return ErrorCode.NONE if is_allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _right_to_read(context: RequestContext, topic: str) -> ErrorCode:
    is_allowed = context.may(AclOperation.READ, Resource.TOPIC, topic)
    return ErrorCode.NONE if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED


def _transaction_error(context: RequestContext, body: Any) -> ErrorCode:
    if not body.group_id:
        return ErrorCode.INVALID_GROUP_ID
    transaction, error = transaction_of(context, body)
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error
    partition = context.services.cluster.offsets_partition(body.group_id)
    if partition in transaction.partitions:
        return ErrorCode.NONE
    if context.version < IMPLICIT_SINCE:
        return ErrorCode.INVALID_TXN_STATE if context.version < ABORTABLE_SINCE else ErrorCode.TRANSACTION_ABORTABLE
    context.services.transactions.add(transaction, [partition], context.services.runtime.clock())
    return ErrorCode.NONE


def _unwritten_offsets(_context: RequestContext, body: Any) -> Values:
    errors = TopicErrors()
    for topic in body.topics:
        for entry in topic.partitions:
            errors.add(topic.name, None, entry.partition_index, UNWRITTEN)
    return {"topics": errors.topics()}


def _to_core(partition: TopicPartition, entry: Any) -> OffsetCommitPartition:
    return OffsetCommitPartition(
        topic=partition.topic,
        partition=partition.partition,
        offset=entry.committed_offset,
        leader_epoch=getattr(entry, "committed_leader_epoch", -1),
        metadata=entry.committed_metadata,
    )


def _request(
    context: RequestContext, body: Any, partitions: list[OffsetCommitPartition], *, is_too_large: bool
) -> TxnOffsetCommit:
    return TxnOffsetCommit(
        **context.core(),
        group_id=body.group_id,
        producer_id=body.producer_id,
        producer_epoch=body.producer_epoch,
        generation_id=getattr(body, "generation_id", -1),
        member_id=getattr(body, "member_id", ""),
        group_instance_id=getattr(body, "group_instance_id", None),
        partitions=tuple(partitions),
        is_too_large=is_too_large,
    )


TXN_OFFSET_COMMIT = ApiSpec(28, "TxnOffsetCommit", 0, 5, txn_offset_commit, storage_failed=_unwritten_offsets)


NEW_EPOCH_SINCE = 5


def end_txn(context: RequestContext, body: Any) -> Answer:
    transaction, error = transaction_of(context, body)
    if transaction is None:
        return {"error_code": error, "producer_id": -1, "producer_epoch": -1}
    bump = context.version >= NEW_EPOCH_SINCE
    if not transaction.is_ongoing:
        return _nothing_to_end(context, transaction, committed=body.committed, bump=bump)
    context.services.transactions.begin_end(transaction, committed=body.committed, bump=bump)
    return end_transaction(context.services, transaction, lambda: _done(transaction, bump=bump))


def _nothing_to_end(context: RequestContext, transaction: Transaction, *, committed: bool, bump: bool) -> Values:
    """The same end sent again is fine; so is, with KIP-890, an abort of nothing."""
    if bump and not committed:
        context.services.transactions.begin_end(transaction, committed=False, bump=True)
        context.services.transactions.finish_end(transaction)
        return _done(transaction, bump=True)
    if not bump and transaction.last_outcome is committed:
        return _done(transaction, bump=False)
    return {"error_code": ErrorCode.INVALID_TXN_STATE, "producer_id": -1, "producer_epoch": -1}


def _done(transaction: Transaction, *, bump: bool) -> Values:
    return {
        "error_code": ErrorCode.NONE,
        "producer_id": transaction.producer_id if bump else -1,
        "producer_epoch": transaction.epoch if bump else -1,
    }


END_TXN = ApiSpec(26, "EndTxn", 0, 5, end_txn, storage_failed=_unwritten_producer)
