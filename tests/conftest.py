"""Registers the fixtures that several test folders share; each lives in a plugin module under tests/support."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys

import pytest

# Hundreds of programs are started from this checkout: none may have to compile it anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A new machine has no archive of Spark's classes, and to make one takes longer than it spares the few JVMs of a run.
os.environ.setdefault("KGCTL_SPARK_ARCHIVE", "off")

pytest_plugins = [
    "tests.support.profiles",
    "tests.support.storage",
    "tests.support.run.distribution",
    "tests.support.dearest",
    "tests.support.gates",
    "tests.support.kafka.fixtures",
    "tests.support.serve",
    "tests.support.admin_targets",
    "tests.support.java_assignors",
    "tests.support.re2j",
    "tests.support.pipeline.spark",
    "tests.support.zookeeper.fixtures",
]


gc.set_threshold(50_000, 20, 50)  # thousands of tests are collected and stay: to look through them again and again finds nothing


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What has been collected stays to the end: no collector need look at it while tests run."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # else libraries count the objects that are left at the end, below pytest's last line


def pytest_configure() -> None:
    """Whoever starts pytest in the background has SIGINT ignored, and with it all programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
