"""kio's timedeltas as Kafka's milliseconds."""

from __future__ import annotations

from datetime import timedelta

_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(time: timedelta) -> int:
    """The whole milliseconds of a time field."""
    return time // _MILLISECOND
