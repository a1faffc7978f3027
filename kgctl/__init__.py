"""Administers Apache Kafka consumer groups, and rehearses what will happen to them.

The public API is what `__all__` names, `kgctl.testing`, `kgctl.results`, `kgctl.zookeeper` and the exceptions of `kgctl.errors`;
all else may change at any time. Nothing heavy is imported before a name is used.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_PUBLIC = {
    "Admin": "kgctl.library.clusters",
    "Assigned": "kgctl.library.assignors",
    "Assignor": "kgctl.assignors.spec",
    "AsyncAdmin": "kgctl.library.clusters",
    "AsyncConsumerGroup": "kgctl.group.async_group",
    "AsyncCoordinator": "kgctl.library.async_coordinator",
    "AsyncPlan": "kgctl.library.clusters",
    "ConsumerGroup": "kgctl.group.consumer_group",
    "Coordinator": "kgctl.library.coordinator",
    "ErrorCode": "kgctl.model.error_codes",
    "Generation": "kgctl.group.generation",
    "GroupAdmin": "kgctl.admin",
    "GroupInfo": "kgctl.library.group_info",
    "GroupSpec": "kgctl.assignors.spec",
    "GroupState": "kgctl.model.groups",
    "GroupType": "kgctl.model.groups",
    "MemberInfo": "kgctl.library.group_info",
    "MemberSpec": "kgctl.assignors.spec",
    "MemoryOffsetStorage": "kgctl.storage.folder",
    "OffsetAndMetadata": "kgctl.model.groups",
    "OffsetStorage": "kgctl.storage.folder",
    "Plan": "kgctl.library.clusters",
    "SqliteOffsetStorage": "kgctl.storage.folder",
    "StoredOffset": "kgctl.storage.folder",
    "TopicPartition": "kgctl.model.groups",
    "TopicSpec": "kgctl.assignors.spec",
    "aiokafka_assignor": "kgctl.library.assignors",
    "assign": "kgctl.library.assignors",
    "connect": "kgctl.library.clusters",
    "decode_assignment": "kgctl.library.member_fields",
    "kafka_python_assignor": "kgctl.library.assignors",
}

__all__ = ["__version__", "simulate"]
__all__ += list(_PUBLIC)

_DEPRECATED: dict[str, tuple[str, str]] = {}
"""Public name -> the version that deprecated it, and what to use instead. It may go with the next minor version."""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    if name in _DEPRECATED:
        from warnings import warn

        warn("kgctl.{} is deprecated since {}: {}".format(name, *_DEPRECATED[name]), DeprecationWarning, stacklevel=2)
    if name in _PUBLIC:
        found = getattr(_import_module(_PUBLIC[name]), name)
        if name not in _DEPRECATED:
            globals()[name] = found
        return found
    if name in ("errors", "results", "simulate", "testing"):
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return sorted({*globals(), *__all__})
