"""Names that want to be more than names, in every output; files of anything, read or refused."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.admin.notation import csv_text, parse_offset_file, unseal
from kgctl.admin.properties import parse_properties
from kgctl.errors import KgctlError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.yaml_files import read_yaml
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.cli.harness import Cli

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What moves a cursor, ends a line or turns text round; tabs and line feeds belong to some formats."""
FORMULA = re.compile(r"[=@\t\r]|[+-].*[^\w.,:+\- ]", re.DOTALL)
NAMES = (
    *("=cmd|' /C calc'!A0", "@SUM(1+1)", "+1|x", "-2+3+cmd|' /C calc'!A0", "'=already", "-rf", "--execute", "../../etc/passwd"),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "\x08\x08\x7f", "one\ntwo", "one\r\ntwo", "tab\there", "\u202elive"),
    *("<script>alert(1)</script>", "$(touch x)", "`id`", "; ls", "[bold]x[/bold]", "line\u2028end", 'a,b"c', "nul\x00"),
)
COMMANDS = (
    "list groups",
    "list groups --lag",
    "describe group --all-groups",
    "describe group --all-groups --members",
    "describe group --all-groups --state",
    "delete-groups --all-groups --dry-run",
    "reset-offsets --all-groups --all-topics --to-earliest --dry-run",
)


@pytest.fixture
def hostile(cli: Cli) -> Cli:
    """kgctl before a cluster whose groups have all these names, in their offsets' metadata too."""
    admin = FakeGroupAdmin()
    admin.topic("t", FakeLog(0, 100))
    for name in NAMES:
        admin.group(name, {TopicPartition("t", 0): OffsetAndMetadata(5, metadata=name)})
    return Cli(cli.folder, admin)


@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "name"])
def test_no_name_acts_on_who_reads_it(hostile: Cli, line: str, output: str) -> None:
    ran = hostile(f"{line} -o {output}")

    assert ACTING.findall(ran.out + ran.err) == []


@pytest.mark.parametrize("line", COMMANDS)
def test_csv_moves_no_terminal_and_holds_no_formula(hostile: Cli, line: str) -> None:
    exact = hostile(f"{line} -o csv")
    hostile.terminal = True
    shown = hostile(f"{line} -o csv")

    assert ACTING.findall(shown.out) == []
    assert [cell for row in csv.reader(io.StringIO(exact.out)) for cell in row if FORMULA.match(cell)] == []


def test_one_group_is_one_line_for_the_command_behind_the_pipe(hostile: Cli) -> None:
    assert len(hostile("list groups -o name").out.splitlines()) == len(NAMES)


@pytest.mark.parametrize(
    "line", ["describe group", "reset-offsets --all-topics --to-earliest", "delete-groups --dry-run", "describe group --state"]
)
def test_commands_take_back_the_names_that_are_shown(hostile: Cli, line: str) -> None:
    """Each form that ``-o name`` prints is the group's; one that is another's too is nobody's."""
    shown = hostile("list groups -o name").out.splitlines()
    ran = hostile.run([*line.split(), "-o", "json", "--", *shown])
    assert (ran.code, {row["group"] for row in ran.data}) == (0, {*NAMES}), ran.err
    assert isinstance(hostile.admin, FakeGroupAdmin)
    hostile.admin.group("tab\\there", {TopicPartition("t", 0): OffsetAndMetadata(5)})
    assert hostile.run([*line.split(), "tab\\there"]).code == 2
    assert {row["group"] for row in hostile.run([*line.split(), "-o", "json", "tab\\\\there"]).data} == {"tab\\there"}


def test_an_unknown_name_is_told_as_text(hostile: Cli) -> None:
    for name in NAMES:
        ran = hostile.run(["describe", "group", f"--group={name}x"])
        assert (ran.code, ACTING.findall(ran.err)) == (4, [])


@given(st.lists(st.lists(st.text(), min_size=2, max_size=3), min_size=1, max_size=5))
def test_what_is_written_as_csv_holds_no_formula(rows: list[list[str]]) -> None:
    read = list(csv.reader(io.StringIO(csv_text(rows), newline=""), strict=True))

    assert [cell for row in read for cell in row if FORMULA.match(cell)] == []


@given(st.sampled_from(NAMES) | st.text(min_size=1).filter(str.strip), st.integers(0, 2**62))
def test_an_offsets_file_is_read_back_as_it_was_written(name: str, offset: int) -> None:
    text = csv_text([("group", "topic", "partition", "offset", "metadata"), (name, "t", 0, offset, name)])
    (found,) = parse_offset_file(text, "f", []).groups.items()

    assert found[0] == name
    assert found[1][TopicPartition("t", 0)].target == OffsetAndMetadata(offset, metadata=name)


READERS: dict[str, Callable[[str], object]] = {
    "offsets": lambda text: parse_offset_file(text, "f", ["g"]),
    "properties": lambda text: list(parse_properties(text, "f")),
    "YAML": lambda text: read_yaml(text, "f"),
    "undo": lambda text: unseal(text, "f"),
}
PIECES = st.sampled_from(
    (
        *("group,topic,partition,offset\n", "t,0,", "{", "}", "[", "]", '"', "'", ":", "&a ", "*a", "<<: ", "!!python/object:x "),
        *("\\u", "\\", "=", "# kgctl ", "\n", "\t", "- ", "? ", "|", ">", "%TAG", "\x00", "\ufeff", "1e999", "-1"),
    )
)


@pytest.mark.parametrize("reader", READERS)
@given(text=st.text() | st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join))
def test_any_text_is_read_or_refused_in_one_line(reader: str, text: str) -> None:
    with suppress(KgctlError):
        READERS[reader](text)
