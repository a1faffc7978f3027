"""Which version of a table is in the warehouse: what an older kgctl built is built anew, what a newer one built is left alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kgctl.pipeline.tables.registry import CLUSTER_TABLES, PARTITION_TABLES, module

if TYPE_CHECKING:
    from kgctl.pipeline.warehouse.manifests import Built


def versions_now() -> dict[str, int]:
    """Table to version, of this kgctl; ``silver`` for decoding."""
    from kgctl.pipeline.build.silver import VERSION

    return {"silver": VERSION, **{name: module(name).VERSION for name in (*CLUSTER_TABLES, *PARTITION_TABLES)}}


def differing(built: Built, *, newer: bool) -> list[str]:
    """Tables that another kgctl built, a newer or an older one; none where nothing was built."""
    there: Mapping[str, int] = built.summary.get("versions", {})
    now = versions_now()
    if newer:
        return sorted(name for name, version in there.items() if version > now.get(name, 0))
    return sorted(name for name, version in now.items() if there and there.get(name, 0) < version)


def fingerprint(inputs: Sequence[str], settings: Mapping[str, Any]) -> str:
    """The same for the same files, versions and settings; what was built from the same fingerprint need not be built again."""
    content = json.dumps([sorted(inputs), versions_now(), settings], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
