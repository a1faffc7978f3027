"""Runs a block of a sweep, here and now; every run gives a row, whatever comes of it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from kgctl import __version__
from kgctl.errors import InvariantViolation, KgctlError
from kgctl.simulate.batch.judge import Judge, RunValues, key_of
from kgctl.simulate.batch.outcome import number
from kgctl.simulate.batch.plan import Task, run_task
from kgctl.simulate.scenario.expressions import Value
from kgctl.simulate.scenario.load import LoadedFile
from kgctl.simulate.sweep.plan import Block, Point, Sweep, settings_at
from kgctl.simulate.sweep.rows import RunRow

INTERNAL_ERROR = "INTERNAL_ERROR"


def run_block(sweep: Sweep, block: Block) -> list[RunRow]:
    """A row for each variant and seed. Never raises what a scenario or a bug of the simulator can cause."""
    try:
        loaded = sweep.loaded(block.point)
    except KgctlError as error:
        return failed_rows(sweep, block, (error.code, error.message))
    return [row for seed in block.seeds for row in _run_seed(sweep, block, loaded, seed)]


def failed_rows(sweep: Sweep, block: Block, why: tuple[str, str]) -> list[RunRow]:
    """The rows of a block of which nothing could be run. ``why``: a code and a message."""
    return [_failed(sweep, block, name, seed, why) for seed in block.seeds for name in sweep.variant_names]


def _run_seed(sweep: Sweep, block: Block, loaded: LoadedFile, seed: int) -> list[RunRow]:
    found: dict[str, RunValues | RunRow] = {}
    for variant in loaded.variants:
        task = Task(
            variant=variant.name,
            scenario=variant.scenario,
            settings=variant.settings,
            checks=loaded.checks,
            seed=seed,
            is_lone=not sweep.has_variants,
            metrics=sweep.metrics,
        )
        try:
            values = run_task(task)
            assert values is not None
            found[variant.name] = values
        except KgctlError as error:
            found[variant.name] = _failed(sweep, block, variant.name, seed, (error.code, error.message))
        except Exception as error:  # noqa: BLE001 - one run that breaks the simulator must not end thousands
            text = " ".join(f"{type(error).__name__}: {error}".split())
            found[variant.name] = _failed(sweep, block, variant.name, seed, (INTERNAL_ERROR, text))
    judged = _judged(loaded, {name: one for name, one in found.items() if isinstance(one, RunValues)}, seed)
    return [one if isinstance(one, RunRow) else _row(sweep, block, one, *judged[name]) for name, one in found.items()]


def _judged(loaded: LoadedFile, values: Mapping[str, RunValues], seed: int) -> dict[str, tuple[int, list[str]]]:
    """For each variant: how many expectations held for this seed alone, and which did not. Mere warnings count as held."""
    settings = {variant.name: variant.settings for variant in loaded.variants}
    found: dict[str, tuple[int, list[str]]] = {name: (0, []) for name in values}
    if not values:
        return found
    for verdict in Judge({name: {seed: one} for name, one in values.items()}, settings, [seed]).verdicts(loaded.checks):
        passed, failed = found[verdict.variant]
        if verdict.passed or verdict.check.severity != "fail":
            found[verdict.variant] = (passed + 1, failed)
        else:
            failed.append(verdict.check.shown)
    return found


def _row(sweep: Sweep, block: Block, values: RunValues, passed: int, failed: Sequence[str]) -> RunRow:
    is_fine = not failed and not values.stopped
    return RunRow(
        number=block.number,
        variant=values.variant,
        seed=values.seed,
        digest=values.digest,
        metrics=_numbers(values.metrics) | _numbers({name: values.named.get(name) for name in map(key_of, sweep.metrics)}),
        events=values.events,
        expectations_passed=passed,
        expectations_failed=len(failed),
        failed_checks="; ".join(failed) or None,
        stopped=values.stopped or None,
        replay=None if is_fine else replay_of(sweep, block.point, values.variant, values.seed),
    )


def _numbers(values: Mapping[str, Value]) -> dict[str, int | float | None]:
    return {name: number(value) if isinstance(value, int | float) else None for name, value in values.items()}


def _failed(sweep: Sweep, block: Block, variant: str, seed: int, why: tuple[str, str]) -> RunRow:
    replay = replay_of(sweep, block.point, variant, seed)
    return RunRow(number=block.number, variant=variant, seed=seed, error_code=why[0], error=why[1], replay=replay)


def replay_of(sweep: Sweep, point: Point, variant: str, seed: int) -> str:
    """Return the command that repeats this one run."""
    settings = [word for each in (*sweep.fixed, *settings_at(sweep.axes, point)) for word in ("--set", each)]
    named = ["--variant", variant] if sweep.has_variants else []
    words = [*sweep.words, *settings, *named, "--seed", str(seed)]
    return f"{' '.join(map(shlex.quote, words))}   # kgctl {__version__}"


def chosen(rows: Sequence[RunRow], share: float) -> list[RunRow]:
    """Rows spread evenly over all that were run to their end; at least one, unless the share is 0."""
    complete = [row for row in rows if row.digest is not None]
    count = min(math.ceil(len(complete) * share), len(complete))
    return [complete[place * len(complete) // count] for place in range(count)]


def differences(sweep: Sweep, rows: Sequence[RunRow]) -> Iterator[InvariantViolation | None]:
    """Runs each of ``rows`` again; gives None, or what is wrong where the second run differs."""
    points = sweep.points()
    for row in rows:
        point = points[row.number]
        again = {one.variant: one for one in run_block(sweep, Block(row.number, point, (row.seed,)))}[row.variant]
        if (again.digest, again.metrics) == (row.digest, row.metrics):
            yield None
            continue
        replay = replay_of(sweep, point, row.variant, row.seed)
        yield InvariantViolation(f"two runs of one seed differ, digests {row.digest} and {again.digest}: {replay}")
