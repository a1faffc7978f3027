"""The committed tables of Kafka's messages are what the script makes of Kafka's own client jar."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from tests.repo.project import ROOT
from tests.support.kafka.install import kafka_class_path

pytestmark = pytest.mark.kafka


def test_the_tables_are_those_of_kafka_s_client_jar() -> None:
    script = importlib.util.spec_from_file_location("message_tables", ROOT / ".ci/message_tables.py")
    assert script is not None
    assert script.loader is not None
    module = importlib.util.module_from_spec(script)
    script.loader.exec_module(module)
    (jar,) = [path for path in map(Path, kafka_class_path().split(os.pathsep)) if path.name.startswith("kafka-clients-")]

    assert module.tables(jar) == (ROOT / "kgctl/serde/messages.json").read_text()
