"""What happened to a group of late, for error messages: a bounded log a group, formatted only when somebody reads it."""

from __future__ import annotations

from collections import deque
from dataclasses import fields

from kgctl.coordinator.requests import Request

_LINES = 40
_OBVIOUS = ("request_id", "group_id", "client_host", "protocols", "assignments")
"""Fields of requests that would fill the lines and tell little."""


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
        events = self._events.get(group_id, ())
        return tuple(f"{now_ms} ms: {what} {_text(detail)}".rstrip() for now_ms, what, detail in events)

    def group_ids(self) -> list[str]:
        """The groups that anything is known of."""
        return list(self._events)

    def forget(self, group_id: str) -> None:
        """Drop the group's events; it is gone."""
        self._events.pop(group_id, None)


def _text(detail: object) -> str:
    """A request with the fields that are not as always; anything else as it is."""
    if not isinstance(detail, Request):
        return str(detail)
    given = [(field.name, getattr(detail, field.name)) for field in fields(detail) if field.name not in _OBVIOUS]
    usual = {field.name: field.default for field in fields(detail)}
    return f"{type(detail).__name__}({', '.join(f'{name}={value!r}' for name, value in given if value != usual[name])})"
