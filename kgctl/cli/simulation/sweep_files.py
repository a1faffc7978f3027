"""The files that a sweep leaves: a row for each run, in the format that the file's name says; and a page with charts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kgctl.cli.output.files import check_place, write_whole
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.simulate.sweep.rows import RowLayout, Value

Records = Sequence["Mapping[str, Value]"]


def check_out(path: Path) -> None:
    """Before minutes of work: raise `kgctl.errors.UsageError` for what could not be written after them."""
    if path.suffix not in _WRITERS:
        raise UsageError(f"--out {path}: its name must end in one of {', '.join(_WRITERS)}")
    if path.suffix == ".parquet":
        from kgctl.pipeline.extras import require

        require(f"--out {path}", "pyarrow")
    check_place(path)


def check_page(path: Path) -> None:
    """The same for ``--html``."""
    from kgctl.charts.library import require_library

    require_library()
    check_place(path)


def write_out(path: Path, layout: RowLayout, records: Records, metadata: Mapping[str, str]) -> None:
    """Write the rows; whoever reads ``path`` meanwhile sees all of them or what was there before.

    Raises:
        StorageError: it cannot be written.
    """
    write_whole(path, lambda file: _WRITERS[path.suffix](file, layout.kinds(), records, metadata))


def _parquet(file: BinaryIO, kinds: Mapping[str, type], records: Records, metadata: Mapping[str, str]) -> None:
    from kgctl.pipeline.parquet_file import write_rows

    write_rows(file, kinds, records, metadata=metadata)


def _csv(file: BinaryIO, kinds: Mapping[str, type], records: Records, _: Mapping[str, str]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kinds)
    writer.writerows([record[name] for name in kinds] for record in records)
    file.write(text.getvalue().encode())


def _json_lines(file: BinaryIO, _: Mapping[str, type], records: Records, __: Mapping[str, str]) -> None:
    file.writelines(f"{_json_text(record)}\n".encode() for record in records)


def _json(file: BinaryIO, _: Mapping[str, type], records: Records, metadata: Mapping[str, str]) -> None:
    file.write((json.dumps({**metadata, "rows": list(records)}, indent=1, ensure_ascii=False) + "\n").encode())


def _json_text(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False)


_WRITERS: Mapping[str, Callable[[BinaryIO, Mapping[str, type], Records, Mapping[str, str]], None]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _json_lines,
}
