"""The page for contributors is followed: the things that it adds do what it shows, and the files that it names are there."""

from __future__ import annotations

import re
from pathlib import Path
from shutil import copyfile

import pytest

from tests.docs.adding import ADDED, AT_THE_END, PAGE, CopyShell, add, copied, followed
from tests.docs.pages import MANUAL, ROOT

TEXT = (MANUAL / f"{PAGE}.md").read_text(encoding="utf-8")


def test_the_examples_do_what_the_page_shows(tmp_path: Path) -> None:
    assert TEXT.count("```python") == 7
    assert followed(TEXT, tmp_path) == TEXT


@pytest.mark.slow
def test_the_examples_pass_the_checks_of_the_house(tmp_path: Path) -> None:
    """Who copies them has nothing to mend: format, lint, types."""
    copied(tmp_path)
    copyfile(ROOT / "pyproject.toml", tmp_path / "pyproject.toml")
    for example in ADDED.finditer(TEXT):
        add(tmp_path, example["path"], example["place"], example["code"])
    files = " ".join(dict.fromkeys(example["path"] for example in ADDED.finditer(TEXT)))
    shell = CopyShell(tmp_path)
    assert [shell.run(f"{check} {files}").splitlines()[-1] for check in CHECKS] == [
        f"{len(set(files.split()))} files already formatted",
        "All checks passed!",
        f"Success: no issues found in {len(set(files.split()))} source files",
    ]


CHECKS = ("ruff format --check", "ruff check", "mypy --cache-dir cache")
ONE_METRIC = '''@metric(COUNT, ("selector", *TIME), label="pods seen", hint="consumers that ran", is_better_higher=True)
def pods_seen(run: Measured, filters: Filters) -> float:
    """Pods whose consumer ran."""
    return sum(bool(run.history.pods[pod].running.until(run.end_us)) for pod in run.pods(filters))
'''
SCENARIO = """kgctl: 1
name: one
topics: {orders: 2}
members: {app: {count: 1}}
expect: [pods_seen(app) >= 3]
variants: {few: {}, many: {members: {app: {count: 2}}}}
sweep: {members.app.count: [1, 2]}
"""


def test_all_that_knows_metrics_knows_one_that_is_added_in_one_place(tmp_path: Path) -> None:
    shell = CopyShell(copied(tmp_path))
    add(tmp_path, "kgctl/simulate/metrics/rebalances.py", AT_THE_END, ONE_METRIC)
    shell.write("one.yaml", SCENARIO)
    shell.write(
        "page.py",
        f"import sys\nsys.path.append({str(ROOT)!r})\nfrom tests.docs.generated import GENERATED as G\nprint(G['metrics']())",
    )
    assert "| `pods_seen` | count | selector after before during step | Pods whose consumer ran. |" in shell.run("page")
    ran = shell.run("kgctl simulate run one.yaml --check 'pods_seen >= 3'")
    assert ("pods seen" in ran, "consumers that ran" in ran) == (True, True)
    assert "pods_seen is a plain number" in shell.run("kgctl simulate check one.yaml --set expect='[pods_seen < 5s]'")
    assert "did you mean 'pods_seen'?" in shell.run("kgctl simulate check one.yaml --set expect='[pod_seen < 5]'")
    compared = shell.run("kgctl simulate compare one.yaml:few one.yaml:many -o csv")
    assert [line.split(",")[3] for line in compared.splitlines() if ",pods_seen," in line] == ["better"]
    assert "pods_seen" in shell.run("kgctl simulate sweep one.yaml --variant few --metric pods_seen -o csv")
    assert "pods_seen(app) >= 3" in shell.run("kgctl simulate explain one.yaml --variant few")


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:kgctl|tests)/[\w/.-]+)`", TEXT))
    assert sorted(path for path in named if not (ROOT / path).exists() and "NAME" not in path) == []


def test_every_registry_that_the_page_names_is_in_its_file() -> None:
    named = re.findall(r"`(_?[A-Za-z]+)`(?: or `([A-Z_]+)`| and `([A-Z_]+)`)? of `(kgctl/[\w/.]+)`", TEXT)
    assert len(named) > 10
    missing = [
        (name, path) for *names, path in named for name in names if name and name not in (ROOT / path).read_text(encoding="utf-8")
    ]
    assert missing == []
