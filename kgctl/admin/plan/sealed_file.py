"""Undo files and plans: CSV between a first line that says whose it is, and a last line that says that it is whole.

The first line names the cluster, the command, the time and the groups; the last has the number of rows and a digest of everything
before it. A file without its last line was cut short, by a full disk say, and is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from kgctl.errors import UsageError

_MARK = "# kgctl "
_END = re.compile(r"# end rows=(\d+) sha256=([0-9a-f]{64})\n?")


@dataclass(frozen=True, slots=True)
class FileHeader:
    """Whose file it is. ``cluster_id`` is the cluster's own id, or its address where it has none; ``kind`` is undo or plan."""

    kind: str
    cluster_id: str
    cluster: str
    command: str
    time_ms: int
    groups: tuple[str, ...]
    partitions: int


def seal(header: FileHeader, csv_text: str) -> str:
    """The file's whole text. ``csv_text`` has one header line and ``header.partitions`` rows."""
    body = f"{_MARK}{json.dumps(asdict(header), ensure_ascii=False)}\n{csv_text}"
    return f"{body}# end rows={header.partitions} sha256={_digest(body)}\n"


def unseal(text: str, name: str) -> tuple[FileHeader | None, str]:
    """The header and the CSV, whose first line is left empty so that line numbers stay; a file that has no seal is all CSV.

    Raises:
        UsageError: the file is sealed, and not whole or not as it was written.
    """
    if not text.startswith(_MARK):
        return None, text
    body, _, last = text.rstrip("\n").rpartition("\n")
    found = _END.fullmatch(last)
    if found is None:
        raise UsageError(f"{name} is cut short: its last line, with the number of rows, is missing; nothing of it is used")
    if _digest(f"{body}\n") != found[2]:
        raise UsageError(
            f"{name} is not as kgctl wrote it: its digest differs (without its first and its last line it is used as it stands)"
        )
    first, _, rest = body.partition("\n")
    return read_header(first, name), f"\n{rest}\n"


def read_header(line: str, name: str) -> FileHeader | None:
    """The header that a file's first line is; None where it is none.

    Raises:
        UsageError: it is one of another version of kgctl.
    """
    if not line.startswith(_MARK):
        return None
    try:
        found = json.loads(line.removeprefix(_MARK))
        known = {field.name: found[field.name] for field in fields(FileHeader)}
    except (json.JSONDecodeError, KeyError, TypeError):
        raise UsageError(f"{name}, line 1: written by another version of kgctl, and not readable") from None
    return FileHeader(**{**known, "groups": tuple(known["groups"])})


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def named_groups(groups: Sequence[str], at_most: int = 3) -> str:
    """``'a', 'b' and 7 more``."""
    shown = ", ".join(map(repr, groups[:at_most]))
    return shown if len(groups) <= at_most else f"{shown} and {len(groups) - at_most} more"
