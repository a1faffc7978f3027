"""Reading the rows of some groups out of a table: only files and row groups that can have them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.errors import StorageError

if TYPE_CHECKING:
    import pyarrow as pa

    from kgctl.pipeline.store.delta import Table
    from kgctl.pipeline.store.files import DataFile

DICTIONARIES = ("group", "topic", "member_id")
"""Columns whose few values are repeated many times: read as dictionaries."""
_SLICE = re.compile(r".*/[bp](\d+)-(\d+)-[0-9a-f]+\.parquet")


def files_of(table: Table, cluster: str, groups: Collection[str] | None, buckets: int) -> list[DataFile]:
    """The files that can have rows of these groups, or of all, of a cluster."""
    files = [file for file in table.files() if file.may_hold("cluster", cluster, cluster)]
    if groups is None:
        return files
    from kgctl.pipeline.builds.carry import bucket_of

    places = {group: bucket_of(group, buckets) for group in groups}
    return [file for file in files if any(_may_hold(file, group, bucket) for group, bucket in places.items())]


def _may_hold(file: DataFile, group: str, bucket: int) -> bool:
    match = _SLICE.fullmatch(file.path)
    return file.may_hold("group", group, group) and (match is None or int(match[1]) <= bucket <= int(match[2]))


def read_rows(table: Table, file: DataFile, columns: Sequence[str], groups: Collection[str] | None = None) -> pa.Table:
    """These columns of a file; of these groups, or of all. Raises `StorageError` where the file is damaged."""
    from kgctl.pipeline.store.files import opened
    from kgctl.pipeline.store.warehouse import REBUILD

    try:
        with opened(table.location, table.name, file.path, [name for name in columns if name in DICTIONARIES]) as source:
            if groups is None:
                return source.read(list(columns))
            wanted = list(dict.fromkeys([*columns, "group"]))
            found = source.read_row_groups(_row_groups(source.metadata, sorted(groups)), wanted)
            return _of_groups(found, groups).select(list(columns))
    except StorageError as error:
        raise StorageError(f"{error.message}; {REBUILD}") from error


def _row_groups(metadata: Any, groups: Sequence[str]) -> list[int]:
    """The row groups that may hold one of the groups, by the lowest and highest group in each."""
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "group")
    found = []
    for place in range(metadata.num_row_groups):
        statistics = metadata.row_group(place).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            found.append(place)
            continue
        at = bisect_left(groups, statistics.min)
        if at < len(groups) and groups[at] <= statistics.max:
            found.append(place)
    return found


def _of_groups(table: pa.Table, groups: Collection[str]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table.column("group"), value_set=pa.array(sorted(groups), pa.string())))
