"""What people type out of habit, from other tools or from Kafka's own, and the kgctl line that does it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence

from kgctl.cli.registry import COMMANDS
from kgctl.errors import did_you_mean

"""How the names of commands begin that are never suggested for a word that is none."""

_WORDS = {
    "groups": "list groups",
    "group": "list groups",
    "get": "list groups",
    "ls": "list groups",
    "lag": "list groups --lag",
    "desc": "describe group",
    "show": "describe group",
    "config": "context list",
    "contexts": "context list",
    "use-context": "context use",
    "version": "--version",
    "diff": "diff-offsets",
    "compare": "diff-offsets",
    "restore": "undo",
    "rollback": "undo",
    "use": "context use",
}
"""A first word -> the command that was meant."""

_KAFKA_COMMANDS = {
    "--list": "list groups",
    "--describe": "describe group",
    "--reset-offsets": "reset-offsets",
    "--delete-offsets": "delete-offsets",
    "--delete": "delete-groups",
    "--validate-regex": "validate-regex",
}
"""An option of kafka-consumer-groups.sh that is its command -> kgctl's."""

_KAFKA_VALUES = {
    *("--bootstrap-server", "--command-config", "--timeout", "--group", "--topic", "--from-file"),
    *("--validate-regex", "--to-offset", "--to-datetime", "--by-duration", "--shift-by", "--state", "--type"),
}
"""The options of kafka-consumer-groups.sh that have a value; ``--state`` and ``--type`` may be without."""


_OPTION_HABITS = {
    "--to-earliest": ("--earliest", "--oldest", "--to-beginning", "--from-beginning", "--beginning", "--to-start"),
    "--to-latest": ("--latest", "--newest", "--to-end", "--end"),
    "--to-offset": ("--offset", "--to"),
    "--to-datetime": ("--since", "--datetime", "--to-timestamp", "--timestamp", "--to-date"),
    "--by-duration": ("--duration", "--to-duration"),
    "--shift-by": ("--shift",),
    "--bootstrap-server": ("-b", "--bootstrap", "--bootstrap-servers", "--broker", "--brokers", "--broker-list", "--server"),
    "--context": ("--cluster", "-c", "--profile"),
    "--command-config": ("--config", "--config-file", "--consumer.config", "-C"),
    "--group": ("-g", "--groups", "--group-id", "--consumer-group", "--group.id"),
    "--topic": ("-t", "--topics"),
    "--topic TOPIC:PARTITION": ("-p", "--partition", "--partitions"),
    "--dry-run": ("--dryrun", "--what-if", "--plan-only"),
    "--yes": ("--noconfirm", "--no-confirm", "--assume-yes"),
    "--all-groups": ("--all-group",),
    "-o json": ("--json",),
    "-o yaml": ("--yaml",),
    "-o csv": ("--csv",),
    "-o name0": ("-0", "--null", "--print0"),
    "-o FORMAT": ("--format",),
    "--iterations": ("-n", "--count"),
    "--interval": ("-i", "-s", "--every"),
}
"""An option of kgctl -> what other tools, and tired people, call it."""

_OTHER_COMMANDS = {
    **dict.fromkeys(("--watch", "--follow"), "kgctl top watches groups"),
    "--lag": "kgctl describe group GROUP has the lag, of each partition",
    "--no-headers": "-o name has names alone",
}
"""An option that a command may lack -> the command that does it."""

_VALUE_HABITS = {
    ("--to-offset", "latest"): "--to-latest",
    ("--to-offset", "end"): "--to-latest",
    ("--to-offset", "newest"): "--to-latest",
    ("--to-offset", "earliest"): "--to-earliest",
    ("--to-offset", "beginning"): "--to-earliest",
    ("--to-offset", "oldest"): "--to-earliest",
    ("--to-offset", "current"): "--to-current",
}
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
    if any(name in typed[0].rpartition("/")[2] for name in ("consumer-groups", "kafka-groups")):
        typed = typed[1:] or ["--list"]
    if typed[0].startswith("-"):
        return _kafka_line(typed)
    if typed[0] == "help":
        return _told([*typed[1:], "--help"])
    if joined := _spelled_apart(typed[0]):
        return _told([*joined, *typed[1:]])
    return _meant_by_word(typed) if typed[0] in _WORDS else ""


def _meant_by_word(typed: Sequence[str]) -> str:
    if any(word in _KAFKA_COMMANDS for word in typed[1:]):
        return _kafka_line(typed[1:])
    rest = [word for word in typed[1:] if word not in ("groups", "group", "consumer-groups", "cg")]
    is_kept = rest and (rest[0].startswith("-") or typed[0] in ("use", "use-context"))
    return _told([*_WORDS[typed[0]].split(), *(rest if is_kept else [])])


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


def _kafka_line(typed: Sequence[str]) -> str:
    """What a line of kafka-consumer-groups.sh is for kgctl, word by word, so that it can be typed as it stands."""
    given = list(_options(typed))
    asked = [name for name, _ in given if name in _KAFKA_COMMANDS]
    if not asked:
        return ""
    command = _KAFKA_COMMANDS[asked[0]]
    if asked[0] == "--delete" and any(name == "--topic" for name, _ in given):
        command = "delete-offsets"
    words: list[str] = []
    for name, value in given:
        if name == "--validate-regex" and value is not None:
            words.append(value)
        elif command == "validate-regex" and name == "--bootstrap-server":
            continue  # nothing is contacted
        if name in _KAFKA_COMMANDS or (command == "list groups" and name in ("--state", "--type") and value is None):
            continue  # the list of groups has both columns anyway
        is_bare_time = name == "--timeout" and value is not None and value.isdigit()
        words += [name] if value is None else [name, f"{value}ms" if is_bare_time else value]
    return _told([*command.split(), *words])


def _options(typed: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each option with its value, None where it has none; words that belong to no option come by themselves."""
    at = 0
    while at < len(typed):
        name, sign, value = typed[at].partition("=")
        after = typed[at + 1] if at + 1 < len(typed) else "--"
        has_value = typed[at] in _KAFKA_VALUES and not after.startswith("--")
        if sign:
            yield name, value
        else:
            yield typed[at], after if has_value else None
        at += 2 if has_value else 1


def _told(words: Sequence[str]) -> str:
    return f"; type: kgctl {shlex.join(words)}"
