"""Every ``Class#method`` that the sources name is in Apache Kafka's own jars."""

from __future__ import annotations

import os
import re
import zipfile
from collections import defaultdict

import pytest

from tests.repo.project import ROOT
from tests.support import maven
from tests.support.kafka.install import kafka_class_path

pytestmark = pytest.mark.kafka

ELSEWHERE = {
    "PathUtils": "Apache ZooKeeper",
    "ZooDefs.OpCode": "Apache ZooKeeper",
    **dict.fromkeys(("Properties", "String", "Throwable"), "the JDK"),
}
CITATION = re.compile(r"(?:\b([A-Z][A-Za-z0-9]+(?:\.[A-Z]\w+)*))?#([a-z]\w+)")
"""``Class#method``, or ``#method`` of the class that the line named before."""


def citations() -> dict[str, set[str]]:
    """Class -> the methods that the sources say it has."""
    cited: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "kgctl").rglob("*.py")):
        named = None
        for match in CITATION.finditer(path.read_text()):
            named = match[1] or named
            if named is not None and named not in ELSEWHERE:
                cited[named].add(match[2])
    return cited


def code_of(classes: set[str]) -> dict[str, bytes]:
    """The compiled classes of these names, nested ones with the class that holds them."""
    found: dict[str, bytes] = defaultdict(bytes)
    streams = maven.class_path(ROOT / "tests/calibration/streams/pom.xml")
    for jar in dict.fromkeys((*kafka_class_path().split(os.pathsep), *streams.split(os.pathsep))):
        with zipfile.ZipFile(jar) as files:
            for entry in files.namelist():
                name = entry.removesuffix(".class").rpartition("/")[2].replace("$", ".")
                for known in classes & {name, name.rpartition(".")[2], name.partition(".")[0]}:
                    found[known] += files.read(entry)
    return found


def test_every_method_that_is_cited_is_there() -> None:
    cited = citations()
    code = code_of(set(cited))

    assert len(cited) > 30
    assert (
        sorted(f"{name}#{method}" for name, methods in cited.items() for method in methods if method.encode() not in code[name])
        == []
    )
