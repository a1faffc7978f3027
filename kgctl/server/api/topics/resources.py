"""Kinds of config resources (ConfigResource.Type)."""

from __future__ import annotations

TOPIC, BROKER, GROUP = 2, 4, 32
