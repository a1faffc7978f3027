"""Small logs of several partitions, with groups, commits and transactions in them, for the tests of the build."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.serde.consumer_protocol import encode_assignment_by_topic
from tests.support.coordinator_harness import CoordinatorHarness
from tests.support.pipeline.histories import TimedLog, raw_of

PARTITIONS = 4
ALL = encode_assignment_by_topic([("t", range(4))])


def raw_log(rounds: int = 6) -> list[pa.Table]:
    """The partitions of a log, one table each: groups that rebalance, commit, step back, commit in transactions, and
    are deleted."""
    harness = CoordinatorHarness({"group.initial.rebalance.delay.ms": "0"}, topics={"t": 4})
    log = TimedLog(harness)
    groups = [f"group-{number}" for number in range(2 * PARTITIONS)]
    for number in range(rounds):
        for place, group in enumerate(groups):
            member = harness.join(group=group, version=3).join.member_id
            generation = harness.group(group).generation_id
            harness.sync(member, generation, {member: ALL}, group=group)
            harness.commit({f"t-{part}": number % 4 * 100 + part for part in range(3)}, member, generation, group=group)
            harness.txn_commit(place, {"t-3": number}, group=group)
            harness.sleep_ms(700)
            harness.end_txn(place, committed=number % 3 != 2)
            harness.leave(member, group=group)
        harness.sleep_ms(20_000)
    harness.delete_groups(groups[0])
    whole = raw_of(zip(log.times_ms, log, strict=True), partitions=PARTITIONS)
    return [whole.filter(pc.equal(whole.column("partition"), partition)) for partition in range(PARTITIONS)]
