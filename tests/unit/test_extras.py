"""What is missing is named, with the line that adds it to the kgctl that runs."""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest

from kgctl import extras
from kgctl.errors import UsageError
from kgctl.extras import BROUGHT_BY, INCLUDES, install_line, is_there, require
from tests.repo.project import ROOT, pyproject


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that pip made, outside any checkout."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "python"))
    monkeypatch.setattr(extras, "_checkout", lambda: "")
    for name in ("pip", "python"):
        (tmp_path / "my env" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "my env" / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "my env"))
    return tmp_path


def test_what_is_there_is_not_asked_for() -> None:
    require("kgctl history", "json", "csv")
    assert (is_there("json"), is_there("no_such_thing")) == (True, False)


@pytest.mark.usefixtures("elsewhere")
def test_what_is_missing_is_named_with_its_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_there", lambda name: name in ("numpy", "pip"))
    with pytest.raises(UsageError) as caught:
        require("kgctl history", "pyarrow", "numpy", "deltalake", "vl_convert")
    words = "kgctl history needs pyarrow and deltalake and vl_convert: pip install 'kgctl[history,html]'"
    assert caught.value.message == words


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize(("modules", "line"), [(["pyspark"], "kgctl[spark]"), (["grpc", "pyspark"], "kgctl[connect]")])
def test_what_comes_with_an_extra_is_not_named_beside_it(modules: list[str], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_there", lambda name: name == "pip")
    with pytest.raises(UsageError, match=re.escape(f": pip install '{line}'")):
        require("kgctl history build", "pyarrow", "numpy", "deltalake", *modules)


def test_what_includes_what_is_as_the_project_has_it() -> None:
    declared = pyproject()["project"]["optional-dependencies"]
    own = {extra: re.findall(r"kgctl\[(\w+)\]", " ".join(needed)) for extra, needed in declared.items()}
    assert {extra: [included] for extra, included in INCLUDES.items()} == {extra: found for extra, found in own.items() if found}


def test_an_environment_that_no_shell_is_in_is_named_by_its_python(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(elsewhere))
    assert install_line("top") == f"'{elsewhere}/my env/python' -m pip install 'kgctl[top]'"


def test_an_environment_without_pip_is_uv_s(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "is_there", lambda _: False)
    assert install_line("top") == f"uv pip install --python '{elsewhere}/my env/python' 'kgctl[top]'"


def test_the_line_is_in_the_words_of_pipx(elsewhere: Path) -> None:
    (elsewhere / "pipx_metadata.json").touch()
    assert install_line("history") == "pipx inject kgctl 'kgctl[history]'"


def test_uv_is_told_what_is_there_too_which_it_would_else_take_away(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (elsewhere / "uv-receipt.toml").touch()
    monkeypatch.setattr(extras, "is_there", lambda name: name in ("textual", "vl_convert"))
    assert install_line("history") == "uv tool install 'kgctl[history,html,top]'"


def test_a_checkout_is_named_by_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Editable:
        def read_text(self, _: str) -> str:
            return json.dumps({"url": f"file://{ROOT}", "dir_info": {"editable": True}})

    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/my work/python")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Editable())
    assert install_line("html") == f"'/my work/python' -m pip install -e '{ROOT}[html]'"


def test_every_extra_is_known_by_a_module_that_it_brings() -> None:
    assert set(BROUGHT_BY.values()) == set(pyproject()["project"]["optional-dependencies"])


@pytest.mark.parametrize("extra", sorted(set(BROUGHT_BY.values())))
def test_ci_installs_proves_every_extra(extra: str) -> None:
    assert f"\n        {extra}) echo " in (ROOT / ".ci" / "installs").read_text()
