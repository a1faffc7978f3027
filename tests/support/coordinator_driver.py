"""A driver for the coordinator in tests: virtual time, the log in memory, and after every call three checks.

The invariants are checked, the records are replayed into a second coordinator whose durable state must be the same, and no
request may be answered twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import AppendRecord, Effect, GroupFailed, Reply, ResolveRegexes
from kgctl.coordinator.re2 import resolve_regexes
from kgctl.coordinator.share.no_op import outcome_without_state
from kgctl.model.coordinator_records import CoordinatorRecord
from kgctl.model.groups import MetadataImage
from kgctl.model.requests import Request, Result, UpdateGroupConfig
from kgctl.model.share_requests import ShareStateCall

OWN_REQUESTS = 1_000_000_000
"""Ids of requests that the driver makes itself start here."""


@dataclass
class CoordinatorDriver:
    """Runs one coordinator; ``log`` is everything appended, ``replies`` every answer with the time at which it was given.

    ``fired`` counts the timers that have fired, by their kind.
    """

    config: CoordinatorConfig
    new_member_id: Callable[[str], str]
    image: MetadataImage = field(default_factory=MetadataImage)
    now_ms: int = 0
    checked: bool = True

    def __post_init__(self) -> None:
        self.log: list[AppendRecord] = []
        self.replies: dict[int, tuple[int, Result]] = {}
        self.on_records: Callable[[list[AppendRecord]], None] = lambda _: None
        self.on_call: Callable[[ShareStateCall], None] = self._without_state
        self.fired: Counter[str] = Counter()
        self._group_configs: dict[str, UpdateGroupConfig] = {}
        self._own_requests = OWN_REQUESTS
        self.coordinator = self._new_coordinator()
        self._shadow = self._new_coordinator()
        self.coordinator.loaded(self.now_ms)

    def _new_coordinator(self) -> GroupCoordinator:
        coordinator = GroupCoordinator(self.config, self.new_member_id, self.image, self.now_ms)
        for request in self._group_configs.values():
            coordinator.handle(request, self.now_ms)
        return coordinator

    def request(self, request: Request) -> None:
        """Hand over a request now; look for the answer in ``replies``."""
        self.image = getattr(request, "image", self.image)
        if isinstance(request, UpdateGroupConfig):
            self._group_configs[request.group_id] = request
        self._perform(self.coordinator.handle(request, self.now_ms))

    def run_to(self, time_ms: int, between: Callable[[], None] = lambda: None) -> None:
        """Let time pass, firing each timer at its own time; ``between`` is called before the clock moves."""
        while (deadline_ms := self.coordinator.next_deadline_ms()) is not None and deadline_ms <= time_ms:
            self._move_to(deadline_ms, between)
            timers = self.coordinator.shard.timers
            self.fired.update(key.kind for key in timers.keys() if timers.deadline_ms(key) == deadline_ms)  # noqa: SIM118
            self._perform(self.coordinator.expire(deadline_ms))
        self._move_to(time_ms, between)

    def _move_to(self, time_ms: int, between: Callable[[], None]) -> None:
        if time_ms > self.now_ms:
            between()
            self.now_ms = time_ms

    def load(self, records: list[AppendRecord]) -> None:
        """Start from these records, as after a start with a log that holds them."""
        self.log.extend(records)
        self._load()

    def reload(self) -> None:
        """Give the groups up and read the log again."""
        self._perform(self.coordinator.unload(self.now_ms))
        self._load()

    def _load(self) -> None:
        self.coordinator = self._new_coordinator()
        self._shadow = self._new_coordinator()
        for entry in self.log:
            self.coordinator.replay(entry.record, producer_id=_producer(entry))
            self._shadow.replay(entry.record, producer_id=_producer(entry))
        self._perform(self.coordinator.loaded(self.now_ms))

    def _perform(self, effects: list[Effect]) -> None:
        appended = [effect for effect in effects if isinstance(effect, AppendRecord)]
        for entry in appended:
            self._shadow.replay(entry.record, producer_id=_producer(entry))
        self.log.extend(appended)
        self.on_records(appended)
        for effect in effects:
            if isinstance(effect, GroupFailed):
                raise effect.error
            if isinstance(effect, Reply):
                assert effect.request_id not in self.replies, f"request {effect.request_id} is answered twice"
                self.replies[effect.request_id] = (self.now_ms, effect.result)
        if self.checked:
            self.coordinator.check()
            without = self.coordinator.forgotten
            same = self._shadow.durable(without) == self.coordinator.durable(without)
            assert same, "the records do not give the same durable state"
        for effect in effects:
            if isinstance(effect, ResolveRegexes):
                self._resolve(effect)
            elif isinstance(effect, ShareStateCall):
                self.on_call(effect)

    def _without_state(self, call: ShareStateCall) -> None:
        """All goes well at once."""
        self._own_requests += 1
        self._perform(self.coordinator.handle(outcome_without_state(call, self._own_requests), self.now_ms))

    def _resolve(self, effect: ResolveRegexes) -> None:
        """Match whole topic names, at once."""
        self._own_requests += 1
        resolved = resolve_regexes(effect, self.image.topics, self._own_requests)
        self._perform(self.coordinator.handle(resolved, self.now_ms))


def _producer(entry: AppendRecord) -> int | None:
    """The producer of a transactional record; a marker has its own."""
    return entry.producer_id if isinstance(entry.record, CoordinatorRecord) else None
