"""``python -m tests.support.kafka.settings`` writes ``kgctl/server/broker_settings.json``: what Kafka's brokers can be set to."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from kgctl.server.settings import SettingKind, SettingSource
from tests.repo.project import ROOT
from tests.support.kafka.broker import KafkaBroker
from tests.support.wire.raw_client import RawClient

PATH = ROOT / "kgctl/server/broker_settings.json"
DESCRIBE_CONFIGS, BROKER = 32, 4


def settings_of(bootstrap: str) -> str:
    """Return the file's text by a broker's own word: name -> type, default, and marks (s: for the start alone, p: a secret)."""
    resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": None}
    with RawClient(bootstrap) as raw:
        found = raw.call(DESCRIBE_CONFIGS, 4, {"resources": [resource], "include_synonyms": True}).results[0].configs
    rows = {}
    for each in sorted(found, key=lambda one: str(one.name)):
        defaults = [one.value for one in each.synonyms if one.name == each.name and one.source == SettingSource.DEFAULT]
        marks = ("s" if each.read_only else "") + ("p" if each.is_sensitive else "")
        rows[each.name] = [SettingKind(each.config_type).name, defaults[0] if defaults else None, marks]
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()) + "\n}\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder) / "kafka")
        broker.start()
        try:
            PATH.write_text(settings_of(broker.bootstrap))
        finally:
            broker.stop()
