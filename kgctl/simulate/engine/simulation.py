"""Everything of one run: the parts, and what they tell each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from uuid import UUID

from kgctl.coordinator.consumer.group import ConsumerGroup
from kgctl.coordinator.effects import AppendRecord
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import MetadataImage
from kgctl.simulate.engine.broker import Broker
from kgctl.simulate.engine.cluster import Cluster, Topics
from kgctl.simulate.engine.fast_forward import FastForward
from kgctl.simulate.engine.invariants import Invariants
from kgctl.simulate.engine.loop import Loop, Randomness
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.pods import Nodes, Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.recording.history import Counted, EventMark, Identity, PodHistory
from kgctl.simulate.recording.recording import Ending, Recording
from kgctl.simulate.recording.trace import EventLog, Happened, Observer, PodChanged
from kgctl.simulate.scenario.event_kinds import EVENT_KINDS, Target
from kgctl.simulate.scenario.model import Event, MemberSet, MetricSource, Scenario
from kgctl.simulate.scenario.settings import read_broker_settings
from kgctl.simulate.scenario.vocabulary import Cause

FENCED = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNRELEASED_INSTANCE_ID})
_REBALANCING = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.STALE_MEMBER_EPOCH})
"""What members are told in every rebalance, and get over."""
_SETTLED_STATES = ("Stable", "Dead")


class Simulation:
    """One run. Its parts know it; it knows no order of their doings but the loop's.

    ``running`` is the number of processes that run a consumer. ``records`` are the coordinator's, with their times, when they are
    kept; of commits in times in which nothing else happens the last, or (``keeps_all_commits``) all. Times of the log count from
    the end of the warm-up. ``loop``: that of other groups, which run at the same time.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        observers: Sequence[Observer] = (),
        *,
        keeps_records: bool = False,
        keeps_all_commits: bool = False,
        identity: Identity = Identity.POD,
        read: Callable[[Recording], MetricSource] | None = None,
        loop: Loop | None = None,
    ) -> None:
        self.scenario = scenario
        self.warmup_us = scenario.warmup_us
        self.loop = self.new_loop() if loop is None else loop
        self.randomness = Randomness(seed)
        self.request_ids = count(1)
        self.observers = tuple(observers)
        self.event_log = EventLog(observers)
        self.log = self.event_log.add
        self.recording = Recording(scenario, seed, identity)
        self.partitions = self.recording.partitions
        self.owners = self.recording.owners
        self.ledger = self.recording.ledger
        self.history = self.recording.history
        self.check = Invariants(self)
        self.topic_names: dict[UUID, str] = {}
        self.pods: list[Pod] = []
        self.nodes = Nodes(scenario.cluster.nodes, self.pods)
        self.versions: dict[str, dict[str, str]] = {members.name: dict(members.config) for members in scenario.members}
        """Set of members -> the consumer settings that its new pods have."""
        self.sets: dict[str, list[Pod]] = {}
        self.running = 0
        self.has_traffic = self.recording.has_traffic
        # A coordinator that comes after one whose broker failed reads its records.
        needs_records = any(EVENT_KINDS[event.kind].target is Target.BROKER for event in scenario.events)
        is_kept = keeps_records or keeps_all_commits or needs_records
        self.recording.records = [] if is_kept else None
        self.keeps_all_commits = keeps_all_commits
        self.has_changed = False
        self.faults_until_us = 0
        self._accounted_us = -1
        self.recording.on_traffic_read = self.account_traffic
        self._reader = None if read is None else read(self.recording)
        self.topics = self.new_topics()
        self.topics.create_all()
        self.check.passed(0)
        self.ownership = Ownership(self)
        self.cluster = Cluster(self)
        self.fast_forward = FastForward(self)
        self.broker = Broker(self, read_broker_settings(scenario.cluster.config))
        for members in scenario.members:
            self.sets[members.name] = []
            for _ in range(members.count):
                self.add_pod(members)

    # --- what a play in real time has others of

    def new_loop(self) -> Loop:
        """Return what decides when something happens."""
        return Loop()

    def new_topics(self) -> Topics:
        """Return what changes the cluster's topics."""
        return Topics(self)

    def new_process(self, pod: Pod, on_ready: Callable[[], None] | None) -> Process:
        """Return a process of this pod that has not begun to boot."""
        return Process(pod, on_ready)

    # --- pods

    def add_pod(self, members: MemberSet) -> Pod:
        """One pod more in this set."""
        pods = self.sets[members.name]
        pod = Pod(self, members, len(pods), len(self.pods))
        pods.append(pod)
        self.pods.append(pod)
        self.history.pods.append(
            PodHistory(pod.name, members.name, pod.index, pod.rack, members.rate_uhz, members, pod.settings, pod.link.mean_us)
        )
        return pod

    def members(self, name: str) -> MemberSet:
        """The set of this name."""
        return next(members for members in self.scenario.members if members.name == name)

    def topics_of(self, pod: int) -> tuple[str, ...]:
        """What this pod subscribes to, of the topics that there are."""
        return self.recording.topics_of(self.pods[pod].members)

    def subscription_of(self, members: MemberSet) -> tuple[tuple[str, ...], str | None]:
        """(topics, pattern) of these members' consumers."""
        return self.topics.subscription_of(members)

    def is_member(self, pod: int) -> bool:
        """Whether the pod's process lives and is in the group."""
        process = self.pods[pod].process
        if process is None or process.member is None or process.is_suspended:
            return False
        return process.member.member_id in self.broker.observer.members()

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the group is one of the consumer protocol."""
        return isinstance(self.broker.core.shard.groups.get(self.scenario.group_id), ConsumerGroup)

    @property
    def image(self) -> MetadataImage:
        """The topics that there are."""
        return self.recording.image

    @property
    def metrics(self) -> MetricSource:
        """What has been measured so far, for conditions and watchers."""
        assert self._reader is not None, "this run was given no reader of its recording"
        self._bring_up_to_date()
        return self._reader

    def _bring_up_to_date(self) -> None:
        recording = self.recording
        recording.now_us, recording.step = self.loop.now_us, self.loop.executed
        recording.uses_consumer_protocol = self.uses_consumer_protocol
        shard = self.broker.core.shard
        recording.server_heartbeat_ms = shard.group_config(self.scenario.group_id).consumer_heartbeat_interval_ms

    def close(self, stopped: str) -> Recording:
        """The run is over: its accounts are settled, and the recording stands on its own."""
        self.settle_accounts()
        recording = self.recording
        recording.on_traffic_read = None
        recording.ending = Ending(self.event_log.digest(), self.event_log.count, self.loop.executed, stopped)
        return recording

    # --- what the parts tell

    @property
    def log_time(self) -> int:
        """Now, as the log counts."""
        return self.loop.now_us - self.warmup_us

    def log_event(self, event: Event, what: str) -> None:
        """An event of the scenario begins or ends."""
        name = event.name or event.kind
        self.history.events.append(EventMark(self.loop.now_us, name, what, event.target))
        self.log(Happened(self.log_time, name, what, event.target))

    def keep_record(self, effect: AppendRecord) -> None:
        """The coordinator wrote a record."""
        if self.recording.records is not None:
            self.recording.records.append((self.loop.now_us, effect))

    def on_running(self, process: Process) -> None:
        """A consumer was started."""
        now_us = self.loop.now_us
        self.running += 1
        process.is_counted = True
        self.history.pods[process.pod.number].running.set(now_us, is_so=True)
        self.disturbed()
        if self.running == 1:
            self._recause_boot_gaps()
        self.changed()

    def on_gone(self, process: Process) -> None:
        """A process is gone."""
        now_us = self.loop.now_us
        self.history.pods[process.pod.number].running.set(now_us, is_so=False)
        self._discount(process)
        self.disturbed()
        if process.consuming:
            self.history.crashes.append((now_us, process.pod.number))
            cause = Cause.STATIC_WAIT if process.pod.instance_id is not None else Cause.DETECTION
            self.ownership.crashed(process, cause)
        if self.running == 0:
            self.owners.set_cause(self.partitions.existing(), Cause.BOOT, now_us)
        self.changed()

    def on_failed(self, process: Process, error: str) -> None:
        """A consumer threw what it does not get over."""
        self.history.errors.append(Counted(self.loop.now_us, 1, process.pod.number, error))
        self.log(PodChanged(self.log_time, process.pod.name, "failed", error))
        self._discount(process)
        self.changed()

    def note_error(self, process: Process, error: ErrorCode) -> None:
        """A request was answered with an error."""
        counted = Counted(self.loop.now_us, 1, process.pod.number, error.name)
        if error not in _REBALANCING:
            self.history.errors.append(counted)
        if error in FENCED:
            self.history.fenced.append(counted)

    def disturbed(self) -> None:
        """Something was done to pods or topics."""
        self.history.disturbances.append(self.loop.now_us)

    def changed(self) -> None:
        """Something that metrics depend on is different."""
        self.has_changed = True
        now_us = self.loop.now_us
        self.check.passed(now_us)
        view = self.broker.observer
        history = self.history
        is_unsettled = view.state not in _SETTLED_STATES or bool(view.assignments.withheld)
        if is_unsettled is (history.unsettled.since_us is None):
            history.unsettled.set(now_us, is_so=is_unsettled)
        is_calm = (
            not is_unsettled and not self.owners.misplaced and not self.owners.dark and self.running > 0 and view.has_coordinator
        )
        if is_calm is (history.calm.since_us is None):
            history.calm.set(now_us, is_so=is_calm)

    def _discount(self, process: Process) -> None:
        self.running -= process.is_counted
        process.is_counted = False

    def _recause_boot_gaps(self) -> None:
        """Somebody is there again: each gap waits for its dead owner to be noticed, or for the group."""
        waiting: dict[int, Cause] = {}
        for member_id in self.broker.observer.members():
            process = self.broker.observer.process_of(member_id)
            if process is not None and process.gone_us >= 0:
                cause = Cause.STATIC_WAIT if process.pod.instance_id is not None else Cause.DETECTION
                waiting.update(dict.fromkeys(process.lost, cause))
        for number in self.partitions.existing():
            if self.owners.gap_cause(number) is Cause.BOOT:
                self.owners.set_cause([number], waiting.get(number, Cause.REBALANCE), self.loop.now_us)

    def account_traffic(self) -> None:
        """Bring the sums of records to the present."""
        now_us = self.loop.now_us
        if not self.has_traffic or self._accounted_us == now_us:
            return
        self._accounted_us = now_us
        for pod in self.pods:
            if pod.process is not None:
                pod.process.flow.advance(now_us)
        for number in self.partitions.existing():
            if self.owners.owner[number] < 0 or number in self.owners.dark:
                self.ledger.account_waiting(number, now_us)

    def settle_accounts(self) -> None:
        """The run is over: quiet times end, and with them the commits that they held back are entered."""
        self.fast_forward.resume_all()
        for pod in self.pods:
            if pod.process is not None:
                self.ownership.settle_unseen(pod.process)
        self._accounted_us = -1
        self.account_traffic()
        self._bring_up_to_date()
        self.check.settled()
