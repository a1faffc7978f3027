"""Tokens of OAUTHBEARER that a program's own function makes, or a coroutine function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from kgctl.errors import KgctlError, UserCodeError, defined_at, users_code

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
R = TypeVar("R")
SOH = "\x01"
"""What separates the parts of the client's message, and is in no token."""
BEARER = "sasl.oauthbearer.token"
"""A token as it stands: what a command of one's own login prints, by ``cmd:COMMAND``; or a program's function that makes them."""

MakesTokens = Callable[[], "str | Awaitable[str]"]

waiting_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("waiting_loop", default=None)
"""The event loop that waits for what this thread does: there coroutines of the user's run, beside what they use."""


def waited_for(function: Callable[P, R]) -> Callable[P, R]:
    """The function for another thread, while this loop waits for it and runs what coroutines of the user's it calls."""
    import asyncio

    context = copy_context()
    context.run(waiting_loop.set, asyncio.get_running_loop())
    return partial(context.run, function)


class MadeToken(str):
    """Among properties, which are texts: a token that a function of the user's makes for each login."""

    __slots__ = ("make",)

    make: MakesTokens

    def __new__(cls, make: MakesTokens) -> Self:
        """Read as text it says where the function is, and nothing of a token."""
        found = super().__new__(cls, f"what a function makes{defined_at(make)}")
        found.make = make
        return found


def token_of(given: str) -> str:
    """The token that is given, or that the user's function makes now, a coroutine's in the loop that waits for it.

    Raises `UserCodeError`, and what of kgctl's that raises.
    """
    if not isinstance(given, MadeToken):
        return given
    with users_code(BEARER, lets_by=(KgctlError,), called=given.make):
        token: object = given.make()
        token = _awaited(token) if isinstance(token, Awaitable) else token
    if not isinstance(token, str) or not token or SOH in token:
        what = "an empty text" if token == "" else f"a {type(token).__name__} that is none"
        raise UserCodeError(f"{BEARER}{defined_at(given.make)} should make a token, and made {what}")
    return token


def _awaited(token: Awaitable[object]) -> object:
    """What a coroutine of the user's gives; what it raises comes with its own lines alone."""
    import asyncio  # most commands need no event loop
    from concurrent.futures import ThreadPoolExecutor

    async def made() -> tuple[object, BaseException | None]:
        try:
            return await token, None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - told by `users_code`
            return None, error

    if (loop := waiting_loop.get()) is not None and loop.is_running():
        found, error = asyncio.run_coroutine_threadsafe(made(), loop).result()
    else:
        with ThreadPoolExecutor(1, "kgctl-token") as thread:  # this one may have a loop, which stands still
            found, error = thread.submit(asyncio.run, made()).result()
    if error is not None:
        raise error
    return found
