"""What happened to the tasks of a Kafka Streams application in a run: copies, restored records, looks at the copies."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgctl.simulate.recording.recording import Counted


@dataclass(slots=True)
class TaskHistory:
    """``what`` of each entry is the task's name."""

    tasks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Every task that there was -> the numbers of its partitions."""
    restored: list[Counted] = field(default_factory=list)
    """Records that an instance restored for a task to run, when it had them."""
    copied: list[Counted] = field(default_factory=list)
    """Records that an instance restored for copies, standbys and warm-ups, by the time at which somebody looked."""
    warmups: list[Counted] = field(default_factory=list)
    """Copies that were begun beyond ``num.standby.replicas``: ``amount`` is the records that they had to restore."""
    probes: list[Counted] = field(default_factory=list)
    """Instances that joined again to see whether copies have caught up."""
    copies: list[tuple[int, int, int]] = field(default_factory=list)
    """(when, stateful tasks of which another instance has a copy within ``acceptable.recovery.lag``, stateful tasks)."""
