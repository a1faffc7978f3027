"""What a cluster answered, as results by group or by partition; failures have a sentence."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from kgctl.admin import GroupResults, ItemError, PartitionResults, Results, item_error
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import TopicPartition
from kgctl.wire.asking import LEFT_OUT, Failure

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")

_OWN_WORDS = frozenset(
    {
        *(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION),
        *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNSUPPORTED_VERSION),
    }
)
"""Errors whose message was made by kgctl's own connection, and says more than the general sentence."""


def group_results(answers: Mapping[str, R | Failure]) -> GroupResults[R]:
    """Results by group id, in the order of ``answers``."""
    return _results(answers, lambda failure, group: explained(failure, group=group))


def partition_results(answers: Mapping[TopicPartition, R | Failure], group: str | None = None) -> PartitionResults[R]:
    """Results by partition, in the order of ``answers``."""
    return _results(answers, lambda failure, partition: explained(failure, group=group, partition=partition))


def results_of_each(
    group: str, wanted: Iterable[TopicPartition], answer: Any, read: Callable[[Any], Mapping[TopicPartition, Failure | None]]
) -> PartitionResults[None]:
    """Results of a change of a group's partitions: what ``read`` finds in the answer, or its failure as a whole on each."""
    if isinstance(answer, Failure):
        return partition_results(dict.fromkeys(wanted, answer), group)
    found = read(answer)
    return partition_results({partition: found.get(partition, LEFT_OUT) for partition in wanted}, group)


def _results(answers: Mapping[K, R | Failure], told: Callable[[Failure, K], ItemError]) -> Results[K, R]:
    values = {key: answer for key, answer in answers.items() if not isinstance(answer, Failure)}
    return Results(values, {key: told(answer, key) for key, answer in answers.items() if isinstance(answer, Failure)})


def explained(
    failure: Failure, *, group: str | None = None, partition: TopicPartition | None = None, member: str | None = None
) -> ItemError:
    """Return the failure with one sentence of explanation."""
    if failure.message and failure.code in _OWN_WORDS:
        return ItemError(failure.code, failure.message, failure.nothing_sent)
    return item_error(failure.code, group=group, partition=partition, member=member, detail=failure.message)
