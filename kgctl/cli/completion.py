"""``kgctl completion``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from kgctl.cli.session import session_of


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: source <(kgctl completion bash)")(completion)


def completion(
    ctx: typer.Context, shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.", show_default=False)]
) -> int:
    """Print the completion script of a shell: commands, options, and the names of groups, topics, members and contexts."""
    session_of(ctx).environment.stdout.write(script(shell))
    return 0


def script(shell: str) -> str:
    """Return the script, which asks ``kgctl`` itself what fits."""
    from typer._click.shell_completion import get_completion_class
    from typer._completion_classes import completion_init

    completion_init()
    kind = get_completion_class(shell)
    assert kind is not None
    root = typer.main.get_command(typer.Typer(callback=lambda: None))
    made = kind(cli=root, ctx_args={}, prog_name="kgctl", complete_var="_KGCTL_COMPLETE")
    return made.source().strip() + "\n"
