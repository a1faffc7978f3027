"""What people type out of habit, from other tools or from Kafka's own, and the kgctl line that does it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

from kgctl.cli.registry import COMMANDS
from kgctl.errors import did_you_mean

_WORDS = {
    "groups": "list groups",
    "group": "list groups",
    "get": "list groups",
    "ls": "list groups",
    "lag": "list groups --lag",
    "show": "describe group",
    "rollback": "undo",
    "version": "--version",
}
"""A first word -> the command that was meant."""

_KAFKA_ACTIONS = ("--list", "--describe", "--reset-offsets", "--delete-offsets", "--delete", "--validate-regex")
"""The options of kafka-consumer-groups.sh that are its commands."""

_OPTION_HABITS = {
    "--to-earliest": ("--earliest", "--from-beginning"),
    "--to-latest": ("--latest",),
    "--to-offset": ("--offset",),
    "--bootstrap-server": ("-b", "--bootstrap-servers", "--brokers"),
    "--group": ("-g",),
    "--topic": ("-t",),
    "--topic TOPIC:PARTITION": ("--partition",),
    "-o json": ("--json",),
    "-o name0": ("-0",),
}
"""An option of kgctl -> what other tools, and tired people, call it; what is nearly typed is found by its letters."""

_OTHER_COMMANDS = {
    **dict.fromkeys(("--watch", "--follow"), "kgctl top watches groups"),
    "--lag": "kgctl describe group GROUP has the lag, of each partition",
    "--no-headers": "-o name has names alone",
}
"""An option that a command may lack -> the command that does it."""

_VALUE_HABITS = {("--to-offset", name): f"--to-{name}" for name in ("latest", "earliest", "current")}
"""An option with a value that it does not take -> the option that was meant."""


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
    if word in _OTHER_COMMANDS and word not in known:
        return f"; {_OTHER_COMMANDS[word]}"
    meant = [option for option, names in _OPTION_HABITS.items() if word in names and option.split()[0] in known]
    if meant:
        return f"; did you mean {meant[0]}?"
    harmless = [name for name in known if name.startswith("--") and (not name.startswith("--all-") or word.startswith(name[:7]))]
    if near := [name for name in harmless if len(word) > 3 and name.startswith(word)]:
        return f"; did you mean {' or '.join(sorted(near))}?"
    return did_you_mean(word, harmless, at_most=2)


def value_hint(option: str, value: str) -> str:
    """What is meant by a value that is no number, for the end of the message; "" where nobody knows."""
    if meant := _VALUE_HABITS.get((option, value.lower())):
        return f"; did you mean {meant}?"
    if option == "--shift-by" and re.fullmatch(r"-?(P.+|\d+(ms|s|m|h|d|w))", value, re.IGNORECASE):
        return f"; --by-duration {value.removeprefix('-')} goes back in time"
    return ""


def kgctl_line(family: str, typed: Sequence[str]) -> str:
    """``; type: kgctl ...`` for a line that is another tool's; "" where the habit is not known.

    ``family`` is the command that was found so far, "" for kgctl itself; ``typed`` is what follows it.
    """
    if family:
        return _second_word(family, typed)
    if typed[0] == "help":
        return _told([*typed[1:], "--help"])
    words = typed if typed[0].startswith("-") else typed[1:]
    if any(word in _KAFKA_ACTIONS for word in words):
        return _told(["kafka-consumer-groups", *words])
    if joined := _spelled_apart(typed[0]):
        return _told([*joined, *typed[1:]])
    return _meant_by_word(typed) if typed[0] in _WORDS else ""


def _meant_by_word(typed: Sequence[str]) -> str:
    rest = [word for word in typed[1:] if word not in ("groups", "group", "consumer-groups", "cg")]
    return _told([*_WORDS[typed[0]].split(), *(rest if rest and rest[0].startswith("-") else [])])


def _spelled_apart(word: str) -> list[str]:
    """The words of a command that was typed as one, as ``list-groups``; none for what is no command so."""
    apart = word.replace("_", "-").replace("-", " ", 1)
    return apart.split() if any(apart in (spec.path, f"{spec.path}s") for spec in COMMANDS if " " in spec.path) else []


def _second_word(family: str, typed: Sequence[str]) -> str:
    """What ``describe`` and ``list`` lack: the word for what they are to show."""
    if family not in ("describe", "list") or {"-h", "--help"} & set(typed):
        return ""
    if typed[0] in ("topic", "topics"):
        return "; kgctl knows the topics of groups only: kgctl list groups --members, kgctl list groups --topic NAME"
    if family == "list":
        return _told(["list", "groups", *(typed if typed[0].startswith("-") else ())])
    return _told(["describe", "group", *("--group" if word == "-g" else word for word in typed)])


def _told(words: Sequence[str]) -> str:
    return f"; type: kgctl {shlex.join(words)}"
