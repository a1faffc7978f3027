"""YAML with places, and everything that is refused."""

from __future__ import annotations

import pytest

from kgctl.simulate.scenario.text.places import Place, ScenarioError
from kgctl.simulate.scenario.text.yaml_tree import MAX_BYTES, read_yaml

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)

REFUSED = {
    "a: 1\na: 2": "f.yaml:2:1: a: the key 'a' stands twice",
    "a: [1, 2\nb: 3": "f.yaml:2:2: not YAML: while parsing a flow sequence, did not find expected ',' or ']'",
    "": "f.yaml:1:1: the file is empty; `kgctl simulate init` writes a first scenario",
    "a: *x": "f.yaml:1:4: not YAML: found undefined alias",
    "a: &a [*a]": "f.yaml:1:4: nested deeper than 60 levels",
    "[" * 100_000: "f.yaml:1:61: nested deeper than 60 levels",
    "a: !!python/name:os.system x": "f.yaml:1:4: the tag tag:yaml.org,2002:python/name:os.system is not known here",
    "a: !!set {x}": "f.yaml:1:4: the tag tag:yaml.org,2002:set is not known here",
    "a: 1\n---\nb: 1": "f.yaml:2:1: not YAML: expected a single document in the stream, but found another document",
    "? [a]\n: 1": "f.yaml:1:3: a key must be a word, not a mapping or a list",
    "<<: 1": "f.yaml:1:5: << takes a mapping, or a list of mappings",
    BOMB: "f.yaml:1:24: more than 200,000 values, aliases followed",
    " " * (MAX_BYTES + 1): "f.yaml:1:1: the file has 4,000,001 characters; a scenario has at most 4,000,000",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:12])
def test_what_no_scenario_is_gets_refused_with_its_place(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read_yaml(text, "f.yaml")
    assert str(caught.value) == REFUSED[text]


def test_values_are_what_people_mean() -> None:
    text = "{int: 010, time: 1:30, day: 2024-01-01, yes: no, 1: 2.5, none: null, quoted: '12', signed: +3, exp: 1e3, name: $name}"
    assert read_yaml(text, "f").data == {
        "int": 10,
        "time": "1:30",
        "day": "2024-01-01",
        "yes": False,
        "1": 2.5,
        "none": None,
        "quoted": "12",
        "signed": 3,
        "exp": 1000.0,
        "name": "$name",
    }


def test_every_value_has_its_place() -> None:
    tree = read_yaml("a:\n  b: [1, {c: 2}]\n", "f")
    places = {path: (place.line, place.column) for path, place in tree.places.items()}
    assert places == {
        (): (1, 1),
        ("a",): (1, 1),
        ("a", "b"): (2, 3),
        ("a", "b", 0): (2, 7),
        ("a", "b", 1): (2, 10),
        ("a", "b", 1, "c"): (2, 11),
    }
    assert tree.place(("a", "b", "nowhere", 3)) == Place("f", 2, 3)


def test_merge_key_brings_in_what_the_mapping_has_not_itself() -> None:
    assert read_yaml("base: &b {x: 1, y: 2}\nown: {<<: *b, y: 3}", "f").data["own"] == {"x": 1, "y": 3}
