"""What the manifests say, as dataclasses. Paths in them are relative to the warehouse, with forward slashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from kgctl.errors import StorageError
from kgctl.pipeline.warehouse.files import read_json


class Manifest(Protocol):
    """What all of them can do."""

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """From what is kept."""
        ...


M = TypeVar("M", bound=Manifest)


def read_manifest(path: Path, kind: type[M]) -> M:
    """The manifest in ``path``; an empty one where there is no such file. Raises `StorageError` where it is damaged."""
    found = read_json(path)
    try:
        return kind.from_json(found or {})
    except (TypeError, ValueError, AttributeError) as error:
        raise StorageError(f"{path}: damaged, no manifest: {error}") from error


@dataclass(frozen=True, slots=True)
class BronzeFile:
    """One immutable file of records. Offsets and times are the lowest and highest in it, ends included."""

    path: str
    rows: int
    first_offset: int
    last_offset: int
    first_ms: int
    last_ms: int
    source: str


@dataclass(frozen=True, slots=True)
class Collected:
    """The bronze of one log partition.

    ``files`` are in the order in which they came; their offset ranges may overlap, no offset is in two of them.
    ``next_offset`` is where the next live collection goes on, ``log_id`` the id of the topic that it counts in, in Kafka's base64
    form; None before the first.
    """

    files: tuple[BronzeFile, ...] = ()
    next_offset: int | None = None
    log_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """From what is kept."""
        return cls(tuple(BronzeFile(**each) for each in found.get("files", ())), found.get("next_offset"), found.get("log_id"))


@dataclass(frozen=True, slots=True)
class ClusterFiles:
    """What was collected about a cluster as a whole. ``cluster_id`` is its own id, where a live cluster has told it."""

    log_offsets: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    cluster_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """From what is kept."""
        return cls(tuple(found.get("log_offsets", ())), tuple(found.get("damaged", ())), found.get("cluster_id"))


@dataclass(frozen=True, slots=True)
class Built:
    """What was built of one log partition, or of the cluster as a whole.

    ``inputs`` are the bronze files it was built from; ``tables`` maps ``silver/NAME`` and ``gold/NAME`` to their files;
    ``summary`` is the builder's own (counts).
    """

    inputs: tuple[str, ...] = ()
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)

    def files(self, layer: str, table: str) -> Sequence[str]:
        """The files of one table."""
        return self.tables.get(f"{layer}/{table}", ())

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "inputs": list(self.inputs),
            "tables": {k: list(v) for k, v in self.tables.items()},
            "summary": dict(self.summary),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """From what is kept."""
        tables = {name: tuple(files) for name, files in found.get("tables", {}).items()}
        return cls(tuple(found.get("inputs", ())), tables, found.get("summary", {}))
