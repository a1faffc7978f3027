"""Administers Apache Kafka consumer groups, and rehearses what will happen to them."""

__version__ = "0.1.0"
