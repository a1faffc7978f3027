"""5.6: what is processed twice or not at all, and whose commits are refused."""

from __future__ import annotations

from kgctl.simulate.engine.traffic.arrivals import UNIT_PR
from kgctl.simulate.metrics.filters import Filters
from kgctl.simulate.metrics.measured import Measured, seconds


def duplicates(run: Measured, filters: Filters) -> float:
    """Records that are processed again: read and not committed when a partition was lost, and the work of zombies."""
    return run.total(run.history.duplicates, filters) + _zombie_work(run, filters)


def _zombie_work(run: Measured, filters: Filters) -> int:
    """What processes read of partitions that others read already."""
    total = 0
    for number, first, last, pod in run.lanes.double_owned:
        if run.is_meant(pod, filters):
            rate_uhz = run.history.pods[pod].rate_uhz
            arriving = run.ledger.arrivals.total_pr(number, last) - run.ledger.arrivals.total_pr(number, first)
            total += arriving if rate_uhz is None else min(arriving, rate_uhz * (last - first))
    return total // UNIT_PR


def duplicates_bound(run: Measured, filters: Filters) -> float:
    """The most that crashes can cost: for each, the rate of its partitions times the commit interval and a batch."""
    bound = 0
    for at_us, pod in run.history.crashes:
        members = run.world.pods[pod].members
        config = run.world.pods[pod].member_config()
        commit = run.world.pods[pod].commit_of(config)
        interval_us = config.auto_commit_interval_ms * 1000 if commit.mode == "auto" else commit.interval_us
        batch_us = members.poll.upper_us if members.poll.upper_us is not None else 3 * members.poll.mean_us
        interval_us = 0 if commit.mode in ("after-batch", "before-batch") else interval_us
        rate_uhz = members.rate_uhz if members.rate_uhz is not None else sum(run.ledger.arrivals.rate_uhz)
        if run.is_meant(pod, filters) and run.window(filters)[0] <= at_us <= run.window(filters)[1]:
            bound += rate_uhz * (interval_us + batch_us)
    return bound / UNIT_PR


def double_owned(run: Measured, filters: Filters) -> float:
    """Partition-seconds in which two processes consumed one."""
    window = run.window(filters)
    ended = [(first, last) for _, first, last, pod in run.lanes.double_owned if run.is_meant(pod, filters)]
    still = [(since, run.end_us) for _, pod, since in run.lanes.older_consumers() if run.is_meant(pod, filters)]
    return seconds(sum(last - first for first, last in run.clip([*ended, *still], window)))


def fenced_commits(run: Measured, filters: Filters) -> float:
    """Commits that were refused because the member was out, or behind."""
    return run.total(run.history.fenced_commits, filters)


def lost(run: Measured, filters: Filters) -> float:
    """Records that are skipped."""
    return run.total(run.history.lost, filters)


def errors(run: Measured, filters: Filters) -> float:
    """Answers with an error, and what consumers threw; of one code, where one is named. Not what every rebalance has."""
    return run.total(run.history.errors, filters)


def owners(run: Measured, _: Filters) -> float:
    """The most processes that consume one partition now."""
    lanes = run.lanes
    if lanes.has_doubles:
        return max(lanes.consumers(number) for number in range(len(lanes.owner)))
    return 1 if lanes.unowned < len(lanes.owner) else 0


def processed(run: Measured, filters: Filters) -> float:
    """Records that were read for the first time."""
    run.world.account_traffic()
    at_us = run.end_us
    return sum(run.ledger.position_pr(number, at_us) for number in run.partitions(filters)) // UNIT_PR
