"""What people type out of habit, from other tools or from Kafka's own, and the kgctl line that does it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

DESTRUCTIVE = ("delete", "remove", "reset", "migrate", "undo")
"""How the names of commands begin that are never suggested for a word that is none."""

_WORDS = {
    "groups": "list groups",
    "group": "list groups",
    "get": "list groups",
    "ls": "list groups",
    "consumer-groups": "list groups",
    "lag": "list groups --lag",
    "desc": "describe group",
    "show": "describe group",
    "config": "context list",
    "contexts": "context list",
    "use-context": "context use",
    "version": "--version",
    "restore": "undo",
    "rollback": "undo",
}
"""A first word -> the command that was meant."""

_OPTIONS = {
    "--list": "list groups",
    "--describe": "describe group",
    "--reset-offsets": "reset-offsets",
    "--delete-offsets": "delete-offsets",
    "--delete": "delete-groups",
}
"""An option of kafka-consumer-groups.sh that is its command -> kgctl's."""


def kgctl_line(family: str, typed: Sequence[str]) -> str:
    """``; type: kgctl ...`` for a line that is another tool's; "" where the habit is not known.

    ``family`` is the command that was found so far, "" for kgctl itself; ``typed`` is what follows it.
    """
    if family == "describe" and not typed[0].startswith("-"):
        return _told(["describe", "group", *typed])
    if family == "list" and not typed[0].startswith("-"):
        return _told(["list", "groups"])
    if family:
        return ""
    for option, command in _OPTIONS.items():
        if option in typed and typed[0].startswith("-"):
            rest = [word for word in typed if word != option]
            return _told([*command.split(), *rest])
    if typed[0] in _WORDS:
        rest = [word for word in typed[1:] if word not in ("groups", "group", "consumer-groups", "cg")]
        return _told([*_WORDS[typed[0]].split(), *(rest if rest and rest[0].startswith("-") else [])])
    return ""


def _told(words: Sequence[str]) -> str:
    return f"; type: kgctl {shlex.join(words)}"
