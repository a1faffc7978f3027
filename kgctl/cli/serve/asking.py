"""Reaching a running ``kgctl serve``: by its address, or by the data folder that it has open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.cli.session import Session
from kgctl.cli.settings import connection_settings
from kgctl.errors import UnreachableError, UsageError

if TYPE_CHECKING:
    from kgctl.wire.connection import Connection
    from kgctl.wire.deadline import Deadline


def is_folder(target: str | None) -> bool:
    """Whether a target names a data folder, not ``HOST:PORT``."""
    return target is not None and Path(target).is_dir()


def served_address(folder: Path) -> str | None:
    """Where the server listens that has the folder open; None where none has."""
    from kgctl.storage.files import ADDRESS_FILE, is_in_use, read_json

    found = read_json(folder / ADDRESS_FILE) if is_in_use(folder) else None
    return str(found["bootstrap"]) if isinstance(found, dict) and "bootstrap" in found else None


@contextmanager
def connected(session: Session, target: str | None) -> Iterator[tuple[Connection, Deadline]]:
    """A connection to the server at ``HOST:PORT``, of a data folder, or else that the shared options name.

    Raises `UnreachableError`, `AuthError` and `UsageError`.
    """
    from kgctl.wire.connection import open_connection
    from kgctl.wire.deadline import Deadline
    from kgctl.wire.settings import WireSettings, parse_bootstrap

    if target is not None and is_folder(target):
        address = served_address(Path(target))
        if address is None:
            raise UnreachableError(f"no kgctl serve runs on {target}")
        target = address
    if target is not None and "/" in target and "://" not in target:
        raise UsageError(f"there is no folder {target!r}, and it is no HOST:PORT")
    if target is not None:
        session.flags = replace(session.flags, bootstrap_server=target)
    settings = connection_settings(session.flags, session.environment)
    servers = settings.bootstrap or settings.properties.get("bootstrap.servers")
    if not servers:
        raise UsageError("no server is named: give HOST:PORT, or the data folder that it has open")
    deadline = Deadline(settings.timeout_ms)
    wire = WireSettings.from_properties({**settings.properties, "bootstrap.servers": servers})
    connection = open_connection(parse_bootstrap(servers)[0], wire, deadline)
    try:
        yield connection, deadline
    finally:
        connection.close()
