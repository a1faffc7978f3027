"""What our share coordinator does with a sequence, in the words of tests/java/share_coordinator; how it differs from Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kgctl.model.share import PartitionState, SharePartitionKey, ShareStateRecord, StateBatch
from kgctl.serde.share_state_records import decode_record, encode_record
from kgctl.share.state.config import ShareCoordinatorConfig
from kgctl.share.state.shard import ShareCoordinatorShard, StateAnswer, StateRefusal, state_partition_for
from tests.conformance.notation import topic_id
from tests.differential.share_state.sequences import Sequence, Step

Entry = dict[str, Any]
Shown = Callable[[Any], Any]


class Play:
    """One sequence on a shard and its log."""

    def __init__(self, case: Sequence) -> None:
        self.config = ShareCoordinatorConfig.from_properties({name: str(value) for name, value in case["config"].items()})
        self.shard = ShareCoordinatorShard(self.config)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.operations: dict[str, Callable[[Step], Entry]] = {
            "initialize": lambda s: self._answered(
                self.shard.initialize(_key(s), s["state_epoch"], s["start"], s["at"]), lambda _: {}
            ),
            "read": lambda s: self._answered(self.shard.read(_key(s), s["leader_epoch"], s["at"]), _read),
            "summary": lambda s: self._answered(self.shard.read_summary(_key(s)), _summary),
            "write": lambda s: self._answered(self.shard.write(_key(s), _change(s), s["at"]), lambda _: {}),
            "delete": lambda s: self._answered(self.shard.delete(_key(s)), lambda _: {}),
            "cold": lambda s: self._append(self.shard.snapshot_cold_partitions(s["at"])),
            "forget": lambda s: self._append(self.shard.forget_topics([topic_id(each) for each in s["topics"]])),
            "topics": self._topics,
            "load": self._load,
            "place": lambda s: {"answer": state_partition_for(_key(s), s["of"]), "records": []},
        }

    def run(self, steps: Iterable[Step]) -> list[Entry]:
        return [{**self.operations[step["op"]](step), "redundant": self.shard.first_needed_offset} for step in steps]

    def _answered(self, answer: StateAnswer[Any], shown: Shown) -> Entry:
        refusal = answer.value
        is_refused = isinstance(refusal, StateRefusal)
        value = {"error": refusal.error.name, "message": refusal.message} if is_refused else shown(refusal)
        return {"answer": value, **self._append(answer.records)}

    def _append(self, records: Iterable[ShareStateRecord]) -> Entry:
        appended = []
        for record in records:
            key, value = encode_record(record)
            assert decode_record(key, value) == record
            appended.append([key.hex(), None if value is None else value.hex()])
            self.shard.replay(len(self.log), record)
            self.log.append((key, value))
        return {"records": appended}

    def _topics(self, step: Step) -> Entry:
        self.shard.partition_counts = {topic_id(name): count for name, count in step["topics"].items()}
        return {"records": []}

    def _load(self, step: Step) -> Entry:
        counts = self.shard.partition_counts
        self.shard = ShareCoordinatorShard(self.config)
        for offset in range(step["from"], len(self.log)):
            record = decode_record(*self.log[offset])
            assert record is not None
            self.shard.replay(offset, record)
        self.shard.partition_counts = counts
        return {"records": []}


def _key(step: Step) -> SharePartitionKey:
    group, topic, partition = step["key"]
    return SharePartitionKey(group, topic_id(topic), partition)


def _change(step: Step) -> PartitionState:
    batches = tuple(StateBatch(*each) for each in step["batches"])
    return PartitionState(step["state_epoch"], step["start"], step["complete"], batches, step["leader_epoch"])


def _read(state: PartitionState) -> Entry:
    return {"state_epoch": state.state_epoch, "start": state.start_offset, "batches": rows(state.batches)}


def _summary(state: PartitionState) -> Entry:
    return {
        "state_epoch": state.state_epoch,
        "start": state.start_offset,
        "complete": state.delivery_complete_count,
        "leader_epoch": state.leader_epoch,
    }


def rows(batches: Iterable[StateBatch]) -> list[list[int]]:
    """Batches as a sequence has them."""
    return [[each.first_offset, each.last_offset, each.delivery_state, each.delivery_count] for each in batches]
