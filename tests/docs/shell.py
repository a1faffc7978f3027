"""Runs the command lines of examples as a shell does, but kgctl in this process: starting Python for each would take a minute.

A line can have quotes, ``$?``, ``;``, ``&&``, pipes, ``> file``, and ``&`` at its end for a server, which is a process then.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from tests.docs.session import Session
from tests.support.patience import PATIENCE_S

HOME = "/home/you"
"""What pages show for the folder that the examples run in, which is the user's home."""


_STEADY = (
    (re.compile(r"127\.0\.0\.1:\d+ \(cluster id [\w-]{22}\)"), "broker1:9092 (cluster id 5L6g3nShT-eMCtK--X86sw)"),
    (re.compile(r"(history of cluster )'[\w-]{22}'"), r"\g<1>'5L6g3nShT-eMCtK--X86sw'"),
    (re.compile(r"--bootstrap-server 127\.0\.0\.1:\d+ undo"), "--bootstrap-server broker1:9092 undo"),
    (re.compile(r"\b20\d{6}T\d{6}Z-"), "20260302T084000Z-"),
    (re.compile(r"(Undoes `.*` of )20[\dT:.-]+Z"), r"\g<1>2026-03-02T08:40:00.000Z"),
)
"""What is another cluster's address and id, and another time, whenever a page is made."""


class _PageEnvironment(Environment):
    """The command line of somebody who installed kgctl."""

    @property
    def program(self) -> str:
        return "kgctl"


class Shell:
    """A terminal in one folder. The session is asked for the environment of each command before it runs."""

    def __init__(self, folder: Path, session: Session) -> None:
        self._folder = folder
        self._session = session
        self._status = 0
        self._servers = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End the servers that were started by lines with ``&`` at their end."""
        self._servers.close()

    def write(self, path: str, text: str) -> None:
        """Put a file into the folder."""
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / path).write_text(text, encoding="utf-8")

    def run(self, line: str) -> str:
        """What a terminal shows of this line, stdout and stderr together."""
        with contextlib.chdir(self._folder):
            shown = self._line(self._session.typed(line.replace("\\\n", " ")))
        shown = shown.replace(str(self._folder), HOME)
        for pattern, steady in _STEADY:
            shown = pattern.sub(steady, shown)
        return self._session.shown(shown)

    def _line(self, line: str) -> str:
        if line.endswith("&"):
            return self._serve(shlex.split(line.rstrip("& ")))
        words = shlex.shlex(line, posix=True, punctuation_chars=";|&>")
        words.whitespace_split = True
        words.commenters = ""
        shown = ""
        for separator, group in itertools.groupby(words, lambda word: word in (";", "&&")):
            if separator:
                if list(group) == ["&&"] and self._status:
                    break
            else:
                shown += self._pipeline(list(group))
        return shown

    def _pipeline(self, words: list[str]) -> str:
        """One or several commands; all but the last hand their stdout on, their stderr is shown."""
        shown, stdin = "", ""
        stages = [list(group) for is_pipe, group in itertools.groupby(words, lambda word: word == "|") if not is_pipe]
        for stage in stages[:-1]:
            err = io.StringIO()
            stdin = self._command(stage, stdin, err)
            shown += err.getvalue()
        (*last,) = stages[-1]
        if ">" in last:
            err = io.StringIO()
            Path(last[-1]).write_text(self._command(last[: last.index(">")], stdin, err), encoding="utf-8")
            return shown + err.getvalue()
        return shown + self._command(last, stdin, None)

    def _command(self, argv: Sequence[str], stdin: str, err: io.StringIO | None) -> str:
        """Run one command and return its stdout, with its stderr in between unless that goes to ``err``."""
        argv = [word.replace("$?", str(self._status)) for word in argv]
        variables = self._session.variables(argv)
        if argv[0] == "kgctl":
            out = io.StringIO()
            self._status = run(argv[1:], _PageEnvironment(io.StringIO(stdin), out, err or out, variables))
            return out.getvalue()
        ran = subprocess.run(
            argv,
            input=stdin,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        self._status = ran.returncode
        return ran.stdout

    def _serve(self, argv: Sequence[str]) -> str:
        """Start a server, and show its first line."""
        command = [sys.executable, "-m", *argv]
        process = self._servers.enter_context(
            subprocess.Popen(
                command, env=self._session.variables(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        self._servers.callback(process.terminate)
        assert process.stdout is not None
        return process.stdout.readline()
