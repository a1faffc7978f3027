"""YAML with places, and everything that is refused."""

from __future__ import annotations

import pytest
import yaml

from kgctl.yaml_files import LARGE, MANIFEST, SMALL, FileError, Location, core_dumper, read_yaml

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)

REFUSED = {
    "a: 1\na: 2": "f.yaml:2:1: a: the key 'a' stands twice",
    "a: [1, 2\nb: 3": "f.yaml:2:2: not YAML: while parsing a flow sequence, did not find expected ',' or ']'",
    "a:\n\t- 1": "f.yaml:2:1: not YAML: a tab; lines are indented by spaces",
    "ä: 1\nb:\n  c: 1\n\td: 1": "f.yaml:4:1: not YAML: a tab; lines are indented by spaces",
    "a: *x": "f.yaml:1:4: not YAML: found undefined alias",
    "a: &a [*a]": "f.yaml:1:4: nested deeper than 60 levels",
    "[" * 100_000: "f.yaml:1:61: nested deeper than 60 levels",
    "a: !!python/name:os.system x": "f.yaml:1:4: the tag tag:yaml.org,2002:python/name:os.system is not known here",
    "a: .inf": "f.yaml:1:4: .inf is no finite number; text is written in quotes",
    "a: 1e999": "f.yaml:1:4: 1e999 is no finite number; text is written in quotes",
    "a: 010": "f.yaml:1:4: 010: a number has no leading zeros: write 10, or '010' where text is meant",
    "a: [-007, 1]": "f.yaml:1:5: -007: a number has no leading zeros: write -7, or '-007' where text is meant",
    "a: 00": "f.yaml:1:4: 00: a number has no leading zeros: write 0, or '00' where text is meant",
    "a: !!int x": "f.yaml:1:4: 'x' is no int",
    "a: !!set {x}": "f.yaml:1:4: the tag tag:yaml.org,2002:set is not known here",
    "a: 1\n---\nb: 1": "f.yaml:2:1: not YAML: expected a single document in the stream, but found another document",
    "? [a]\n: 1": "f.yaml:1:3: a key must be a word, not a mapping or a list",
    "<<: 1": "f.yaml:1:5: << takes a mapping, or a list of mappings",
    BOMB: "f.yaml:1:24: more than 200,000 values, aliases followed",
    " " * (SMALL.characters + 1): "f.yaml:1:1: the file has 4,000,001 characters, at most 4,000,000 are read",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:12])
def test_what_no_scenario_is_gets_refused_with_its_place(text: str) -> None:
    with pytest.raises(FileError) as caught:
        read_yaml(text, "f.yaml")
    assert str(caught.value) == REFUSED[text]


def test_values_are_what_people_mean() -> None:
    text = (
        "{int: 10, time: 1:30, day: 2024-01-01, yes: no, 1: 2.5, none: null, quoted: '12', signed: +3, exp: 1e3, name: $name, "
        "octal: 0o10, hex: 0xff, under: 1_000, true: true, text: !!str 010, last: off, dot: .5, binary: 0b1}"
    )
    assert read_yaml(text, "f").data == {
        "int": 10,
        "time": "1:30",
        "day": "2024-01-01",
        "yes": "no",
        "1": 2.5,
        "none": None,
        "quoted": "12",
        "signed": 3,
        "exp": 1000.0,
        "name": "$name",
        "octal": 8,
        "hex": 255,
        "under": "1_000",
        "true": True,
        "text": "010",
        "last": "off",
        "dot": 0.5,
        "binary": "0b1",
    }


def test_manifests_have_numbers_as_kubernetes_reads_them() -> None:
    assert read_yaml("{mode: 0644, none: 00, eight: 08, minus: -010}", "f", limits=MANIFEST).data == {
        "mode": 420,
        "none": 0,
        "eight": 8,
        "minus": -8,
    }


@pytest.mark.parametrize("text", ["010", "08", "61e5", "0o17", "0x1F", "-007", ".5", "1_000", "yes", "1:30", "on", "", "null"])
def test_text_is_written_so_that_it_is_read_back_as_text(text: str) -> None:
    assert read_yaml(yaml.dump({"a": text, text or "b": 1}, Dumper=core_dumper()), "f").data == {"a": text, text or "b": 1}


def test_every_value_has_its_place() -> None:
    tree = read_yaml("a:\n  b: [1, {c: 2}]\n", "f")
    places = {path: (place.line, place.column) for path, place in tree.locations.items()}
    assert places == {
        (): (1, 1),
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "b", 1, "c"): (2, 11),
    }
    assert tree.location(("a", "b", "nowhere", 3)) == Location("f", 2, 3)


def test_merge_key_brings_in_what_the_mapping_has_not_itself() -> None:
    assert read_yaml("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}", "f").data["own"] == {"x": 1, "y": 3}


def test_a_text_without_a_document_has_no_data() -> None:
    tree = read_yaml("# nothing\n", "f")
    assert (tree.data, str(tree.location(("a",)))) == (None, "f:1:1")


def test_a_document_further_down_in_its_file_counts_lines_from_there() -> None:
    tree = read_yaml("---\na: 1\n", "f", first_line=7)
    assert (tree.location(("a",)), tree.location(())) == (Location("f", 8, 1), Location("f", 8, 1))
    with pytest.raises(FileError, match="f:9:1: a: the key 'a' stands twice"):
        read_yaml("---\na: 1\na: 2\n", "f", first_line=7)


def test_large_files_have_locations_of_keys_only() -> None:
    tree = read_yaml("a:\n  - 1\n  - b: 2\n", "f", limits=LARGE)
    assert {path: location.line for path, location in tree.locations.items()} == {(): 1, ("a",): 1, ("a", "b"): 3}
