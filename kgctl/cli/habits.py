"""What people type out of habit, from other tools or from Kafka's own, and the kgctl line that does it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from kgctl.cli.registry import COMMANDS
from kgctl.errors import did_you_mean

_KAFKA_ACTIONS = ("--list", "--describe", "--reset-offsets", "--delete-offsets", "--delete", "--validate-regex")
"""The options of kafka-consumer-groups.sh that are its commands."""

_MEANT = {
    **dict.fromkeys(("groups", "group", "get", "ls"), "type: kgctl list groups"),
    "lag": "type: kgctl list groups --lag",
    "rollback": "type: kgctl undo",
    "help": "type: kgctl --help",
    **dict.fromkeys(("-b", "--bootstrap-servers", "--brokers"), "did you mean --bootstrap-server?"),
    "-0": "did you mean -o name0?",
    "-g": "did you mean --group?",
    "-t": "did you mean --topic?",
    "--from-beginning": "did you mean --to-earliest?",
    "--json": "did you mean -o json?",
    "--watch": "kgctl top watches groups",
}
"""A first word, or an option that a command lacks -> what does it; what is nearly typed is found by its letters."""


def option_hint(word: str, typed: Sequence[str], known: Collection[str]) -> str:
    """What is meant by an option that is none, for the end of the message; "" where nobody knows.

    ``word`` is the option as it was parsed, ``typed`` the words of the line, ``known`` the command's own options. What widens a
    change is suggested to nobody who did not nearly type it.
    """
    if not word.startswith("--"):
        whole = next((each for each in typed if each.startswith(word) and not each.startswith("--")), word)
        if f"-{whole}" in known:
            return f"; did you mean -{whole}?"
        if len(whole) > 2 and whole[:2] not in ("-X", "-o"):
            return "; a name that begins with - stands behind --, after all options"
    if word in _MEANT:
        return f"; {_MEANT[word]}"
    harmless = [name for name in known if name.startswith("--") and (not name.startswith("--all-") or word.startswith(name[:7]))]
    if near := [name for name in harmless if len(word) > 3 and name.startswith(word)]:
        return f"; did you mean {' or '.join(sorted(near))}?"
    return did_you_mean(word, harmless, at_most=2)


def kgctl_line(family: str, typed: Sequence[str], commands: Collection[str]) -> str:
    """``; type: kgctl ...`` for a line that is another tool's; "" where the habit is not known.

    ``family`` is the command that was found so far, "" for kgctl itself, and ``commands`` what it has; ``typed`` follows it.
    """
    if family:
        if len(commands) > 1 or {"-h", "--help"} & {*typed}:
            return ""
        if typed[0] in ("topic", "topics"):
            return "; kgctl knows the topics of groups only: kgctl list groups --members, kgctl list groups --topic NAME"
        return _told([family, *commands, *(typed if family == "describe" or typed[0].startswith("-") else ())])
    words = typed if typed[0].startswith("-") else typed[1:]
    if any(word in _KAFKA_ACTIONS for word in words):
        return _told(["kafka-consumer-groups", *words])
    apart = typed[0].replace("_", "-").replace("-", " ", 1)
    if any(apart in (spec.path, f"{spec.path}s") for spec in COMMANDS if " " in spec.path):
        return _told([*apart.split(), *typed[1:]])
    return f"; {_MEANT[typed[0]]}" if typed[0] in _MEANT else ""


def _told(words: Sequence[str]) -> str:
    return f"; type: kgctl {shlex.join(words)}"
