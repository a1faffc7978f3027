"""``kgctl simulate explain``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.cli.report import Column, Report, Row
from kgctl.cli.session import Session, session_of
from kgctl.cli.simulate import running

if TYPE_CHECKING:
    from kgctl.simulate.batch.explain import Ablation, Explanation
    from kgctl.simulate.scenario.load import LoadedFile, Variant

COLUMNS = (
    Column("without"),
    Column("max_gap"),
    Column("max_gap_worth"),
    Column("unavailable"),
    Column("unavailable_worth"),
)


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: kgctl simulate explain deploy.yaml --variant eager --seed 7")(simulate_explain)


def simulate_explain(
    ctx: typer.Context,
    file: running.Scenario,
    *,
    variant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which variant; the first if left out.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Which seed; the file's if left out.", show_default=False)
    ] = None,
    settings: running.Settings = None,
) -> Report:
    """Tell why a run comes out as it does: its longest gap, what it waited for, and what each of its causes was worth."""
    from kgctl.cli.simulate.running import WrongFile, load_scenario
    from kgctl.simulate.batch.explain import explain

    session = session_of(ctx)
    try:
        loaded = load_scenario(session, file, settings=settings, variants=[variant] if variant else None, checks=())
    except WrongFile as wrong:
        return wrong.report
    chosen, number = loaded.variants[0], loaded.seed if seed is None else seed
    _notice(session, loaded, chosen, variant)
    explanation = explain(chosen.scenario, number)
    rows = [_row(each) for each in explanation.ablations]
    data = {"scenario": loaded.name, "variant": chosen.name, "seed": number, **asdict(explanation)}
    return Report(COLUMNS, rows, name_keys=("without",), data=data, text=_text(loaded, chosen.name, number, explanation))


def _notice(session: Session, loaded: LoadedFile, chosen: Variant, asked: str | None) -> None:
    if asked is None and len(loaded.variant_names) > 1:
        session.notice(f"variant {chosen.name}; others by --variant: {', '.join(loaded.variant_names[1:])}")


def _row(each: Ablation) -> Row:
    return {
        "without": each.without,
        "max_gap": round(each.max_gap, 3),
        "max_gap_worth": round(each.max_gap_worth, 3),
        "unavailable": round(each.unavailable, 3),
        "unavailable_worth": round(each.unavailable_worth, 3),
    }


def _text(loaded: LoadedFile, variant: str, seed: int, found: Explanation) -> str:
    from kgctl.simulate.batch.explain import explanation_lines
    from kgctl.simulate.scenario.load import DEFAULT

    name = loaded.name if variant == DEFAULT else f"{loaded.name}, variant {variant}"
    first, *rest = explanation_lines(found)
    return "".join(f"{line}\n" for line in (f"{name}, seed {seed}: {first}", *rest))
