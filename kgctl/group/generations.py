"""What the driver of a member tells, made into one `Generation` after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kgctl.errors import KgctlError
from kgctl.group.commits import AsyncCommits, Commits
from kgctl.group.driver import MemberDriver, log
from kgctl.group.fetcher import Fetcher
from kgctl.group.generation import Generation
from kgctl.member.api import CallbackKind, MemberState
from kgctl.model.groups import Committable, OffsetAndMetadata, TopicPartition

Ready = Generation | BaseException | None


class Queue(Protocol):
    """Where generations and errors go; None: closed."""

    def put(self, ready: Ready, /) -> None: ...


class Generations:
    """Told by the driver, always in its thread or loop."""

    def __init__(
        self, driver: MemberDriver, commits: Commits | AsyncCommits, ready: Queue, fetcher: Fetcher, *, is_classic: bool
    ) -> None:
        self.ready = ready
        self._fetcher = fetcher
        self.current: Generation | None = None
        self._driver = driver
        self._member = driver.member
        self._group_id = driver.member.identity.group_id
        self._commits = commits
        self._is_classic = is_classic
        self._positions: dict[TopicPartition, int] = {}
        self._callbacks = 0

    def on_callback(self, kind: CallbackKind, partitions: tuple[TopicPartition, ...], done: Callable[[], None]) -> None:
        """End the generation that this changes, and go on when its functions have returned."""
        self._callbacks += 1

        def go_on() -> None:
            self._callbacks -= 1
            done()

        changes = bool(partitions) or self._is_classic
        if changes and self.current is not None:
            self._end_current("the group is being closed" if self._driver.is_closing else _REASONS[kind], go_on)
        else:
            go_on()

    def on_start(self, positions: Mapping[TopicPartition, int]) -> None:
        """Remember where these begin."""
        self._positions.update(positions)

    def on_stop(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Forget them."""
        for partition in partitions:
            self._positions.pop(partition, None)

    def on_step(self) -> None:
        """Hand out a generation when the member has come to rest in a new one."""
        member, current = self._member, self.current
        if current is not None and (not self._is_classic or current.generation_id == member.generation_id):
            return  # most steps are heartbeats
        if self._callbacks or member.state is not MemberState.STABLE or self._driver.has_ended.is_set():
            return
        if member.owned_partitions != member.consumed_partitions:
            return
        if current is None:
            self.current = Generation(
                self._group_id,
                member.generation_id,
                member.member_id,
                self._positions,
                commits=self._commits,
                on_commit=self._note_commit,
                on_function_end=self._function_ended,
                fetcher=self._fetcher,
            )
            self.ready.put(self.current)
            log.info("group '%s': generation %d, %d partitions", self._group_id, member.generation_id, len(self._positions))
        elif not current.ended.is_set():
            self._end_current("the group rebalanced", lambda: None)

    def on_end(self, error: KgctlError | None) -> None:
        """No more generations."""
        if self.current is not None:
            self.current._end("closed" if error is None else error.message)
        self._commits.close()
        self.ready.put(error)

    # --- inside

    def _end_current(self, reason: str, then: Callable[[], None]) -> None:
        """``then`` runs in the driver's thread, once no function of the generation runs any more."""
        current = self.current
        assert current is not None
        told = current.error

        def over() -> None:
            def step() -> list[Any]:
                if current.error is not told and not isinstance(current.error, KgctlError):  # ours are about the end
                    self.ready.put(current.error)
                self.current = None
                then()
                return []

            self._driver.post(step)

        log.info("group '%s': generation %d ends: %s", self._group_id, current.generation_id, reason)
        current._end(reason)
        current._when_over(over)

    def _function_ended(self, generation: Generation) -> None:
        """One function has returned: the generation is over for all, and the member joins again."""

        def step() -> list[Any]:
            if generation is not self.current or generation.ended.is_set():
                return []
            reason = f"a function of the generation failed: {generation.error!r}" if generation.error else "a function returned"
            if generation.error is not None:
                self.ready.put(generation.error)
            self._end_current(reason, lambda: None)
            return self._member.enforce_rebalance(self._driver.now_us())

        self._driver.post(step)

    def _note_commit(self, offsets: Committable) -> None:
        """Where the next generation begins, if the partitions stay."""
        for (topic, partition), stored in offsets.items():
            key = TopicPartition(topic, partition)
            if key in self._positions:
                self._positions[key] = stored.offset if isinstance(stored, OffsetAndMetadata) else stored


_REASONS = {
    CallbackKind.REVOKED: "partitions are being given up",
    CallbackKind.ASSIGNED: "partitions were assigned",
    CallbackKind.LOST: "the member is no longer in the group",
}
