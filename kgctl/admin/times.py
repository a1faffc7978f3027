"""Points in time and spans of time, as people write them and as they are shown."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta

from kgctl.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, which every form of a time can say."""

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SHORT = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[a-zA-Z]+)")
_WORDS = re.compile(r"(?<=[0-9 ])(?P<unit>second|sec|minute|min|hour|day|week)s?(?![a-z])", re.IGNORECASE)
"""Units as people say them: ``2 hours``."""
_ISO = re.compile(
    r"P(?:(?P<years>\d+(?:\.\d+)?)Y)?(?:(?P<months>\d+(?:\.\d+)?)M)?(?:(?P<w>\d+(?:\.\d+)?)W)?(?:(?P<d>\d+(?:\.\d+)?)D)?"
    r"(?P<time>T(?:(?P<h>\d+(?:\.\d+)?)H)?(?:(?P<m>\d+(?:\.\d+)?)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_MISTAKEN = {8: "a date: write it as 2024-01-31", 10: "seconds since 1970: write milliseconds, three digits more"}
"""What a bare number of so many digits was probably meant as."""
_LONGEST_DURATION = 100
_DURATION_HELP = "write P7D, PT1H, PT30M, or 2d, 1h, 1h30m, 90s, 500ms"


def parse_instant_ms(text: str) -> int:
    """Read a point in time: milliseconds since the epoch.

    Takes ISO 8601 with or without fractions of a second, ``Z``, ``+02:00``, ``+0200`` or ``+02``; a date alone (its first
    moment); or epoch milliseconds. Without a zone it means UTC, as in Kafka's tool. What lies between two milliseconds is rounded
    up, so that no record before the time asked for is found.

    Raises:
        UsageError: the text is nothing of that.
    """
    stripped = text.strip()
    if stripped.isdecimal() and stripped.isascii():
        return _epoch_ms(stripped)
    try:
        moment = datetime.fromisoformat(stripped)
    except ValueError:
        raise UsageError(
            f"cannot read {text!r} as a time: write 2024-01-31T10:00:00Z, 2024-01-31T10:00:00+02:00, 2024-01-31 "
            "(without a zone: UTC) or milliseconds since 1970"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    milliseconds = -((_EPOCH - moment) // timedelta(milliseconds=1))
    if milliseconds < 0:
        raise UsageError(f"the time {text!r} is before 1970, when no record can have been written")
    return milliseconds


def second_reading(text: str, now_ms: int) -> str:
    """A sentence where a wall clock's time comes twice, as clocks were turned back, and is read as the first; else ""."""
    second = parse_past_instant_ms(text, now_ms, fold=1)
    is_once = second == parse_past_instant_ms(text, now_ms)
    return "" if is_once else f" It came twice, as clocks were turned back; the second is {format_instant(second)}."


def parse_past_instant_ms(text: str, now_ms: int, *, fold: int = 0) -> int:
    """Read a point in time as `parse_instant_ms` does, or one that ``now_ms`` tells.

    ``now``; so long before: ``2h ago``, ``PT90S ago``; or of a day, in UTC unless a zone is named: ``yesterday``,
    ``today 08:30``, ``yesterday 14:00 Europe/Berlin``, ``2024-01-31 14:00 Europe/Berlin``, ``2024-01-31 Europe/Berlin``.

    A wall clock's time that comes twice is the first of them, with ``fold`` 1 the second.

    Raises:
        UsageError: the text is nothing of that, or a wall clock's time that is skipped where clocks are put forward.
    """
    words = text.split()
    if len(words) == 2 and _DATE_AND_CLOCK.fullmatch(words[0]) and words[1][0].isalpha():
        words = [*re.split("[Tt]", words[0]), words[1]]
    if [word.lower() for word in words] == ["now"]:
        return now_ms
    if words and words[-1].lower() == "ago":
        return max(0, now_ms - parse_duration_ms(" ".join(words[:-1])))
    if words and (words[0].lower() in _DAYS or (_DATE.fullmatch(words[0]) and words[-1][0].isalpha())):
        return _of_day(text, words, now_ms, fold)
    try:
        return parse_instant_ms(text)
    except UsageError as error:
        raise UsageError(f"{error.message}{_meant(text.strip())}") from None


def _meant(text: str) -> str:
    """What a clock alone, or a span, was probably meant as; "" for other texts."""
    if _CLOCK.fullmatch(text):
        return f"; did you mean 'today {text}'?"
    if _SHORT.match(text) and "-" not in text:
        return f"; did you mean '{text} ago'?"
    return ", or `2h ago`, `now`, `yesterday 14:00`" if text and not text[0].isdigit() else ""


_DAYS = {"today": 0, "yesterday": 1}


def _of_day(text: str, words: list[str], now_ms: int, fold: int) -> int:
    """``yesterday [HH:MM[:SS]] [ZONE]``, or a date instead: a wall clock's time in that zone."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    rest = words[1:]
    has_clock = bool(rest) and _CLOCK.fullmatch(rest[0]) is not None
    clock = time.fromisoformat(rest.pop(0)) if has_clock else time()
    try:
        zone = ZoneInfo(rest.pop(0)) if rest else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"no time: {text!r} names no time zone as Europe/Berlin") from None
    if rest:
        raise UsageError(f"no time: {text!r}; a day is written as 'yesterday 14:00 Europe/Berlin'")
    if words[0].lower() in _DAYS:
        day = datetime.fromtimestamp(now_ms / 1000, zone).date() - timedelta(days=_DAYS[words[0].lower()])
    else:
        day = _date(words[0])
    moment = datetime.combine(day, clock, zone)
    there = moment.astimezone(UTC).astimezone(zone)
    if there.replace(tzinfo=None) == moment.replace(tzinfo=None):
        return int(moment.replace(fold=fold).timestamp() * 1000)
    if has_clock or there.date() != day:  # a day without its midnight has a first moment
        raise UsageError(f"no time: {text!r} is skipped, as clocks are put forward there: {there:%Y-%m-%d %H:%M} comes after it")
    return int(there.timestamp() * 1000)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"no time: there is no day {text!r}") from None


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATE_AND_CLOCK = re.compile(r"\d{4}-\d{2}-\d{2}[Tt][\d:]+")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def _epoch_ms(digits: str) -> int:
    if meant := _MISTAKEN.get(len(digits)):
        raise UsageError(f"the time {digits!r} looks like {meant}")
    if len(digits) > 15 or int(digits) > LATEST_MS:
        raise UsageError(f"the time {digits!r} is out of range: give milliseconds since 1970")
    return int(digits)


def format_instant(instant_ms: int) -> str:
    """A point in time as ``2024-01-31T10:00:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=instant_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant_ms % 1000:03d}Z"


def parse_duration_ms(text: str) -> int:
    """Read a span of time in milliseconds, rounded up: ISO 8601 (``P7D``, ``PT1H``) or short (``2d``, ``1h30m``, ``2 hours``).

    Raises:
        UsageError: not a span, a negative one, or one of months or years, which have no fixed length.
    """
    from fractions import Fraction

    stripped = text.strip()
    if len(stripped) > _LONGEST_DURATION:
        raise UsageError(f"cannot read {stripped[:20]!r}... as a duration: {_DURATION_HELP}")
    if _WORDS.search(stripped):
        stripped = _WORDS.sub(lambda found: found["unit"][0].lower(), stripped).replace(" ", "")
    if stripped.startswith("-") or "-" in stripped:
        raise UsageError(f"the duration {text!r} is negative: write it without a sign")
    parts = _iso_parts(stripped, text) if stripped[:1] in "Pp" and stripped else _short_parts(stripped, text)
    total = sum((Fraction(number) * _UNIT_MS[unit] for number, unit in parts), Fraction(0))
    if total > LATEST_MS:
        raise UsageError(f"the duration {text!r} is out of range")
    return math.ceil(total)


def _iso_parts(stripped: str, text: str) -> list[tuple[str, str]]:
    match = _ISO.fullmatch(stripped)
    if match is None or match["time"] in ("T", "t"):
        raise UsageError(f"cannot read {text!r} as a duration: {_DURATION_HELP}")
    for unit, example in (("years", "P365D"), ("months", "P30D, or PT1M for one minute")):
        if match[unit]:
            raise UsageError(f"the duration {text!r} counts {unit}, which have no fixed length: write days, {example}")
    parts = [(match[unit], unit) for unit in ("w", "d", "h", "m", "s") if match[unit]]
    if not parts:
        raise UsageError(f"the duration {text!r} has no length: {_DURATION_HELP}")
    return parts


def _short_parts(stripped: str, text: str) -> list[tuple[str, str]]:
    parts = [(match["number"], match["unit"]) for match in _SHORT.finditer(stripped)]
    if not parts or "".join(number + unit for number, unit in parts) != stripped:
        hint = "a unit is missing; " if stripped.isdecimal() else ""
        raise UsageError(f"cannot read {text!r} as a duration: {hint}{_DURATION_HELP}")
    for _, unit in parts:
        if unit in ("M", "y", "Y", "mo"):
            raise UsageError(
                f"the duration {text!r} counts months or years, which have no fixed length: "
                "write days, 30d (minutes are a small m)"
            )
        if unit not in _UNIT_MS:
            raise UsageError(f"cannot read {text!r} as a duration: {unit!r} is no unit; {_DURATION_HELP}")
    return parts
