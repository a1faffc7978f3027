"""A pod: a name that outlives its processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from kgctl.errors import UsageError
from kgctl.member.api import MemberIdentity, Rng
from kgctl.member.config import HeartbeatDrift, MemberConfig
from kgctl.simulate.engine.network import Link
from kgctl.simulate.scenario.model import RANDOM_DRIFT, SECOND_US, Commit, CommitMode, MemberSet

if TYPE_CHECKING:
    from kgctl.simulate.engine.pods.process import Process
    from kgctl.simulate.engine.world import World

FIRST_BACK_OFF_US = 10 * SECOND_US
LONGEST_BACK_OFF_US = 300 * SECOND_US
FORGIVEN_AFTER_US = 600 * SECOND_US


class Pod:
    """One of the scenario's members. ``settings`` are those that its next process starts with."""

    def __init__(self, world: World, members: MemberSet, index: int, number: int) -> None:
        self.world = world
        self.members = members
        self.index = index
        self.number = number
        self.name = f"{members.name}-{index}"
        self.instance_id = None if members.instance_id is None else members.instance_id.replace("$name", self.name)
        self.rack = _rack(members.rack, index, world.scenario.cluster.racks)
        self.settings: dict[str, str] = dict(members.config)
        self.link = Link(world.scenario.cluster.network, partial(world.randomness.stream, "link", self.name))
        self.poll_rng = world.randomness.stream("poll", self.name)
        self.member_rng = world.randomness.stream("member", self.name)
        self.process: Process | None = None
        self._booted_us = 0
        self._failures = 0
        self.is_wanted = members.start is not None
        """Whether it counts as one of the set's pods, running or not."""
        self.factor_ppm = 1_000_000
        """How much longer processing takes than usual."""

    def __str__(self) -> str:
        return self.name

    @cached_property
    def boot_rng(self) -> Rng:
        """For the boot times; made when it is needed, as few scenarios draw any."""
        return self.world.randomness.stream("boot", self.name)

    @cached_property
    def callback_rng(self) -> Rng:
        """For the times that callbacks take."""
        return self.world.randomness.stream("callback", self.name)

    def boot(self, then: Callable[[], None] | None = None) -> None:
        """Start a process, unless one is there; ``then`` is called when it has subscribed."""
        from kgctl.simulate.engine.pods.process import Process

        if self.process is not None:
            if then is not None:
                then()
            return
        self.want(is_wanted=True)
        self.link.reconnect()
        self._booted_us = self.world.loop.now_us
        self.process = Process(self, then)
        self.process.boot()

    def boot_after_failure(self) -> None:
        """Start a process as Kubernetes does when one has failed: at once, then 10 s later, 20 s, up to 5 minutes.

        A process that has run for 10 minutes makes it forget the failures before.
        """
        loop = self.world.loop
        if loop.now_us - self._booted_us >= FORGIVEN_AFTER_US:
            self._failures = 0
        wait_us = min(FIRST_BACK_OFF_US << self._failures - 1, LONGEST_BACK_OFF_US) if self._failures else 0
        self._failures += 1
        loop.at(loop.now_us + wait_us, lambda _: self.boot() if self.is_wanted else None)

    def want(self, *, is_wanted: bool) -> None:
        """It belongs to the set from now on, or not."""
        self.is_wanted = is_wanted
        self.world.history.pods[self.number].wanted.set(self.world.loop.now_us, is_so=is_wanted)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Settings of the processes to come."""
        self.settings.update(settings)

    def member_config(self) -> MemberConfig:
        """The settings of a process that starts now. Raises `UsageError`."""
        given = dict(self.settings)
        if self.members.commit.mode is not CommitMode.AUTO:
            given["enable.auto.commit"] = "false"
        config = MemberConfig.from_properties(given, self.members.client)
        if self.world.has_traffic:  # close() waits for no fetch where records come all the time
            config = replace(config, behaviour=replace(config.behaviour, close_lag_us=0))
        drift_us = self.members.heartbeat_drift_us
        if drift_us is None:
            return config
        drift = drift_of(drift_us)
        return replace(config, behaviour=replace(config.behaviour, classic_drift=drift, consumer_drift=drift))

    def commit_of(self, config: MemberConfig) -> Commit:
        """When the application commits: after each batch where it says nothing and its client does not do it."""
        commit = self.members.commit
        if commit.mode is CommitMode.AUTO and not config.enable_auto_commit:
            return Commit(mode=CommitMode.AFTER_BATCH)
        return commit

    def identity(self) -> MemberIdentity:
        """Who a process of this pod is to the coordinator."""
        topics, pattern = self.world.subscription_of(self.members)
        return MemberIdentity(
            name=self.name,
            group_id=self.world.scenario.group_id,
            client_id=self.name,
            topics=topics,
            pattern=pattern,
            group_instance_id=self.instance_id,
            rack_id=self.rack,
        )


def drift_of(drift_us: int) -> HeartbeatDrift:
    """Beats that are late by anything up to this, which adds up; `RANDOM_DRIFT`: anywhere in the interval from the start on."""
    if drift_us == RANDOM_DRIFT:
        return HeartbeatDrift(phase_locked=False)
    return HeartbeatDrift(constant_us=drift_us // 2, walk_us=drift_us // 2)


def _rack(rack: str | None, index: int, racks: tuple[str, ...]) -> str | None:
    if rack != "spread":
        return rack
    if not racks:
        raise UsageError("rack: spread needs cluster.racks")
    return racks[index % len(racks)]
