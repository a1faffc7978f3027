"""The watches of a warehouse's clusters, one each: which there are, how tables are built, and where alerts are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kgctl.cli.environment import Environment
from kgctl.errors import KgctlError, UsageError
from kgctl.files import at_home, own_folder
from kgctl.pipeline.engines import EngineName, EngineOptions

if TYPE_CHECKING:
    from kgctl.pipeline.engines import Engine
    from kgctl.pipeline.store.files import StoreLocation
    from kgctl.pipeline.store.warehouse import Warehouse
    from kgctl.pipeline.watch.loop import Watch, WatchSettings
    from kgctl.pipeline.watch.outlets import Metrics, Webhook
    from kgctl.pipeline.watch.rules import Alert

_UPKEEP_EVERY_MS = 3_600_000


class Change(NamedTuple):
    """The name of a cluster, and an alert of it that began to fire or was resolved."""

    cluster: str
    alert: Alert


@dataclass
class Builder:
    """Brings the tables of a cluster up to date, and every hour the warehouse in order: compacted, or thinned to ``keep_ms``."""

    environment: Environment
    place: StoreLocation
    engine: Callable[[int], Engine]
    keep_ms: int | None
    is_single: bool
    _next_upkeep_ms: int = 0

    def build(self, cluster: str) -> None:
        """Raises `KgctlError`."""
        from kgctl.pipeline.builds.run import build as build_tables
        from kgctl.pipeline.store.warehouse import Warehouse

        now_ms = self.environment.now_ms()
        warehouse = Warehouse.open(self.place)
        if now_ms >= self._next_upkeep_ms:
            self._keep_up(warehouse, now_ms)
            self._next_upkeep_ms = now_ms + _UPKEEP_EVERY_MS
        result = build_tables(warehouse, [cluster], self.engine, now_ms=now_ms)
        for reason in result.late.get(cluster, ()):
            self.environment.notice(f"{reason}.")
        if result.failed:
            raise result.failed[0]

    def _keep_up(self, warehouse: Warehouse, now_ms: int) -> None:
        from kgctl.pipeline.upkeep import compact, prune, tidy

        if self.keep_ms is not None:
            prune(warehouse, now_ms - self.keep_ms)
        elif self.is_single:
            compact(warehouse)
        else:
            tidy(warehouse)


@dataclass
class Watches:
    """A watch of each cluster that ``names`` names, else of all that the warehouse has, also of those that come: which they are
    is asked at each look."""

    builder: Builder
    settings: WatchSettings
    names: Sequence[str] = ()
    state: Path | None = None
    webhook: Webhook | None = None
    metrics: Metrics | None = None
    _found: dict[str, Watch] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Watch]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def require(self) -> None:
        """Begin to watch the clusters that there are.

        Raises `NotFoundError` (one that is named is not there, or none is), `UsageError` (several would share ``state``).
        """
        warehouse = self._warehouse()
        names: Sequence[str | None] = self.names or warehouse.clusters() or [None]
        found = [warehouse.require_cluster(name) for name in names]
        if self.state is not None and len(found) > 1:
            raise UsageError("--state is for one cluster: name it with --cluster; each of several has a file of its own")
        self._watch_too(found)

    def look(self, *, is_last: bool = False) -> list[Change]:
        """Look at each, one after the other, and return what has changed; ``is_last``: what is unknown fires now."""
        with suppress(KgctlError):  # each watch tells of a warehouse that is away
            self._watch_too(self.names or self._warehouse().clusters())
        return [Change(each.cluster, alert) for each in self for alert in each.look(is_last=is_last)]

    def _watch_too(self, clusters: Sequence[str]) -> None:
        for name in clusters:
            if name not in self._found:
                self._found[name] = self._watch(name)

    def firing(self) -> list[Change]:
        """The alerts that fire now."""
        return [Change(each.cluster, alert) for each in self for alert in each.alerts.firing()]

    @property
    def fired(self) -> int:
        """How many alerts began to fire in this run."""
        return sum(each.fired for each in self)

    def of(self, cluster: str, text: str) -> str:
        """A text, with whose it is where several clusters are watched."""
        return f"cluster {cluster!r}: {text}" if len(self) > 1 else text

    def _warehouse(self) -> Warehouse:
        from kgctl.pipeline.store.warehouse import Warehouse

        return Warehouse.open(self.builder.place)

    def _watch(self, name: str) -> Watch:
        from kgctl.pipeline.watch.loop import Outside, Watch
        from kgctl.pipeline.watch.rules import AlertStateFile

        environment, place = self.builder.environment, self.builder.place
        outside = Outside(
            lambda: self.builder.build(name), environment.now_ms, lambda text: environment.notice(f"kgctl: {self.of(name, text)}")
        )
        path = self.state or _state_folder(place) / f"{_short(f'{place} {name}')}.json"
        if self.metrics is not None:
            self.metrics.begin(name)
        return Watch(place, name, self.settings, AlertStateFile(at_home(path)), outside, self.webhook, self.metrics)


def warm_engine(how: EngineOptions, stack: ExitStack) -> Callable[[int], Engine]:
    """Opens each engine when a build first needs it, and keeps it."""
    from kgctl.pipeline.engines import choose, open_engine

    opened: dict[EngineName, Engine] = {}

    def engine(records: int) -> Engine:
        name, _ = choose(how, records)
        if name not in opened:
            opened[name] = stack.enter_context(open_engine(how, records))
        return opened[name]

    return engine


def _state_folder(place: StoreLocation) -> Path:
    """In the warehouse where that is a folder, else in the user's state folder for kgctl."""
    if place.is_local:
        return Path(place.uri) / "_watch"
    return own_folder("state") / "watch"


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
