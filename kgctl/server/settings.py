"""Settings of topics, brokers and client metrics by Kafka's names: what a value may be, where it comes from, what was altered.

Kafka: ConfigDef, LogConfig, DynamicBrokerConfig, ClientMetricsConfigs.
"""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kgctl.errors import UsageError
from kgctl.model.values import frozen_in_order
from kgctl.storage.files import SETTINGS_FILE, Documents

log = logging.getLogger(__name__)


class SettingKind(IntEnum):
    """The types of values, by DescribeConfigs' numbers."""

    UNKNOWN, BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(10)


class SettingSource(IntEnum):
    """Where a value comes from, by DescribeConfigs' numbers."""

    TOPIC, BROKER, BROKERS, STATIC, DEFAULT, LOGGER, CLIENT_METRICS, GROUP = range(1, 9)


Check = Callable[[Any], str | None]
"""What is wrong with a value of the right type, in Kafka's words; None: nothing."""


def at_least(least: float) -> Check:
    return lambda value: f"Value must be at least {least}" if value < least else None


def between(least: float, most: float) -> Check:
    return lambda value: at_least(least)(value) or (f"Value must be no more than {most}" if value > most else None)


def one_of(*names: str) -> Check:
    return lambda value: None if value in names else f"String must be one of: {', '.join(names)}"


def _gzip_level(value: int) -> str | None:
    return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


@frozen_in_order
class Setting:
    """One setting. ``default`` is text, as all values are. ``brokers``: the brokers' settings that it follows, nearest first.

    ``every`` checks each element of a list, ``check`` the value as a whole.
    """

    name: str
    kind: SettingKind
    default: str | None = None
    check: Check | None = None
    brokers: tuple[str, ...] = ()
    every: Check | None = None
    is_static: bool = False
    is_secret: bool = False

    def parsed(self, text: str) -> Any:
        """Return the value. Raises `UsageError` with Kafka's words for one that cannot be."""
        try:
            value = _PARSERS[self.kind](text.strip())
        except ValueError as error:
            raise self._refusal(text, str(error)) from None
        if self.every is not None and "" in value:
            raise UsageError(f"Configuration '{self.name}' values must not be empty.")
        for element in value if self.every is not None else ():
            if problem := self.every(element) if self.every is not None else None:
                raise self._refusal(element, problem)
        if self.check is not None and (problem := self.check(value)):
            raise self._refusal(f"[{', '.join(value)}]" if self.kind is SettingKind.LIST else _java(value), problem)
        return value

    def _refusal(self, value: object, problem: str) -> UsageError:
        return UsageError(f"Invalid value {value} for configuration {self.name}: {problem}")


def _whole(bits: int) -> Callable[[str], int]:
    name = {16: "SHORT", 32: "INT", 64: "LONG"}[bits]

    def parse(text: str) -> int:
        number = int(text[:25]) if re.fullmatch(r"[+-]?[0-9]+", text) else 1 << bits
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(f"Not a number of type {name}")
        return number

    return parse


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("Expected value to be either true or false")
    return text.lower() == "true"


def _double(text: str) -> float:
    try:
        return float(text.replace("_", "x"))
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None


_PARSERS: Mapping[SettingKind, Callable[[str], Any]] = {
    **dict.fromkeys(SettingKind, str),
    SettingKind.BOOLEAN: _boolean,
    SettingKind.SHORT: _whole(16),
    SettingKind.INT: _whole(32),
    SettingKind.LONG: _whole(64),
    SettingKind.DOUBLE: _double,
    SettingKind.LIST: lambda text: re.split(r"\s*,\s*", text) if text else [],
}


def shown(value: Any) -> str:
    """Return a parsed value as DescribeConfigs shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, (list, tuple)) else str(_java(value))


def _java(value: Any) -> Any:
    """A double as Java writes it: with an exponent from ten millions on."""
    if not isinstance(value, float) or 1e-3 <= abs(value) < 1e7 or not value:
        return value
    digits, _, exponent = f"{value:.16e}".partition("e")
    shortest = repr(float(f"{digits}e0")) if "e" not in repr(value) else repr(value).partition("e")[0]
    return f"{shortest if '.' in shortest else shortest + '.0'}E{int(exponent)}"


MAX_LONG = str(2**63 - 1)
_DAY_MS = 86_400_000
_THROTTLED = re.compile(r"\d+:\d+")


def _throttled(name: str) -> Setting:
    words = (
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    return Setting(
        name, SettingKind.LIST, "", lambda each: None if each == ["*"] or all(map(_THROTTLED.fullmatch, each)) else words
    )


_TOPIC = (
    Setting("segment.bytes", SettingKind.INT, str(1 << 30), at_least(1 << 20), ("log.segment.bytes",)),
    Setting("segment.ms", SettingKind.LONG, str(7 * _DAY_MS), at_least(1), ("log.roll.ms", "log.roll.hours")),
    Setting("segment.jitter.ms", SettingKind.LONG, "0", at_least(0), ("log.roll.jitter.ms", "log.roll.jitter.hours")),
    Setting("segment.index.bytes", SettingKind.INT, "10485760", at_least(4), ("log.index.size.max.bytes",)),
    Setting("flush.messages", SettingKind.LONG, MAX_LONG, at_least(1), ("log.flush.interval.messages",)),
    Setting("flush.ms", SettingKind.LONG, MAX_LONG, at_least(0), ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")),
    Setting("retention.bytes", SettingKind.LONG, "-1", None, ("log.retention.bytes",)),
    Setting(
        "retention.ms",
        SettingKind.LONG,
        str(7 * _DAY_MS),
        at_least(-1),
        ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ),
    Setting("max.message.bytes", SettingKind.INT, "1048588", at_least(0), ("message.max.bytes",)),
    Setting("index.interval.bytes", SettingKind.INT, "4096", at_least(0), ("log.index.interval.bytes",)),
    Setting("delete.retention.ms", SettingKind.LONG, str(_DAY_MS), at_least(0), ("log.cleaner.delete.retention.ms",)),
    Setting("min.compaction.lag.ms", SettingKind.LONG, "0", at_least(0), ("log.cleaner.min.compaction.lag.ms",)),
    Setting("max.compaction.lag.ms", SettingKind.LONG, MAX_LONG, at_least(1), ("log.cleaner.max.compaction.lag.ms",)),
    Setting("file.delete.delay.ms", SettingKind.LONG, "60000", at_least(0), ("log.segment.delete.delay.ms",)),
    Setting("min.cleanable.dirty.ratio", SettingKind.DOUBLE, "0.5", between(0, 1), ("log.cleaner.min.cleanable.ratio",)),
    Setting("cleanup.policy", SettingKind.LIST, "delete", None, ("log.cleanup.policy",), one_of("compact", "delete")),
    Setting("unclean.leader.election.enable", SettingKind.BOOLEAN, "false", None, ("unclean.leader.election.enable",)),
    Setting("min.insync.replicas", SettingKind.INT, "1", at_least(1), ("min.insync.replicas",)),
    Setting(
        "compression.type",
        SettingKind.STRING,
        "producer",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        ("compression.type",),
    ),
    Setting("compression.gzip.level", SettingKind.INT, "-1", _gzip_level, ("compression.gzip.level",)),
    Setting("compression.lz4.level", SettingKind.INT, "9", between(1, 17), ("compression.lz4.level",)),
    Setting("compression.zstd.level", SettingKind.INT, "3", between(-131_072, 22), ("compression.zstd.level",)),
    Setting("preallocate", SettingKind.BOOLEAN, "false", None, ("log.preallocate",)),
    Setting(
        "message.timestamp.type",
        SettingKind.STRING,
        "CreateTime",
        one_of("CreateTime", "LogAppendTime"),
        ("log.message.timestamp.type",),
    ),
    Setting("message.timestamp.before.max.ms", SettingKind.LONG, MAX_LONG, at_least(0), ("log.message.timestamp.before.max.ms",)),
    Setting("message.timestamp.after.max.ms", SettingKind.LONG, "3600000", at_least(0), ("log.message.timestamp.after.max.ms",)),
    _throttled("leader.replication.throttled.replicas"),
    _throttled("follower.replication.throttled.replicas"),
    Setting("remote.storage.enable", SettingKind.BOOLEAN, "false"),
    Setting("local.retention.ms", SettingKind.LONG, "-2", at_least(-2), ("log.local.retention.ms",)),
    Setting("local.retention.bytes", SettingKind.LONG, "-2", at_least(-2), ("log.local.retention.bytes",)),
    Setting("remote.log.copy.disable", SettingKind.BOOLEAN, "false"),
    Setting("remote.log.delete.on.disable", SettingKind.BOOLEAN, "false"),
)
TOPIC_SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _TOPIC}
_ALSO = {name: each.brokers[place:] for each in _TOPIC for place, name in enumerate(each.brokers)}
"""A broker's setting with those that stand in for it."""
HIDDEN = "internal.segment.bytes"
"""What Kafka takes for a topic and never shows."""

EFFECTIVE = frozenset(
    {
        *("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes"),
        *("message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
    }
)
"""Settings of topics that do something here."""
OF_COMPACTION = frozenset({"delete.retention.ms", "min.compaction.lag.ms"})
"""Those that do something where somebody asks for compaction: a server compacts nothing of its own accord."""


def _ms_of(name: str) -> int | None:
    """How many milliseconds a unit of this broker's setting has, where it is another than a topic's."""
    return {"minutes": 60_000, "hours": 3_600_000}.get(name.rpartition(".")[2])


@cache
def broker_settings() -> Mapping[str, Setting]:
    """Every setting of a broker, by name, as Apache Kafka 4.3.1 lists them."""
    rows = json.loads(Path(__file__).with_name("broker_settings.json").read_text(encoding="utf-8"))
    found = {
        name: Setting(name, SettingKind[kind], default, is_static="s" in marks, is_secret="p" in marks)
        for name, (kind, default, marks) in rows.items()
    }
    alike = {each.brokers[0]: each for each in _TOPIC if len(each.brokers) == 1}  # of several, any number will do
    return found | {name: replace(found[name], check=each.check, every=each.every) for name, each in alike.items()}


def check_brokers(config: Mapping[str, str]) -> None:
    """Raise `UsageError` for a value that is not of its setting's type, or beyond what that holds."""
    settings = broker_settings()
    for name, value in config.items():
        if name in settings:
            settings[name].parsed(value)


def check_topic(config: Mapping[str, str]) -> None:
    """Raise `UsageError` where a topic cannot have these settings. Kafka: LogConfig#validate."""
    unknown = next((name for name in config if name not in TOPIC_SETTINGS and name != HIDDEN), None)
    if unknown is not None:
        raise UsageError(f"Unknown topic config name: {unknown}")
    values = {name: setting.parsed(config.get(name, setting.default or "")) for name, setting in TOPIC_SETTINGS.items()}
    least_ms, most_ms = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if least_ms > most_ms:
        raise UsageError(f"conflict topic config setting min.compaction.lag.ms ({least_ms}) > max.compaction.lag.ms ({most_ms})")
    if values["remote.storage.enable"]:
        raise UsageError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
        )


_METRICS = (
    Setting("interval.ms", SettingKind.INT, "300000"),
    Setting("metrics", SettingKind.LIST, ""),
    Setting("match", SettingKind.LIST, ""),
)
METRICS_SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _METRICS}
_MATCH_KEYS = ("client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
               "client_source_port")  # fmt: skip


class WrongRequest(UsageError):  # noqa: N818 - an answer
    """What Kafka answers with INVALID_REQUEST, not INVALID_CONFIG."""


def check_metrics(config: Mapping[str, str]) -> None:
    """Raise `UsageError` for settings of a subscription that cannot be. Kafka: ClientMetricsConfigs#validate."""
    for name, text in config.items():
        if name not in METRICS_SETTINGS:
            raise WrongRequest(f"Unknown client metrics configuration: {name}")
        if name == "interval.ms" and not 100 <= METRICS_SETTINGS[name].parsed(text) <= 3_600_000:
            raise WrongRequest(f"Invalid value {text} for interval.ms, interval must be between 100 and 3600000 (1 hour)")
        for pattern in METRICS_SETTINGS[name].parsed(text) if name == "match" else ():
            key, is_pair, _ = pattern.partition("=")
            if not is_pair or key.strip() not in _MATCH_KEYS:
                raise UsageError(f"Illegal client matching pattern: {pattern}")


class Synonym(NamedTuple):
    """A setting's value under one of the names that it goes by."""

    name: str
    value: str
    source: SettingSource


class Described(NamedTuple):
    """A setting and its value, with where it comes from: ``synonyms`` begins with what counts."""

    setting: Setting
    value: str | None
    source: SettingSource
    synonyms: Sequence[Synonym]


TOPICS, BROKERS, METRICS = "topics", "brokers", "client-metrics"
ALL_BROKERS = ""
"""The name under which settings of all brokers are altered at once."""


class Settings:
    """What was given at the start and what was altered since, which is kept in ``settings.json``; from any thread.

    ``given`` are the brokers' settings as they were started with, those of this server itself among them. ``compacts``: whether
    somebody may ask for compaction.
    """

    def __init__(self, given: Mapping[str, str], documents: Documents, *, compacts: bool = False) -> None:
        self.given = given
        self._effective = EFFECTIVE | OF_COMPACTION if compacts else EFFECTIVE
        self._documents = documents
        kept = documents.read(SETTINGS_FILE) or {BROKERS: {ALL_BROKERS: {"min.insync.replicas": "1"}}}  # as a new KRaft cluster
        self._kept: dict[str, dict[str, dict[str, str]]] = {kind: dict(kept.get(kind, {})) for kind in (TOPICS, BROKERS, METRICS)}
        self._values: dict[tuple[str, str, int], Any] = {}
        self._writing = threading.Lock()
        self._told: set[str] = set()

    def of(self, kind: str, name: str) -> dict[str, str]:
        """Return what was altered of one topic, broker or subscription."""
        return dict(self._kept[kind].get(name, {}))

    def names(self, kind: str) -> list[str]:
        """Return what has settings of its own."""
        return list(self._kept[kind])

    def put(self, kind: str, changes: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the settings of these; none removes them. The caller has checked them. Raises `StorageError`: all as before."""
        with self._writing:
            changed = {**self._kept[kind], **{name: dict(config) for name, config in changes.items()}}
            kept = {**self._kept, kind: {name: config for name, config in changed.items() if config}}
            self._documents.write(SETTINGS_FILE, kept)
            self._kept = kept
            self._values = {}
        for name, config in changes.items() if kind == TOPICS else ():
            self.tell_idle(f"topic {name}", {*config} - self._effective)

    def tell_idle_of_brokers(self, effective: Iterable[str]) -> None:
        """The same of what was given at the start, but for these and what topics follow."""
        followed = {name for each in self._effective for name in TOPIC_SETTINGS[each].brokers}
        self.tell_idle("brokers", {*self.given} - {*effective} - followed)

    def put_topics(self, changes: Mapping[str, Mapping[str, str]]) -> None:
        """As `put`, of topics that come or go: nothing is written where they have and had no settings."""
        if any(config or name in self._kept[TOPICS] for name, config in changes.items()):
            self.put(TOPICS, changes)

    def tell_idle(self, whose: str, names: Iterable[str]) -> None:
        """Say once of each of these settings that it does nothing here."""
        idle = sorted({*names} - self._told)
        if idle:
            self._told.update(idle)
            log.warning("%s: kept and shown, and without effect here: %s", whose, ", ".join(idle))

    def of_topic(self, topic: str, name: str, node_id: int) -> Any:
        """Return the value that counts for a topic on a broker, parsed."""
        key = (topic, name, node_id)
        if key not in self._values:
            described = self.inherited(TOPIC_SETTINGS[name], self._kept[TOPICS].get(topic, {}), node_id)
            self._values[key] = described.setting.parsed(described.value or "")
        return self._values[key]

    def topic(self, config: Mapping[str, str], node_id: int) -> Iterator[Described]:
        """Describe a topic that has these of its own, as a broker sees it."""
        return (self.inherited(setting, config, node_id) for setting in _TOPIC)

    def inherited(self, setting: Setting, config: Mapping[str, str], node_id: int) -> Described:
        """Describe one setting of a topic, or of what else follows the brokers'. Kafka: ConfigHelper#createTopicConfigEntry."""
        values = self._synonyms(setting.brokers, node_id)
        if setting.name in config:
            values.insert(0, Synonym(setting.name, config[setting.name], SettingSource.TOPIC))
        value = config.get(setting.name)
        for name in setting.brokers if value is None else ():
            value = next((each.value for each in self._of_brokers((name,), node_id)), None)
            if value is not None:
                value = str(int(value) * factor) if (factor := _ms_of(name)) else value
                break
        source = values[0].source if values else SettingSource.DEFAULT
        return Described(setting, setting.default if value is None else value, source, values)

    def broker(self, node_id: int, identity: Mapping[str, str]) -> Iterator[Described]:
        """Describe a broker: all settings that it has, and those of its own that Kafka does not know.

        ``identity``: what it is by itself, whatever was given.
        """
        own = {**self.of(BROKERS, ALL_BROKERS), **self.of(BROKERS, str(node_id))}
        settings = broker_settings()
        custom = (Setting(name, SettingKind.UNKNOWN) for name in {**self.given, **own} if name not in settings)
        for setting in (*settings.values(), *custom):
            synonyms = self._synonyms(_ALSO.get(setting.name, (setting.name,)), node_id)
            if setting.name in identity:
                synonyms = [Synonym(setting.name, identity[setting.name], SettingSource.STATIC)]
            first = synonyms[0] if synonyms else Synonym(setting.name, setting.default or "", SettingSource.DEFAULT)
            value = None if setting.is_secret or (not synonyms and setting.default is None) else first.value
            yield Described(setting, value, first.source, synonyms)

    def all_brokers(self) -> Iterator[Described]:
        """Describe what was altered for all brokers at once."""
        for name, value in self.of(BROKERS, ALL_BROKERS).items():
            setting = broker_settings().get(name, Setting(name, SettingKind.UNKNOWN))
            synonym = Synonym(name, value, SettingSource.BROKERS)
            yield Described(setting, None if setting.is_secret else value, SettingSource.BROKERS, [synonym])

    def metrics(self, name: str) -> Iterator[Described]:
        """Describe a subscription to clients' metrics, whether there is one or not."""
        own = self.of(METRICS, name)
        for setting in _METRICS:
            if setting.name in own:
                value = own[setting.name]
                yield Described(
                    setting, value, SettingSource.CLIENT_METRICS, [Synonym(setting.name, value, SettingSource.CLIENT_METRICS)]
                )
            else:
                yield Described(setting, setting.default, SettingSource.DEFAULT, ())

    def _synonyms(self, names: Sequence[str], node_id: int) -> list[Synonym]:
        """Values of a broker's setting, other names' behind its own: in front those count and are not shown."""
        found = list(self._of_brokers(names, node_id))
        return found[next((place for place, each in enumerate(found) if each.name == names[0]), len(found)) :]

    def _of_brokers(self, names: Sequence[str], node_id: int) -> Iterator[Synonym]:
        """Values of the brokers' settings: altered for one, for all, given, and defaults."""
        every, one = self._kept[BROKERS].get(ALL_BROKERS, {}), self._kept[BROKERS].get(str(node_id), {})
        for source, values in ((SettingSource.BROKER, one), (SettingSource.BROKERS, every), (SettingSource.STATIC, self.given)):
            yield from (Synonym(name, values[name], source) for name in names if name in values)
        for name in names:
            setting = broker_settings().get(name)
            if setting is not None and setting.default is not None:
                yield Synonym(name, setting.default, SettingSource.DEFAULT)
