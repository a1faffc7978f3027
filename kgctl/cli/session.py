"""One run of kgctl: its environment, what was given on the command line, and the connection made from both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from kgctl.cli.environment import Environment
from kgctl.cli.settings import Flags, connection_settings

if TYPE_CHECKING:
    from kgctl.admin.client import GroupAdmin


class Session:
    """Lives as long as one command. Commands get theirs with `session_of`."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.flags = Flags()
        self.command = ""

    def notice(self, line: str) -> None:
        """Tell the user something beside the result, at once: one line on stderr."""
        self.environment.notice(line)

    @contextmanager
    def connect(self) -> Iterator[GroupAdmin]:
        """The cluster that flags, environment or context name.

        Raises:
            KgctlError: no cluster is named, or it cannot be reached.
        """
        settings = connection_settings(self.flags, self.environment)
        with self.environment.connect(settings) as admin:
            yield admin


def session_of(ctx: typer.Context) -> Session:
    """The session that this command runs in."""
    session = ctx.obj
    assert isinstance(session, Session)
    return session
