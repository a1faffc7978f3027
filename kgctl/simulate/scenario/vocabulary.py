"""What the language has words for: why nobody consumes a partition, what sets a rebalance off, metrics, selectors of pods.

And what others call all that, for whoever guesses a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kgctl import errors
from kgctl.model.meanings import MeantNumber
from kgctl.model.values import frozen, frozen_in_order, quick_enum
from kgctl.simulate.scenario.quantities import parse_share, shown


class Identity(StrEnum):
    """What makes an owner another one: a pod that comes back with a new ``member.id`` is the same by POD only."""

    POD = "pod"
    MEMBER_ID = "member-id"


class EventStage(StrEnum):
    """What becomes of an event of the scenario, in the words of the event log."""

    BEGINS = "begins"
    ENDS = "ends"
    ABORTED = "is aborted"
    NO_EFFECT = "has no effect"
    LEFT_OUT = "is left out"


class PodChange(StrEnum):
    """What becomes of a pod's process, in the words of the event log."""

    BOOT = "boot"
    START = "start"
    """It subscribes."""
    STALL = "stall"
    UNSTALL = "unstall"
    SLOW = "slow"
    UNSLOW = "unslow"
    PAUSE = "pause"
    RESUME = "resume"
    FAILED = "failed"
    STOP = "stop"
    """SIGTERM."""
    STOPPED = "stopped"
    KILLED = "killed"
    """SIGKILL, as its grace period is over."""
    EXIT = "exit"
    CRASH = "crash"

    @property
    def is_end(self) -> bool:
        """Whether the process is gone."""
        return self in _ENDS


class WaitedFor(StrEnum):
    """What of its application a member waits for: the setting, or the key of a scenario, that says how long that takes."""

    POLL = "poll"
    BATCH = "max.poll.records"
    STALL = "max.poll.interval.ms"
    ASSIGNOR = "assign_time"
    REVOKED = "callbacks.revoked"
    ASSIGNED = "callbacks.assigned"
    LOST = "callbacks.lost"


_ENDS = frozenset({PodChange.STOPPED, PodChange.KILLED, PodChange.EXIT, PodChange.CRASH})


class NamedCause(MeantNumber):
    """A base of enums of what can be the reason for something."""

    @property
    def label(self) -> str:
        """Return the cause's name in metrics and logs."""
        return self.name.lower()


@quick_enum
class GapCause(NamedCause):
    """The causes of a gap. A gap is split where its cause changes."""

    REBALANCE = 0, "the owner lives and had to give the partition up for a rebalance"
    HANDOVER = 1, "given up to move, the next owner does not have it yet"
    DETECTION = 2, "the owner is gone and the coordinator does not know"
    STATIC_WAIT = 3, "the owner is down, the partition is kept for its instance id"
    BOOT = 4, "no member is there that could take it"
    STALL = 5, "the owner's process does not go on, or is past max.poll.interval.ms"
    DISCOVERY = 6, "the partition exists and the group has not seen it"
    COORDINATOR = 7, "there is no coordinator"
    FETCH = 8, "the owner runs its callback or fetches its offset"
    BROKER = 9, "a broker with the partition is away, and nobody can read it"
    RESTORE = 10, "the owner has the task and restores its state"


class OnPoison(StrEnum):
    """What an application of a share group does with a record that it cannot process."""

    CRASH = "crash"
    RELEASE = "release"
    REJECT = "reject"


class GivenBack(NamedCause):
    """Why a record of a share group is not its member's any more, without being acknowledged."""

    RELEASED = 0, "its application released it"
    TIMED_OUT = 1, "its lock timed out"
    CRASHED = 2, "its process died"
    CLOSED = 3, "its consumer closed with the record unacknowledged"
    BROKER = 4, "the broker that leads the partition died"
    REJECTED = 5, "its application rejected it"


HEARTBEATS: Mapping[str, str] = {
    "classic": "Heartbeat",
    "consumer": "ConsumerGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
}
"""What members speak with their coordinator -> the request that is their heartbeat, by Kafka's name."""

FAILOVER = "CoordinatorFailover"
"""Begins the trigger of a rebalance that there is because the coordinator failed."""


REBALANCE_CAUSES: Mapping[str, str] = {
    FAILOVER: "coordinator_failover",
    "JoinGroup": "join",
    "LeaveGroup": "leave",
    "timer": "timeout",
    "SyncGroup": "sync",
    "TopicsChanged": "topics",
}
"""What sets a rebalance off -> its name in ``rebalances(cause ...)``; other requests have their own."""


def rebalance_causes() -> tuple[str, ...]:
    """Return the names that ``rebalances(cause ...)`` takes."""
    return (*REBALANCE_CAUSES.values(), *HEARTBEATS.values(), "RegexResolved")


@frozen_in_order
class TroubleKind:
    """What fails a run without being asked for, unless the file's ``allow`` has its name.

    ``check``: what is expected, in the words of a report; ``metric``: an expectation that names it takes its place; "": none.
    """

    name: str
    check: str
    metric: str
    help: str


TROUBLES: Mapping[str, TroubleKind] = {
    kind.name: kind
    for kind in (
        TroubleKind("failed", "no consumer fails", "errors", "a consumer has thrown what its application does not survive"),
        TroubleKind("kicked", "no member is kicked", "kicked", "a member was taken out of the group while its process lived"),
        TroubleKind(
            "archived", "no record is given up", "archived", "a share group has given a record up, which nobody processed"
        ),
        TroubleKind(
            "timed_out",
            "no lock times out",
            "lock_timeouts",
            "a member of a share group had records for longer than their lock: others get them, too",
        ),
        TroubleKind("stuck", "no member is stuck", "stuck_members", "a consumer ran for more than 60 s outside of the group"),
        TroubleKind(
            "missing", "all pods are in the group at the end", "", "a pod that is wanted was not there for the last 60 s"
        ),
        TroubleKind(
            "unread",
            "all partitions are read at the end",
            "",
            "a partition had no consumer for the last 5 s and more: how long it stays so is not known",
        ),
        TroubleKind("no_effect", "each event has an effect", "", "an event found nothing that it could do, or was given up"),
        TroubleKind("not_started", "all begins before the end", "", "a pod's start or an event lies after the end of the run"),
        TroubleKind("not_ended", "all is over by the end", "", "an event was still under way at the end of the run"),
        TroubleKind("unsettled", "the group settles", "", "the run was ended by a limit, before the group was stable"),
    )
}


FORMS: Mapping[str, str] = {
    "missing": "this key is missing{write}",
    "int_type": "must be a whole number, not {value}",
    "int_from_float": "must be a whole number, not {value}",
    "string_type": "must be text, not {value}; write it in quotes",
    "instance_id": "must be text with $name, which stands for the pod's name, not {value}",
    "string_too_short": "must not be empty",
    "string_too_long": "has more than {max_length} letters",
    "bool_type": "must be true or false, not {value}",
    "dict_type": "must be a mapping, not {value}",
    "model_type": "must be a mapping, not {value}",
    "list_type": "must be a list, not {value}",
    "tuple_type": "must be a list, not {value}",
    "too_short": "must not be empty",
    "literal_error": "must be {expected}, not {value}",
    "greater_than_equal": "must be at least {ge}, not {value}",
    "less_than_equal": "must be at most {le}, not {value}",
}
_CHOICES = re.compile(r"'([^']*)'")


def in_words(error: Any, kind: str = "", example: str = "") -> str:
    """Return one of pydantic's errors in words. ``kind``: of `FORMS`, where it is not to be told as the error's own.

    ``example``: the line to write where something is missing.
    """
    value, context = error["input"], error.get("ctx") or {}
    if error["type"] == "value_error":
        return str(context["error"])
    if error["type"] == "literal_error" and len(choices := _CHOICES.findall(context["expected"])) > 1:
        return f"must be one of {', '.join(choices)}, not {shown(value)}{did_you_mean(str(value), choices)}"
    form = FORMS.get(kind or error["type"])
    if form is None:
        return f"{error['msg'][:1].lower()}{error['msg'][1:]}, not {shown(value)}"
    write = f"; write {example}" if example else ""
    return form.format(value=shown(value), write=write, **{name: context[name] for name in context if name != "error"})


NODE = "node"
"""Stands for a set of members in ``node/2``: all pods on that node, of whatever set."""


class Choice(StrEnum):
    """How a selector picks among the pods of its set."""

    ALL = "all"
    RANGE = "range"
    SHARE = "share"
    OLDEST = "oldest"
    LEADER = "leader"


@frozen
class Selector:
    """Pods of one set of members, or (``negated``) all others, those of other sets included.

    ``member_set`` None: of every set. ``first`` and ``last``, both included, are for RANGE (one pod: both the same);
    ``share_ppm`` is for SHARE, in millionths: that many of the pods, at least one, drawn by the seed. ``oldest`` is the pod that
    has run longest; ``leader`` the one that leads the classic group. ``text`` is what the file says.
    """

    text: str
    member_set: str | None = None
    choice: Choice = Choice.ALL
    first: int = 0
    last: int = 0
    share_ppm: int = 0
    negated: bool = False

    def matches(self, member_set: str, index: int) -> bool:
        """Whether a pod is meant; only for selectors that are fixed."""
        inside = self.member_set is None or self.member_set == member_set
        if self.choice is Choice.RANGE:
            inside = inside and self.first <= index <= self.last
        return inside != self.negated


SIMULATED_APIS = (
    *("FindCoordinator", "Metadata", "ListOffsets", "JoinGroup", "SyncGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
    *HEARTBEATS.values(),
)
"""The requests that consumers of a run send, by Kafka's names."""
CLIENT_ERRORS = ("ASSIGNOR_FAILED", "COMMIT_FAILED", "NO_OFFSET_FOR_PARTITION", "POISON_RECORD")
"""What consumers of a run throw without an answer of a broker; all else has a code of Kafka's."""

_SELECTOR = re.compile(r"(not\s+)?([^\s/]+)(?:/(\S+))?")


def parse_selector(raw: object) -> Selector:
    """Which pods are meant. Whether there is such a set of members is for the reader of the file to check.

    Raises:
        ValueError: it is no selector.
    """
    match = _SELECTOR.fullmatch(raw.strip()) if isinstance(raw, str) else None
    if match is None:
        raise ValueError(f"{shown(raw)} is no selector; write app, app/3, app/0..9, app/50%, app/oldest, app/leader or not app/3")
    negated, member_set, which = match.groups()
    named = None if member_set == "*" else member_set
    text = " ".join(str(raw).split())
    if which is None:
        return Selector(text=text, member_set=named, negated=bool(negated))
    choice, first, last, share_ppm = _which(which, text)
    return Selector(
        text=text, member_set=named, choice=choice, first=first, last=last, share_ppm=share_ppm, negated=bool(negated)
    )


def _which(which: str, text: str) -> tuple[Choice, int, int, int]:
    if re.fullmatch(r"\d{1,9}", which):
        return Choice.RANGE, int(which), int(which), 0
    if match := re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", which):
        first, last = int(match.group(1)), int(match.group(2))
        if first > last:
            raise ValueError(f"{text!r} ends before it begins")
        return Choice.RANGE, first, last, 0
    if which.endswith("%"):
        return Choice.SHARE, 0, 0, parse_share(which)
    if which in ("oldest", "leader"):
        return Choice(which), 0, 0, 0
    raise ValueError(f"{text!r}: after the slash stands a number, a range 0..9, a share 50%, oldest or leader")


def regular_expression(raw: str) -> str:
    try:
        re.compile(raw)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{raw!r} is no regular expression: {error}") from None
    return raw


class Subscribed(NamedTuple):
    """Topics, or a regular expression, which the brokers match, or the client; ``by`` "": as the group's protocol has it."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    by: str = ""

    def is_matched_by_client(self, protocol: str) -> bool:
        """Whether there is a pattern that no broker sees, in a group of this ``group.protocol``."""
        return self.pattern is not None and (protocol.lower() != "consumer" or self.by == "client")

    def refusal(self, client: str, protocol: str) -> str:
        """Why a client cannot subscribe so; "": it can."""
        if self.by == "broker" and protocol.lower() != "consumer":
            return "brokers match patterns in the consumer protocol alone (group.protocol: consumer); leave out `by`"
        if self.by == "client" and client != "java" and protocol.lower() == "consumer":
            return f"{client} has the brokers match its pattern in the consumer protocol; leave out `by`"
        return ""


MATCHED_BY = ("broker", "client")


def subscription(raw: object) -> Subscribed:
    """``[a, b]``, ``a``, ``"^regex"`` or ``{pattern: regex, by: broker}``."""
    if isinstance(raw, str) and not raw.startswith("^"):
        return Subscribed((raw,))
    if isinstance(raw, str):
        return Subscribed(pattern=regular_expression(raw))
    if isinstance(raw, list) and raw and all(isinstance(name, str) for name in raw):
        return Subscribed(tuple(raw))
    if isinstance(raw, dict) and isinstance(raw.get("pattern"), str) and raw.keys() <= {"pattern", "by"}:
        if raw.get("by", "client") not in MATCHED_BY:
            raise ValueError(f"`by` says who matches the pattern, {' or '.join(MATCHED_BY)}; not {shown(raw['by'])}")
        return Subscribed(pattern=regular_expression(raw["pattern"]), by=raw.get("by", ""))
    raise ValueError(
        f"must be a list of topics, a regular expression that begins with ^, or {{pattern: ..., by: broker}}; not {shown(raw)}"
    )


def did_you_mean(word: str, known: Iterable[str], *, list_up_to: int = 0, also: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return ``; did you mean 'members'?``: the same word in other letters, another's word for it, or one that is near.

    Where there is none, and the choice has at most ``list_up_to`` words, the whole choice. ``also``: what others call one of
    them -> it.
    """
    choice = list(known)
    others = {plain(other): name for other, name in also.items()}
    if meant := in_other_words(word, choice) or others.get(plain(word), ""):
        return f"; did you mean {meant!r}?"
    is_small = 0 < len(choice) <= list_up_to
    return errors.did_you_mean(word, choice, quoted=True) or (f"; known: {', '.join(choice)}" if is_small else "")


def in_other_words(word: str, choice: Sequence[str]) -> str:
    """Return which of them is meant for certain: the same word in other letters, or what others call it; "": none."""
    same = next((each for each in choice if plain(each) == plain(word)), "")
    named = next((each for each in other_words().get(plain(word), ()) if each.partition(":")[0] in choice), "")
    return same or named or _setting_of_config(word, choice)


def _setting_of_config(word: str, choice: Sequence[str]) -> str:
    """Return where a setting with dots in its name belongs: below ``config``, or ``set``."""
    place = next((each for each in ("config", "set", "with") if each in choice), "")
    return f"{place}: {{{word}: ...}}" if place and "." in word else ""


def plain(word: str) -> str:
    """Return the word in small letters and without separators: as it is compared with others."""
    return re.sub(r"[\s_.-]", "", word).lower()


@cache
def other_words() -> Mapping[str, Sequence[str]]:
    """What others call a key, as `plain` has it -> what it is here."""
    import yaml

    words = yaml.safe_load(Path(__file__).with_name("others.yaml").read_text(encoding="utf-8"))
    return {plain(word): meant for word, meant in words.items()}


class Tried(Enum):
    """Marks a field that is what a scenario tries: two that differ there alone ask the same question."""

    YES = True


TRIED = Tried.YES
