"""The histories of a recording: what each event of a run's log adds to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kgctl.simulate.recording import trace
from kgctl.simulate.recording.owners import NOBODY
from kgctl.simulate.recording.recording import Archival, Counted, PodHistory, Recording, Redelivery, Return, RunHistory
from kgctl.simulate.scenario.vocabulary import PodChange

_FENCED = frozenset({"FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID"})
_IN_ANY_REBALANCE = frozenset({"REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED", "STALE_MEMBER_EPOCH"})
"""What members are told in every rebalance, and get over."""
_OUT_OF_GROUP = frozenset(
    {
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
        trace.COMMIT_FAILED,
    }
)
"""Why a commit is refused of a member that is out of the group, or behind."""


class _Numbers(dict[str, int]):
    """Pod -> its number."""

    def __init__(self, history: RunHistory) -> None:
        super().__init__({"": NOBODY})
        self._pods = history.pods

    def __missing__(self, pod: str) -> int:
        self |= {each.name: number for number, each in enumerate(self._pods)}
        return self.get(pod, NOBODY)


class Histories:
    """Adds events to a recording, in the order of the log; its times are those of the run, its pods are numbered."""

    def __init__(self, recording: Recording) -> None:
        self.start_us = recording.start_us
        self._recording = recording
        self.history = recording.history
        self.numbers = _Numbers(recording.history)

    def skipped(self, api: str, number: int) -> None:
        """So many requests, more, are only counted."""
        counted = self.history.skipped_requests
        counted[api] = counted.get(api, 0) + number

    def skipped_beats(self, at_us: int, number: int, beats: int) -> None:
        """A pod has sent so many heartbeats of a quiet time, the last one then."""
        self.history.skipped_beats.append(Counted(at_us, beats, number))

    def replied(self, at_us: int, number: int, error: str) -> None:
        """An answer with an error has reached this pod."""
        counted = Counted(at_us, 1, number, error)
        if error not in _IN_ANY_REBALANCE:
            self.history.errors.append(counted)
        if error in _FENCED:
            self.history.fenced.append(counted)

    def pod(self, event: trace.PodWanted | trace.Joined | trace.Removed | trace.PodChanged) -> PodHistory:
        """The pod that an event is about."""
        return self.history.pods[self.numbers[event.pod]]

    # --- one kind of event each

    def _pod_changed(self, event: trace.PodChanged, at_us: int) -> None:
        number, what = self.numbers[event.pod], event.what
        pod = self.history.pods[number]
        if what is PodChange.BOOT:
            pod.is_booted = True
        elif what is PodChange.START or what.is_end:
            pod.running.set(at_us, is_so=what is PodChange.START)
            self.history.disturbances.append(at_us)
            if what.is_end:
                pod.heartbeat_ms = 0
        elif what is PodChange.FAILED:
            counted = Counted(at_us, 1, number, event.detail)
            self.history.errors.append(counted)
            self.history.failed.append(counted)

    def _removed(self, event: trace.Removed, at_us: int) -> None:
        """Who is replaced learns of it by its next request."""
        if event.why == "replaced":
            return
        number = self.numbers[event.pod]
        self.history.pods[number].in_group.set(at_us, is_so=False)
        if event.why == "expired" and event.dead_us is None:
            self.history.kicked.append(Counted(at_us, 1, number))
        elif event.dead_us is not None and event.why == "expired":
            self.history.detections.append(Counted(at_us, event.dead_us, number))

    def _group_changed(self, event: trace.GroupChanged, at_us: int) -> None:
        self.history.group.append(replace(event, at_us=at_us))
        if event.begins:
            self.history.triggers.append((at_us, event.trigger))

    def counted(self, event: trace.OfPod, at_us: int) -> Counted:
        """What is added up of a pod."""
        return Counted(at_us, event.amount, self.numbers[event.pod], event.what)

    def _called_back(self, event: trace.CalledBack, at_us: int) -> None:
        self.history.callbacks.append(self.counted(event, at_us))
        if event.applies:
            self.history.applied_us.append(at_us)

    def _commit_refused(self, event: trace.CommitRefused, at_us: int) -> None:
        counted = self.counted(event, at_us)
        self.history.errors.append(counted)
        if event.what in _OUT_OF_GROUP:
            self.history.fenced_commits.append(counted)

    def _committed(self, event: trace.Committed, at_us: int) -> None:
        if event.error in _OUT_OF_GROUP:
            self.history.fenced_commits.append(Counted(at_us, 1, self.numbers[event.pod], event.error))

    def _shared(self, event: trace.Shared, _: int) -> None:
        share, entry = self._recording.share, event.entry
        assert share is not None
        if isinstance(entry, Return):
            share.returned.append(entry)
        elif isinstance(entry, Redelivery):
            share.redelivered.append(entry)
        elif isinstance(entry, Archival):
            share.archived.append(entry)

    def _scaled(self, event: trace.Scaled, at_us: int) -> None:
        if event.replicas != event.before:
            self.history.scalings.append(replace(event, at_us=at_us))
            self.history.disturbances.append(at_us)


FOLDS: Mapping[type, Callable[[Histories, Any, int], None]] = {
    trace.PodChanged: Histories._pod_changed,
    trace.PodWanted: lambda of, event, at_us: of.pod(event).wanted.set(at_us, is_so=event.is_wanted),
    trace.Joined: lambda of, event, at_us: of.pod(event).came(event.member_id, at_us),
    trace.Removed: Histories._removed,
    trace.GroupChanged: Histories._group_changed,
    trace.Owned: lambda of, _, at_us: of.history.applied_us.append(at_us),
    trace.CalledBack: Histories._called_back,
    trace.Kicked: lambda of, event, at_us: of.history.kicked.append(of.counted(event, at_us)),
    trace.Harmed: lambda of, event, at_us: of.history.harmed.append(of.counted(event, at_us)),
    trace.Given: lambda of, event, at_us: of.history.given.append(of.counted(event, at_us)),
    trace.Rejoined: lambda of, event, at_us: of.history.rejoins.append(of.counted(event, at_us)),
    trace.Waited: lambda of, event, at_us: of.history.waits.append(of.counted(event, at_us)),
    trace.RecordsRepeated: lambda of, event, at_us: of.history.duplicates.append(of.counted(event, at_us)),
    trace.RecordsLost: lambda of, event, at_us: of.history.lost.append(of.counted(event, at_us)),
    trace.Erred: lambda of, event, at_us: of.history.errors.append(of.counted(event, at_us)),
    trace.CommitRefused: Histories._commit_refused,
    trace.Committed: Histories._committed,
    trace.Overtook: lambda of, event, at_us: of.history.overtaken.append(replace(event, at_us=at_us)),
    trace.Discovered: lambda of, event, at_us: of.history.discoveries.append(Counted(at_us, event.age_us, NOBODY, event.topic)),
    trace.Shared: Histories._shared,
    trace.Happened: lambda of, event, at_us: of.history.events.append(replace(event, at_us=at_us)),
    trace.Stepped: lambda of, event, at_us: of.history.steps.append(replace(event, at_us=at_us)),
    trace.Drawn: lambda of, event, at_us: of.history.drawn.append((at_us, event.event)),
    trace.Disturbed: lambda of, _, at_us: of.history.disturbances.append(at_us),
    trace.Scaled: Histories._scaled,
}
"""Kind of event -> what it adds; nothing where there is none."""
