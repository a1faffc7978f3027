r"""Regular expressions over topic names (KIP-848's subscriptions by pattern), by RE2 as PyPI's google-re2 wraps it.

Kafka's coordinator compiles them with RE2/J 1.8. `_for_re2` refuses and rewrites where RE2 and RE2/J part ways, so that an
expression is good here exactly if a broker takes it. One bound remains that RE2/J does not have: a program of 16 MB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from kgctl.coordinator.effects import ResolveRegexes
from kgctl.model.requests import RegexResolved

MAX_TEXT = 1 << 18
"""Characters of an expression whose nested repetitions are spelt out."""

MAX_COPIES = 1_000
"""Of what a repetition repeats: a bound of RE2 and of RE2/J for each count, and of RE2 for the product of nested ones."""

MAX_PROGRAM_BYTES = 16 << 20
"""Twice RE2's default; what is written to burn the coordinator's time is refused after some 0.3 s."""

_YOUNGER_SCRIPTS = """
    Adlam Ahom Anatolian_Hieroglyphs Bassa_Vah Bhaiksuki Caucasian_Albanian Chakma Chorasmian Cypro_Minoan Dives_Akuru
    Dogra Duployan Elbasan Elymaic Grantha Gunjala_Gondi Hanifi_Rohingya Hatran Kawi Khitan_Small_Script Khojki
    Khudawadi Linear_A Mahajani Makasar Manichaean Marchen Masaram_Gondi Medefaidrin Mende_Kikakui Meroitic_Cursive
    Meroitic_Hieroglyphs Miao Modi Mro Multani Nabataean Nag_Mundari Nandinagari Newa Nushu Nyiakeng_Puachue_Hmong
    Old_Hungarian Old_North_Arabian Old_Permic Old_Sogdian Old_Uyghur Osage Pahawh_Hmong Palmyrene Pau_Cin_Hau
    Psalter_Pahlavi Sharada Siddham SignWriting Sogdian Sora_Sompeng Soyombo Takri Tangsa Tangut Tirhuta Toto Vithkuqi
    Wancho Warang_Citi Yezidi Zanabazar_Square
"""
NOT_IN_RE2J = frozenset(_YOUNGER_SCRIPTS.split())
"""Scripts of younger editions of Unicode than RE2/J 1.8 has."""

_REPETITION = r"\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}"
_TOKEN = re.compile(
    rf"""
      (?P<quoted> \\Q .*? (?:\\E|\Z) )
    | (?P<escape> \\ (?:[pP]\{{[^}}]*\}}|.)? )
    | (?P<bracket> \[ \^? \]? (?: \[: .*? :\] | \\. | [^\]\\] )* \]? )
    | \( \? P? < (?P<name> [^=!>][^>]* ) >
    | (?P<repetition> {_REPETITION} )
    | (?P<brace> \{{ (?= [*+?] | {_REPETITION} ) )
    | .
    """,
    re.DOTALL | re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:[pP]\{[^}]*\}|.)", re.DOTALL)
_UNICODE_CLASS = re.compile(r"\\[pP]\{\^?(\w+)\}", re.ASCII)

_WORDS: dict[str | tuple[str, str], str] = {
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    ("invalid perl operator", "(?P"): "invalid named capture",
    "pattern too large - compile failed": "expression too large",
    "trailing \\": "trailing backslash at end of expression",
}
"""RE2's words for what is wrong, and RE2/J's, which Kafka hands to the client."""


class RegexSyntaxError(ValueError):
    """The text is no expression of RE2/J's; the message is RE2/J's description."""


class TopicPattern:
    """A compiled expression. Raises `RegexSyntaxError` when made of text that is no expression."""

    def __init__(self, regex: str) -> None:
        import re2  # 15 ms, which only groups that subscribe by pattern pay

        options = re2.Options()
        options.log_errors = False
        options.max_mem = MAX_PROGRAM_BYTES
        text = _for_re2(regex)
        try:
            try:
                pattern = re2.compile(text, options)
            except re2.error as error:
                if _words_of_re2j(error) != "invalid repeat count":
                    raise
                pattern = re2.compile(_without_nested_counts(text), options)
        except re2.error as error:
            raise RegexSyntaxError(_words_of_re2j(error)) from error
        self._fullmatch: Callable[[str], object | None] = pattern.fullmatch

    def matches(self, name: str) -> bool:
        """Return whether the whole of ``name`` matches. Kafka: Pattern#matches of RE2/J in RegexResolver."""
        return self._fullmatch(name) is not None


@lru_cache(maxsize=256)
def compiled(regex: str) -> TopicPattern:
    """Return the pattern of ``regex``, made once. Raises `RegexSyntaxError`."""
    return TopicPattern(regex)


def resolve_regexes(effect: ResolveRegexes, topics: Iterable[str], request_id: int) -> RegexResolved:
    """Do the work that ``effect`` asks of a driver; return the request to hand back to the coordinator.

    ``topics``: the names of all topics. Costs some microseconds a topic and expression; a driver with many topics may do it
    in the background. An expression that is none, which a log of another broker may hold, stands for no topic.
    """
    names = sorted(topics)
    return RegexResolved(
        request_id=request_id,
        group_id=effect.group_id,
        topics={regex: _matching(regex, names) for regex in effect.regexes},
        started_ms=effect.started_ms,
        metadata_version=effect.metadata_version,
    )


def _matching(regex: str, names: list[str]) -> tuple[str, ...]:
    try:
        pattern = compiled(regex)
    except RegexSyntaxError:
        return ()
    return tuple(name for name in names if pattern.matches(name))


def _for_re2(regex: str) -> str:
    """Return ``regex`` as RE2 has to read it to mean what RE2/J reads. Raises `RegexSyntaxError` for what only RE2 takes."""
    names: set[str] = set()
    parts = []
    for token in _TOKEN.finditer(regex):
        text = token.group()
        if token["escape"] is not None:
            text = _escape(text)
        elif token["bracket"] is not None:
            text = _ESCAPE.sub(lambda found: _escape(found.group()), text)
        elif token["name"] is not None:
            _check_name(token["name"], names)
        elif token["brace"] is not None:
            # RE2/J takes a brace that begins no repetition for a character, but what follows for a second repetition.
            raise RegexSyntaxError("invalid nested repetition operator")
        parts.append(text)
    return "".join(parts)


def _escape(text: str) -> str:
    if text == "\\C":  # one byte, in RE2 alone
        raise RegexSyntaxError("invalid escape sequence")
    if len(text) == 2 and not text.isascii():
        return f"\\x{{{ord(text[1]):x}}}"  # RE2/J: a character beyond ASCII stands for itself
    found = _UNICODE_CLASS.fullmatch(text)
    if found is not None and found[1] in NOT_IN_RE2J:
        raise RegexSyntaxError("invalid character class range")
    if found is not None and found[1] == "Unknown":
        return text.replace("Unknown", "Co")  # a class of RE2/J alone; like the private use area it has no ASCII character
    return text


def _check_name(name: str, names: set[str]) -> None:
    if not re.fullmatch(r"\w+", name, re.ASCII):
        raise RegexSyntaxError("invalid named capture")
    if name in names:
        raise RegexSyntaxError("duplicate capture group name")
    names.add(name)


def _words_of_re2j(error: Exception) -> str:
    message = error.args[0]
    words, _, found = (message.decode(errors="replace") if isinstance(message, bytes) else str(message)).partition(": ")
    return _WORDS.get((words, found[:3]), _WORDS.get(words, words))


@dataclass(slots=True)
class _Open:
    """A group that is not closed yet: where it begins, and how many copies its repetitions make of something at most."""

    start: int
    copies: int = 1


def _without_nested_counts(regex: str) -> str:
    """Return ``regex`` with repetitions of repetitions spelt out, where they multiply to more than RE2's 1,000 copies.

    ``(?:a{100}){11}`` becomes ``(?:a{100}){10}(?:a{100}){1}``, which is the same language. RE2/J has no such limit.
    """
    parts: list[str] = []
    groups = [_Open(0)]
    atom = _Open(0)
    for token in _TOKEN.finditer(regex):
        text = token.group()
        if text.startswith("("):
            groups.append(_Open(len(parts)))
        elif text == ")" and len(groups) > 1:
            atom = groups.pop()
        elif token["repetition"] is not None:
            text = _repeated("".join(parts[atom.start :]), atom, text)
            del parts[atom.start :]
            if len(text) > MAX_TEXT:
                raise RegexSyntaxError("invalid repeat count")
        else:
            atom = _Open(len(parts))
        groups[-1].copies = max(groups[-1].copies, atom.copies)
        parts.append(text)
    return "".join(parts)


def _repeated(text: str, atom: _Open, repetition: str) -> str:
    low, _, high = repetition[1:-1].partition(",")
    least, most = int(low), int(high or low)
    if max(least, most) > MAX_COPIES or least > most:
        raise RegexSyntaxError("invalid repeat count")
    if most * atom.copies <= MAX_COPIES:
        atom.copies *= max(most, 1)
        return text + repetition
    at_once = MAX_COPIES // atom.copies
    atom.copies *= at_once
    copies = [f"{text}{{{at_once}}}"] * (least // at_once) + [f"{text}{{{least % at_once}}}"]
    if repetition.endswith(",}"):
        return "".join((*copies, f"{text}*"))
    return "".join(
        (*copies, *[f"{text}{{0,{at_once}}}"] * ((most - least) // at_once), f"{text}{{0,{(most - least) % at_once}}}")
    )
