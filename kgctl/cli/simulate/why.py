"""Why a scenario comes out as it does: ``kgctl simulate explain`` and ``kgctl simulate shrink``."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgctl.cli.columns import WRITTEN, rounded
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.parameters import option
from kgctl.cli.report import ANY, BOOL, NUMBER, NUMBERS, TEXTS, WHOLE, Column, Report, below, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate import running
from kgctl.cli.simulate.running import VARIANT
from kgctl.files import new_file, write_whole

if TYPE_CHECKING:
    from kgctl.simulate.batch.explain import Explanation
    from kgctl.simulate.batch.shrink import Shrunk
    from kgctl.simulate.scenario.load import LoadedFile, Variant


def _figure(name: str, meaning: str, unit: str) -> Column:
    return Column(name, meaning, NUMBER, unit, read=rounded(name, 3))


EXPLAIN_COLUMNS = (
    Column("without", "what was left out"),
    _figure("max_gap", "the longest gap without it", "s"),
    _figure("max_gap_worth", "what it was worth; above 0: it cost so much", "s"),
    _figure("unavailable", "without a consumer, without it", "partition-seconds"),
    _figure("unavailable_worth", "what it was worth", "partition-seconds"),
)

_US = "microseconds"
_PIECE = (
    Column("from_us", "from when on, from the end of the warm-up", WHOLE, _US),
    Column("to_us", "to when", WHOLE, _US),
)
DOCUMENT = (
    Column("scenario", "the scenario's name"),
    VARIANT,
    Column("seed", "the seed", WHOLE),
    Column("max_gap", "the longest time in which a partition had no consumer", NUMBER, "s"),
    Column("unavailable", "without a consumer, all together", NUMBER, "partition-seconds"),
    Column("by_cause.CAUSE", "those of one cause", NUMBER, "partition-seconds"),
    Column("story.partition", "the partition of the longest gap; `story` is null where there was none"),
    *below("story", _PIECE),
    Column("story.before", "who consumed it before; null: nobody"),
    Column("story.after", "who took it then; null: nobody"),
    Column("story.main_cause", "what most of the gap is due to"),
    *below("story.pieces[]", _PIECE),
    Column("story.pieces[].cause", "the one cause of this part"),
    Column("story.pieces[].meaning", "the cause in words"),
    Column("story.pieces[].rule", "what it waited for"),
    Column("story.steps[]", "two things: a time in microseconds, and what happened then", ANY),
    Column("story.origin.kind", "what set the rebalance off, in a word; empty: there was none"),
    Column("story.origin.text", "the same in words"),
    Column("story.origin.pod", "the pod that did it"),
    *below("ablations[]", EXPLAIN_COLUMNS),
    Column("ablations[].asked.METRIC", "what an expectation asks about: with it, without it", NUMBERS),
    Column("by_part[].event", "the event that the part begins with; empty: before the first"),
    Column("by_part[].step", "the step of its rollout; 0: all of the event", WHOLE),
    *below("by_part[]", _PIECE),
    Column("by_part[].unavailable", "without a consumer in it", NUMBER, "partition-seconds"),
    Column("by_part[].by_cause.CAUSE", "those of one cause", NUMBER, "partition-seconds"),
    Column("fails.CHECK.METRIC", "the value of what an expectation that does not hold asks about", NUMBER),
    Column("details", "what that comes from, in lines, where it is no gap", TEXTS),
    Column("troubles", "what went wrong though nobody asked", TEXTS),
    Column("allowed", "what did so and is let through, as the file allows it", TEXTS),
)
"""What JSON and YAML have in the place of rows, by paths."""


@shows(EXPLAIN_COLUMNS, document=DOCUMENT, examples="kgctl simulate explain deploy.yaml --variant eager --seed 7")
def simulate_explain(
    session: Session,
    file: running.Scenario,
    *,
    variant: Annotated[str | None, option("NAME", "Which variant; if left out, the first of which an expectation fails.")] = None,
    seed: Annotated[int | None, option("N", "Which seed; the file's if left out.", min=0)] = None,
    settings: running.Settings = None,
) -> Report:
    """Tell why a run comes out as it does: its longest gap, what it waited for, and what each of its causes was worth."""
    from kgctl.simulate.batch.explain import checks_of, explain

    loaded = running.load_scenario(session, file, settings=settings, variants=[variant] if variant else None)
    number = loaded.seed if seed is None else seed
    chosen = _chosen(session, loaded, number, variant)
    explanation = explain(chosen.scenario, number, checks=checks_of(loaded, chosen.name), settings=chosen.settings)
    data = {"scenario": loaded.name, "variant": chosen.name, "seed": number, **asdict(explanation)}
    text = _text(loaded, chosen.name, number, explanation)
    return Report(EXPLAIN_COLUMNS, explanation.ablations, name_keys=("without",), data=data, text=text)


def _chosen(session: Session, loaded: LoadedFile, seed: int, asked: str | None) -> Variant:
    """Return the variant that was asked for, else the first of which an expectation fails, else the first."""
    from kgctl.simulate.batch.explain import checks_of, explain

    if len(loaded.variants) == 1:
        return loaded.variants[0]
    for each in loaded.variants:
        checks = checks_of(loaded, each.name)
        found = explain(each.scenario, seed, ablates=False, checks=checks, settings=each.settings)
        if found.fails or found.troubles:
            chosen, why = each, f", the first of which {'an expectation' if found.fails else 'a run'} fails"
            break
    else:
        chosen, why = loaded.variants[0], ""
    if asked is None:
        others = ", ".join(each.name for each in loaded.variants if each is not chosen)
        session.notice(f"variant {chosen.name}{why}; others by --variant: {others}")
    return chosen


def _text(loaded: LoadedFile, variant: str, seed: int, found: Explanation) -> str:
    from kgctl.simulate.batch.explain import explanation_lines
    from kgctl.simulate.scenario.load import DEFAULT

    name = loaded.name if variant == DEFAULT else f"{loaded.name}, variant {variant}"
    first, *rest = explanation_lines(found)
    troubles = (f"FAIL {text}" for text in found.troubles)
    allowed = (f"allowed: {text}" for text in found.allowed)
    return "".join(f"{line}\n" for line in (*troubles, *allowed, f"{name}, seed {seed}: {first}", *rest))


SHRINK_COLUMNS = (
    Column("check", "the expectation that still fails"),
    Column("seed", "with this seed", WHOLE),
    Column("events", "how many events are left", WHOLE),
    Column("pods", "how many pods", WHOLE),
    Column("partitions", "how many partitions", WHOLE),
    Column("runs", "how many runs it took", WHOLE),
    Column("is_minimal", "whether nothing more can be left out", BOOL, wide=True),
    Column("cause", "what it fails by, in words", wide=True),
    replace(WRITTEN, wide=True),
    Column("text", "the scenario", wide=True),
)


@shows(SHRINK_COLUMNS, examples="kgctl simulate shrink chaos.yaml --seed 17 --out small.yaml")
def simulate_shrink(
    session: Session,
    file: running.Scenario,
    *,
    seed: Annotated[int | None, option("N", "The seed that fails; the first of the file's if left out.", min=0)] = None,
    variant: running.Variants = None,
    settings: running.Settings = None,
    check: Annotated[list[str] | None, option("EXPR", "Shrink what breaks this, instead of what the file expects.")] = None,
    most_runs: Annotated[int, option("N", "Stop after so many runs.", min=1)] = 500,
    out: Annotated[Path | None, option("FILE", "Where to write it; stdout if left out.")] = None,
) -> Report:
    """Make a scenario whose expectation fails as small as it can be while the expectation still fails."""
    from kgctl.simulate.batch.shrink import failing, prepared, shrink
    from kgctl.simulate.scenario.load import load

    out = new_file(out)
    tree = prepared(running.read_scenario(session, file), settings or (), check)
    loaded = load(tree, variants=variant or (), checks=check)
    verdict = failing(tree, loaded, range(loaded.seed, loaded.seed + loaded.runs) if seed is None else [seed])
    with running.progress(session.environment, f"shrinking {loaded.name}", most_runs) as on_done:
        found = shrink(tree, verdict, verdict.seed, most_runs=most_runs, on_run=lambda: on_done(None))
    text = found.text(file)
    if out is not None:
        write_whole(out, lambda target: target.write(text.encode()))
    return _shrunk_report(found, verdict.seed, text, out)


def _shrunk_report(found: Shrunk, seed: int, text: str, out: Path | None) -> Report:
    from kgctl.simulate.batch.shrink import cause_in_words

    words = ("events", "pods", "partitions")
    told = ", ".join(f"{word} {before} to {after}" for word, before, after in zip(words, found.before, found.after, strict=True))
    why = (
        "" if found.is_minimal else ", interrupted" if found.was_interrupted else ", which is all that were allowed: --most-runs"
    )
    notices = [f"{told}; {found.runs} runs{why}"]
    notices += [] if out is None else [f"written: {out}; next: kgctl simulate explain {out}"]
    row = {
        "check": found.verdict.check.shown,
        "seed": seed,
        **dict(zip(words, found.after, strict=True)),
        "runs": found.runs,
        "is_minimal": found.is_minimal,
        "cause": cause_in_words(found.cause) or None,
        "file": None if out is None else str(out),
        "text": text,
    }
    return Report(
        SHRINK_COLUMNS,
        [row],
        notices=notices,
        name_keys=("check",),
        text=text if out is None else "",
        fixed_exit_code=ExitCode.INTERRUPTED if found.was_interrupted else None,
    )
