"""``python -m tests.benchmarks``: measures kgctl beside its peers on this machine and prints the numbers.

    python -m tests.benchmarks                        everything, against Apache Kafka and kgctl serve
    python -m tests.benchmarks start-up describe-group --cluster serve
    python -m tests.benchmarks heartbeats coordinator rates: over the wire, both servers in turns; and in process
    python -m tests.benchmarks simulate simulate-list simulate-ci
    python -m tests.benchmarks simulate-beside --against-checkout DIR: a run's processor time, and that of another commit
    python -m tests.benchmarks --small --runs 1       only shows that it works

It writes nothing outside of a folder that is gone afterwards. Trust the minimum first: other work on the machine only adds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.benchmarks import all_groups, describe_group, list_groups, start_up
from tests.benchmarks.clusters import CLUSTERS, scratch
from tests.benchmarks.measure import BenchmarkError, Measurement, measure
from tests.benchmarks.pipeline import build, collect, decode, tables, targets
from tests.benchmarks.rates import codec, commits, heartbeats, in_process, members, spark_start, sweep, zookeeper
from tests.benchmarks.rates.rate import Scale
from tests.benchmarks.simulate import beside, commands, runs
from tests.benchmarks.subject import Size, Subject
from tests.support.machine import Unavailable

SUBJECTS = {
    subject.name: subject
    for subject in (
        start_up.SUBJECT,
        describe_group.SUBJECT,
        list_groups.SUBJECT,
        all_groups.RESET,
        all_groups.TIME_LAG,
        all_groups.TOP,
        commands.LIST,
        commands.IN_CI,
    )
}
RATES = {
    module.RATES.name: module.RATES
    for module in (
        codec,
        heartbeats,
        commits,
        in_process,
        members,
        runs,
        beside,
        collect,
        decode,
        tables,
        build,
        targets,
        spark_start,
        sweep,
        zookeeper,
    )
}
MOST_RUNS_OF_A_RATE = 5


def main(arguments: Sequence[str]) -> int:
    """Runs the subjects that were asked for; 1 where one could not be measured."""
    options = parse(arguments)
    print(f"{python()}\n", flush=True)
    missed = sum(not attempt(job) for job in jobs(options))
    return int(missed > 0)


def python() -> str:
    """Which Python runs kgctl, and its peers that are Python: builds of one version differ by up to a seventh."""
    return f"{Path(sys.executable).resolve()}: {sys.version}"


def jobs(options: argparse.Namespace) -> Iterator[Callable[[], None]]:
    """What was asked for: each subject on each cluster, each table of rates once."""
    clusters = options.cluster or list(CLUSTERS)
    everything = [name for name in [*SUBJECTS, *RATES] if name != beside.RATES.name or options.against_checkout is not None]
    for name in options.subject or everything:
        if name in RATES:
            scale = Scale(options.small, min(options.runs, MOST_RUNS_OF_A_RATE), options.against_checkout)
            yield partial(RATES[name].show, clusters, scale)
            continue
        subject = SUBJECTS[name]
        for cluster in [None] if subject.size is None else clusters:
            yield partial(run, subject, cluster, options)


def attempt(job: Callable[[], None]) -> bool:
    """Whether it could be measured; the reason why not is printed."""
    try:
        job()
    except (BenchmarkError, Unavailable) as error:
        print(f"not measured: {error}\n", file=sys.stderr)
        return False
    return True


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Measures kgctl beside its peers.")
    parser.add_argument("subject", nargs="*", choices=[*SUBJECTS, *RATES, []], help="all, if none is named")
    parser.add_argument("--cluster", action="append", choices=list(CLUSTERS), help="repeatable; both, if none is named")
    parser.add_argument("--runs", type=int, default=15, help="runs of each command (15)")
    parser.add_argument(
        "--budget", type=float, default=40.0, metavar="S", help="seconds after which a slow command has run enough (40)"
    )
    parser.add_argument(
        "--against-checkout",
        type=Path,
        metavar="DIR",
        help="another checkout of kgctl, for simulate-beside",
    )
    parser.add_argument("--small", action="store_true", help="a size that only shows that it works")
    return parser.parse_args(arguments)


def run(subject: Subject, cluster: str | None, options: argparse.Namespace) -> None:
    """Measures one subject against one cluster and prints its table."""
    size = subject.sized(small=options.small)
    with scratch() as folder:
        output = folder / "output"
        if cluster is None:
            report(
                subject, size, "", measure(subject.prepare(None, size), runs=options.runs, budget_s=options.budget, output=output)
            )
            return
        with CLUSTERS[cluster](folder) as running:
            commands = subject.prepare(running, size)
            report(subject, size, running.name, measure(commands, runs=options.runs, budget_s=options.budget, output=output))


def report(subject: Subject, size: Size, where: str, measured: Sequence[Measurement]) -> None:
    """One table: kgctl's line first, the others with their ratio to it."""
    ours = measured[0]
    verdict = "reached" if ours.wall_min_s < subject.target_s else "MISSED"
    title = subject.title.format(groups=size.groups, partitions=size.partitions)
    print(f"{title}{f', {where}' if where else ''}: target {subject.target_s:.3f} s {verdict}")
    print(f"  {'':<48}{'wall min':>10}{'median':>10}{'CPU':>10}{'runs':>6}{'x kgctl':>10}")
    for one in measured:
        ratio = one.wall_min_s / ours.wall_min_s
        print(
            f"  {one.command.name:<48}{one.wall_min_s:>10.3f}{one.wall_median_s:>10.3f}{one.cpu_median_s:>10.3f}"
            f"{len(one.wall_s):>6}{ratio:>10.1f}"
        )
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
