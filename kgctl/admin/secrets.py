"""Secrets that a setting only points to: ``env:NAME``, ``file:PATH``, ``cmd:COMMAND``. None of them ever stands in a message."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from kgctl.errors import UsageError

_SECRET = ("password", "secret", "jaas", "pem", "token", "credentials")
_COMMAND_TIMEOUT_S = 30


def is_secret(key: str) -> bool:
    """Whether a property of this name may hold a secret."""
    return any(word in key for word in _SECRET)


def is_pointer(value: str) -> bool:
    """Whether a value says where the secret is, and is none itself."""
    return value.startswith(("env:", "file:", "cmd:"))


def resolved(properties: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    """The properties with each secret in the place of what points to it.

    Raises:
        UsageError: a variable is not set, a file cannot be read, a command fails; names the property.
    """
    return {
        key: _read(key, value, variables) if is_secret(key) and is_pointer(value) else value for key, value in properties.items()
    }


def _read(key: str, value: str, variables: Mapping[str, str]) -> str:
    kind, _, rest = value.partition(":")
    if kind == "env":
        if not variables.get(rest):
            raise UsageError(f"{key}: the variable {rest} is not set")
        return variables[rest]
    if kind == "file":
        try:
            return Path(rest).expanduser().read_text(encoding="utf-8").rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{key}: cannot read {rest}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    return _output(key, rest, variables)


def _output(key: str, command: str, variables: Mapping[str, str]) -> str:
    """The first line that the command writes; it runs without a shell."""
    try:
        words = shlex.split(command)
        ran = subprocess.run(  # noqa: S603 - the user's own configuration names it
            words, capture_output=True, text=True, timeout=_COMMAND_TIMEOUT_S, check=False, env=dict(variables)
        )
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{key}: cannot run {command!r}: {getattr(error, 'strerror', None) or error}") from None
    if ran.returncode or not ran.stdout.strip():
        raise UsageError(
            f"{key}: {command!r} ended with {ran.returncode} and {'no' if not ran.stdout.strip() else 'some'} output"
        )
    return ran.stdout.splitlines()[0].strip()


def warning(path: Path, properties: Mapping[str, str]) -> str | None:
    """What to say of a file that others can read and that holds a secret itself; None where all is well."""
    literal = sorted(key for key, value in properties.items() if is_secret(key) and not is_pointer(value))
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if not literal or os.name != "posix" or not mode & (stat.S_IRGRP | stat.S_IROTH):
        return None
    held = ", ".join(literal)
    return f"Others can read {path}, which holds {held}: chmod 600 it, or write env:NAME, file:PATH or cmd:COMMAND there."
