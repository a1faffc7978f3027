"""JUnit XML, as CI systems show it: the suite is the scenario, a case is one expectation in one variant."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from kgctl.simulate.report.outcome import Expectation, Outcome, show
from kgctl.simulate.report.tables import metric_of

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(outcome: Outcome) -> str:
    """The document, with a newline at the end. Times are the machine's: a suite has that of all runs, a case its share of that of
    its variant's runs, so that they add up.

    A failure's text has the observed value, the seed and the command that replays it; a warning that did not hold passes,
    and says so in ``system-out``.
    """
    failures, cases = len(outcome.failures), len(outcome.expectations)
    counts = {"tests": str(cases), "failures": str(failures), "errors": "0", "skipped": "0"}
    root = ET.Element("testsuites", {"name": "kgctl simulate", **counts, "time": _seconds(_took_s(outcome))})
    suite = ET.SubElement(root, "testsuite", {"name": _clean(outcome.scenario), **counts, "time": _seconds(_took_s(outcome))})
    _properties(suite, outcome)
    for each in outcome.expectations:
        _case(suite, outcome, each)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _properties(suite: ET.Element, outcome: Outcome) -> None:
    holder = ET.SubElement(suite, "properties")
    seeds = ",".join(str(seed) for seed in outcome.seeds)
    values = {"question": outcome.question, "kgctl": outcome.kgctl, "digest": outcome.digest, "seeds": seeds}
    for name, value in values.items():
        ET.SubElement(holder, "property", {"name": name, "value": _clean(value)})


def _case(suite: ET.Element, outcome: Outcome, each: Expectation) -> None:
    classname = f"{outcome.scenario}.{each.variant}"
    alike = sum(other.variant == each.variant for other in outcome.expectations)
    took_s = outcome.variants[each.variant].took_s / alike if each.variant in outcome.variants else 0.0
    case = ET.SubElement(
        suite, "testcase", {"classname": _clean(classname), "name": _clean(each.check), "time": _seconds(took_s)}
    )
    if each.passed:
        return
    observed = f"observed {show(metric_of(each.check), each.observed)}"
    lines = [f"{each.check} does not hold in variant {each.variant}", f"{observed} with seed {each.seed}"]
    lines += [each.note] * bool(each.note) + [f"replay: {each.replay}"] * bool(each.replay)
    text = _clean("\n".join(lines))
    if each.severity == "fail":
        ET.SubElement(case, "failure", {"message": _clean(f"{each.check}: {observed}"), "type": "expectation"}).text = text
    else:
        ET.SubElement(case, "system-out").text = f"warning: {text}"


def _took_s(outcome: Outcome) -> float:
    return sum(variant.took_s for variant in outcome.variants.values())


def _seconds(took_s: float) -> str:
    return f"{took_s:.3f}" if took_s else "0"


def _clean(text: str) -> str:
    """Return the text without characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
