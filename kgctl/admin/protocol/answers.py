"""From what the cluster answered for each thing to results and errors side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from kgctl.admin.results import GroupResults, ItemError, PartitionResults, Results, item_error
from kgctl.model.error_codes import ErrorCode
from kgctl.model.partitions import TopicPartition
from kgctl.wire.routing import Failure

R = TypeVar("R")

_OWN_WORDS = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Errors whose message was made by kgctl's own connection, and says more than the general sentence."""


def group_results(answers: Mapping[str, R | Failure]) -> GroupResults[R]:
    """Results by group id, in the order of ``answers``."""
    values: dict[str, R] = {}
    errors: dict[str, ItemError] = {}
    for group, answer in answers.items():
        if isinstance(answer, Failure):
            errors[group] = explained(answer, group=group)
        else:
            values[group] = answer
    return Results(values, errors)


def partition_results(answers: Mapping[TopicPartition, R | Failure], group: str | None = None) -> PartitionResults[R]:
    """Results by partition, in the order of ``answers``."""
    values: dict[TopicPartition, R] = {}
    errors: dict[TopicPartition, ItemError] = {}
    for partition, answer in answers.items():
        if isinstance(answer, Failure):
            errors[partition] = explained(answer, group=group, partition=partition)
        else:
            values[partition] = answer
    return Results(values, errors)


def explained(
    failure: Failure, *, group: str | None = None, partition: TopicPartition | None = None, member: str | None = None
) -> ItemError:
    """The failure with one sentence."""
    if failure.message and failure.code in _OWN_WORDS:
        return ItemError(failure.code, failure.message)
    return item_error(failure.code, group=group, partition=partition, member=member, detail=failure.message)
