"""CSV as kgctl writes it: RFC 4180 quoting, lines end with a line feed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as text that `csv.reader` reads back exactly."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    # With a line feed as the end of a line, Python's writer leaves a lone carriage return unquoted, and its reader then stumbles.
    careful = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        has_return = any(isinstance(value, str) and "\r" in value for value in row)
        (careful if has_return else writer).writerow(row)
    return stream.getvalue()
