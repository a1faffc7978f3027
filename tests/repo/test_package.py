"""What the wheel and the sdist hold."""

from __future__ import annotations

import tomllib

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.repo.project import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_pages_and_data_files_are_packed(builder: type[WheelBuilder | SdistBuilder]) -> None:
    packed = {included.distribution_path for included in builder(str(ROOT)).recurse_included_files()}
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kgctl" / "manual").glob("*.md")}
    assert pages
    assert pages | {"kgctl/py.typed", "kgctl/charts/page.html", "kgctl/__main__.py"} <= packed


def test_licence_is_packed_and_named() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert text.split()[:6] == ["Apache", "License", "Version", "2.0,", "January", "2004"]
    assert "END OF TERMS AND CONDITIONS" in text
    assert WheelBuilder(str(ROOT)).metadata.core.license_files == ["LICENSE"]
    assert "LICENSE" in {included.distribution_path for included in SdistBuilder(str(ROOT)).recurse_included_files()}
    assert (PROJECT["license"], PROJECT["authors"]) == ("Apache-2.0", [{"name": "The kgctl authors"}])
