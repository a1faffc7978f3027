"""Settings of single groups (resource type GROUP), kept beside the data folder's log, if there is one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.coordinator.group_config import GroupConfig

FILE_NAME = "group-configs.json"


class GroupConfigs:
    """Group id to its own settings by Kafka's names; written at once, a whole file at a time."""

    def __init__(self, broker: CoordinatorConfig, folder: Path | None) -> None:
        self.broker = broker
        self._path = None if folder is None else folder / FILE_NAME
        self._configs: dict[str, dict[str, str]] = {}
        if self._path is not None and self._path.exists():
            self._configs = json.loads(self._path.read_text(encoding="utf-8"))

    def all(self) -> Mapping[str, Mapping[str, str]]:
        """Every group that has settings of its own."""
        return self._configs

    def of(self, group_id: str) -> dict[str, str]:
        """What the group sets itself."""
        return dict(self._configs.get(group_id, {}))

    def check(self, config: Mapping[str, str]) -> GroupConfig:
        """The settings that a group with these has. Raises UsageError where Kafka answers INVALID_CONFIG."""
        return GroupConfig.from_properties(config, self.broker)

    def put(self, group_id: str, config: Mapping[str, str]) -> None:
        """Replace a group's settings; the caller has checked them."""
        if config:
            self._configs[group_id] = dict(config)
        else:
            self._configs.pop(group_id, None)
        if self._path is not None:
            temporary = self._path.with_suffix(".tmp")
            temporary.write_text(json.dumps(self._configs, indent=1, sort_keys=True), encoding="utf-8")
            temporary.replace(self._path)
