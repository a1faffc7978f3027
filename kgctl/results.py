"""What calls of kgctl answer: the types in public signatures, with their fields. They are made by kgctl, never by its users.

Nothing is imported before a name is used.
"""

from importlib import import_module as _import_module

_PUBLIC = {
    "AwaitedMember": "kgctl.model.requests",
    "ByPartition": "kgctl.model.groups",
    "Clamp": "kgctl.admin.offset_reset",
    "Committable": "kgctl.model.groups",
    "CommitEntry": "kgctl.storage.record_log",
    "CoordinatorStatistics": "kgctl.model.requests",
    "GroupDescription": "kgctl.model.groups",
    "GroupListing": "kgctl.model.groups",
    "ItemError": "kgctl.admin",
    "JoinGroupMember": "kgctl.model.requests",
    "JoinGroupResult": "kgctl.model.requests",
    "LogOffsets": "kgctl.model.groups",
    "MemberDescription": "kgctl.model.groups",
    "MemberPhase": "kgctl.library.group_info",
    "Node": "kgctl.model.groups",
    "Records": "kgctl.group.records",
    "RebalanceStatus": "kgctl.model.requests",
    "ResetResult": "kgctl.admin.offset_reset",
    "ResetRow": "kgctl.admin.offset_reset",
    "Results": "kgctl.admin",
    "Run": "kgctl.library.simulation",
    "Sight": "kgctl.admin",
    "Simulated": "kgctl.library.simulation",
    "StartOffset": "kgctl.model.groups",
    "StickyClaim": "kgctl.assignors.spec",
    "StreamsTasks": "kgctl.model.streams",
    "Subtopology": "kgctl.model.streams",
    "TopicRecord": "kgctl.model.records",
    "Topology": "kgctl.model.streams",
}

__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(_import_module(_PUBLIC[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
