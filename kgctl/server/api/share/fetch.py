"""ShareFetch (KIP-932): records for one member of a share group, with acknowledgements of those before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kgctl.model.error_codes import ErrorCode
from kgctl.model.share import READ_COMMITTED
from kgctl.server.api.fields import unsupported
from kgctl.server.api.share.acknowledging import (
    RENEW_SINCE,
    Acknowledging,
    Named,
    ShareLeaders,
    acknowledge,
    by_topic,
    cannot_tell,
    lock_timeout_ms,
    manager_of,
    named,
    partition_problem,
    refusal,
)
from kgctl.server.request_context import SHARE_VERSION, ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.share.fetching import FetchWish, Granted, ShareFetch
from kgctl.server.share.manager import WholeRequestFailed
from kgctl.server.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    SessionRefused,
    ShareConnection,
    ShareSession,
    TopicIdPartition,
    next_epoch,
)
from kgctl.server.traffic import Work
from kgctl.share.partition import AcquireMode, ShareFailure

_IS_SET_TO_0 = ("max_bytes", "min_bytes", "max_records", "max_wait_ms")
"""What a request that renews locks asks for none of: it is answered at once."""

Given = Mapping[TopicIdPartition, Granted]
Told = Mapping[TopicIdPartition, ShareFailure | None]


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """Look into the session, acknowledge, wait for records, and say what has changed.

    What is given back can be acquired when it is written, which the fetch does not wait for: what comes next may go first.
    """
    is_renewal = context.version >= RENEW_SINCE and body.is_renew_ack
    error = refusal(context, body)
    if error is None and is_renewal and any(getattr(body, name) for name in _IS_SET_TO_0):
        error = ErrorCode.INVALID_REQUEST
    if error is not None:
        return {"error_code": error}
    entries = yield from named(context, body.topics)
    forgotten = yield from named(context, body.forgotten_topics_data)
    try:
        session, partitions = _session(context, body, entries, forgotten)
        if cannot_tell(context, [name.topic for name in (*partitions, *(name for name, _ in entries))]):
            return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}
        begun = Acknowledging({}, {})
        if _acknowledges(entries):
            begun = yield from acknowledge(context, body, entries)
        given: Given = {} if is_renewal else (yield from _fetched(context, body, partitions))
        told: Told = yield from begun.end()
    except WholeRequestFailed as failed:
        return {"error_code": failed.error}
    except SessionRefused as refused:
        if refused.error is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            yield asyncio.sleep(max(body.max_wait_ms, 0) / 1000)
        return {"error_code": refused.error}
    answer = yield from _answer(context, body, session, given, told)
    if body.share_session_epoch == FINAL_EPOCH:
        manager_of(context).release_session(SessionKey(body.group_id, body.member_id))
    return answer


def _acknowledges(entries: Sequence[tuple[Named, Any]]) -> bool:
    return any(entry.acknowledgement_batches for _, entry in entries)


def _session(
    context: RequestContext, body: Any, entries: Sequence[tuple[Named, Any]], forgotten: Sequence[tuple[Named, Any]]
) -> tuple[ShareSession | None, list[Named]]:
    """The session that goes on, None for one that begins or ends; and what is fetched. Raises `SessionRefused`.

    Kafka: SharePartitionManager#newContext.
    """
    sessions, who, epoch = manager_of(context).sessions, SessionKey(body.group_id, body.member_id), body.share_session_epoch
    wanted = [name for name, _ in entries]
    if epoch == FINAL_EPOCH:
        if sessions.get(who) is None:
            raise SessionRefused(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return None, []
    if epoch == INITIAL_EPOCH:
        if _acknowledges(entries):
            raise SessionRefused(ErrorCode.INVALID_REQUEST)
        sessions.open(who, [(*name,) for name in wanted], _connection(context))
        return None, wanted
    session = sessions.of_request(who, epoch)
    session.update(((*name,) for name in wanted), (name.partition for name, _ in forgotten))
    session.epoch = next_epoch(epoch)
    return session, [Named(partition, known.topic) for partition, known in session.partitions.items()]


def _connection(context: RequestContext) -> ShareConnection:
    client = context.session
    client.share_connection = client.share_connection or ShareConnection()
    return client.share_connection


def _fetched(context: RequestContext, body: Any, partitions: Sequence[Named]) -> Work[Given]:
    """What there is of each partition, or why there is nothing."""
    failed: dict[TopicIdPartition, Granted] = {}
    wanted: list[TopicIdPartition] = []
    for partition, topic in partitions:
        problem = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else partition_problem(context, topic, partition)
        if problem is None:
            wanted.append(partition)
        else:
            failed[partition] = Granted(problem)
        yield None
    if not wanted:
        return failed
    wish = _wish(context, body, _rotated(wanted, body.share_session_epoch))
    given: Given = yield ShareFetch(manager_of(context), wish).run()
    return {**given, **failed}


def _rotated(partitions: list[TopicIdPartition], epoch: int) -> list[TopicIdPartition]:
    """Begin elsewhere with each request, so that none is always last. Kafka: PartitionRotateStrategy."""
    at = epoch % len(partitions) if epoch >= 1 else 0
    return partitions[at:] + partitions[:at]


def _wish(context: RequestContext, body: Any, partitions: Sequence[TopicIdPartition]) -> FetchWish:
    max_bytes = min(body.max_bytes, context.services.config.fetch_max_bytes)
    return FetchWish(
        who=SessionKey(body.group_id, body.member_id),
        partitions=partitions,
        max_wait_ms=body.max_wait_ms,
        min_bytes=min(body.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_records=body.max_records,
        batch_size=body.batch_size,
        mode=_mode(body),
        is_read_committed=manager_of(context).group_settings(body.group_id).share_isolation_level == READ_COMMITTED,
    )


def _mode(body: Any) -> AcquireMode:
    try:
        return AcquireMode(getattr(body, "share_acquire_mode", AcquireMode.BATCH_OPTIMIZED))
    except ValueError:
        raise WholeRequestFailed(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _answer(context: RequestContext, body: Any, session: ShareSession | None, given: Given, told: Told) -> Work[Values]:
    """What was fetched and what came of the acknowledgements, by partition."""
    leaders, answers = ShareLeaders(context), {}
    error = ErrorCode.NONE
    if session is not None and session.epoch != next_epoch(body.share_session_epoch):  # the same request came twice
        error, given = ErrorCode.INVALID_SHARE_SESSION_EPOCH, {}
    if any(_has_no_name(context, partition, granted) for partition, granted in given.items()):
        return {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR}
    for partition, granted in given.items():
        leader = leaders.of(partition, granted.error)
        has_error = granted.error is not ErrorCode.NONE
        if session is None or session.answers(partition, has_records=bool(granted.records), has_error=has_error):
            answers[partition] = _fetched_partition(granted, leader)
        yield None
    for partition, failure in told.items():
        entry = answers.setdefault(partition, _fetched_partition(Granted(), leaders.of(partition, ErrorCode.NONE)))
        if failure is not None:
            entry |= {"acknowledge_error_code": failure.error, "acknowledge_error_message": failure.message}
        yield None
    return {
        "error_code": error,
        "acquisition_lock_timeout_ms": lock_timeout_ms(context, body.group_id),
        "responses": by_topic(answers),
        "node_endpoints": leaders.endpoints(),
    }


def _has_no_name(context: RequestContext, partition: TopicIdPartition, granted: Granted) -> bool:
    """Whether Kafka fails to count the bytes of an answer, for which it needs the name of a topic that is not there.

    Kafka: KafkaApis#processShareFetchResponse, BrokerTopicStats#updateBytesOut.
    """
    return context.services.catalog.by_id(partition.topic_id) is None and granted.error is not ErrorCode.NONE


def _fetched_partition(granted: Granted, leader: Values) -> Values:
    return {
        "error_code": granted.error,
        "current_leader": leader,
        "records": granted.records,
        "acquired_records": [
            {"first_offset": each.first_offset, "last_offset": each.last_offset, "delivery_count": each.delivery_count}
            for each in granted.acquired.records
        ],
    }


SPEC = ApiSpec(78, "ShareFetch", 1, 2, handle, feature=SHARE_VERSION, when_off=unsupported)
