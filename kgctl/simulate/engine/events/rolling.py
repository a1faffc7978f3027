"""One pod, or a few, after the other: what a deployment does."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.simulate.engine.events.event_run import (
    Countdown,
    EventRun,
    bring_back,
    in_a_while,
    pods_of,
)
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.scenario.event_kinds import Share

LOOK_AGAIN_US = 100_000
WAIT_FOR_STABLE_AT_MOST_US = 600_000_000


class Rolling:
    """A rollout under way."""

    def __init__(self, run: EventRun, settings: Mapping[str, str]) -> None:
        self._run = run
        self._settings = settings
        self._pods = pods_of(run)
        batch = run["batch"]
        self._size = max(batch.of(len(self._pods)) if isinstance(batch, Share) else batch, 1)

    def next_batch(self, _: object = None) -> None:
        """Stop the next pods and start them again; or the end."""
        condition = self._run["abort_if"]
        if self._pods and condition is not None and condition.holds(self._run.simulation.metrics):
            self._run.simulation.log_event(self._run.event, "is aborted")
            self._pods = []
        batch, self._pods = self._pods[: self._size], self._pods[self._size :]
        if not batch:
            self._run.over()
            return
        wait = self._run["wait"]
        countdown = Countdown(len(batch), self._wait_for_stable if wait == "stable" else self._settle)
        for pod in batch:
            self._replace(pod, countdown, waits=wait != "none")

    def _replace(self, pod: Pod, countdown: Countdown, *, waits: bool) -> None:
        def down() -> None:
            pod.configure(self._settings)
            bring_back(self._run, pod, self._run["down"], countdown.one if waits else _nothing)
            if not waits:
                countdown.one()

        if pod.process is None:
            down()
        else:
            pod.process.stop(down)

    def _wait_for_stable(self) -> None:
        self._look(self._run.simulation.loop.now_us + WAIT_FOR_STABLE_AT_MOST_US)

    def _look(self, give_up_us: int) -> None:
        simulation = self._run.simulation
        if simulation.history.calm.since_us is not None or simulation.loop.now_us >= give_up_us:
            self._settle()
        else:
            in_a_while(self._run, LOOK_AGAIN_US, lambda _: self._look(give_up_us))

    def _settle(self) -> None:
        in_a_while(self._run, self._run["settle"], self.next_batch)


def _nothing() -> None:
    """Nobody waits."""


def roll(run: EventRun) -> None:
    Rolling(run, run["set"]).next_batch()
