"""The manual's table of assignors has the registry's, in its order; its group file is read."""

from __future__ import annotations

import re

import yaml

from kgctl.assignors.registry import CLIENT_ASSIGNORS, SERVER_ASSIGNORS, get_assignor
from kgctl.simulate.assign.groups import parse_document
from tests.docs.pages import MANUAL


def test_table_has_every_assignor_of_the_registry() -> None:
    page = (MANUAL / "assignors.md").read_text(encoding="utf-8")
    names = [*CLIENT_ASSIGNORS, *SERVER_ASSIGNORS]

    assert re.findall(r"^\| `([a-z:-]+)` \| [A-Zkl]", page, re.MULTILINE) == names
    assert [get_assignor(name).name for name in names] == names


def test_group_file_of_the_manual_is_read() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (MANUAL / "group-files.md").read_text(encoding="utf-8"), re.DOTALL)

    document = parse_document(yaml.safe_load(text), 1)

    assert (document.id, document.max_generation, [member.member_id for member in document.members]) == ("c17", 7, ["c1"])
    assert document.topics["payments"].racks == (("a", "b"), ("b", "c"), ("a",))
