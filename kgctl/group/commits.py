"""Commits of a live member's generations, over a connection of their own: a JoinGroup that is held back holds up what follows."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from kgctl.errors import AuthError, CommitError, KgctlError, UnreachableError
from kgctl.group.driver import Driver
from kgctl.group.generation import Generation, Offsets
from kgctl.group.lines import CoordinatorConnection
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import Node, OffsetAndMetadata, TopicPartition
from kgctl.model.requests import OffsetCommit, OffsetCommitPartition, PartitionErrors
from kgctl.wire.settings import WireSettings

PASSING = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
OVERTAKEN = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.REBALANCE_IN_PROGRESS})
PAUSE_S = 0.1


class Commits:
    """Commits in the name of generations; from any thread, one at a time. What passes is tried again within ``timeout_ms``."""

    def __init__(self, driver: Driver, settings: WireSettings, timeout_ms: int) -> None:
        self._driver = driver
        self._member = driver.member
        self._group_id = driver.member.identity.group_id
        self._settings = settings
        self._timeout_ms = timeout_ms
        self._lock = threading.Lock()
        self._open: tuple[Node, CoordinatorConnection] | None = None

    def commit(self, generation: Generation, offsets: Offsets) -> None:
        """See `Generation.commit`."""
        partitions = tuple(_commit_partition(key, value) for key, value in sorted(offsets.items()))
        until_s = time.monotonic() + self._timeout_ms / 1000
        while True:
            result = self._try_commit(generation, partitions)
            if result is None or time.monotonic() > until_s:
                break
            time.sleep(PAUSE_S)
        if result is not None:
            raise result

    def close(self) -> None:
        """Break off what is under way, and give the connection back."""
        under_way = self._open
        if under_way is not None:
            under_way[1].abort()
        with self._lock:
            self._drop()

    def _try_commit(self, generation: Generation, partitions: tuple[OffsetCommitPartition, ...]) -> KgctlError | None:
        """None: stored. An `UnreachableError` or a passing error is worth another try; all others are raised."""
        current = self._member.generation_id  # may be a later one: cooperative members keep partitions over generations
        request = OffsetCommit(
            request_id=0,
            group_id=self._group_id,
            generation_id=max(current, generation.generation_id),
            member_id=generation.member_id,
            group_instance_id=self._member.identity.group_instance_id,
            partitions=partitions,
        )
        with self._lock:
            try:
                result = self._connection().ask(request, self._timeout_ms)
            except AuthError:
                raise
            except UnreachableError as error:
                self._drop()
                if self._driver.has_ended.is_set():
                    raise self._ended(partitions, error) from error
                return error
        assert isinstance(result, PartitionErrors)
        failed = {partition: error for partition, error in result.partitions if error is not ErrorCode.NONE}
        if not failed:
            return None
        refused = _refused(self._group_id, failed)
        if set(failed.values()) <= PASSING:
            self._drop()
            return refused
        if set(failed.values()) <= OVERTAKEN and self._member.generation_id > request.generation_id:
            return refused
        raise refused

    def _ended(self, partitions: tuple[OffsetCommitPartition, ...], unreachable: KgctlError) -> CommitError:
        """The member has learnt elsewhere why it cannot go on (fenced, most often): nobody looks for the coordinator any more."""
        why = self._driver.end_error or unreachable
        return CommitError(
            f"group '{self._group_id}': {len(partitions)} partition(s) were not committed: {why.message}",
            errors={TopicPartition(each.topic, each.partition): why.code for each in partitions},
            code=why.code,
            group=self._group_id,
        )

    def _drop(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection[1].close()

    def _connection(self) -> CoordinatorConnection:
        """Return a connection of the commits' own: a JoinGroup that is held back holds up everything behind it."""
        node = self._driver.coordinator
        if node is None:
            raise UnreachableError(f"the coordinator of group '{self._group_id}' is not known at present", group=self._group_id)
        if self._open is None or self._open[0] != node:
            self._drop()
            self._open = (node, CoordinatorConnection(node, self._settings))
        return self._open[1]


def _commit_partition(key: tuple[str, int], value: int | OffsetAndMetadata) -> OffsetCommitPartition:
    topic, partition = key
    stored = value if isinstance(value, OffsetAndMetadata) else OffsetAndMetadata(value)
    return OffsetCommitPartition(
        topic=topic, partition=partition, offset=stored.offset, leader_epoch=stored.leader_epoch, metadata=stored.metadata
    )


def _refused(group_id: str, failed: Mapping[TopicPartition, ErrorCode]) -> CommitError:
    names = sorted({error.name for error in failed.values()})
    return CommitError(
        f"group '{group_id}': {len(failed)} partition(s) were not committed: {', '.join(names)}",
        errors={partition: error.name for partition, error in failed.items()},
        code=names[0],
        group=group_id,
    )
