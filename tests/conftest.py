"""Registers the fixtures that several test folders share; each lives in a plugin module under tests/support."""

from __future__ import annotations

pytest_plugins = [
    "tests.support.hypothesis_profiles",
    "tests.support.kafka.fixtures",
    "tests.support.serve",
    "tests.support.admin_targets",
    "tests.support.java_assignors",
]
