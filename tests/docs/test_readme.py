"""README.md is the manual: its examples run, its tables are the code's, and nothing is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kgctl.cli.context.config_file import load_config_file
from kgctl.cli.exit_codes import ExitCode
from kgctl.cli.output.formats import OutputFormat
from kgctl.cli.registry import COMMANDS
from tests.docs.readme import README, blocks, comparable, generated, with_generated, with_output
from tests.docs.session import readme_session

TEXT = README.read_text(encoding="utf-8")
UPDATE = "run `python -m tests.docs.update`, and look at what it changed"


@pytest.mark.interop
def test_examples_give_the_output_that_is_shown(tmp_path: Path) -> None:
    with readme_session(tmp_path) as variables:
        ran = with_output(TEXT, tmp_path, variables)
    assert [comparable(block) for block in blocks(TEXT)] == [comparable(block) for block in blocks(ran)], UPDATE


def test_generated_parts_are_up_to_date() -> None:
    assert with_generated(TEXT) == TEXT, UPDATE


def test_every_command_has_an_example() -> None:
    examples = "\n".join(re.findall(r"^```.*?^```", TEXT.partition("## Command reference")[0], re.MULTILINE | re.DOTALL))
    assert [spec.path for spec in COMMANDS if f"kgctl {spec.path}" not in examples] == []


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: str(spec.path))
def test_help_says_what_the_command_does_and_has_an_example(spec: object) -> None:
    path = getattr(spec, "path", "")
    reference = generated_reference()[path]
    assert re.search(rf"^  Examples?:\s+.*kgctl {path}", reference, re.MULTILINE | re.DOTALL)
    assert len(reference.splitlines()) > 8


def generated_reference() -> dict[str, str]:
    """Help by command, from the README: that it is up to date is a test of its own."""
    parts = re.findall(r"^### kgctl ?(.*?)\n\n```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    return dict(parts)


def test_tables_name_everything_there_is() -> None:
    tables = generated()
    assert tables["exit-codes"].count("\n") == len(ExitCode)
    assert tables["formats"].count("\n") == len(OutputFormat)
    assert tables["commands"].count("\n") == len(COMMANDS)


def test_config_file_of_the_manual_is_read(tmp_path: Path) -> None:
    (example,) = [found for found in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "contexts:" in found]
    path = tmp_path / "config.yaml"
    path.write_text(example)
    config = load_config_file(path)
    assert (config.current_context, sorted(config.contexts)) == ("staging", ["desk", "staging"])


def test_outputs_that_vary_compare_equal() -> None:
    one = "payments-1-1dca0960-2314-4904-bf18-656d77781c25  127.0.0.1:44861  x"
    other = "payments-1-a0dc7d9f-dea9-4cec-9670-bf87f8156c3e  127.0.0.1:9092   x"
    assert comparable(one) == comparable(other)
    assert comparable("a 1") != comparable("a 2")
