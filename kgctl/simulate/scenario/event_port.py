"""What an event may do: to pods and their processes, to topics, to brokers. The engine and a play on a real cluster do it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kgctl.model.values import frozen
from kgctl.simulate.scenario.expressions import MetricSource
from kgctl.simulate.scenario.quantities import Distribution
from kgctl.simulate.scenario.vocabulary import PodChange

if TYPE_CHECKING:
    from kgctl.member.api import Rng

GRACE_US = 30_000_000
"""terminationGracePeriodSeconds, where nothing says it."""
FOREVER_US = 1 << 62


@frozen
class LinkFault:
    """Something wrong with a pod's network until ``until_us``. None: as it is otherwise. ``event``: what does it, in words."""

    latency: Distribution | None = None
    loss_ppm: int | None = None
    is_partition: bool = False
    until_us: int = FOREVER_US
    event: str = ""


class ProcessPort(Protocol):
    """A pod's process while it is there."""

    def stop(
        self, then: Callable[[], None] | None = None, *, grace_us: int = GRACE_US, on_sigterm: str | None = None
    ) -> None: ...
    def die(self, what: PodChange, *, is_silent: bool = False) -> None: ...
    def stall(self, until_us: int) -> None: ...
    def slow(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...


class PodPort(Protocol):
    """A pod. ``settings`` are those that its next process starts with."""

    name: str
    number: int
    index: int
    zone: str | None
    node: int
    settings: dict[str, str]
    is_wanted: bool
    ready_from_us: int
    factor_ppm: int

    @property
    def member_set(self) -> str: ...
    @property
    def takes_time(self) -> bool: ...
    @property
    def process(self) -> ProcessPort | None: ...
    def rng(self, purpose: str) -> Rng: ...
    @property
    def is_ready(self) -> bool: ...
    def boot(self, then: Callable[[], None] | None = None) -> None: ...
    def start(self, then: Callable[[], None]) -> None: ...
    def configure(self, settings: Mapping[str, str | None]) -> None:
        """Change these settings, or leave them out, and keep the others."""
        ...

    def become(self, settings: Mapping[str, str]) -> None:
        """Have these settings and no others."""
        ...

    def taken_away(self) -> None: ...
    def want(self, *, is_wanted: bool) -> None: ...
    def harm(self, fault: LinkFault) -> None: ...
    def heal(self, fault: LinkFault) -> None: ...


class DeployPort(Protocol):
    """A rollout that is under way."""

    @property
    def replicas(self) -> int:
        """How many pods its set is to have (``spec.replicas``), however many there are at this moment."""
        ...

    def resize(self, replicas: int) -> None:
        """Have so many from now on."""
        ...

    def replaced(self, pod: PodPort, by: PodPort) -> None:
        """An evicted pod is gone from the set, and another one comes for it."""
        ...

    def ready_again(self, pod: PodPort) -> None:
        """The pod that came is ready."""
        ...

    def give_up(self) -> None:
        """Leave everything as it is, and be over."""
        ...


class NodesPort(Protocol):
    """The machines that pods run on. ``closed``: those that get no pods."""

    closed: dict[int, None]

    def place(self) -> int: ...


class BrokersPort(Protocol):
    """The brokers, numbered from 1. ``leader``: the group's coordinator by the cluster's metadata, None: nobody."""

    @property
    def leader(self) -> int | None: ...
    def another(self) -> int | None: ...
    def in_rack(self, rack: str) -> Sequence[int]: ...
    def fail(self, broker: int, detect_us: int | None, load: Distribution) -> None: ...
    def restore(self, broker: int) -> None: ...
    def move(self, broker: int, load: Distribution) -> bool: ...


class EventPort(Protocol):
    """One beginning of an event, until it is over. A kind's ``begin`` gets it and sees to it that `over` is called once.

    ``versions``: set of members -> the consumer settings that its new pods have. ``deploys``: set -> its rollout.
    ``is_calm``: the group is stable, with every partition consumed.
    """

    @property
    def now_us(self) -> int: ...
    @property
    def nodes(self) -> NodesPort: ...
    @property
    def versions(self) -> dict[str, dict[str, str]]: ...
    @property
    def deploys(self) -> dict[str, DeployPort]: ...
    @property
    def metrics(self) -> MetricSource: ...
    @property
    def is_calm(self) -> bool: ...

    # --- its course

    def over(self, _: object = None) -> None:
        """End the event, which has done all that it does; what comes ``after`` it may begin."""
        ...

    def next_step(self) -> None:
        """A step of it begins: a batch, a pod's turn, a stage of a canary."""
        ...

    def found_nothing(self) -> None:
        """Log that there is nothing that the event could be done to."""
        ...

    def abort(self) -> None:
        """Log that the rest of it is left as it is."""
        ...

    def later(self, delay_us: int, task: Callable[[Any], None], argument: object = None) -> None:
        """Call ``task`` after a delay."""
        ...

    def length(self, drawn: Distribution | None) -> int | None:
        """A duration of this event, drawn by the seed; None: not given."""
        ...

    # --- what it is done to

    def pods(self, *, lacks_process: bool | None = None) -> Sequence[PodPort]:
        """Return the pods that the event's selector means at this moment, and log it if there is none.

        ``lacks_process``: only those without a process, found by their numbers, or only those that have one.
        """
        ...

    def processes(self) -> Sequence[tuple[PodPort, ProcessPort]]:
        """Return the running processes of the pods that the event means."""
        ...

    def all_pods(self, member_set: str | None = None) -> Sequence[PodPort]:
        """Return all pods, or those of a set, whether they are wanted or not."""
        ...

    def add_pod(self, member_set: str) -> PodPort: ...
    def idle_and_new(self, member_set: str, missing: int) -> Sequence[PodPort]:
        """Return so many pods more: the lowest numbers that are not wanted, then new ones, all of the set's version."""
        ...

    def replicas_of(self, member_set: str) -> int:
        """Return how many pods a set is to have, whatever a rollout has of them at this moment."""
        ...

    def resize(self, member_set: str, replicas: int) -> None:
        """Let a set have so many pods."""
        ...

    def tell(self, pod: PodPort, what: PodChange) -> None:
        """Log what has become of a pod."""
        ...

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: there is none."""
        ...

    def create_topic(self, name: str, partitions: int, replicas: int) -> None: ...
    def grow_topic(self, name: str, partitions: int) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def rate(self, topic: str) -> int:
        """Return what is written to a topic now."""
        ...

    def set_rate(self, topic: str, rate_uhz: int) -> None: ...
    def poison(self, topic: str, records: int) -> bool:
        """Let the next records of a topic be bad ones; False: nobody in the group could tell."""
        ...

    def brokers(self) -> BrokersPort:
        """Return the run's brokers, which nobody has looked at before the first such event."""
        ...


class Countdown:
    """Calls ``then`` when `one` has been called so many times; for none at once."""

    def __init__(self, number: int, then: Callable[[], None]) -> None:
        self._left = number
        self._then = then
        if not number:
            then()

    def one(self, _: object = None) -> None:
        """Count one of the awaited things as happened."""
        self._left -= 1
        if self._left == 0:
            self._then()


def without_effect(run: EventPort) -> None:
    """End the event, which has found nothing that it could do: the log says so."""
    run.found_nothing()
    run.over()


def end_after(run: EventPort, duration_us: int | None, end: Callable[[], None]) -> None:
    """What has begun ends after this time, and the event with it; None: it never ends, and the event is over now."""
    if duration_us is None:
        run.over()
        return

    def over(_: object) -> None:
        end()
        run.over()

    run.later(duration_us, over)


def bring_back(run: EventPort, pod: PodPort, down_us: int | None, then: Callable[[], None]) -> None:
    """The pod is down: boot it after this time, if it is still wanted, or leave it (None); ``then`` when that is over."""
    pod.taken_away()
    if down_us is None:
        then()
    else:
        run.later(down_us, lambda _: pod.boot(then) if pod.is_wanted else then())


def stop_all(pods: Collection[PodPort], then: Callable[[PodPort], None]) -> None:
    """Stop these pods' processes; ``then`` when each has none."""
    for pod in pods:
        if pod.process is None:
            then(pod)
        else:
            pod.process.stop(lambda pod=pod: then(pod))  # type: ignore[misc]
