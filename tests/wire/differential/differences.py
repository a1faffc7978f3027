"""Where kgctl serve answers otherwise than Apache Kafka, knowingly: the whole list, with reasons."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Known:
    """A field, by a pattern over (conversation, path), that may differ."""

    conversation: str
    path: str
    reason: str


_QUORUM = "kgctl has no log of metadata: its topics' changes are counted, and there was one election"
RIGHTS = "rights"
"""What tests/wire/test_rights_same_as_kafka.py compares."""
KNOWN: tuple[Known, ...] = (
    Known("quorum", r"topics\[0\]\.partitions\[0\]\.(leader_epoch|high_watermark)", _QUORUM),
    Known("quorum", r"topics\[0\]\.partitions\[0\]\.current_voters\[0\]\.\w+(offset|timestamp)", _QUORUM),
    *(Known(about, r"results\[0\]\.(total|usable)_bytes", "kgctl in memory has no disk") for about in ("log dirs", RIGHTS)),
)


def differences(conversation: str, theirs: Any, ours: Any) -> list[str]:
    """One line for each field that differs and is not in `KNOWN`."""
    known = [entry for entry in KNOWN if entry.conversation == conversation]
    return [
        f"{path}: Kafka {expected!r}, kgctl {found!r}"
        for path, expected, found in _walk(theirs, ours, "")
        if not any(re.fullmatch(entry.path, path) for entry in known)
    ]


def _walk(theirs: Any, ours: Any, path: str) -> list[tuple[str, Any, Any]]:
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() == ours.keys():
        return [found for key in theirs for found in _walk(theirs[key], ours[key], f"{path}.{key}" if path else key)]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return [found for index, (left, right) in pairs for found in _walk(left, right, f"{path}[{index}]")]
    return [] if theirs == ours and type(theirs) is type(ours) else [(path, theirs, ours)]
