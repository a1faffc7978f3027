"""Segment files of ``__consumer_offsets``, copied from a broker's log directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgctl.errors import NotFoundError, UsageError
from kgctl.pipeline.sources.live.reader import OFFSETS_TOPIC
from kgctl.pipeline.sources.log.damage import Damage, cut
from kgctl.pipeline.sources.log.parse import ParsedLog, parse_log
from kgctl.pipeline.store.files import storage_errors

_FOLDER = re.compile(rf"{OFFSETS_TOPIC}-(\d+)")
_FILE = re.compile(r"\d{20}\.log")


@dataclass(frozen=True, slots=True)
class SegmentPiece:
    """One segment file. ``is_last`` is its partition's newest: a batch that is cut off at its end was being written."""

    path: Path
    partition: int
    is_last: bool
    size: int

    @property
    def source(self) -> str:
        """Its path."""
        return str(self.path)

    def read(self) -> Iterator[ParsedLog]:
        """The whole file. Raises `StorageError`."""
        with storage_errors(self.path):
            data = self.path.read_bytes()
        parsed = parse_log(data, self.partition)
        if parsed.torn and not self.is_last:
            start = len(data) - parsed.torn
            reason = "a batch that is cut off, though other segments follow"
            parsed.damaged.append(Damage(start, parsed.torn, reason, data=cut(data[start:])))
            parsed.torn = 0
        yield parsed


def segment_pieces(path: Path) -> Sequence[SegmentPiece]:
    """See `kgctl.pipeline.sources.pieces.segments`."""
    with storage_errors(path):
        if not path.exists():
            raise NotFoundError(f"{path}: no such file or folder")
        if path.is_file():
            return [_single(path)]
    pieces = [piece for partition, folder in _folders(path) for piece in _of_partition(folder, partition)]
    if not pieces:
        raise NotFoundError(f"{path}: no segment (00000000000000000000.log and so on) in it")
    return pieces


def _single(path: Path) -> SegmentPiece:
    match = _FOLDER.fullmatch(path.absolute().parent.name)
    if path.suffix != ".log":
        raise UsageError(f"{path} is not a segment: segments are named 00000000000000000000.log and so on")
    if match is None:
        raise UsageError(f"{path}: its folder must be named after its partition ({OFFSETS_TOPIC}-12), which is not in the file")
    return SegmentPiece(path, int(match[1]), is_last=True, size=path.stat().st_size)


def _folders(path: Path) -> list[tuple[int, Path]]:
    with storage_errors(path):
        candidates = [path.absolute(), *sorted(path.iterdir())]
        found = [(int(match[1]), each) for each in candidates if (match := _FOLDER.fullmatch(each.name)) and each.is_dir()]
    if not found:
        raise NotFoundError(f"{path}: no folder of a partition ({OFFSETS_TOPIC}-0 and so on), and no segment")
    return sorted(found)


def _of_partition(folder: Path, partition: int) -> list[SegmentPiece]:
    with storage_errors(folder):
        files = sorted(each for each in folder.iterdir() if _FILE.fullmatch(each.name))
        return [SegmentPiece(file, partition, file == files[-1], file.stat().st_size) for file in files]
