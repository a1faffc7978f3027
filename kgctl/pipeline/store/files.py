"""Where a warehouse is, and its data files: Parquet with zstd under names that are never used twice, and what a commit says of
each."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from kgctl.errors import StorageError, UsageError
from kgctl.extras import require
from kgctl.files import at_home
from kgctl.model.values import frozen_in_order
from kgctl.pipeline.store.lookback import footer, row_groups_of
from kgctl.pipeline.store.tables import TABLES, StoredTable

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""How a URL begins. One letter and a colon is a drive."""

SCHEMES = ("file", "s3", "s3a", "gs", "abfss", "hdfs")


@frozen_in_order
class StoreLocation:
    """Made by `parse`. ``uri`` is an absolute path of this machine, or a URL without a slash at its end."""

    uri: str

    @classmethod
    def parse(cls, text: str | Path) -> StoreLocation:
        """Read a folder's path or a URL. Nothing is contacted.

        Raises `UsageError` (the URL's scheme is not handled, or names no bucket).
        """
        given = str(text)
        match = _SCHEME.match(given)
        scheme = match[1].lower() if match else "file"
        if scheme not in SCHEMES:
            raise UsageError(f"{given}: stores of the kind {scheme}: are not handled ({', '.join(SCHEMES)} are)")
        if scheme == "file":
            path = given[match.end() :] if match else given
            path = re.sub(r"^//(localhost)?(?=/)", "", path)
            return cls(str(at_home(path).absolute()))
        assert match is not None
        rest = given[match.end() :]
        if not rest.startswith("//") or not rest.strip("/"):
            raise UsageError(f"{given}: wanted is {scheme}://BUCKET/FOLDER")
        return cls(f"{'s3' if scheme == 's3a' else scheme}:{rest.rstrip('/')}")

    @property
    def is_local(self) -> bool:
        """Return whether the location is a folder of this machine."""
        return _SCHEME.match(self.uri) is None

    def __str__(self) -> str:
        return self.uri

    def child(self, name: str) -> str:
        """What is called ``name`` in it, as deltalake and Spark take it."""
        return f"{self.uri}/{name}"

    def filesystem(self) -> tuple[Any, str]:
        """Return (pyarrow's file system, the path in it)."""
        return _filesystem(self.uri)

    def storage_options(self) -> dict[str, str] | None:
        """What deltalake has to be told besides the environment."""
        if not self.uri.startswith("s3:"):
            return None
        options = {"aws_conditional_put": "etag"}  # else two writers need a lock service
        if _endpoint(os.environ).startswith("http:"):
            options["AWS_ALLOW_HTTP"] = "true"
        return options


def _endpoint(variables: Mapping[str, str]) -> str:
    return variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL") or ""


@lru_cache(maxsize=16)
def _filesystem(uri: str) -> tuple[Any, str]:
    from pyarrow import fs

    match = _SCHEME.match(uri)
    if match is None:
        return fs.LocalFileSystem(), uri
    if match[1] == "s3":
        endpoint = _endpoint(os.environ)
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        options = {"region": region} if region else {}
        if endpoint:
            scheme, _, host = endpoint.partition("://")
            options.update(endpoint_override=host.rstrip("/"), scheme=scheme)
        # Without a delay each file, however small, is an upload in parts: three requests instead of one.
        return fs.S3FileSystem(**options, allow_delayed_open=True), uri[len("s3://") :]
    found, path = fs.FileSystem.from_uri(uri)
    return found, path


_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1)
_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)


@frozen_in_order
class DataFile:
    """A file of a table, as a commit adds it. ``path`` is relative to the table's folder.

    ``low`` and ``high`` are the smallest and greatest values of the columns that the table keeps them of: texts, numbers, and
    times in milliseconds; a column without any value is missing. ``stats``, of a new file, are Delta's statistics.
    """

    path: str
    size: int
    rows: int
    date: str
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    stats: str = ""

    def may_hold(self, column: str, low: Any, high: Any) -> bool:
        """Whether a row may have a value from ``low`` to ``high``, ends included."""
        return column not in self.low or (self.low[column] <= high and self.high[column] >= low)


PROVISIONAL = "p"
"""How names of files begin whose rows may still change."""
_OF_PARTITIONS = re.compile(r"([bp])(\d+)-(\d+)-[0-9a-f]+\.parquet")


def prefix_of(first: int, last: int, *, is_provisional: bool) -> str:
    """How the name of a file begins that has the rows of groups of these partitions of the log, for good or until the next
    build."""
    return f"{PROVISIONAL if is_provisional else 'b'}{first}-{last}-"


def partitions_of(file: DataFile) -> tuple[int, int]:
    """The first and the last partition of the log that a file has rows of; of a file that does not say, all."""
    match = _OF_PARTITIONS.fullmatch(file.path.rsplit("/", 1)[-1])
    return (int(match[2]), int(match[3])) if match else (0, 1 << 30)


def is_provisional(file: DataFile) -> bool:
    """Whether its rows may still change: the next build of its partitions takes them away and makes them again."""
    return file.path.rsplit("/", 1)[-1].startswith(PROVISIONAL)


def _instant(time_ms: int) -> str:
    found = _INSTANT + timedelta(milliseconds=time_ms)
    return f"{found.strftime('%Y-%m-%dT%H:%M:%S').rjust(19, '0')}.{time_ms % 1000:03d}Z"


def write_files(location: StoreLocation, name: str, rows: pa.Table, prefix: str) -> list[DataFile]:
    """Write rows of a table (its ``schema``), a file for each day of theirs; none where there are no rows.

    The files count once a commit names them. Raises `StorageError`.
    """
    table = TABLES[name]
    if not rows.num_rows:
        return []
    days = pc.floor(pc.divide(rows.column(table.time).cast(pa.int64()).cast(pa.float64()), float(_DAY_US))).cast(pa.int64())
    found = []
    distinct = sorted(pc.unique(days).to_pylist())
    for day in distinct:
        part = rows if len(distinct) == 1 else rows.filter(pc.equal(days, day))
        found.append(_write(location, table, part, (_EPOCH + timedelta(days=day)).isoformat(), prefix))
    return found


def _write(location: StoreLocation, table: StoredTable, rows: pa.Table, day: str, prefix: str) -> DataFile:
    path = f"data/date={day}/{prefix}{uuid.uuid4().hex}.parquet"  # noqa: TID251 - a name that nobody else takes
    sink = pa.BufferOutputStream()
    encode_table(rows, sink, table.name)
    data = sink.getvalue()
    filesystem, root = location.filesystem()
    target = f"{root}/{table.name}/{path}"
    with storage_errors(target):
        if location.is_local:
            _put_on_disk(Path(target), data)
        else:
            with filesystem.open_output_stream(target) as stream:
                stream.write(data)
    low, high = _bounds(rows)
    kept = [name for name in table.ranges if name in low]
    ranges = {name: low[name] for name in kept}, {name: high[name] for name in kept}
    return DataFile(path, data.size, rows.num_rows, day, *ranges, _statistics(rows, low, high))


def _put_on_disk(path: Path, data: pa.Buffer) -> None:
    """The file and its name are on disk when this returns: no commit that a power cut leaves names a file that is not there."""
    new = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    for folder in {path.parent, *(each.parent for each in new)}:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def statistics_columns(schema: pa.Schema) -> list[str]:
    """The columns that Delta keeps smallest and greatest values of."""
    return [
        each.name
        for each in schema
        if not (types.is_binary(each.type) or types.is_list(each.type) or types.is_boolean(each.type))
    ]


def _bounds(rows: pa.Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Smallest and greatest values of all columns that Delta keeps them of.

    All of them: where one is missing, deltalake's datasets take it for null and leave every row out that a filter asks for.
    """
    low, high = {}, {}
    for name in statistics_columns(rows.schema):
        column = rows.column(name)
        bounds = pc.min_max(pc.unique(column).dictionary_decode() if types.is_dictionary(column.type) else column).as_py()
        if bounds["min"] is not None:
            low[name], high[name] = _plain(bounds["min"]), _plain(bounds["max"])
    return low, high


def _statistics(rows: pa.Table, low: Mapping[str, Any], high: Mapping[str, Any]) -> str:
    times = {each.name for each in rows.schema if types.is_timestamp(each.type)}
    return json.dumps(
        {
            "numRecords": rows.num_rows,
            "minValues": {name: _instant(value) if name in times else value for name, value in low.items()},
            "maxValues": {name: _instant(value) if name in times else value for name, value in high.items()},
            "nullCount": {name: rows.column(name).null_count for name in statistics_columns(rows.schema)},
        }
    )


def _plain(value: Any) -> Any:
    return instant_ms(value) if isinstance(value, datetime) else value


def instant_ms(value: datetime) -> int:
    """Return milliseconds since the epoch."""
    return (value.astimezone(UTC) - _INSTANT) // timedelta(milliseconds=1)


def encode_table(table: pa.Table, file: Any, name: str) -> None:
    """Write rows of table ``name`` as Parquet to an open file or stream.

    Dictionaries for texts and keys, which repeat; differences for integers, which ascend. Smallest and greatest values are kept
    of what readers leave row groups out by. A column that is a dictionary in memory is plain text to whoever reads the file.
    """
    numbers = {each.name: "DELTA_BINARY_PACKED" for each in table.schema if _is_number(each.type)}
    encoded = [each.name for each in table.schema if types.is_dictionary(each.type)]
    texts = encoded + [each.name for each in table.schema if types.is_string(each.type)]
    row_groups = row_groups_of(name, table)
    with pq.ParquetWriter(
        file,
        table.schema,
        compression="zstd",
        compression_level=1,
        write_statistics=[each for each in _SKIPPED_BY if each in table.schema.names],
        use_dictionary=[*texts, *({"key"} & set(table.schema.names))],
        column_encoding=numbers,
        store_schema=not encoded,
    ) as writer:
        for rows in row_groups:
            writer.write_table(rows, rows.num_rows)
        writer.add_key_value_metadata(footer(name, row_groups))


_SKIPPED_BY = ("cluster", "group", "topic", "time", "log_partition", "log_offset")


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_int32(kind) or types.is_int64(kind) or types.is_timestamp(kind))


def read_file(
    location: StoreLocation, name: str, path: str, columns: Sequence[str] | None = None, *, dictionaries: Sequence[str] = ()
) -> pa.Table:
    """The rows of one data file, in the types of the table's schema. Raises `StorageError`, which names the file."""
    with opened(location, name, path, dictionaries) as file:
        return file.read(None if columns is None else list(columns))


@contextmanager
def opened(location: StoreLocation, name: str, path: str, dictionaries: Sequence[str] = ()) -> Iterator[Any]:
    """A data file, open. Raises `StorageError`, which names the file, also for what is done with it."""
    filesystem, root = location.filesystem()
    target = f"{root}/{name}/{path}"
    with parquet_errors(target), filesystem.open_input_file(target) as source:
        yield pq.ParquetFile(source, read_dictionary=list(dictionaries))


@contextmanager
def parquet_errors(path: str | Path, remedy: str = "") -> Iterator[None]:
    """A Parquet file that cannot be read, as a `StorageError` that names it; ``remedy``: what helps."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{path}: cannot be read: {one_line(error)}" + (f"; {remedy}" if remedy else "")) from error


@contextmanager
def storage_errors(path: str | Path) -> Iterator[None]:
    """What the operating system or a store refuses, as a `StorageError` that names the file."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror or one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """Return an error's text without line breaks."""
    return " ".join(str(error).split())


_ROWS_IN_GROUP = 64 * 1024


def write_rows(
    file: BinaryIO, kinds: Mapping[str, type], rows: Sequence[Mapping[str, Any]], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Write ``rows`` with the columns of ``kinds`` (str, int or float; each may be null), in this order.

    The bytes follow from the rows, the metadata and the version of pyarrow.

    Raises `UsageError` (pyarrow is missing).
    """
    require("a Parquet file", "pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds.items()], metadata=dict(metadata or {}))
    columns = [pa.array([_as(row[name], kind) for row in rows], types[kind]) for name, kind in kinds.items()]
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, file, compression="zstd", row_group_size=_ROWS_IN_GROUP, version="2.6", store_schema=True)


def write_table(file: BinaryIO, rows: pa.Table) -> None:
    """Write an Arrow table as it is. Raises `UsageError` where a column is of a type that Parquet has not."""
    try:
        pq.write_table(rows, file, compression="zstd")
    except pa.ArrowNotImplementedError as error:
        raise UsageError(f"Parquet has no such type: {one_line(error)}: cast the column in the query") from None


def _as(value: Any, kind: type) -> Any:
    return float(value) if kind is float and value is not None else value
