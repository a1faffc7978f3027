"""Lists that the manual has by hand leave nothing out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from kgctl.admin.connect import ClusterContext
from kgctl.assignors.registry import CLIENT_ASSIGNORS, SERVER_ASSIGNORS
from kgctl.cli.groups.targets import OffsetTarget
from kgctl.pipeline.watch import outlets
from kgctl.simulate.scenario import autoscale, model
from kgctl.simulate.scenario.fields import Section
from tests.docs.pages import MANUAL

SECTIONS = [each for module in (model, autoscale) for each in vars(module).values() if isinstance(each, type)]
KEYS = {
    key
    for section in SECTIONS
    if issubclass(section, Section)
    for name, field in section.model_fields.items()
    if (key := str(field.validation_alias or name)).isidentifier()  # what has no key of its own stands above it
}
PROGRAM = Path(outlets.__file__).read_text(encoding="utf-8")
WANTED = {
    "assignors": {*CLIENT_ASSIGNORS, *SERVER_ASSIGNORS},
    "resets": {f"--{each.name.replace('_', '-')}" for each in fields(OffsetTarget)},
    "scenario-files": KEYS,
    "clusters": {each.name.replace("_", "-") for each in fields(ClusterContext)},
    "watch": {*re.findall(r'"(kgctl_\w+)"', PROGRAM)},
}
"""Page -> what it has to name."""


def named(page: str) -> set[str]:
    """The words of what stands in backticks, or in an example; of a counter without its ending."""
    text = (MANUAL / f"{page}.md").read_text(encoding="utf-8")
    code = [*re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL), *re.findall(r"`[^`\n]+`", text)]
    words = {word for each in code for word in (*re.findall(r"[\w:-]+", each), *re.findall(r"[\w-]+", each))}
    return words | {word.removesuffix("_total") for word in words}


@pytest.mark.parametrize("page", WANTED)
def test_page_names_everything(page: str) -> None:
    assert WANTED[page]
    assert WANTED[page] - named(page) == set()
