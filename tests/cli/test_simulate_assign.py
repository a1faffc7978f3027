"""``kgctl simulate assign``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kgctl.model.groups import MemberDescription
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog
from tests.cli.harness import Cli

GROUP = """\
id: shop
assignors: [sticky]
topics:
  orders: 4
  payments: {partitions: 2, racks: [[a], [b]]}
members:
  c1: {topics: [orders, payments], owned: {orders: [0, 1, 2, 3]}, generation: 4, rack: x}
  c2: {topics: [orders, payments], generation: 4, rack: x}
"""
QUICK = "simulate assign --members 2 --topic t:3"


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "group.yaml"
    path.write_text(GROUP)
    return path


def _write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_json_has_the_assignment_and_what_moved(cli: Cli, group: Path) -> None:
    ran = cli(f"simulate assign {group} -o json")

    assert (ran.code, ran.err) == (0, "")
    assert ran.data == [
        {
            "id": "shop",
            "assignor": "sticky",
            "assignment": {"c1": {"orders": [0, 1, 2]}, "c2": {"orders": [3], "payments": [0, 1]}},
            "moved": 1,
            "moves_needed": 1,
            "unassigned": 0,
            "spread": 0,
            "topic_spread": {"orders": 2, "payments": 2},
            "cross_rack_share": 1.0,
        }
    ]


def test_table_shows_members_and_counts_and_a_summary_beside_it(cli: Cli, group: Path) -> None:
    ran = cli(f"simulate assign {group}")

    assert ran.code == 0
    assert ran.out == (
        "ID    ASSIGNOR  MEMBER  #PARTITIONS  #TOPICS  KEPT  GAINED  LOST\n"
        "shop  sticky    c1                3        1     3       0     1\n"
        "shop  sticky    c2                3        2     0       3     0\n"
    )
    assert ran.err == ("shop sticky: 6 partitions on 2 members, 3 each; 1 moved, at least 1 had to; 100% across racks\n")


def test_wide_and_csv_show_the_partitions(cli: Cli, group: Path) -> None:
    rows = cli(f"simulate assign {group} -o csv").csv

    assert [row["assignment"] for row in rows] == ["orders:0-2", "orders:3 payments:0-1"]
    assert "orders:3 payments:0-1" in cli(f"simulate assign {group} -o wide").out


def test_names_say_document_assignor_and_member(cli: Cli, group: Path) -> None:
    assert cli(f"simulate assign {group} -o name").out == "shop:sticky:c1\nshop:sticky:c2\n"


def test_yaml_says_the_same_as_json(cli: Cli, group: Path) -> None:
    line = f"simulate assign {group}"

    assert yaml.safe_load(cli(f"{line} -o yaml").out) == cli(f"{line} -o json").json


def test_flags_alone_make_a_group(cli: Cli) -> None:
    ran = cli("simulate assign --members 2 --topic t:3 --topic u:1 --assignor range -o json")

    assert ran.data[0]["assignment"] == {"consumer-1": {"t": [0, 1], "u": [0]}, "consumer-2": {"t": [2]}}


def test_default_assignors_are_the_clients(cli: Cli) -> None:
    names = [entry["assignor"] for entry in cli(f"{QUICK} -o json").data]

    assert names == ["range", "roundrobin", "sticky", "cooperative-sticky"]


def test_flag_overrides_the_documents_assignors(cli: Cli, group: Path) -> None:
    entries = cli(f"simulate assign {group} --assignor uniform --assignor range -o json").data

    assert [entry["assignor"] for entry in entries] == ["uniform", "range"]


def test_a_users_own_assignor_is_loaded_and_checked(cli: Cli) -> None:
    own = "tests.unit.assignors.test_registry:EverythingToTheFirst"

    ran = cli(f"{QUICK} --assignor {own} -o json")

    assert ran.data[0]["assignment"] == {"consumer-1": {"t": [0, 1, 2]}, "consumer-2": {}}


class Twice:
    """An assignor with a bug: everybody gets everything."""

    name = "twice"

    def assign(self, group: Any) -> dict[str, dict[str, list[int]]]:
        return {member.member_id: {"t": [0, 1, 2]} for member in group.members}


def test_an_assignor_that_gives_a_partition_twice_is_a_bug_of_it(cli: Cli) -> None:
    ran = cli(f"{QUICK} --assignor {__name__}:Twice")

    assert (ran.code, ran.out) == (9, "")
    assert "gives t-0 to 'consumer-2' and 'consumer-1'" in ran.err


def test_rounds_go_on_until_a_cooperative_group_has_settled(cli: Cli, group: Path) -> None:
    ran = cli(f"simulate assign {group} --assignor cooperative-sticky --rounds -o json")

    rounds = ran.data[0]["rounds"]
    assert [(entry["round"], entry["moved"], entry["unassigned"]) for entry in rounds] == [(1, 1, 1), (2, 0, 0)]
    assert ran.data[0]["assignment"] == rounds[0]["assignment"]
    assert rounds[1]["assignment"]["c2"] == {"orders": [3], "payments": [0, 1]}


def test_rounds_are_rows_of_the_table(cli: Cli, group: Path) -> None:
    rows = cli(f"simulate assign {group} --assignor cooperative-sticky --rounds -o csv").csv

    assert [(row["round"], row["member"], row["partitions"]) for row in rows] == [
        ("1", "c1", "3"), ("1", "c2", "2"), ("2", "c1", "3"), ("2", "c2", "3"),
    ]  # fmt: skip


@pytest.mark.parametrize("assignor", ["uniform", "server-range"])
def test_server_assignors_are_answered(cli: Cli, assignor: str) -> None:
    assert sum(map(len, cli(f"{QUICK} --assignor {assignor} -o json").data[0]["assignment"].values())) > 0


DOCUMENTS = [{"id": "x", "topics": {"t": 1}, "members": {"m": {"topics": ["t"]}}}, {"topics": {}, "members": {}}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(DOCUMENTS)),
        ("a.jsonl", "\n".join(map(json.dumps, DOCUMENTS)) + "\n\n"),
        ("a.txt", "\n".join(map(json.dumps, DOCUMENTS))),
        ("a.yaml", "\n---\n".join(map(json.dumps, DOCUMENTS))),
        ("a.yml", "---\n" + "---\n".join(map(yaml.safe_dump, DOCUMENTS))),
        ("a.yaml", "\ufeff# two groups\n" + "---\n".join(map(yaml.safe_dump, DOCUMENTS)) + "---\n# nothing more\n"),
    ],
)
def test_several_documents_of_every_format_are_answered_in_order(cli: Cli, tmp_path: Path, name: str, text: str) -> None:
    path = _write(tmp_path, name, text)

    entries = cli(f"simulate assign {path} --assignor range -o json").data

    assert [(entry["id"], entry["assignment"]) for entry in entries] == [("x", {"m": {"t": [0]}}), (2, {})]


def test_stdin_is_a_file_called_dash(cli: Cli) -> None:
    assert cli("simulate assign - -o json --assignor range", GROUP).data[0]["id"] == "shop"


def test_documents_of_several_files_are_numbered_on(cli: Cli, tmp_path: Path) -> None:
    paths = [_write(tmp_path, f"{n}.json", '{"topics": {}, "members": {}}') for n in (1, 2)]

    entries = cli(f"simulate assign {paths[0]} {paths[1]} --assignor range -o json").data

    assert [entry["id"] for entry in entries] == [1, 2]


BAD = """\
id: good
topics: {t: 2}
members: {a: {topics: [t]}}
---
id: racks
topics:
  t:
    partitions: 3
    racks: [[a], [b]]
members: {a: {topics: [t]}}
---
id: twice
topics: {t: 1}
members:
  a: {topics: [t]}
  a: {topics: [t]}
---
id: negative
topics:
  t: -1
---
id: [unclosed
---
id: typo
membres: {}
---
id: number
topics: {t: 1}
members:
  a: {topics: [1]}
"""


def test_a_bad_document_is_explained_and_the_others_answered(cli: Cli, tmp_path: Path) -> None:
    path = _write(tmp_path, "bad.yaml", BAD)

    ran = cli(f"simulate assign {path} --assignor range -o json")

    assert (ran.code, ran.json["status"], [entry["id"] for entry in ran.data]) == (3, "partial", ["good"])
    errors = ran.json["errors"]
    assert [error["group"] for error in errors] == ["racks", "3", "negative", "5", "typo", "number"]
    assert [error["message"].removeprefix(str(path)) for error in errors] == [
        ":9: document 'racks': topic 't': racks: one list is needed for each of the 3 partitions, not 2",
        ":16: document 3: the key 'a' stands twice",
        ":20: document 'negative': topic 't': partitions: must be between 0 and 2147483647, not -1",
        ":23: document 5: not YAML: while parsing a flow sequence, did not find expected ',' or ']'",
        ":25: document 'typo': membres: unknown key; did you mean 'members'?",
        ":30: document 'number': member 'a': topics: the name 1 must be text; write it in quotes",
    ]


def test_nothing_answered_is_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    path = _write(tmp_path, "bad.json", '{"topics": {"t": true}}')

    ran = cli(f"simulate assign {path} -o json")

    assert (ran.code, ran.data) == (2, [])
    assert ran.err == f"kgctl: {path}: document 1: topic 't': partitions: must be a whole number, not True\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"members": {"a": {}, "a": {}}}', "member 'a': stands twice"),
        ('{"members": {"a": {"topics": "t"}}}', "member 'a': topics: must be a list of names, not text"),
        ('{"members": {"a": {"owned": {"t": 1}}}}', "member 'a': owned: t: must be a list of partitions, not a number"),
        ('{"members": {"a": {"owned": {"t": [-1]}}}}', "member 'a': owned: t: -1 is no partition"),
        ('{"members": {"a": {"owned": {"t": [0.5]}}}}', "member 'a': owned: t: 0.5 is no partition"),
        ('{"members": {"a": {"version": 4}}}', "member 'a': version: must be between 0 and 3, not 4"),
        ('{"members": {"a": {"rack": 1}}}', "member 'a': rack: must be text, not 1; write it in quotes"),
        ('{"members": {"a": {"user_data": {"base64": "?"}}}}', "member 'a': user_data: base64: '?' is not base64"),
        ('{"members": []}', "members: must be a mapping, not a list"),
        ('{"topics": {"t": {"racks": []}}}', "topic 't': partitions: must be a whole number, not None"),
        ('{"topics": {"t": {"partitions": 1, "id": "x"}}}', "topic 't': id: 'x' is no topic id"),
        ('{"max_generation": "1"}', "max_generation: must be a whole number, not '1'"),
        ('["text"]', "must be a mapping, not text"),
        ('{"topics": ', "line 1, column 12: Expecting value"),
        ('{"members": {"\\ud800": {}}}', "line 1, column 15: Unpaired surrogate"),
        ('{"assignors": ["stiky"]}', "unknown assignor 'stiky'; did you mean sticky?"),
    ],
)
def test_wrong_value_is_named_with_its_place(cli: Cli, text: str, problem: str) -> None:
    ran = cli("simulate assign -", text)

    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


@pytest.mark.parametrize(
    ("owned", "problem"),
    [
        ({"a": {"t": [0]}, "b": {"t": [0]}}, "member 'b': owned: t: partition 0 has another owner, too"),
        ({"a": {"t": [5]}, "b": {}}, "member 'a': owned: t: partition 5 does not exist, so no target has it"),
    ],
)
def test_a_target_that_cannot_be_is_refused_by_server_assignors_only(cli: Cli, owned: dict[str, Any], problem: str) -> None:
    document = {"topics": {"t": 2}, "members": {name: {"topics": ["t"], "owned": own} for name, own in owned.items()}}

    ran = cli("simulate assign - --assignor uniform --assignor range -o json", json.dumps(document))

    assert (ran.code, [entry["assignor"] for entry in ran.data]) == (3, ["range"])
    assert problem in ran.json["errors"][0]["message"]


def test_where_kafkas_assignor_throws_the_error_says_so(cli: Cli) -> None:
    owned = {"a": {"t": [7]}, "b": {"t": [8, 9]}, "c": {}}
    document = {"topics": {"t": 2}, "members": {name: {"topics": ["t"], "owned": own} for name, own in owned.items()}}

    ran = cli("simulate assign - --assignor sticky -o json", json.dumps(document))

    assert (ran.code, ran.json["errors"][0]["code"]) == (2, "ASSIGNOR_FAILED")
    assert "Kafka's assignor fails for this group" in ran.json["errors"][0]["message"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "say which group: FILE, --members with --topic, or --from-group; not none"),
        ("x.json --members 2", "not FILE and --members"),
        ("--topic t:1", "say which group"),
        ("x.json --topic t:1", "--topic goes with --members"),
        ("--members 2", "--members needs at least one --topic NAME:PARTITIONS"),
        ("--members 0 --topic t:1", "--members: between 1 and 100000, not 0"),
        ("--members 1 --topic t", "--topic: 't' is not NAME:PARTITIONS"),
        ("--members 1 --topic t:1 --topic t:2", "--topic: 't' stands twice"),
        ("--members 1 --topic t:1 --assignor nosuch", "unknown assignor 'nosuch' (known: range, roundrobin, sticky"),
        ("-", "there is no document to answer"),
    ],
)
def test_wrong_flags_are_usage_errors(cli: Cli, line: str, problem: str) -> None:
    ran = cli(f"simulate assign {line}")

    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


def test_missing_file_is_not_found(cli: Cli) -> None:
    assert cli("simulate assign nosuch.json").code == 4


def test_file_that_is_not_utf_8_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"id": "\xff"}')

    ran = cli(f"simulate assign {tmp_path / 'a.json'}")

    assert (ran.code, "is not UTF-8" in ran.err) == (2, True)


def test_large_yaml_is_read_with_a_hint(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgctl.simulate.assign.groups.YAML_HINT_CHARACTERS", 10)

    ran = cli(f"simulate assign {_write(tmp_path, 'a.yaml', GROUP)} -o json")

    assert (ran.code, "JSON is read fifty times faster" in ran.err) == (0, True)


def test_merged_yaml_mappings_are_no_repetition(cli: Cli) -> None:
    text = (
        "x: &m {topics: [t], rack: a}\n".replace("x:", "title:") + "topics: {t: 2}\nmembers:\n  a: {<<: *m, rack: b}\n  b: *m\n"
    )

    assert cli("simulate assign - --assignor range -o json", text).data[0]["assignment"] == {"a": {"t": [0]}, "b": {"t": [1]}}


def test_names_and_numbers_are_those_of_yaml_1_2(cli: Cli) -> None:
    text = "topics: {no: 10, t: 0o10}\nmembers:\n  on: {topics: [no, t]}\n  1: {topics: [no, t]}\n"

    assignment = cli("simulate assign - --assignor range -o json", text).data[0]["assignment"]

    assert {member: {topic: len(numbers) for topic, numbers in topics.items()} for member, topics in assignment.items()} == {
        "1": {"no": 5, "t": 4},
        "on": {"no": 5, "t": 4},
    }


def test_a_live_group_is_asked_as_it_is(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.topic("live", FakeLog(), FakeLog(), FakeLog())
    members = [MemberDescription("m1", assignment={"live": (0, 1, 2)}), MemberDescription("m2", assignment={})]
    cluster.group("g-live", members=members, assignor="sticky")

    ran = cli("simulate assign --from-group g-live -o json")

    assert (ran.code, [(entry["id"], entry["assignor"]) for entry in ran.data]) == (0, [("g-live", "sticky")])
    assert ran.data[0]["assignment"] == {"m1": {"live": [0, 1]}, "m2": {"live": [2]}}
    assert ran.data[0]["moved"] == 1


def test_a_live_group_that_is_not_there_is_not_found(cli: Cli) -> None:
    assert cli("simulate assign --from-group nosuch").code == 4


def test_a_live_group_without_members_has_nothing_to_assign(cli: Cli, cluster: FakeGroupAdmin) -> None:
    cluster.group("g-empty")

    ran = cli("simulate assign --from-group g-empty")

    assert (ran.code, "has no members" in ran.err) == (2, True)
