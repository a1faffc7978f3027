"""Generated sequences for a share partition, each step chosen in the light of what the core holds at that moment.

There is a log, whose batches are compacted now and then and whose beginning goes; fetches read it from where the partition says,
mostly; members acknowledge what they were given, mostly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.differential.choices import Choice
from tests.differential.share_partition.world import Entry, ShareWorld, Step

MEMBERS = ("A", "B", "C")
_ERRORS = (
    "FENCED_STATE_EPOCH",
    "NOT_COORDINATOR",
    "GROUP_ID_NOT_FOUND",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "FENCED_LEADER_EPOCH",
    "UNSUPPORTED_VERSION",
    "NETWORK_EXCEPTION",
    "INVALID_REQUEST",
)
_KINDS = ("data", "data", "data", "data", "txn", "txn", "abort", "commit")
_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVING, _ARCHIVED = 0, 1, 2, 3, 4
_INVALID_STATE = 9
_INVALID_TYPE = 7


class ShareSequence:
    """One sequence under construction: its case, and what the core did at each step."""

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        self.settings = self._settings()
        self.case: dict[str, Any] = {"given": {"leader_epoch": choice.number(0, 3), "settings": self.settings}, "steps": []}
        self.world = ShareWorld(self.case["given"])
        self.own: list[Entry] = []
        self.now = 1
        self.log: list[list[Any]] = []
        self.log_start = choice.often(0, 5, 40)
        self.log_end = self.log_start
        self._ticket = 0
        self._largest = choice.of((1, 3, 6, 12, 80))
        self._steps = choice.of(_THEMES)
        self._transactional = choice.chance(3)

    def build(self, length: int) -> None:
        """The whole of it."""
        self._take(self._ticketed({"op": "initialize"}))
        if self.choice.chance(6):
            self._take(self._ticketed({"op": "initialize"}))
        self._take(self._read())
        for _ in range(length):
            self.now += self.choice.often(0, 1, 40, 300)
            if not self.choice.chance(4):
                self._take({"op": "expire"})
            self._take(self.choice.of(self._steps)(self))
        for token in list(self.world.writes):
            self._take({"op": "written", "token": token})
        self.now += 10_000
        self._take({"op": "expire"})
        self._take({"op": "look"})

    def _take(self, step: Step) -> None:
        step["at"] = self.now
        self.case["steps"].append(step)
        self.own.append(self.world.take(step))

    def _ticketed(self, step: Step) -> Step:
        self._ticket += 1
        return {**step, "ticket": self._ticket}

    def _delta(self) -> int:
        deadline_ms = self.world.partition.next_deadline_ms()
        if deadline_ms is not None and self.choice.chance(2):
            return max(deadline_ms - self.now + self.choice.of((0, -1, 1)), 0)
        return self.choice.of((0, 1, 300, 1000, 1001, 2500))

    def _settings(self) -> dict[str, Any]:
        choice = self.choice
        return {
            "delivery_count_limit": choice.of((5, 2, 3, 4, 8)),
            "max_record_locks": choice.of((200, 30, 12, 5, 1000)),
            "record_lock_duration_ms": choice.of((1000, 400, 3000)),
            "renew_acknowledge_enable": not choice.chance(6),
            "auto_offset_reset": choice.of(("earliest", "latest", "by_duration:PT1H")),
        }

    def _read(self) -> Step:
        choice = self.choice
        if choice.chance(25):
            return {"op": "read", "error": choice.of(_ERRORS), "message": "read went wrong"}
        reset: Any = {"earliest": self.log_start, "latest": self.log_start + 7, "by_duration": self.log_start + 2}
        if choice.chance(20):
            reset = "not led here"
        known = not choice.chance(3)
        start = self.log_start + choice.of((0, 0, 3, 10)) if known else -1
        batches = self._kept(start) if known and choice.chance(2) else []
        return {"op": "read", "state_epoch": choice.number(0, 4), "start_offset": start, "batches": batches, "reset": reset}

    def _kept(self, start: int) -> list[list[int]]:
        """What the persister knows, perhaps with gaps; once in a while it is damaged."""
        choice, kept, offset = self.choice, [], start
        for _ in range(choice.number(1, 6)):
            offset += choice.often(0, 1, 4, 9)
            last = offset + choice.number(0, self._largest)
            state = choice.of(
                (_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED, _AVAILABLE, _ACKNOWLEDGED, _ARCHIVED, _AVAILABLE, _ARCHIVING, _ACQUIRED)
            )
            kept.append([offset, last, state, choice.number(1, 4)])
            offset = last + 1
        if choice.chance(25):
            damaged = choice.of(kept)
            place = choice.of((0, 1, 2))
            damaged[place] = (start - 1, damaged[0] - 1, _INVALID_STATE)[place]
        return kept

    def _grow(self, until: int) -> None:
        """Append batches up to this offset."""
        choice = self.choice
        while self.log_end <= until:
            first = self.log_end + choice.often(0, 0, 0, 1, 5)
            kind = choice.of(_KINDS) if self._transactional else "data"
            last = first if kind in ("abort", "commit") else first + choice.number(0, self._largest)
            producer_id = choice.number(1, 2) if kind != "data" else choice.often(-1, 4)
            self.log.append([first, last, producer_id, kind])
            self.log_end = last + 1

    def fetch(self) -> Step:
        """A fetch, mostly where the partition says."""
        choice, partition = self.choice, self.world.partition
        if choice.chance(3):
            self._compact()
        offset = partition.end_offset + choice.number(-9, 9)
        if not choice.chance(12):
            self._take(self.look())
            _, offset = self.own[-1]["result"]
        offset = max(offset, self.log_start)
        self._grow(offset + choice.of((0, 5, 20)))
        found = [batch for batch in self.log if batch[1] >= offset][: choice.of((1, 2, 4, 10))]
        step: Step = {
            "op": "acquire",
            "member": choice.of(MEMBERS),
            "mode": choice.of((0, 1)),
            "batch_size": choice.of((100, 1, 4, 10)),
            "max": choice.of((100, 1, 4, 10, 20, 500, 0)),
            "offset": offset,
            "batches": found if not choice.chance(40) else [],
        }
        if choice.chance(2):
            step["aborted"] = self._aborted()
        return step

    def _aborted(self) -> list[list[int]]:
        """The transactions that were aborted; now and then one more, or one less."""
        open_since: dict[int, int] = {}
        aborted = []
        for first, _, producer_id, kind in self.log:
            if kind == "txn":
                open_since.setdefault(producer_id, first)
            elif kind != "data" and producer_id in open_since:
                begun = open_since.pop(producer_id)
                if (kind == "abort") != self.choice.chance(8):
                    aborted.append([producer_id, begun])
        return aborted

    def _compact(self) -> None:
        """Remove a few batches, in which nothing was left."""
        self.log = [batch for batch in self.log if not self.choice.chance(8)]

    def acknowledge(self) -> Step:
        """A member says what became of its records; one in some says what it may not."""
        choice = self.choice
        member, batches = choice.of(MEMBERS), []
        for _ in range(choice.often(1, 1, 2, 3)):
            owner, first, last = self._some_acquired()
            if owner and not choice.chance(12):
                member = owner
            batches.append(self._acknowledgement(first, last))
        start = self.world.partition.start_offset
        if start and choice.chance(8):
            batches.append([start - 1, start + choice.number(0, 9), [self._type()]])
        return self._ticketed({"op": "acknowledge", "member": member, "batches": batches})

    def _some_acquired(self) -> tuple[str, int, int]:
        """What is acquired, or was, or never has been."""
        choice = self.choice
        if choice.chance(15) or not self.world.acquired:
            first = max(self.world.partition.start_offset + choice.number(-4, 12), 0)
            return "", first, first + choice.number(0, 6)
        held = self._held()
        if held and not choice.chance(10):
            return choice.of(held)
        return choice.of(self.world.acquired[-8:])

    def _held(self) -> list[tuple[str, int, int]]:
        held: list[tuple[str, int, int]] = []
        for batch in self.world.partition.records.batches:
            if batch.whole is not None:
                held.append((batch.whole.member_id, batch.first_offset, batch.last_offset))
                continue
            for offset, state in enumerate(batch.offsets or (), batch.first_offset):
                member, _, last = held[-1] if held else ("", -1, -1)
                if held and member == state.member_id and last == offset - 1:
                    held[-1] = (member, held[-1][1], offset)
                else:
                    held.append((state.member_id, offset, offset))
        return [each for each in held if each[0]]

    def _acknowledgement(self, first: int, last: int) -> list[Any]:
        choice = self.choice
        if choice.chance(4):
            first = choice.number(first, last)
        if choice.chance(4):
            last = choice.number(first, last)
        if choice.chance(15):
            first, last = max(first - choice.number(0, 4), 0), last + choice.number(0, 4)
        types = [self._type()]
        if choice.chance(3):
            types = [self._type() for _ in range(last - first + 1)]
        return [first, last, types]

    def _type(self) -> int:
        return self.choice.of((1, 2, 2, 3, 4, 0, 1, 2) if not self.choice.chance(200) else (_INVALID_TYPE,))

    def release(self) -> Step:
        """A member has gone."""
        return self._ticketed({"op": "release", "member": self.choice.of(MEMBERS)})

    def written(self) -> Step:
        """The persister answers, mostly in order and well."""
        choice = self.choice
        if not self.world.writes:
            return self.look()
        token = choice.often(self.world.writes[0], self.world.writes[-1])
        if choice.chance(5):
            return {"op": "written", "token": token, "error": choice.of(_ERRORS), "message": "write went wrong"}
        return {"op": "written", "token": token}

    def look(self) -> Step:
        """Where to fetch."""
        return {"op": "look"}

    def expire(self) -> Step:
        """Some time goes by, perhaps until the next lock times out."""
        self.now += self._delta()
        return {"op": "expire"}

    def log_start_moves(self) -> Step:
        """Retention."""
        choice, partition = self.choice, self.world.partition
        offset = max(partition.start_offset + choice.number(-2, 12), 0)
        self.log_start = max(self.log_start, offset)
        self.log = [batch for batch in self.log if batch[1] >= self.log_start]
        self.log_end = max(self.log_end, self.log_start)
        return {"op": "log_start", "offset": offset}

    def others(self) -> Step:
        """What is seldom: locks of fetches, other settings, a partition that is fenced."""
        choice = self.choice
        name = choice.of(("lock", "unlock", "lock", "initialize", "settings", "fence"))
        if name == "initialize":
            return self._ticketed({"op": "initialize"})
        if name == "settings":
            self.settings = {**self._settings(), "auto_offset_reset": self.settings["auto_offset_reset"]}
            return {"op": "settings", "settings": self.settings}
        if name == "fence":
            return {"op": "fence"} if choice.chance(6) else self.look()
        return {"op": name, "fetch": choice.number(1, 2)}


_NextStep = Callable[[ShareSequence], Step]
_FETCHES = (ShareSequence.fetch,) * 6
_WRITES = (ShareSequence.written,) * 7
_USUAL: tuple[_NextStep, ...] = (*_FETCHES, *(ShareSequence.acknowledge,) * 6, *_WRITES, ShareSequence.look, ShareSequence.others)
_AGAIN: tuple[_NextStep, ...] = (*_FETCHES, *(ShareSequence.release,) * 4, *(ShareSequence.expire,) * 3)
_THEMES: tuple[tuple[_NextStep, ...], ...] = (
    (*_USUAL, ShareSequence.release, ShareSequence.expire, ShareSequence.log_start_moves),
    (*_USUAL, ShareSequence.expire, ShareSequence.expire, ShareSequence.expire, ShareSequence.release),
    (*_USUAL, *(ShareSequence.log_start_moves,) * 3),
    (*_FETCHES, *(ShareSequence.release,) * 3, *(ShareSequence.written,) * 4, *(ShareSequence.log_start_moves,) * 4),
    (*_AGAIN, *_WRITES, ShareSequence.acknowledge),
    (*_AGAIN, *_AGAIN, *_WRITES, ShareSequence.acknowledge, ShareSequence.acknowledge),
)
"""What a sequence is mostly about."""
