"""A folder's coordinator between two runs of its server: nobody heartbeats, but time has passed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kgctl.coordinator.config import MAX_INT, CoordinatorConfig, setting_names
from kgctl.coordinator.effects import AppendRecord, Effect, Reply
from kgctl.coordinator.requests import Request
from kgctl.coordinator.results import Result
from kgctl.storage.folder import DataFolder
from kgctl.storage.load import load_coordinator

_REQUEST_ID = 1


class EmbeddedSession:
    """Loads the coordinator as it was when the folder was last served, and lets its clock run on to now.

    So members whose session has ended since are gone, as they would be had the server stayed up, and a group whose consumers died
    with the server can be reset. What that changes is written only together with the first change that the user asks for: looking
    at a folder leaves it as it is. Offsets that are older than their retention stay until a server runs: nobody expects a
    reset of one group to delete those of another. In a folder whose time stands still, as a simulation leaves it, nothing passes.
    """

    def __init__(self, folder: DataFolder, clock_ms: Callable[[], int]) -> None:
        self._folder = folder
        frozen_ms = folder.settings.frozen_ms()
        self._clock_ms = clock_ms = clock_ms if frozen_ms is None else lambda: frozen_ms
        config = _config(folder)
        now_ms = clock_ms()
        served_until_ms = min(now_ms, (folder.last_alive_ms or 0) if frozen_ms is None else frozen_ms)
        # No session is longer than the longest allowed: from further back, the clock would run for nothing.
        start_ms = max(served_until_ms, now_ms - config.group_max_session_timeout_ms)
        never = replace(config, offsets_retention_check_interval_ms=MAX_INT)
        self._coordinator = load_coordinator(folder, never, str, start_ms)
        self._unwritten: list[AppendRecord] = []
        self._keep(self._coordinator.expire(now_ms))

    def ask(self, request: Request) -> Result:
        """The answer to a request that changes nothing. Its ``request_id`` must be 1."""
        effects = self._coordinator.handle(request, self._clock_ms())
        self._keep(effects)
        return _answer(effects)

    def change(self, request: Request) -> Result:
        """The answer to a request, once all that it changed is durable. Raises `kgctl.errors.StorageError`."""
        now_ms = self._clock_ms()
        effects = self._coordinator.handle(request, now_ms)
        self._keep(effects)
        self._folder.record_log.append(self._unwritten, now_ms)
        self._unwritten.clear()
        return _answer(effects)

    def _keep(self, effects: Sequence[Effect]) -> None:
        """Work that the coordinator wants done in the background is left to the next server, which starts it anew."""
        self._unwritten += [effect for effect in effects if isinstance(effect, AppendRecord)]


def _config(folder: DataFolder) -> CoordinatorConfig:
    """The settings that the folder was last served with."""
    known = set(setting_names())
    kept = folder.settings.broker_properties()
    return CoordinatorConfig.from_properties({name: value for name, value in kept.items() if name in known})


def _answer(effects: Sequence[Effect]) -> Result:
    return next(effect.result for effect in effects if isinstance(effect, Reply) and effect.request_id == _REQUEST_ID)
