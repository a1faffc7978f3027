"""README.md and the manual are true: examples give what is shown, what is typed is understood, links lead somewhere."""

from __future__ import annotations

import io
import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

from kgctl.admin.connect import load_config_file
from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from kgctl.cli.manual import page_names, read_page
from kgctl.cli.registry import COMMANDS, FAMILIES, CommandSpec
from kgctl.cli.tree import LazyCommand, build_tree
from tests.docs.generated import GENERATED
from tests.docs.pages import (
    MANUAL,
    PAGES,
    README,
    ROOT,
    blocks,
    comparable,
    generated_names,
    typed_lines,
    with_generated,
    with_output,
)
from tests.docs.session import session_of
from tests.docs.shell import Shell

UPDATE = "run `python -m tests.docs.update`, and look at what it changed"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in PAGES}
IN_THE_MANUAL = {option for text in TEXTS.values() for option in re.findall(r"(?<![\w-])--?[\w-]+", text)}
every_page = pytest.mark.parametrize("page", TEXTS)


@pytest.mark.interop
@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if blocks(text)])
def test_examples_give_the_output_that_is_shown(page: str, tmp_path: Path) -> None:
    with session_of(page, tmp_path) as session, Shell(tmp_path, session) as shell:
        ran = with_output(TEXTS[page], shell)
    assert [comparable(block) for block in blocks(TEXTS[page])] == [comparable(block) for block in blocks(ran)], UPDATE


@every_page
def test_generated_parts_are_up_to_date(page: str) -> None:
    assert with_generated(TEXTS[page]) == TEXTS[page], UPDATE


def test_every_generated_part_has_its_place() -> None:
    assert {name for text in TEXTS.values() for name in generated_names(text)} == set(GENERATED)


@every_page
def test_what_is_typed_is_understood(page: str) -> None:
    """Command lines without output: their commands, arguments and options are there."""
    for line in typed_lines(TEXTS[page]):
        words = shlex.split(line, comments=True)
        parse(list(takewhile(lambda word: not re.fullmatch(r"2?[|>;&]+|.*;", word), words))[1:])


def parse(words: list[str]) -> None:
    """Parse a command line without running it.

    Raises:
        typer.TyperException: a command or an option does not exist.
    """
    command: Any = build_tree()
    context = command.make_context("kgctl", words)
    while isinstance(command, TyperGroup) and (rest := [*context._protected_args, *context.args]):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


@every_page
def test_links_lead_somewhere(page: str) -> None:
    path = README if page == "README" else MANUAL / f"{page}.md"
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if not target.startswith("https://"):
            file, _, anchor = target.partition("#")
            linked = (path.parent / file).resolve() if file else path
            assert linked.is_relative_to(ROOT), target
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked), target


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_manual_lists_every_page_once() -> None:
    assert sorted(page_names()) == sorted(path.stem for path in MANUAL.iterdir())


@pytest.mark.parametrize("name", page_names())
def test_page_begins_with_its_title_and_one_sentence(name: str) -> None:
    page = read_page(name)
    assert re.fullmatch(r"[A-Za-z].*", page.title)
    assert re.fullmatch(r"[A-Z].*\.", page.subject)
    assert "<!--" not in page.text


@every_page
def test_every_block_begins_at_the_margin_and_says_what_it_is(page: str) -> None:
    """Only then is it an example that runs, a file, or a line that is parsed."""
    fences = re.findall(r"^ *```.*$", TEXTS[page], re.MULTILINE)
    assert len(fences) % 2 == 0
    kinds = {fence.split()[0] for fence in fences[::2]}
    assert kinds <= {
        "```console",
        "```sh",
        "```yaml",
        "```text",
        "```python",
        "```sql",
        "```properties",
        "```mermaid",
        "```json",
        "```ini",
    }
    assert set(fences[1::2]) <= {"```"}


def test_every_command_names_a_page_that_shows_it() -> None:
    missing = [spec.path for spec in COMMANDS if f"kgctl {spec.path}" not in TEXTS[spec.page]]
    assert missing == []
    assert [name for name, (page, _) in FAMILIES.items() if page not in page_names()] == []


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: str(spec.path))
def test_every_option_is_in_the_manual(spec: CommandSpec) -> None:
    options = [{*each.opts, *each.secondary_opts} for each in LazyCommand(spec).real.params if each.param_type_name == "option"]
    assert [names for names in options if not names & IN_THE_MANUAL] == []


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: str(spec.path))
def test_help_says_what_the_command_does_and_has_an_example(spec: CommandSpec) -> None:
    out = io.StringIO()
    assert run([*spec.words, "--help"], Environment(stdout=out, stderr=out)) == 0
    assert re.search(rf"^  Examples?:\s+.*kgctl {spec.path}", out.getvalue(), re.MULTILINE | re.DOTALL)
    assert out.getvalue().endswith(f"  Manual: kgctl manual {spec.page}\n")


def test_config_files_of_the_manual_are_read(tmp_path: Path) -> None:
    found = []
    for example in re.findall(r"```yaml\n(.*?)```", TEXTS["clusters"], re.DOTALL):
        path = tmp_path / "config.yaml"
        path.write_text(example)
        config = load_config_file(path)
        found.append((config.current_context, sorted(config.contexts)))
    assert found == [("staging", ["desk", "staging"]), ("dev", ["dev"])]


def test_readme_is_short_and_readable_everywhere() -> None:
    text = TEXTS["README"]
    assert len(text.splitlines()) <= 250
    linked = set(re.findall(r"\]\(([^)#]+)\)", text))
    assert {name for name in linked if name.startswith("kgctl/")} == {f"kgctl/manual/{name}.md" for name in page_names()}
    assert [name for name in linked if not (ROOT / name).is_file()] == []
    assert "mermaid" not in text
    assert "Usage: kgctl" not in "".join(TEXTS.values())


def test_outputs_that_vary_compare_equal() -> None:
    one = "payments-1-1dca0960-2314-4904-bf18-656d77781c25  127.0.0.1:44861  x"
    other = "payments-1-a0dc7d9f-dea9-4cec-9670-bf87f8156c3e  127.0.0.1:9092   x"
    assert comparable(one) == comparable(other)
    assert comparable("a 1") != comparable("a 2")
