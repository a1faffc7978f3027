"""JUnit XML."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from kgctl.simulate.report.junit import junit_xml
from tests.support.simulate.outcomes import failing, outcome


def test_failure_has_what_was_observed_and_its_replay() -> None:
    suite = ET.fromstring(junit_xml(failing())).find("testsuite")
    assert suite is not None

    found = [
        (case.get("classname"), case.get("name"), [(each.tag, each.text) for each in case]) for case in suite.iter("testcase")
    ]

    replay = failing().failures[0].replay
    assert suite.attrib == {"name": "tiny", "tests": "6", "failures": "1", "errors": "0", "skipped": "0", "time": "0"}
    assert found == [
        ("tiny.cooperative", "cooperative.collateral == 0", []),
        ("tiny.eager", "max_gap < 15s", []),
        ("tiny.cooperative", "max_gap < 15s", []),
        (
            "tiny.eager",
            "max_gap < 3s",
            [
                (
                    "failure",
                    "max_gap < 3s does not hold in variant eager\nobserved 3.2s with seed 2\nof orders-0\n" + f"replay: {replay}",
                )
            ],
        ),
        ("tiny.cooperative", "max_gap < 3s", []),
        (
            "tiny.eager",
            "moves <= moves_min | spread > 1",
            [
                (
                    "system-out",
                    "warning: moves <= moves_min | spread > 1 does not hold in variant eager\n"
                    f"observed 12 with seed 2\nreplay: {replay}",
                )
            ],
        ),
    ]


def test_document_says_which_run_it_is() -> None:
    found = {each.get("name"): each.get("value") for each in ET.fromstring(junit_xml(outcome())).iter("property")}

    assert found == {"question": "Who waits for a restart?", "kgctl": "0.5.0", "digest": "9f3a61c0" * 8, "seeds": "1,2,3"}


def test_letters_that_xml_cannot_hold_are_replaced() -> None:
    suite = ET.fromstring(junit_xml(replace(outcome(), scenario="a\x00b\x1b"))).find("testsuite")

    assert suite is not None
    assert suite.get("name") == "a\ufffdb\ufffd"
