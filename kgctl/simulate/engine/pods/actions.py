"""What a process does for its member: one function an action."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgctl.member.api import (
    CallbackKind,
    Closed,
    CommitDone,
    Failed,
    FindCoordinator,
    ListOffsets,
    RefreshMetadata,
    RunAssignor,
    RunCallback,
    Send,
    StartConsuming,
    StopConsuming,
)

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.process import Process


def _send(process: Process, action: Send) -> None:
    process.world.broker.send(process, action)


def _find_coordinator(process: Process, action: FindCoordinator) -> None:
    process.world.cluster.find_coordinator(process, action.correlation_id)


def _refresh_metadata(process: Process, action: RefreshMetadata) -> None:
    process.world.cluster.metadata(process, action.correlation_id)


def _list_offsets(process: Process, action: ListOffsets) -> None:
    process.world.cluster.list_offsets(process, action)


def _run_callback(process: Process, action: RunCallback) -> None:
    if action.kind is CallbackKind.ASSIGNED:
        process.world.ownership.taken_over(process, action.partitions)
    process.run_callback(process.callback_us(action))


def _run_assignor(process: Process, action: RunAssignor) -> None:
    process.run_callback(process.world.scenario.assign_time.duration_us(action.partitions, action.members))


def _start_consuming(process: Process, action: StartConsuming) -> None:
    process.world.ownership.start(process, action.positions)


def _stop_consuming(process: Process, action: StopConsuming) -> None:
    process.world.ownership.stop(process, action.partitions, action.reason)


def _commit_done(process: Process, action: CommitDone) -> None:
    process.world.ownership.commit_answered(process, action)


def _failed(process: Process, action: Failed) -> None:
    process.fail(action.error)


def _closed(process: Process, _: Closed) -> None:
    process.die("stopped")


ACTIONS: dict[type, Callable[[Process, Any], None]] = {
    Send: _send,
    FindCoordinator: _find_coordinator,
    RefreshMetadata: _refresh_metadata,
    ListOffsets: _list_offsets,
    RunCallback: _run_callback,
    RunAssignor: _run_assignor,
    StartConsuming: _start_consuming,
    StopConsuming: _stop_consuming,
    CommitDone: _commit_done,
    Failed: _failed,
    Closed: _closed,
}
"""Action -> what is done."""
