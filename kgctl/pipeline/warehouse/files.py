"""Files that are there whole or not at all: written beside their place, flushed to the device, then renamed."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kgctl.errors import StorageError

TEMPORARY = ".tmp"
_ROW_GROUP_ROWS = 262_144


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace ``path`` by this JSON. Raises `StorageError`."""
    data = (json.dumps(content, separators=(",", ":"), sort_keys=True) + "\n").encode()
    _replace(path, lambda file: file.write(data))


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in ``path``; None where there is no such file. Raises `StorageError`."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise StorageError(f"{path}: damaged, not JSON: {error}") from error
    if not isinstance(found, dict):
        raise StorageError(f"{path}: damaged, no JSON object")
    return found


def write_table(path: Path, table: Any, *, compression_level: int = 1) -> None:
    """Replace ``path`` by this pyarrow table, as Parquet with zstd. Raises `StorageError`."""
    _replace(path, lambda file: encode_table(table, file, compression_level=compression_level))


def encode_table(table: Any, file: Any, *, compression_level: int = 1) -> None:
    """Write what `write_table` writes to an open file or stream; the same table gives the same bytes."""
    import pyarrow.parquet as pq

    options = {"compression": "zstd", "compression_level": compression_level, "row_group_size": _ROW_GROUP_ROWS}
    pq.write_table(table, file, **options, **_encodings(table.schema))


def _encodings(schema: Any) -> dict[str, Any]:
    """Dictionaries for texts and keys, which repeat; differences for integers, which ascend: half the time, half the size.

    Smallest and greatest values are kept of groups and times: those are what readers leave row groups out by.
    """
    from pyarrow import types

    numbers = {field.name: "DELTA_BINARY_PACKED" for field in schema if types.is_int32(field.type) or types.is_int64(field.type)}
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_dictionary(field.type)]
    ranges = [name for name in schema.names if name == "group" or name.endswith("_ms")]
    return {"write_statistics": ranges, "use_dictionary": [*texts, *({"key"} & set(schema.names))], "column_encoding": numbers}


def read_table(path: Path, columns: list[str] | None = None, **options: Any) -> Any:
    """A Parquet file as a pyarrow table; ``options`` are those of pyarrow.parquet.ParquetFile. Raises `StorageError`."""
    import pyarrow.parquet as pq

    with parquet_errors(path), pq.ParquetFile(path, **options) as file:
        return file.read(columns)


@contextmanager
def parquet_errors(path: Path, remedy: str = "") -> Iterator[None]:
    """A Parquet file that cannot be read, as a `StorageError` that names it; ``remedy``: what helps."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: cannot be read: {one_line(error)}" + (f"; {remedy}" if remedy else "")) from error


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """What the operating system refuses, as a `StorageError` that names the file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or one_line(error)}") from error


def _replace(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    mine = f"{path.name}.{socket.gethostname()}-{os.getpid()}"  # Spark may try a task twice, on two machines
    temporary = path.with_name(mine + TEMPORARY)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush_folder(path.parent)


def flush_folder(folder: Path) -> None:
    """A rename is on the device when its folder is; systems that cannot open folders do without."""
    if os.name == "nt":  # pragma: no cover - other systems
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def one_line(error: BaseException) -> str:
    """What it says, without line breaks."""
    return " ".join(str(error).split())
