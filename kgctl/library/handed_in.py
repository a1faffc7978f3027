"""What a `kgctl.Coordinator` is handed in, behind a border: a maker of members' ids, and a clock."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from warnings import warn

from kgctl.coordinator.classic.group import ClassicGroup
from kgctl.coordinator.group import Group
from kgctl.errors import UserCodeError, defined_at, users_code

MAX_ID_BYTES = 2**15 - 1
"""What a text of the older versions' requests can hold."""

MakesIds = Callable[[str, str], str]
"""(client id, or a static member's instance id; client host) -> member id."""


class MemberIds:
    """Makes ids of members by a function of the user's: once a join, although the coordinator asks again."""

    def __init__(self, make: MakesIds) -> None:
        self._place = defined_at(make)
        self._make = make if _takes_a_host(make) else _without_host(make)
        self._made: str | None = None
        self._host = ""

    def of_join(self, group: Group | None, who: str, host: str) -> str:
        """Make the id of who joins without one; "" where nobody in the group has it, which is asked for it next.

        An id that is in use is that member's, who joins again: two clients with one id are one member.
        """
        self._host, self._made = host, self._checked(who, host)
        is_known = isinstance(group, ClassicGroup) and (self._made in group.members or self._made in group.pending_joins)
        return self._made if is_known else ""

    def __call__(self, prefix: str) -> str:
        made, self._made = self._made, None
        return made or self._checked(prefix, self._host)

    def _checked(self, who: str, host: str) -> str:
        with users_code("member_id"):
            made: object = self._make(who, host)
        if not isinstance(made, str) or not 0 < len(made.encode()) <= MAX_ID_BYTES:
            wanted = f"a text of 1 to {MAX_ID_BYTES} bytes"
            raise UserCodeError(f"member_id{self._place} answers {made!r:.60} for {who!r}, not {wanted}")
        return made


def _takes_a_host(make: Callable[..., str]) -> bool:
    try:
        inspect.signature(make).bind("", "")
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _without_host(make: Callable[..., str]) -> MakesIds:
    words = "Coordinator(member_id=...) takes a function of client id and client host; one of the client id alone goes with 0.2"
    warn(words, DeprecationWarning, stacklevel=6)
    return lambda who, _: make(who)


def checked_clock(clock_ms: Callable[[], int]) -> Callable[[], int]:
    """Return a clock of the user's, whose failures are told as its own."""

    def now_ms() -> int:
        with users_code("clock_ms"):
            now: object = clock_ms()
        if not isinstance(now, int):
            raise UserCodeError(f"clock_ms{defined_at(clock_ms)} answers {now!r:.60}, not a number of milliseconds")
        return now

    return now_ms
