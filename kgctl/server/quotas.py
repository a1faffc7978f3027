"""Quotas of users, client ids and addresses: kept and shown, and nobody is ever slowed down by them.

Kafka: ClientQuotaControlManager, ClientQuotasImage, QuotaConfig.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kgctl.server.settings import SettingKind
from kgctl.storage.files import QUOTAS_FILE, Documents

USER, CLIENT, IP = "user", "client-id", "ip"
OF_CLIENTS = {
    "producer_byte_rate": SettingKind.LONG,
    "consumer_byte_rate": SettingKind.LONG,
    "request_percentage": SettingKind.DOUBLE,
    "controller_mutation_rate": SettingKind.DOUBLE,
}
OF_ADDRESSES = {"connection_creation_rate": SettingKind.INT}
_MOST = {SettingKind.INT: 2**31 - 1, SettingKind.LONG: 2**63 - 1}
_WHOLE_TO = 1e-6

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types with names, sorted; the name None stands for all that have no quota of their own."""

log = logging.getLogger(__name__)


class Quotas:
    """Entity to its quotas by name, in ``quotas.json`` of a data folder, or in memory; from any thread."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        rows = (documents.read(QUOTAS_FILE) or {}).get("quotas", ())
        self._kept: dict[Entity, dict[str, float]] = {tuple((kind, name) for kind, name in row[0]): row[1] for row in rows}
        self._writing = threading.Lock()
        self._was_told = False

    def __iter__(self) -> Iterator[tuple[Entity, dict[str, float]]]:
        return iter(list(self._kept.items()))

    def put(self, changes: Mapping[Entity, Mapping[str, float | None]]) -> None:
        """Set these, or remove what is None. The caller has checked them. Raises `StorageError`: all as before."""
        with self._writing:
            kept = dict(self._kept)
            for entity, changed in changes.items():
                values = {**kept.pop(entity, {}), **changed}
                if left := {name: value for name, value in values.items() if value is not None}:
                    kept[entity] = left
            self._documents.write(QUOTAS_FILE, {"quotas": [[entity, values] for entity, values in kept.items()]})
            self._kept = kept
        if kept and not self._was_told:
            self._was_told = True
            log.warning("quotas: kept and shown, and without effect here: nobody is slowed down")


def entity_of(pairs: Iterable[tuple[str, str | None]]) -> Entity:
    """What a request names; of a type that comes twice the last name counts."""
    return tuple(sorted(dict(pairs).items()))


def entity_problem(entity: Entity) -> str | None:
    """Why nothing can have these quotas, in Kafka's words, or None."""
    if not entity:
        return "Invalid empty client quota entity"
    kinds = dict(entity)
    for kind, name in entity:
        if kind not in (USER, CLIENT, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    if IP in kinds and len(kinds) > 1:
        return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    address = kinds.get(IP)
    return None if address is None or _is_host(address) else f"{address} is not a valid IP or resolvable host."


def _is_host(text: str) -> bool:
    """Whether it is an address; names are not looked up, but for this machine's own."""
    if text == "localhost":
        return True
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return True
    return False


def value_problem(entity: Entity, name: str, value: float) -> str | None:
    """Why this cannot be a quota of the entity, or None."""
    kind = (OF_ADDRESSES if entity[0][0] == IP else OF_CLIENTS).get(name)
    if kind is None:
        return f"Invalid configuration key {name}"
    if value <= 0:
        return f"Quota {name} must be greater than 0"
    if kind is SettingKind.DOUBLE:
        return None
    if value > _MOST[kind]:
        return f"Proposed value for {name} is too large for {'an INT' if kind is SettingKind.INT else 'a LONG'}."
    return f"{name} cannot be a fractional value." if value % 1.0 > _WHOLE_TO else None
