"""Everything of one run: the parts, and what they tell each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kgctl.model.groups import MetadataImage
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.cluster import TopicChanger
from kgctl.simulate.engine.context import Loop, RunContext
from kgctl.simulate.engine.fast_forward import FastForward
from kgctl.simulate.engine.group_kind import GroupKind
from kgctl.simulate.engine.pods import Nodes, Pod, PodHome
from kgctl.simulate.engine.process import Process, Surroundings
from kgctl.simulate.recording.recording import Ending, PodHistory, Recording
from kgctl.simulate.recording.trace import Happened, Observer
from kgctl.simulate.scenario.event import Event
from kgctl.simulate.scenario.event_port import DeployPort
from kgctl.simulate.scenario.expressions import MetricSource
from kgctl.simulate.scenario.fields import read_broker_settings
from kgctl.simulate.scenario.group_types import type_of_group
from kgctl.simulate.scenario.model import MemberSet, Scenario
from kgctl.simulate.scenario.vocabulary import EventStage, GapCause, Identity, PodChange

if TYPE_CHECKING:
    from kgctl.simulate.engine.coordination import Coordination

_SETTLED_STATES = ("Stable", "Dead")


class Simulation:
    """One run: makes its parts and tells each what it needs of the others. It knows no order of their doings but the loop's.

    ``records`` are the coordinator's, with their times, when they are
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
        self.loop = self.new_loop() if loop is None else loop
        self.context = context = RunContext(
            scenario, seed, observers, self.loop, identity, keeps_all_commits=keeps_all_commits, changed=self.changed
        )
        self.warmup_us = context.warmup_us
        self.randomness = context.randomness
        self.observers = tuple(observers)
        self.emit = context.emit
        self.recording = context.recording
        self.partitions = context.partitions
        self.owners = context.owners
        self.ledger = context.ledger
        self.history = context.history
        self.pods: list[Pod] = []
        self.nodes = Nodes(scenario.cluster.nodes, self.pods)
        self.versions: dict[str, dict[str, str]] = {members.name: dict(members.config) for members in scenario.members}
        """Set of members -> the consumer settings that its new pods have."""
        self.deploys: dict[str, DeployPort] = {}
        """Set of members -> the rollout that is under way there."""
        self.sets: dict[str, list[Pod]] = {}
        # A coordinator that comes after one whose broker failed reads its records.
        needs_records = any(event.moves_coordinator for event in scenario.events)
        is_kept = keeps_records or keeps_all_commits or needs_records
        self.recording.records = [] if is_kept else None
        self.faults_until_us = 0
        self._coordination: Coordination | None = None
        self._running: set[Process] = set()
        self._accounted_us = -1
        self.recording.on_traffic_read = self.account_traffic
        self._reader = None if read is None else read(self.recording)
        self.broker = SimulatedBroker(context, self.pods, read_broker_settings(scenario.cluster.config))
        self.check = self.broker.observer.check
        self.kind = self.new_kind()
        self.ownership = self.kind.new_ownership()
        self.fast_forward = FastForward(context, self.broker, self.ownership)
        self.broker.observer.on_stored = self.ownership.committed
        self.broker.observer.wake_all = self.fast_forward.resume_all
        self.topics = self.new_topics()
        self.topics.create_all()
        self.check.passed(0)
        self.broker.open()
        self.around = self._surroundings()
        self._home = PodHome(context, self.nodes, self.versions, self.new_process, self.topics.subscription_of)
        for members in scenario.members:
            self.sets[members.name] = []
            for _ in range(members.count):
                self.add_pod(members)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            self.broker.send,
            self.broker.ask,
            self.ownership,
            self.fast_forward.skip,
            self.fast_forward.resume,
            self.on_running,
            self.on_gone,
            self.on_failed,
        )

    # --- what a play in real time has others of

    def new_loop(self) -> Loop:
        return Loop()

    def new_topics(self) -> TopicChanger:
        return TopicChanger(self.context, self.pods, self.broker, self.ownership, self.fast_forward, kind=self.kind)

    def new_kind(self) -> GroupKind:
        kind: type[GroupKind] = type_of_group(self.scenario).engine()
        return kind(self.context, self.pods, self.broker)

    def new_process(self, pod: Pod) -> Process:
        return self.kind.new_process(pod, self.around)

    # --- pods

    def add_pod(self, members: MemberSet) -> Pod:
        pods = self.sets[members.name]
        pod = Pod(self._home, members, len(pods), len(self.pods))
        pods.append(pod)
        self.pods.append(pod)
        self.history.pods.append(
            PodHistory(pod.name, members.name, pod.index, pod.rack, members.rate_uhz, members, pod.settings, pod.link.mean_us)
        )
        return pod

    def wanted_pods(self, name: str) -> list[Pod]:
        """The pods of a set that are wanted, running or not; those above its number of replicas, in a rollout, among them."""
        return [pod for pod in self.sets[name] if pod.is_wanted]

    def replicas_of(self, name: str) -> int:
        """How many pods a set is to have. A rollout that has more of them for a while, or fewer, changes nothing about that."""
        deploy = self.deploys.get(name)
        return len(self.wanted_pods(name)) if deploy is None else deploy.replicas

    def resize(self, name: str, replicas: int) -> None:
        """Scale a set to this number of pods; in a rollout, the rollout does it."""
        deploy = self.deploys.get(name)
        if deploy is None:
            self._resize(name, replicas)
        else:
            deploy.resize(replicas)
        self.changed()

    def _resize(self, name: str, replicas: int) -> None:
        present = self.wanted_pods(name)
        for pod in present[replicas:][::-1]:
            pod.want(is_wanted=False)
            if pod.process is not None:
                pod.process.stop()
        for pod in self.idle_and_new(name, max(replicas - len(present), 0)):
            pod.start()

    def idle_and_new(self, name: str, missing: int) -> list[Pod]:
        """So many pods more of a set: those with the lowest numbers that are not wanted, then new ones, all of its version."""
        idle = [pod for pod in self.sets[name] if not pod.is_wanted][:missing]
        for pod in idle:
            pod.become(self.versions[name])
        members = self.members(name)
        return [*idle, *(self.add_pod(members) for _ in range(missing - len(idle)))]

    def members(self, name: str) -> MemberSet:
        return next(members for members in self.scenario.members if members.name == name)

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.broker.observer.uses_consumer_protocol

    def coordination(self) -> Coordination:
        """Return the run's brokers, which nobody has looked at before the first event about one."""
        if self._coordination is None:
            from kgctl.simulate.engine.coordination import Coordination

            self._coordination = Coordination(
                self.context,
                self.pods,
                broker=self.broker,
                topics=self.topics,
                ownership=self.ownership,
                fast_forward=self.fast_forward,
            )
            self.broker.fails_over(self._coordination)
        return self._coordination

    @property
    def image(self) -> MetadataImage:
        return self.recording.image

    @property
    def metrics(self) -> MetricSource:
        """What has been measured so far, for conditions and watchers."""
        assert self._reader is not None, "this run was given no reader of its recording"
        self._bring_up_to_date()
        return self._reader

    def _bring_up_to_date(self) -> None:
        recording = self.recording
        recording.now_us, recording.step = self.loop.now_us, self.loop.executed + self.loop.looks
        recording.uses_consumer_protocol = self.uses_consumer_protocol
        shard = self.broker.core.shard
        recording.server_heartbeat_ms = self.kind.heartbeat_ms(shard.group_config(self.scenario.group_id))

    def close(self, stopped: str) -> Recording:
        """The run is over: its accounts are settled, and the recording stands on its own."""
        self.settle_accounts()
        recording = self.recording
        recording.on_traffic_read = None
        recording.ending = Ending(self.context.event_log.digest(), self.context.event_log.count, self.loop.executed, stopped)
        return recording

    # --- what the parts tell

    def log_event(self, event: Event, what: EventStage, *, lifts: bool = False) -> None:
        """An event of the scenario begins or ends."""
        position = next((number for number, each in enumerate(self.scenario.events) if each is event), -1)
        self.emit(Happened, event.title, what, event.target, event.kind, lifts, position)

    def on_running(self, process: Process) -> None:
        """A process has subscribed."""
        self.context.running += 1
        self._running.add(process)
        if self.context.running == 1:
            self._recause_boot_gaps()
        self.changed()

    def on_gone(self, process: Process) -> None:
        """A process has ended, with whatever it consumed."""
        self._discount(process)
        if process.consuming:
            cause = GapCause.STATIC_WAIT if process.pod.instance_id is not None else GapCause.DETECTION
            self.ownership.crashed(process, cause)
        if self.context.running == 0:
            self.owners.set_cause(self.partitions.existing(), GapCause.BOOT, self.loop.now_us)
        self.changed()

    def on_failed(self, process: Process, error: str) -> None:
        process.pod.tell(PodChange.FAILED, error)
        self._discount(process)
        self.changed()

    def changed(self) -> None:
        """Something that metrics depend on is different."""
        self.loop.has_changed = True
        now_us = self.loop.now_us
        self.check.passed(now_us)
        view = self.broker.observer
        history = self.history
        is_unsettled = view.state not in _SETTLED_STATES or bool(view.assignments.withheld)
        if is_unsettled is (history.unsettled.since_us is None):
            history.unsettled.set(now_us, is_so=is_unsettled)
        owners = self.owners
        is_placed = not owners.misplaced and not owners.dark
        is_calm = not is_unsettled and is_placed and self.context.running > 0 and view.has_coordinator
        if is_calm is (history.calm.since_us is None):
            history.calm.set(now_us, is_so=is_calm)

    def _discount(self, process: Process) -> None:
        if process in self._running:
            self._running.remove(process)
            self.context.running -= 1

    def _recause_boot_gaps(self) -> None:
        """Somebody is there again: each gap waits for its dead owner to be noticed, or for the group."""
        waiting: dict[int, GapCause] = {}
        for member_id in self.broker.observer.members():
            process = self.broker.observer.process_of(member_id)
            if process is not None and process.gone_us >= 0:
                cause = GapCause.STATIC_WAIT if process.pod.instance_id is not None else GapCause.DETECTION
                waiting.update(dict.fromkeys(process.lost, cause))
        for number in self.partitions.existing():
            if self.owners.gap_cause(number) is GapCause.BOOT:
                self.owners.set_cause([number], waiting.get(number, GapCause.REBALANCE), self.loop.now_us)

    def account_traffic(self) -> None:
        """Bring the sums of records up to the present time, commits of quiet times included. Nothing of the run depends on it."""
        now_us = self.loop.now_us
        if not self.context.has_traffic or self._accounted_us == now_us:
            return
        self._accounted_us = now_us
        self.ownership.account(self.partitions.existing())
        self.fast_forward.look()

    def settle_accounts(self) -> None:
        """The run is over: quiet times end, and with them the commits that they held back are entered."""
        self.fast_forward.resume_all()
        for pod in self.pods:
            if pod.process is not None:
                self.ownership.settle_unseen(pod.process)
        self._accounted_us = -1
        self.account_traffic()
        self.ledger.forget_guesses()
        self._bring_up_to_date()
        self.kind.settled()
