"""The one way in which kgctl asks before it destroys something."""

from __future__ import annotations

from kgctl.cli.session import Session
from kgctl.errors import KgctlError


def confirm(session: Session, question: str, *, yes: bool) -> None:
    """Go on if the answer is yes: read from stdin, or given by ``--yes`` without asking. The end of stdin is a no.

    Raises:
        KgctlError: the answer is no, or none; nothing may be changed (exit code 1).
    """
    if yes:
        return
    environment = session.environment
    environment.stderr.write(f"{question} [y/N] ")
    environment.stderr.flush()
    answer = environment.stdin.readline()
    if not environment.stdin.isatty():
        environment.stderr.write("\n")
    if answer.strip().lower() not in ("y", "yes"):
        hint = "" if answer else " (no answer on stdin; --yes answers yes)"
        raise KgctlError(f"not confirmed; nothing was changed{hint}", code="DECLINED")
