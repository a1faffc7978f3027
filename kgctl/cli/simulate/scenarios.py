"""Scenario files to start from: ``kgctl simulate list``, ``show``, ``schema`` and ``init``."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from kgctl.cli.columns import WRITTEN
from kgctl.cli.completion import complete_groups, complete_scenarios
from kgctl.cli.parameters import argument, option
from kgctl.cli.report import Column, OutputFormat, Report, shows
from kgctl.cli.session import Session
from kgctl.cli.simulate.running import seconds
from kgctl.errors import KgctlError, NotFoundError, UsageError
from kgctl.files import new_file, text_of

NAME = Column("name", "the built-in scenario's name")
LIST_COLUMNS = (NAME, Column("question", "the question that it answers"))


@shows(LIST_COLUMNS, examples="kgctl simulate list")
def simulate_list() -> Report:
    """List the built-in scenarios, with the question that each answers."""
    from kgctl.simulate.scenario.sources import builtin_names, builtin_text

    rows = [{"name": name, "question": _question(builtin_text(name))} for name in builtin_names()]
    return Report(LIST_COLUMNS, rows, name_keys=("name",))


def _question(text: str) -> str:
    """Its line alone: a list need not read every file as YAML."""
    found = re.search(r"^question: (.*)$", text, re.MULTILINE)
    return found.group(1).strip().strip("\"'") if found else ""


SHOW_COLUMNS = (NAME, Column("text", "its file"))


@shows(SHOW_COLUMNS, examples="kgctl simulate show rolling-restart > mine.yaml")
def simulate_show(
    name: Annotated[str, argument("NAME", "A built-in scenario.", show_default=False, complete=complete_scenarios)],
) -> Report:
    """Print a built-in scenario, to read it or to start from it."""
    from kgctl.simulate.scenario.sources import BUILTIN, builtin_text

    text = builtin_text(name.removeprefix(BUILTIN))
    return Report(SHOW_COLUMNS, [{"name": name, "text": text}], name_keys=("name",), text=text)


@shows(examples="kgctl simulate schema > scenario.schema.json")
def simulate_schema(session: Session) -> Report:
    """Print the JSON Schema of scenario files, for editors that complete and check."""
    from kgctl.simulate.scenario.schema import scenario_schema

    if session.flags.output in (OutputFormat.CSV, OutputFormat.NAME, OutputFormat.NAME0):
        raise UsageError(f"-o {session.flags.output}: a schema has no rows; without -o it is JSON")
    schema = scenario_schema()
    return Report(data=schema, text=json.dumps(schema, indent=2) + "\n")


INIT_COLUMNS = (WRITTEN, Column("text", "what stands in it"))


@shows(INIT_COLUMNS, examples="kgctl simulate init --from-group payments payments.yaml")
def simulate_init(
    session: Session,
    file: Annotated[Path | None, argument("FILE", "Where to write it; stdout if left out.")] = None,
    *,
    from_group: Annotated[str | None, option("GROUP", "A group of the cluster.", complete=complete_groups)] = None,
    from_file: Annotated[Path | None, option("FILE", "What kgctl describe group G --members -o json printed.")] = None,
    from_manifest: Annotated[
        list[Path] | None, option("FILE", "Kubernetes manifests, KEDA's, .properties files; repeatable.")
    ] = None,
    sample: Annotated[
        str | None, option("TIME", "How long to watch offsets for the rates; 0s: not at all. [default: 5s]")
    ] = None,
) -> Report:
    """Write a scenario: from a group of the cluster, a saved description of one, manifests, or an example to start from."""
    if sum(bool(each) for each in (from_group, from_file, from_manifest)) > 1:
        raise UsageError("say one of --from-group, --from-file and --from-manifest")
    if sample is not None and from_group is None:
        raise UsageError("--sample is how long a group of the cluster is watched: it has a place beside --from-group only")
    file = new_file(file)
    text = _of_manifests(session, from_manifest, file) if from_manifest else _text(session, from_group, from_file, sample or "5s")
    if file is None:
        return Report(INIT_COLUMNS, [{"file": None, "text": text}], name_keys=("file",), text=text)
    try:
        file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise KgctlError(f"{file}: {error.strerror}", code="OS_ERROR") from None
    hints = (f"written: {file}; next: kgctl simulate run {file}",)
    return Report((WRITTEN, replace(INIT_COLUMNS[1], wide=True)), [{"file": str(file), "text": text}], (), hints, ("file",))


def _of_manifests(session: Session, manifests: list[Path], file: Path | None) -> str:
    """A scenario of these manifests, which names them by the way from its own folder."""
    from kgctl.simulate.scenario.from_manifests import remarks, scenario_of
    from kgctl.simulate.scenario.manifests import read_manifests

    folder = (file or Path("scenario.yaml")).resolve().parent
    names = [Path(os.path.relpath(each.resolve(), folder)).as_posix() for each in manifests]
    pods = read_manifests([(name, text_of(each)) for name, each in zip(names, manifests, strict=True)])
    text = scenario_of(pods, names)
    for each in remarks(pods):
        session.notice(each)
    return text


def _text(session: Session, from_group: str | None, from_file: Path | None, sample: str) -> str:
    from kgctl.cli.simulate.live_group import observed
    from kgctl.simulate.scenario.observed import observed_in, scenario_text
    from kgctl.simulate.scenario.sources import builtin_text

    if from_group is not None:
        return scenario_text(observed(session, from_group, seconds("--sample", sample)))
    if from_file is not None:
        return scenario_text(observed_in(text_of(from_file, missing=NotFoundError), str(from_file)))
    return builtin_text("rolling-restart")
