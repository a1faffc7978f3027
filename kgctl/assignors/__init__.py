"""Partition assignors: Kafka's own, with the same answers partition by partition, and a registry for others."""

from kgctl.assignors.registry import assignor_names, get_assignor

__all__ = ["assignor_names", "get_assignor"]
