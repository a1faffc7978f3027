"""Partition assignors: Kafka's own, with the same answers partition by partition, and a registry for others."""

from kgctl.assignors.registry import assign_with_previous, assignor_names, get_assignor

__all__ = ["assign_with_previous", "assignor_names", "get_assignor"]
