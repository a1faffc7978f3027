"""Which broker coordinates the group: brokers die and come back, the coordinator moves, and a new one reads the group's records.

Kafka 4.3 with KRaft. The group's partition of ``__consumer_offsets`` follows from the hash of its id; its replicas are spread
over the brokers one after the other, and the first one that lives leads. When its broker dies, connections break at once. The
controller takes the broker's leaderships away when no heartbeat of it has come for ``broker.session.timeout.ms`` (9 s), of which
it makes sure eight times in such a time; until then every other broker says that the coordinator is where it was. The new leader
reads the log before it answers: COORDINATOR_LOAD_IN_PROGRESS, and NONE to heartbeats of classic members. What the log does not
have is lost: joins under way, ids that were only promised, a generation that no leader has assigned. A broker that has come back
leads again when the controller looks for that, every 5 minutes.

What a broker has written when it dies is taken as replicated, and as answered if the answer was on its way.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from operator import itemgetter

from kgctl.coordinator.config import replicas_of
from kgctl.coordinator.coordinator import GroupCoordinator
from kgctl.coordinator.effects import Reply, refuse
from kgctl.member.api import Answer, FindCoordinatorResult, NetworkError
from kgctl.member.classic_session import Membership
from kgctl.member.runtime import draw
from kgctl.model.coordinator_records import CoordinatorRecord, GroupMetadataKey
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import ConsumerGroupHeartbeat, JoinGroup, Request
from kgctl.simulate.engine.broker import SimulatedBroker
from kgctl.simulate.engine.cluster import TopicChanger
from kgctl.simulate.engine.context import RunContext
from kgctl.simulate.engine.fast_forward import FastForward
from kgctl.simulate.engine.ownership import Ownership
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.scenario.quantities import Distribution
from kgctl.simulate.scenario.vocabulary import FAILOVER, GapCause

SESSION_US = 9_000_000
BEAT_US = 2_000_000
LOOK_US = SESSION_US // 8
BALANCE_US = 300_000_000
"""broker.session.timeout.ms and broker.heartbeat.interval.ms, the controller's looks, leader.imbalance.check.interval.seconds."""
REFRESH_US = 100_000
"""retry.backoff.ms: until a client whose fetch was refused has asked for the new leader."""
REPLICA_WAIT_US = 500_000
REPLICA_BACKOFF_US = 1_000_000
"""replica.fetch.wait.max.ms, replica.fetch.backoff.ms."""
WAITS, BACKS_OFF = 0.2, 0.12
"""How many of the partitions with a new leader wait for one or the other, of those of orderly stops that were measured."""
_MARGIN_US = 1_000_000
_WAITS = frozenset({GapCause.REBALANCE, GapCause.HANDOVER, GapCause.FETCH})
"""Causes of gaps that end by what only a coordinator can do."""


class Leaders:
    """Which broker leads each partition of the topics: the first of its replicas that the controller does not count as gone.

    A partition is dark when its leader has died, until the controller has noticed and the clients have asked for the new one; and
    when another of its replicas has: it counts as in sync until the controller has noticed, and no record is read that not all
    of those have (the high watermark).
    """

    def __init__(
        self, context: RunContext, topics: TopicChanger, ownership: Ownership, down: Container[int], fenced: Container[int]
    ) -> None:
        self._context = context
        self._topics = topics
        self._ownership = ownership
        self._down, self._fenced = down, fenced
        self._leads: dict[int, int] = {}
        self._dark_since_us: dict[int, int] = {}
        self._orphans: set[int] = set()
        """Partitions whose leader has died and that nobody has read since."""
        self._rng = context.randomness.stream("reconnect")
        self.look()

    def look(self, *, back: int = 0) -> None:
        """See which partitions have another leader, or none that lives. ``back``: a broker to which clients have to reconnect."""
        context = self._context
        now_us = context.loop.now_us
        dark, light = [], []
        for name, numbers in context.partitions.present.items():
            for partition, number in enumerate(numbers):
                is_dark = self._is_dark(name, partition, number)
                if is_dark and number not in context.owners.dark:
                    dark.append(number)
                elif not is_dark and number in context.owners.dark:
                    light.append(number)
                if is_dark and self._leads[number] in self._down:
                    self._orphans.add(number)
        if dark:
            self._dark_since_us.update(dict.fromkeys(dark, now_us))
            self._ownership.darken(dark)
        self._lighten([number for number in light if number not in self._orphans])
        self._find_anew([number for number in light if number in self._orphans], back)
        self._orphans.difference_update(light)

    def _find_anew(self, orphans: list[int], back: int) -> None:
        """Clients look for the leader, and replicas fetch from it unless it is the one that was it before."""
        context = self._context
        groups: dict[tuple[Process | None, bool, int], list[int]] = {}
        for number in orphans:
            is_back = self._leads[number] == back
            key = self._ownership.reader_of(number), is_back, 0 if is_back else self._replicas_fetch_in_us(number)
            groups.setdefault(key, []).append(number)
        for (process, is_back, replicas_us), numbers in groups.items():
            clients_us = 0 if process is None else self._finds_leader_in_us(process, numbers[0], is_back=is_back)
            context.loop.at(context.loop.now_us + max(REFRESH_US + clients_us, replicas_us), self._lighten, numbers)

    def _replicas_fetch_in_us(self, number: int) -> int:
        replicas = self._topics.replicas(*self._context.partitions.names[number])
        if sum(broker not in self._down for broker in replicas) < 2:  # a leader alone waits for nobody
            return 0
        chance = self._rng.random()
        return REPLICA_BACKOFF_US if chance < BACKS_OFF else REPLICA_WAIT_US if chance < BACKS_OFF + WAITS else 0

    def _finds_leader_in_us(self, process: Process, number: int, *, is_back: bool) -> int:
        """How long a client still waits before it tries the broker, or asks for the leader, again: after each failure longer."""
        config = process.config
        limit_ms = config.reconnect_backoff_max_ms if is_back else config.retry_backoff_max_ms  # KIP-144, KIP-580
        return draw(self._rng, min(limit_ms * 1000, self._context.loop.now_us - self._dark_since_us[number]))

    def _is_dark(self, name: str, partition: int, number: int) -> bool:
        down, fenced = self._down, self._fenced
        if self._leader(name, partition, number) in down:
            return True
        return any(broker in down and broker not in fenced for broker in self._topics.replicas(name, partition))

    def _leader(self, name: str, partition: int, number: int) -> int:
        leader = self._leads.get(number, 0)
        if not leader or leader in self._fenced:
            replicas = self._topics.replicas(name, partition)
            leader = next((broker for broker in replicas if broker not in self._fenced), leader or replicas[0])
            self._leads[number] = leader
        return leader

    def of(self, number: int) -> int:
        """Return who leads it, as the controller has it."""
        return self._leader(*self._context.partitions.names[number], number)

    def _lighten(self, numbers: list[int]) -> None:
        """The clients know the new leaders, unless these are gone, too."""
        context = self._context
        dark, names = context.owners.dark, context.partitions.names
        ready = [number for number in numbers if number in dark and not self._is_dark(*names[number], number)]
        if ready:
            self._ownership.lighten(ready)

    def rebalance(self) -> None:
        """Give partitions back to the first of their replicas, which lives (the controller, every 5 minutes)."""
        self._leads.clear()
        self.look()


class Coordination:
    """The leaders of the group's partition, from the first time on that something happens to a broker.

    Brokers are numbered from 1. ``leader`` is who leads by the cluster's metadata, None: nobody; ``is_absent``: no coordinator
    answers, because there is none or because it reads its log.
    """

    def __init__(
        self,
        context: RunContext,
        pods: Sequence[Pod],
        *,
        broker: SimulatedBroker,
        topics: TopicChanger,
        ownership: Ownership,
        fast_forward: FastForward,
    ) -> None:
        self._context = context
        self._pods = pods
        self._driver = broker
        self._ownership = ownership
        self._fast_forward = fast_forward
        self._rng = context.randomness.stream("controller")
        self._balance_phase_us = int(self._rng.random() * BALANCE_US)
        self.replicas = replicas_of(context.group_id, broker.core.shard.config, context.scenario.cluster.brokers)
        self.leader: int | None = self.replicas[0]
        self.is_absent = False
        self._first = self._serving = self.replicas[0]
        self._is_loading = False
        self._loads = 0
        self._load: Distribution | None = None
        self._down: dict[int, int] = {}
        self._deaths = 0
        self._died: dict[int, int] = {}
        self._fenced: dict[int, None] = {}
        self._believed: dict[Process, int] = {}
        self._gaps: dict[int, GapCause] = {}
        self._were_in: dict[Process, None] = {}
        self._blamed_until_us = 0
        self._asks_again = False
        self.leaders = Leaders(context, topics, ownership, self._down, self._fenced)

    # --- what pods meet

    def coordinator_for(self, process: Process) -> FindCoordinatorResult:
        """What some broker answers to FindCoordinator; the process goes there from now on."""
        if self.leader is None:
            return FindCoordinatorResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self._believed[process] = self.leader
        return FindCoordinatorResult()

    @property
    def is_dark(self) -> bool:
        return len(self._down) == self._context.scenario.cluster.brokers

    def look_at_leaders(self) -> None:
        """Look at who leads the partitions, of which there are more."""
        self.leaders.look()

    def leader_of(self, number: int) -> int:
        """Return the broker that leads a partition, dead or alive."""
        return self.leaders.of(number)

    def has_leader(self, number: int) -> bool:
        """Return whether that broker lives."""
        return self.leader_of(number) not in self._down

    def takes(self, process: Process, request: Request) -> bool:
        """Whether the coordinator gets this request; if not, it is answered by whoever got it, or by nobody."""
        broker = self._believed.get(process, self._first)
        if broker in self._down:
            self._send_back(process, request, NetworkError(request.request_id))
            return False
        if broker == self._serving and not self.is_absent:
            self._asks_again = process in self._were_in and _asks_to_join(request)
            return True
        self._driver.note(process, type(request).__name__)
        if broker != self._serving:
            self._send_back(process, request, refuse(request, ErrorCode.NOT_COORDINATOR))
            return False
        for effect in self._driver.core.handle(request, self._driver.clock_ms(self._context.loop.now_us)):
            if isinstance(effect, Reply):
                self._send_back(process, request, effect.result)
        return False

    def _send_back(self, process: Process, request: Request, result: Answer) -> None:
        self._driver.send_back(process, type(request).__name__, request.request_id, result)

    # --- what happens to brokers

    def fail(self, broker: int, detect_us: int | None, load: Distribution) -> None:
        """The broker's process dies; the controller knows so much later (None: as Kafka's defaults have it)."""
        self._load = load
        self._down[broker] = self._down.get(broker, 0) + 1
        if self._down[broker] > 1:
            return
        self._deaths += 1
        self._died[broker] = self._deaths
        if broker == self._serving:
            self._lose(is_broken=True)
        self.leaders.look()
        if detect_us is None:
            detect_us = SESSION_US - int(self._rng.random() * BEAT_US) + int(self._rng.random() * LOOK_US)
        self._context.loop.at(self._context.loop.now_us + detect_us, self._on_detected, (broker, self._deaths))
        self._context.disturbed()

    def in_rack(self, rack: str) -> list[int]:
        """Brokers are spread over the racks."""
        cluster = self._context.scenario.cluster
        return [broker for broker in range(1, cluster.brokers + 1) if cluster.racks[(broker - 1) % len(cluster.racks)] == rack]

    def restore(self, broker: int) -> None:
        """The broker is there again. If nobody had noticed that it was away, they do now, as it registers anew."""
        self._down[broker] -= 1
        if self._down[broker]:
            return
        del self._down[broker], self._died[broker]
        self._fenced[broker] = None
        self._elect()
        del self._fenced[broker]
        self._elect()
        self.leaders.look(back=broker)
        self._context.disturbed()
        now_us = self._context.loop.now_us
        wait_us = BALANCE_US - (now_us - self._balance_phase_us) % BALANCE_US
        self._context.loop.at(now_us + wait_us, self._balance)

    def move(self, broker: int, load: Distribution) -> bool:
        """The broker gets the partition, as the first of its replicas. False: it has it, or is dead, and nothing changes."""
        if broker == self.leader or broker in self._down or broker in self._fenced:
            return False
        self._load = load
        kept = [replica for replica in self.replicas if replica != broker]
        self.replicas = (broker, *kept[: len(self.replicas) - 1])
        self._hand_over(broker)
        return True

    def another(self) -> int | None:
        """The next replica that lives, after the leader; None: there is none."""
        at = self.replicas.index(self.leader) if self.leader in self.replicas else -1
        following = (*self.replicas[at + 1 :], *self.replicas[: max(at, 0)])
        return next((replica for replica in following if replica not in self._down and replica not in self._fenced), None)

    def _on_detected(self, death: tuple[int, int]) -> None:
        broker, number = death
        if self._died.get(broker) == number:
            self._fenced[broker] = None
            self._elect()
            self.leaders.look()

    def _elect(self) -> None:
        """A leader that is fenced is none: the first replica that is not leads."""
        if self.leader is not None and self.leader not in self._fenced:
            return
        self.leader = next((replica for replica in self.replicas if replica not in self._fenced), None)
        if self.leader is not None and self.leader not in self._down:
            self._begin_load(self.leader)

    def _balance(self, _: object) -> None:
        self.leaders.rebalance()
        first = self.replicas[0]
        if first not in self._down and first not in self._fenced:
            self._hand_over(first)

    def _hand_over(self, broker: int) -> None:
        if broker == self.leader:
            return
        self.leader = broker
        if not self.is_absent or self._is_loading:
            self._lose(is_broken=False)
        self._begin_load(broker)
        self._context.disturbed()

    # --- the coordinator goes and comes

    def _lose(self, *, is_broken: bool) -> None:
        """Whoever waits is told, by the old coordinator or by the connection's end."""
        context, driver = self._context, self._driver
        self._fast_forward.resume_all()
        for pod in self._pods:
            if pod.process is not None and not self.is_absent:
                self._ownership.settle_unseen(pod.process)
        effects = driver.core.unload(driver.clock_ms(context.loop.now_us))
        waiting = driver.take_waiting()
        told = {} if is_broken else {effect.request_id: effect.result for effect in effects if isinstance(effect, Reply)}
        for request_id, (process, api) in waiting.items():
            result = told.get(request_id) or (NetworkError(request_id) if is_broken else None)
            if result is not None:
                driver.send_back(process, api, request_id, result)
        self._loads += 1
        self._is_loading = False
        self._serving = 0
        if self.is_absent:
            return
        self.is_absent = True
        processes = map(driver.observer.process_of, driver.observer.members())
        self._were_in = dict.fromkeys(process for process in processes if process is not None)
        for number in context.partitions.existing():
            cause = context.owners.gap_cause(number)
            if cause in _WAITS:
                self._gaps[number] = cause
        context.owners.set_cause(self._gaps, GapCause.COORDINATOR, context.loop.now_us)
        driver.observer.on_coordinator_lost()

    def cause_of_gap(self, numbers: list[int], cause: GapCause) -> GapCause:
        """Why nobody consumes these, given why it would be with a coordinator."""
        if not self.is_absent or cause not in _WAITS:
            return cause
        self._gaps.update(dict.fromkeys(numbers, cause))
        return GapCause.COORDINATOR

    def _begin_load(self, broker: int) -> None:
        """The leader reads the group's records, all that were ever written: so young a log is not compacted."""
        context, driver = self._context, self._driver
        now_us = context.loop.now_us
        assert context.recording.records is not None
        assert self._load is not None
        core = driver.successor()
        written = [effect for _, effect in sorted(context.recording.records, key=itemgetter(0))]
        nothing = CoordinatorRecord(GroupMetadataKey(context.group_id), None)
        core.replay(nothing)
        for effect in written:
            core.replay(effect.record, producer_id=effect.producer_id)
        self._loads += 1
        self._serving, self._is_loading = broker, True
        context.loop.at(now_us + self._load.sample(self._rng), self._on_loaded, (self._loads, core))
        driver.take_over(core)

    def _on_loaded(self, load: tuple[int, GroupCoordinator]) -> None:
        if load[0] != self._loads:
            return
        context, now_us = self._context, self._context.loop.now_us
        self._is_loading = self.is_absent = False
        self._blamed_until_us = now_us + 1000 * self._longest_session_ms() + _MARGIN_US
        for number, cause in self._gaps.items():
            if context.owners.gap_cause(number) is GapCause.COORDINATOR:
                context.owners.set_cause([number], cause, now_us)
        self._gaps.clear()
        self._driver.begin()

    def _longest_session_ms(self) -> int:
        view = self._driver.observer
        living = ((process.member, process.config) for process in self._were_in)
        return max(
            (view.session_timeout_ms(member.member_id, config.session_timeout_ms) for member, config in living if member),
            default=0,
        )

    # --- whose fault

    def blamed(self, trigger: str, removed: Process | None) -> str:
        """What set a rebalance off: the failover, where a member of before has to join anew, or could not be heard in time."""
        if not self._were_in or self._context.loop.now_us > self._blamed_until_us:
            return trigger
        is_late = trigger == "timer" and removed is not None and removed.gone_us < 0 and removed in self._were_in
        return f"{FAILOVER} {trigger}" if is_late or (trigger != "timer" and self._asks_again) else trigger


def _asks_to_join(request: Request) -> bool:
    """Whether a member of before asks to be let in, for no reason of its own."""
    if isinstance(request, JoinGroup):
        return request.reason not in Membership.OWN_REASONS
    return isinstance(request, ConsumerGroupHeartbeat) and request.member_epoch == 0
