"""Signals while a cluster is changed: the end comes, also where its first word is lost."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time

import pytest

from kgctl.cli import environment
from kgctl.cli.environment import StopSignals
from kgctl.errors import Interrupted
from tests.cli.harness import Cli
from tests.support.patience import PATIENCE_S


def wait(first: signal.Signals | None = None) -> None:
    """Until the exception of a handler, or in vain, after a signal to this process."""
    if first is not None:
        os.kill(os.getpid(), first)
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        time.sleep(0.001)


def test_the_first_signal_is_noted_and_the_request_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "GRACE_S", 0.01)
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            wait()
        stop.allow(0)
    assert stop.signal == signal.SIGTERM


def test_the_second_signal_does_not_wait() -> None:
    with StopSignals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Interrupted):
            wait(signal.SIGTERM)
        stop.allow(0)
    assert stop.signal == signal.SIGINT


def test_an_end_that_falls_into_a_callback_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a callback of the garbage collector raises is lost."""
    monkeypatch.setattr(environment, "GRACE_S", 0.01)
    monkeypatch.setattr(environment, "AGAIN_S", 0.05)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    swallowed: list[bool] = []

    def swallow(phase: str, info: dict[str, int]) -> None:
        del info
        if phase == "start" and not swallowed:
            try:
                wait(signal.SIGINT)
            except Interrupted:
                swallowed.append(True)
                raise

    try:
        with StopSignals() as stop:
            gc.callbacks.append(swallow)
            gc.collect()
            with pytest.raises(Interrupted):
                wait()
            stop.allow(0)
    finally:
        gc.callbacks.remove(swallow)
    assert swallowed == [True]


@pytest.mark.parametrize(
    ("place", "so"),
    [
        ("reset_offsets.plan_reset", "nothing was changed"),
        ("changes.execute_reset", "whether anything was changed is not known (kgctl undo --log)"),
    ],
)
def test_only_before_a_change_it_is_known_that_nothing_was_changed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, place: str, so: str
) -> None:
    def cut_in(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr(f"kgctl.cli.groups.{place}", cut_in)
    ran = cli("reset-offsets g1 --topic t1 --to-earliest --execute")
    assert (ran.code, ran.err.splitlines()[-1]) == (130, f"kgctl: interrupted; {so}")
