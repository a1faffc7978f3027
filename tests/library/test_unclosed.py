"""What is dropped without being closed says so, and keeps nothing running."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import kgctl
from kgctl.testing import EmbeddedServer
from tests.support.members import wait_until


def drop(held: list[Any]) -> None:
    """Let go of it, cycles and all."""
    held.clear()
    gc.collect()


def test_a_coordinator() -> None:
    before = set(threading.enumerate())
    held = [kgctl.Coordinator(topics={"orders": 1})]
    held[0].commit("payments", {("orders", 0): 7})
    with pytest.warns(ResourceWarning, match="unclosed <kgctl.library.coordinator.Coordinator"):
        drop(held)
    wait_until(lambda: set(threading.enumerate()) <= before, "its thread has ended")


def test_a_cluster_and_its_admin() -> None:
    before = set(threading.enumerate())
    clusters, admins = [EmbeddedServer({"orders": 1})], list[kgctl.Admin]()
    clusters[0].__enter__()
    admins.append(kgctl.connect(clusters[0].bootstrap))
    assert list(admins[0].list_groups().values) == []
    with pytest.warns(ResourceWarning, match="unclosed <kgctl.library.clusters.Admin"):
        drop(admins)
    with pytest.warns(ResourceWarning, match="unclosed <kgctl.testing.cluster.EmbeddedServer"):
        drop(clusters)
    wait_until(lambda: set(threading.enumerate()) <= before, "its thread has ended")


def test_what_was_never_used_or_was_closed_is_silent(recwarn: pytest.WarningsRecorder) -> None:
    kgctl.connect("127.0.0.1:1")
    EmbeddedServer()
    with kgctl.Coordinator() as coordinator:
        coordinator.list_groups()
    del coordinator
    gc.collect()
    assert [entry for entry in recwarn if entry.category is ResourceWarning] == []
