"""What happened to a group of late, for error messages: a bounded log a group, formatted only when somebody reads it."""

from __future__ import annotations

from collections import deque

_LINES = 40


class Story:
    """The last events of each group. Cheap to write: an event is kept as it came, and turned into text on reading."""

    def __init__(self) -> None:
        self._events: dict[str, deque[tuple[int, str, object]]] = {}

    def note(self, group_id: str, now_ms: int, what: str, detail: object = "") -> None:
        """Remember that ``what`` happened; ``detail`` is shown with ``str``, so it must not change later."""
        events = self._events.get(group_id)
        if events is None:
            events = self._events[group_id] = deque(maxlen=_LINES)
        events.append((now_ms, what, detail))

    def of(self, group_id: str) -> tuple[str, ...]:
        """The group's last events, oldest first, one line each."""
        return tuple(f"{now_ms} ms: {what} {detail}".rstrip() for now_ms, what, detail in self._events.get(group_id, ()))

    def forget(self, group_id: str) -> None:
        """Drop the group's events; it is gone."""
        self._events.pop(group_id, None)
