"""Ends transactions: markers into partitions, then into the coordinator's log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kgctl.model.records import TransactionMarker
from kgctl.model.requests import EndTransaction
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.runtime import EVENT_ID, Answer, Values
from kgctl.server.transactions import Transaction

if TYPE_CHECKING:
    from kgctl.server.request_context import Services


def end_transaction(services: Services, transaction: Transaction, render: Callable[[], Values], core: dict[str, Any]) -> Answer:
    """Write the markers of the outcome that was decided; ``render`` makes the answer when all of them are written."""
    request = _write_markers(services, transaction, core)
    if request is None:
        services.transactions.finish_end(transaction)
        return render()

    def finished(_: object) -> Values:
        services.transactions.finish_end(transaction)
        return render()

    return services.runtime.ask(request, finished)


def abort(services: Services, transaction: Transaction) -> None:
    """Abort for the producer: it was replaced, was too slow, or its server died. It is fenced."""
    services.transactions.begin_end(transaction, committed=False, bump=True)
    finish(services, transaction)


def finish(services: Services, transaction: Transaction) -> None:
    """Carry out an end that was decided, with nobody waiting for the answer."""
    request = _write_markers(services, transaction, {"request_id": EVENT_ID})
    if request is not None:
        services.runtime.tell(request)
    services.transactions.finish_end(transaction)


def recover(services: Services) -> None:
    """At a start: learn what is open in the logs, and carry out what was decided before the server ended."""
    for partition in sorted(services.transactions.touched):
        if partition.topic != OFFSETS_TOPIC and services.catalog.has_partition(partition):
            services.data.index_transactions(partition)
    for transaction in services.transactions:
        if transaction.ending is not None:
            finish(services, transaction)


def abort_overdue(services: Services) -> None:
    """Abort what has been open for longer than its producer said that it would be."""
    for transaction in services.transactions.overdue(services.runtime.clock()):
        abort(services, transaction)


def _write_markers(services: Services, transaction: Transaction, core: dict[str, Any]) -> EndTransaction | None:
    """Markers into the topics; the request that does the same for committed offsets, where there are any."""
    committed = bool(transaction.ending)
    marker = TransactionMarker(transaction.producer_id, transaction.epoch, committed)
    for partition in sorted(transaction.partitions):
        if partition.topic != OFFSETS_TOPIC and services.catalog.has_partition(partition):
            services.data.append_marker(partition, marker, services.runtime.clock())
    if not any(partition.topic == OFFSETS_TOPIC for partition in transaction.partitions):
        return None
    return EndTransaction(**core, producer_id=transaction.producer_id, producer_epoch=transaction.epoch, committed=committed)
