"""``orders: 12`` for ``orders: {partitions: 12}`` and ``orders: 20000/s`` for ``orders: {rate: 20000/s}``, written out.

It is done before anything is merged: a patch or a setting that changes another key must not lose what the short form says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def written_out(data: Any) -> Any:
    """A file's values with the short forms of its topics and traffic written out, in its variants too."""
    if not isinstance(data, Mapping):
        return data
    found = dict(data)
    for key, long_form in (("topics", long_topic), ("traffic", long_traffic)):
        if isinstance(data.get(key), Mapping):
            found[key] = {name: long_form(value) for name, value in data[key].items()}
    if isinstance(data.get("variants"), Mapping):
        found["variants"] = {name: written_out(patch) for name, patch in data["variants"].items()}
    return found


def long_topic(raw: Any) -> Any:
    """A number is the partitions. Anything else is left as it is."""
    return {"partitions": raw} if type(raw) is int else raw


def long_traffic(raw: Any) -> Any:
    """A rate, or steps alone. What is null, and a mapping of keys, is left as it is."""
    is_steps = isinstance(raw, dict) and bool(raw) and all(key[:1].isdigit() for key in raw)
    return raw if raw is None or (isinstance(raw, dict) and not is_steps) else {"rate": raw}
