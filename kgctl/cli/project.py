"""Contexts of two files: the user's own, and a project's ``.kgctl.yml``, found from the working folder upwards; and trust.

A project's file comes with somebody else's repository, perhaps. One that only says where clusters are is used as it stands. One
that belongs to another user, that others can write, or that says more (a command to run, a secret to read, a file, a setting
that loads code) is used when its user has looked at it and said so: ``kgctl context trust``. Trust is of one content: a change
of the file is asked about again.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.admin.connect import ClusterContext, ConfigFile, is_pointer, load_config_file, parse_config_file
from kgctl.errors import RefusedError, StorageError
from kgctl.files import at_home, own_folder, text_of
from kgctl.model.values import frozen_in_order

if TYPE_CHECKING:
    from kgctl.cli.environment import Environment

NAME = ".kgctl.yml"
HARMLESS = frozenset({"security.protocol", "sasl.mechanism", "client.id", "client.rack", "client.dns.lookup"})
"""Properties that neither run, read nor load anything."""


@frozen_in_order
class Contexts:
    """The contexts of both files; those of the project hide the user's of the same name. ``doubts``: why it is not trusted."""

    user: ConfigFile
    project: ConfigFile | None = None
    doubts: tuple[str, ...] = ()

    @property
    def current(self) -> str | None:
        """The name of the current context: the project's, where it has one."""
        return (self.project.current_context if self.project else None) or self.user.current_context

    def all(self) -> dict[str, ClusterContext]:
        """Every context, by name."""
        return {**self.user.contexts, **(self.project.contexts if self.project else {})}

    def file_of(self, name: str) -> Path:
        return self.project.path if self.project and name in self.project.contexts else self.user.path

    def context(self, name: str | None = None) -> ClusterContext:
        """The context of this name, or the current one; without a name where there is none.

        Raises:
            UsageError: there is no such context.
            RefusedError: it is said by a file that is not trusted.
        """
        wanted = name or self.current
        if wanted is None:
            return ClusterContext("")
        by_project = self.project is not None and (wanted in self.project.contexts or (not name and self.project.current_context))
        if by_project and self.doubts:
            assert self.project is not None
            raise RefusedError(
                f"{self.project.path} is not trusted: {'; '.join(self.doubts)}. Look at it, then: kgctl context trust",
                code="NOT_TRUSTED",
            )
        return replace(self.user, contexts=self.all()).context(wanted)


def read_contexts(environment: Environment) -> Contexts:
    """Both files; where KGCTL_CONFIG names one, that alone.

    Raises:
        UsageError: one of them cannot be read.
    """
    user, path = load_config_file(environment.config_file), project_file(environment.variables)
    if path is None:
        return Contexts(user)
    text, project = read_project_file(path)
    return Contexts(user, project, () if _record(path, text).exists() else tuple(_doubts(path, project)))


def project_file(variables: Mapping[str, str]) -> Path | None:
    """Return the nearest file of a project, from the working folder upwards; None where there is none, or KGCTL_CONFIG is set."""
    if variables.get("KGCTL_CONFIG"):
        return None
    try:
        here = Path.cwd()
    except OSError:  # the folder is gone
        return None
    return next((folder / NAME for folder in (here, *here.parents) if _is_file(folder / NAME)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder above that this user may not look into
        return False


def read_project_file(path: Path) -> tuple[str, ConfigFile]:
    """Its text, and what it says; paths are as seen from where it lies.

    Raises:
        UsageError: it cannot be read.
    """
    text = text_of(path)
    config = parse_config_file(path, text)
    return text, replace(config, contexts={name: _placed(context, path.parent) for name, context in config.contexts.items()})


def _placed(context: ClusterContext, folder: Path) -> ClusterContext:
    embedded, command_config = (
        str(folder / at_home(place)) if place else None for place in (context.embedded, context.command_config)
    )
    return replace(context, embedded=embedded, command_config=command_config)


def _doubts(path: Path, config: ConfigFile) -> Iterator[str]:
    """What is to be looked at before the file may be used."""
    found = path.stat()
    if os.name == "posix" and found.st_uid != os.getuid():
        yield f"it belongs to another user (id {found.st_uid})"
    if os.name == "posix" and found.st_mode & stat.S_IWOTH:
        yield "every user can write it"
    for name, context in sorted(config.contexts.items()):
        said = [f"{key} runs a command" for key, value in context.properties.items() if value.startswith("cmd:")]
        said += [f"{key} reads a secret" for key, value in context.properties.items() if _is_secret_elsewhere(value)]
        said += [f"it sets {key}" for key, value in context.properties.items() if key not in HARMLESS and not is_pointer(value)]
        said += ["it has a command-config"] if context.command_config else []
        if said:
            yield f"context {name!r}: {', '.join(said)}"


def _is_secret_elsewhere(value: str) -> bool:
    return is_pointer(value) and not value.startswith("cmd:")


def _record(path: Path, text: str) -> Path:
    """The file whose presence says that this text is trusted in this place."""
    digest = hashlib.sha256(f"{path.resolve()}\0{text}".encode()).hexdigest()
    return own_folder("state") / "trusted" / digest


def trust(path: Path, text: str, *, is_trusted: bool) -> None:
    """Keep that the file is, or is no longer, trusted as it is.

    Raises:
        StorageError: that cannot be written.
    """
    record = _record(path, text)
    try:
        if not is_trusted:
            record.unlink(missing_ok=True)
            return
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record.write_text(f"{path.resolve()}\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {record}: {error.strerror or error}") from None
