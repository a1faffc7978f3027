"""A member's calls, the same for both protocols: the application's thread, answers, deadlines, close()."""

from __future__ import annotations

from kgctl.member.api import (
    Action,
    Answer,
    CallbackKind,
    Closed,
    Failed,
    MemberState,
    RunAssignor,
    RunCallback,
    StopConsuming,
    StopReason,
)
from kgctl.member.commits import AUTO_COMMIT, RETRY_COMMIT
from kgctl.member.connection import LOOKUP, REQUESTS
from kgctl.member.parts import POLL_LIMIT, MemberParts, Step
from kgctl.member.positions import POSITIONS
from kgctl.member.runtime import draw
from kgctl.member.topics import METADATA
from kgctl.member.validation import refusal
from kgctl.model.partitions import MetadataImage, TopicPartition

CLOSE = "close"
CLOSE_TIMEOUT_US = 30_000_000


class BaseMember(MemberParts):
    """A `kgctl.member.api.Member`, but for the protocol.

    The application's thread works in steps: while it is inside poll() (or close()) it takes the next one as long as there is one.
    Between polls nothing of that happens, and answers wait in an inbox unless a thread of the client's own reads the network.
    """

    def start(self, now_us: int) -> list[Action]:
        """subscribe() was called."""
        self._enter(now_us)
        message = refusal(self.config)
        if message is not None:
            self.fail("INVALID_CONFIG", message)
        elif self._polls_itself:
            self._start()
        return self._leave()

    def poll(self, now_us: int, until_us: int | None = None) -> list[Action]:
        """poll() was called."""
        self._enter(now_us)
        if self._end is not None or self.is_closing or self._after_callback is not None:
            return self.runtime.take_actions()
        self._deadlines.cancel(POLL_LIMIT)
        self._poll_until_us = now_us if until_us is None else max(now_us, until_us)
        self._poll_number += 1
        if not self.is_started:
            self._start()
        self.on_poll()
        return self._leave()

    def application_busy(self, since_us: int) -> list[Action]:
        """No poll() is in sight."""
        if self.is_started and self._end is None and self.config.behaviour.limits_poll_interval:
            self.runtime.deadlines.arm(POLL_LIMIT, since_us + self.config.max_poll_interval_ms * 1000)
        return []

    def commit(self, now_us: int) -> list[Action]:
        """The application commits."""
        self._enter(now_us)
        if self._end is None and not self.is_closing:
            retry_us = self.config.default_api_timeout_ms * 1000
            self.committer.commit(self.positions.consumed, is_automatic=False, retry_for_us=retry_us)
        return self._leave()

    def callback_done(self, now_us: int) -> list[Action]:
        """The callback has returned."""
        self._enter(now_us)
        after, self._after_callback = self._after_callback, None
        if after is None or self._end is not None:
            return self.runtime.take_actions()
        self.runtime.deadlines.cancel(POLL_LIMIT)
        self._poll_until_us = max(self._poll_until_us, now_us)
        after()
        if self._close_is_wanted and not self.in_callback:
            self._begin_close()
        return self._leave()

    def on_reply(self, correlation_id: int, result: Answer, now_us: int) -> list[Action]:
        """An answer has come."""
        self._enter(now_us)
        if self.connection.expects(correlation_id):
            if self._reads_answers():
                self.connection.answer(correlation_id, result)
            else:
                self._inbox.append((correlation_id, result))
        return self._leave()

    def on_metadata(self, image: MetadataImage, now_us: int) -> list[Action]:
        """The topics have come."""
        self._enter(now_us)
        if self._end is None:
            self.topics.take(image)
        return self._leave()

    def close(self, now_us: int) -> list[Action]:
        """close() was called."""
        self._enter(now_us)
        if self._end is MemberState.FAILED or (self._end is None and not self.is_started):
            self._finish_close()
        elif self._end is None and not self.is_closing:
            if self.in_callback:
                self._close_is_wanted = True
            else:
                self._begin_close()
        return self._leave()

    def next_deadline_us(self) -> int | None:
        """When `expire` is due."""
        return self._deadlines.next_us()

    def expire(self, now_us: int) -> list[Action]:
        """Do what is due."""
        self._enter(now_us)
        deadlines = self.runtime.deadlines
        while (name := deadlines.pop_due(now_us)) is not None:
            self._on_deadline(name)
        return self._leave()

    # --- for the parts

    def call_back(self, kind: CallbackKind, partitions: set[TopicPartition], after: Step) -> None:
        """Run the application's callback, then go on with ``after``."""
        self._suspend(RunCallback(kind, tuple(sorted(partitions))), after)

    def run_assignor(self, action: RunAssignor, after: Step) -> None:
        """Let the assignor compute, then go on with ``after``."""
        self._suspend(action, after)

    def stop(self, partitions: set[TopicPartition], reason: StopReason) -> None:
        """Read these no longer."""
        stopped = self.positions.drop(partitions)
        if stopped:
            self.runtime.emit(StopConsuming(stopped, reason))

    def fail(self, error: str, message: str = "") -> None:
        """An error that the consumer does not get over."""
        self.stop(set(self.owned), StopReason.FAILED)
        self.owned.clear()
        self.runtime.emit(Failed(error, message))
        self._finish(MemberState.FAILED)

    def await_close(self) -> None:
        """What is left to do is sent: wait for the answers, and for the client's other threads."""
        self._is_departed = True
        self.runtime.arm_in(CLOSE, CLOSE_TIMEOUT_US)

    # --- inside

    def _run_background(self) -> None:
        if self.is_started and self._end is None:
            self.run_background()

    def _enter(self, now_us: int) -> None:
        self.runtime.now_us = max(self.runtime.now_us, now_us)

    def _leave(self) -> list[Action]:
        has_background = self.has_background
        if has_background:
            self._run_background()
        while self._after_callback is None and self._end is None and self.in_poll():
            if self._inbox:
                self._read_inbox()
            elif self.positions.has_no_start:
                self.fail("NO_OFFSET_FOR_PARTITION", "auto.offset.reset=none and no committed offset")
            elif (step := self.next_step()) is not None:
                step()
                if has_background:
                    self._run_background()
            else:
                break
        runtime = self.runtime
        if self._is_departed and self._end is None and self.connection.is_clear:
            self._is_departed = False
            runtime.arm_in(CLOSE, draw(runtime.rng, self.config.behaviour.close_lag_us))
        taken, runtime.actions = runtime.actions, []
        return taken

    def _reads_answers(self) -> bool:
        return self.in_poll() or self.reads_network()

    def _read_inbox(self) -> None:
        correlation_id, result = self._inbox.pop(0)
        if self.connection.expects(correlation_id):
            self.connection.answer(correlation_id, result)

    def _start(self) -> None:
        self.is_started = True
        self.committer.restart_timer()
        self.topics.refresh()
        self.connection.find()
        self.begin()

    def _suspend(self, action: RunCallback | RunAssignor, after: Step) -> None:
        self.runtime.emit(action)
        self._after_callback = after
        if self.config.behaviour.limits_poll_interval and not self.is_closing:
            self.runtime.arm_in(POLL_LIMIT, self.config.max_poll_interval_ms * 1000)

    def _begin_close(self) -> None:
        self.is_closing = True
        self._close_is_wanted = False
        self.runtime.deadlines.cancel(POLL_LIMIT)
        self.positions.forget()
        self.begin_close()

    def _finish_close(self) -> None:
        self.runtime.emit(Closed())
        self._finish(MemberState.CLOSED)

    def _finish(self, end: MemberState) -> None:
        self._end = end
        self._after_callback = None
        self._inbox.clear()
        self.connection.abandon()
        self.committer.give_up()
        self.runtime.deadlines.clear()

    def _on_deadline(self, name: str) -> None:
        if name == REQUESTS:
            self.connection.expire_requests()
        elif name == LOOKUP:
            self.connection.find()
        elif name == METADATA:
            self.topics.refresh()
        elif name == RETRY_COMMIT:
            self.committer.retry()
        elif name == POLL_LIMIT:
            self.on_poll_limit()
        elif name == CLOSE:
            self._finish_close()
        elif name not in (AUTO_COMMIT, POSITIONS):
            self.on_deadline(name)
