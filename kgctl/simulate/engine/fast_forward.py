"""The records of commits that nobody looked at: those of times in which a process only had chores."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.coordinator.effects import AppendRecord
from kgctl.coordinator.timers import TimerKey, TimerKind
from kgctl.member.api import Member, Skipped
from kgctl.model.coordinator_records import CoordinatorRecord, OffsetCommitKey, OffsetCommitValue
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.process import Process
from kgctl.simulate.scenario.fields import CommitMode
from kgctl.simulate.scenario.model import SECOND_US
from kgctl.simulate.scenario.vocabulary import HEARTBEATS

BATCHES_US = SECOND_US
"""An application that commits after each batch has a record a partition at most this often."""


def record_quiet_commits(broker: SimulatedBroker, process: Process, since_us: int, last_us: int, late_us: int) -> None:
    """Keep a record for each commit of a quiet time, the last one included, with what the process had read by then.

    ``late_us``: by how much an automatic commit comes after its interval.
    """
    context, member = process.context, process.member
    if context.recording.records is None or member is None or not process.consuming:
        return
    interval_us = _interval_us(process, late_us)
    first_us = last_us - (last_us - since_us - 1) // interval_us * interval_us
    for sent_us in range(first_us, last_us + 1, interval_us):
        process.flow.advance(sent_us)
        at_us = sent_us + process.pod.link.mean_us
        for number in process.consuming:
            topic, partition = context.partitions.names[number]
            value = OffsetCommitValue(offset=_offset(process, number, sent_us), commit_timestamp_ms=broker.clock_ms(at_us))
            record = CoordinatorRecord(OffsetCommitKey(context.group_id, topic, partition), value)
            context.recording.records.append((at_us, AppendRecord(record, member_id=member.member_id)))


def _offset(process: Process, number: int, at_us: int) -> int:
    ledger = process.context.ledger
    return ledger.position(number, at_us) if process.context.has_traffic else max(ledger.stored[number], 0)


def _interval_us(process: Process, late_us: int) -> int:
    mode = process.commit.mode
    if mode is CommitMode.AUTO:
        return process.config.auto_commit_interval_us + late_us
    return max(process.commit.interval_us + late_us, 1) if mode is CommitMode.EVERY else BATCHES_US


_NEVER_MS = 1 << 60
_BY_BATCH = (CommitMode.AFTER_BATCH, CommitMode.BEFORE_BATCH)


@dataclass(slots=True)
class _Skip:
    """A process that is skipped over: its session's timer and what that was set to, since when, and by how much its automatic
    commits are late, once that is drawn.
    """

    session: TimerKey
    deadline_ms: int
    since_us: int
    late_us: int | None = None


class FastForward:
    """The processes that are skipped over, in the order in which that began."""

    def __init__(self, context: RunContext, broker: SimulatedBroker, ownership: Ownership) -> None:
        self._context = context
        self._broker = broker
        self._ownership = ownership
        self._skipping: dict[Process, _Skip] = {}
        self._sessions: dict[str, tuple[TimerKey, ...]] = {}
        self._settled: dict[Process, int] = {}
        """The last commit of each that `settle_commits` has entered."""

    def skip(self, process: Process) -> None:
        """Skip over a process whose member is quiet, unless its heartbeats could be more than chores."""
        context = self._context
        member = process.member
        if (
            member is None
            or process.image_version != context.image.version
            or not process.pod.link.is_clean
            or process.stop_wanted
            or process.is_suspended
            or process.stalled_until_us > context.loop.now_us
            or not self._broker.observer.is_settled_for(member.member_id)
        ):
            return
        timers = self._broker.timers
        for key in self._sessions_of(member.member_id):
            deadline_ms = timers.deadline_ms(key)
            if deadline_ms is not None:
                timers.arm(key, _NEVER_MS)
                self._skipping[process] = _Skip(key, deadline_ms, context.loop.now_us)
                process.is_skipping = True
                return

    def _sessions_of(self, member_id: str) -> tuple[TimerKey, ...]:
        """The keys under which a session may be timed: that of a classic member, and those of the other protocols."""
        keys = self._sessions.get(member_id)
        if keys is None:
            group_id = self._context.group_id
            kinds = (TimerKind.SESSION, TimerKind.CONSUMER_SESSION, TimerKind.STREAMS_SESSION)
            keys = tuple(TimerKey(kind, group_id, member_id) for kind in kinds)
            self._sessions[member_id] = keys
        return keys

    def resume(self, process: Process) -> Skipped:
        """Bring the process and its session to the present."""
        context = self._context
        skip = self._skipping.pop(process)
        key, deadline_ms, since_us = skip.session, skip.deadline_ms, skip.since_us
        process.is_skipping = False
        assert process.member is not None
        late_us = self._late_us(process, process.member, skip)
        skipped = process.member.skip_quiet(context.loop.now_us, late_us)
        settled_us = self._settled.pop(process, None)
        commit_us = self._new_commit_us(process, settled_us or since_us, skipped.last_commit_us, late_us)
        sign_us = self._sign_of_life_us(process, key, commit_us or settled_us)
        signs = [at_us for at_us in (skipped.last_heartbeat_us, sign_us) if at_us is not None]
        if signs:
            arrived_ms = self._broker.clock_ms(max(signs) + process.pod.link.mean_us)
            configured_ms = process.config.session_timeout_ms
            deadline_ms = arrived_ms + self._broker.observer.session_timeout_ms(key.member_id, configured_ms)
        timers = self._broker.timers
        if key in timers:
            timers.arm(key, max(deadline_ms, self._broker.clock_ms(context.loop.now_us)))
            self._broker.arm_deadline()
        self._count(process, skipped)
        if commit_us is not None:
            self._enter(process, settled_us or since_us, commit_us, late_us)
        return skipped

    def look(self) -> None:
        """Let the ledger show what those skipped over have committed by now, as far as that can be told without a draw."""
        now_us = self._context.loop.now_us
        self._context.ledger.forget_guesses()
        for process, skip in self._skipping.items():
            late_us = process.polls.usual_wait_us() if skip.late_us is None else skip.late_us
            from_us = self._settled.get(process, skip.since_us)
            commit_us = self._guessed_us(process, now_us, late_us)
            if commit_us is not None and commit_us > max(process.last_commit_us, from_us):
                every_us = 0 if process.commit.mode in _BY_BATCH else _interval_us(process, late_us)
                self._ownership.committed_unseen(process, from_us, commit_us, every_us)

    @staticmethod
    def _guessed_us(process: Process, now_us: int, late_us: int) -> int | None:
        assert process.member is not None
        commit = process.commit
        if commit.mode is CommitMode.AUTO:
            return process.member.quiet_commit_us(now_us, late_us)
        if commit.mode is CommitMode.EVERY:
            return now_us - (now_us - max(process.last_commit_us, 0)) % _interval_us(process, late_us)
        return now_us - process.polls.usual_wait_us()

    def settle_commits(self, *, but_of_batches: bool = False) -> None:
        """Enter what those skipped over have committed by now, for somebody who looks at offsets. They stay so.

        ``but_of_batches``: not of those that commit after each batch, for whom the last poll would have to be drawn.
        """
        now_us = self._context.loop.now_us
        for process, skip in self._skipping.items():
            assert process.member is not None
            if but_of_batches and process.commit.mode in _BY_BATCH:
                continue
            late_us = self._late_us(process, process.member, skip)
            from_us = self._settled.get(process, skip.since_us)
            commit_us = self._new_commit_us(process, from_us, process.member.quiet_commit_us(now_us, late_us), late_us)
            if commit_us is not None:
                self._enter(process, from_us, commit_us, late_us)
                self._settled[process] = commit_us

    def _late_us(self, process: Process, member: Member, skip: _Skip) -> int:
        """By how much the commits of this quiet time are late, the client's own or the application's; drawn once there is one."""
        if skip.late_us is None:
            now_us, commit = self._context.loop.now_us, process.commit
            if commit.mode is CommitMode.EVERY:
                has_one = now_us - max(process.last_commit_us, 0) >= commit.interval_us
            else:
                has_one = member.quiet_commit_us(now_us) is not None
            if not has_one:
                return 0
            skip.late_us = _commits_late_us(process)
        return skip.late_us

    def _enter(self, process: Process, from_us: int, commit_us: int, late_us: int) -> None:
        if self._context.keeps_all_commits:
            record_quiet_commits(self._broker, process, from_us, commit_us, late_us)
        every_us = 0 if process.commit.mode in _BY_BATCH else _interval_us(process, late_us)
        self._ownership.committed_quietly(process, from_us, commit_us, every_us)

    def resume_all(self) -> None:
        """End the fast-forward of all members, before something happens to the group."""
        for process in list(self._skipping):
            process.catch_up()

    def _sign_of_life_us(self, process: Process, session: TimerKey, commit_us: int | None) -> int | None:
        """A commit extends the session of a classic member, where there is something to commit."""
        commits = session.kind is TimerKind.SESSION and self._context.has_traffic and process.consuming
        return commit_us if commits else None

    def _count(self, process: Process, skipped: Skipped) -> None:
        if skipped.heartbeats and skipped.last_heartbeat_us is not None:
            self._context.event_log.skipped_beats(skipped.last_heartbeat_us, process.pod.number, skipped.heartbeats)
            self._context.event_log.skipped(HEARTBEATS[process.config.group_protocol], skipped.heartbeats)
        if skipped.commits:
            self._context.event_log.skipped("OffsetCommit", skipped.commits)
        if skipped.metadata_refreshes:
            self._context.event_log.skipped("Metadata", skipped.metadata_refreshes)

    def _new_commit_us(self, process: Process, since_us: int, automatic_us: int | None, late_us: int) -> int | None:
        """When the last commit left, if it was after this."""
        commit_us = self._committed_us(process, automatic_us, late_us)
        return None if commit_us is None or commit_us <= max(process.last_commit_us, since_us) else commit_us

    def _committed_us(self, process: Process, automatic_us: int | None, late_us: int) -> int | None:
        """When the last commit of the quiet time left: the client's own, or the application's."""
        commit, now_us = process.commit, self._context.loop.now_us
        if commit.mode is CommitMode.AUTO:
            return automatic_us
        if commit.mode is CommitMode.EVERY:
            return now_us - (now_us - max(process.last_commit_us, 0)) % _interval_us(process, late_us)
        return process.polls.previous_us(now_us)


def _commits_late_us(process: Process) -> int:
    config, commit = process.config, process.commit
    if commit.mode is CommitMode.EVERY:  # after the first batch that ends when it is due
        return process.polls.commits_late_us(commit.interval_us, in_every_other=False)
    if commit.mode is not CommitMode.AUTO or config.behaviour.joins_itself:  # a thread of the client's own commits
        return 0
    return process.polls.commits_late_us(config.auto_commit_interval_us, in_every_other=config.group_protocol == "consumer")
