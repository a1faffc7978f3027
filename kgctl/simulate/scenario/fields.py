"""What every mapping of a scenario has in common: the form of its model, and how each kind of value is read from a file.

A field takes what a file has only while a file is read (`Reading` is the validation's context); made by a program, it takes the
value itself: ``MemberSet(name="app", boot=Constant(5_000_000))``. Kafka's settings are read here too: times with units become
Kafka's plain numbers, and each is checked where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, ValidationInfo, WithJsonSchema
from pydantic_core import CoreSchema, PydanticUndefined, core_schema

from kgctl.errors import UsageError
from kgctl.member.config import MemberConfig, get_profile, settings
from kgctl.model.values import frozen, frozen_in_order, quick_enum
from kgctl.simulate.scenario.expressions import Condition
from kgctl.simulate.scenario.patches import values_of
from kgctl.simulate.scenario.quantities import (
    DISTRIBUTION_SCHEMA,
    DURATION_SCHEMA,
    LARGEST_WEIGHT,
    RATE_SCHEMA,
    SHARE_SCHEMA,
    UNIT_PR,
    UNITS_US,
    Distribution,
    Keys,
    RateSteps,
    Uniform,
    Wave,
    distribution_text,
    format_duration,
    parse_distribution,
    parse_duration,
    parse_ramp,
    parse_rate,
    parse_share,
    parse_wave,
    rate_text,
    share_text,
    shown,
)
from kgctl.simulate.scenario.vocabulary import MATCHED_BY, TROUBLES, OnPoison, Subscribed, did_you_mean, subscription
from kgctl.yaml_files import Path, Problem, Tree

if TYPE_CHECKING:
    from kgctl.coordinator.config import CoordinatorConfig


class Section(BaseModel):
    """A mapping of the file: no keys but its own, no types but the right ones."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True, defer_build=True)


def key(help_text: str, default: Any = PydanticUndefined, *, of: str | None = None, **more: Any) -> Any:
    """Return a field of a section: its help, its default if it need not be given, and its key if that is not its name."""
    return Field(default, validation_alias=of, description=help_text, **more)


_Model = TypeVar("_Model", bound=Section)


def changed(section: _Model, **changes: Any) -> _Model:
    """Return a copy with other values, which are not checked.

    Raises:
        TypeError: there is no such field.
    """
    for name in changes:
        if name not in type(section).model_fields:
            raise TypeError(f"{type(section).__name__} has no field {name!r}")
    return section.model_copy(update=changes)


@frozen_in_order
class Reading:
    """The context in which a file is validated: the merged file, how its conditions are read, and what contradicts what.

    ``problems`` are those that no single value is to blame for; whether a value is one at all is told by pydantic.
    """

    tree: Tree
    condition: Callable[[str], Condition]
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, path: Path, message: str) -> None:
        self.problems.append(self.tree.problem(path, message))


def reading(info: ValidationInfo) -> Reading | None:
    """Return the file that is being read; None where a program makes the values."""
    return info.context if isinstance(info.context, Reading) else None


@frozen_in_order
class ReadBy:
    """Marks a value that a function reads, which gets what is given and pydantic's info. Nothing else is checked of it.

    ``tell``: what a file has for a value, for the schema's defaults.
    """

    read: Callable[[Any, ValidationInfo], Any]
    tell: Callable[[Any], Any] = lambda value: value

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        """Leave the type alone, which pydantic would otherwise look into."""
        return core_schema.with_info_plain_validator_function(self.read, metadata={TELL: self.tell})


TELL = "kgctl.tell"


def as_written(parse: Callable[[Any], Any], tell: Callable[[Any], Any] = lambda value: value) -> ReadBy:
    """Return the mark of a value that is parsed where a file has it, and taken as it is where a program gives it."""

    def read(raw: Any, info: ValidationInfo) -> Any:
        return raw if reading(info) is None else parse(raw)

    return ReadBy(read, tell)


def in_short(written_out: Callable[[Any], Any], form: Any) -> BeforeValidator:
    """Return a validator that writes out the short form of a mapping in a file."""

    def read(raw: Any, info: ValidationInfo) -> Any:
        return raw if reading(info) is None else written_out(raw)

    return BeforeValidator(read, json_schema_input_type=form)


@frozen_in_order
class ByName:
    """Marks a tuple of sections that a file has as a mapping: name -> section. ``form``: a section there, its short form too."""

    form: Any
    key: str = "name"

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the mapping; a program gives the tuple."""

        def read(raw: Any, inner: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo) -> tuple[Any, ...]:
            if reading(info) is None or raw == ():  # the default of a file without this key
                return tuple(raw)
            return tuple(changed(section, **{self.key: name}) for name, section in inner(raw).items())

        mapping = dict.__class_getitem__((str, self.form))
        return core_schema.with_info_wrap_validator_function(read, handler.generate_schema(mapping))


@quick_enum
class CommitMode(StrEnum):
    """When the application commits. AUTO: the client does, in poll() and before it gives up partitions; AFTER_BATCH where
    ``enable.auto.commit`` keeps it from that."""

    AUTO = "auto"
    AFTER_BATCH = "after-batch"
    BEFORE_BATCH = "before-batch"
    EVERY = "every"


@frozen
class Commit:
    """When a consumer commits; ``interval_us`` counts for EVERY only."""

    mode: CommitMode = CommitMode.AUTO
    interval_us: int = 5_000_000


RANDOM_DRIFT = -1
"""As ``heartbeat_drift_us``: phases are random in every generation."""


_UNITS = ((".ms", "ms"), (".minutes", "m"))
_TIMES = frozenset(
    {
        *("SessionTimeout", "HeartbeatInterval", "RebalanceTimeout", "Timeout", "JoinGroupBackoff"),
        *("PartitionWatchInterval", "RetentionTime"),
    }
)
"""kafka-go's names of times, whose numbers are milliseconds here."""


def plain_settings(config: Mapping[str, str]) -> dict[str, str]:
    """The settings with times as whole numbers of the unit that the setting's name has; what is no duration is left as it is."""
    return {name: _plain(name, value) for name, value in config.items()}


def _plain(name: str, value: str) -> str:
    for ending, unit in _UNITS:
        is_time = name.endswith((ending, ending.replace(".", "_"))) or (unit == "ms" and name in _TIMES)
        if is_time and not value.lstrip("-").isdigit():
            try:
                return str(parse_duration(value) // (UNITS_US[unit]))
            except ValueError:
                return value
    return value


def parse_traffic(raw: Any) -> RateSteps | Wave:
    """What `parse_rates` takes, or ``sine(1000/s, 5000/s, 24h)``. Raises ValueError."""
    return parse_wave(raw) or parse_rates(raw)


def parse_rates(raw: Any) -> RateSteps:
    """Return the steps of a rate, of a ramp, or of ``{0s: RATE, 10m: ramp(RATE, RATE, 20m)}``.

    Raises:
        ValueError: it is none of them.
    """
    if isinstance(raw, str) and raw.strip().startswith("sine("):
        raise ValueError("sine(...) is a rate of traffic, from the beginning on; an event sets one rate")
    if not isinstance(raw, dict):
        return parse_ramp(raw) or ((0, parse_rate(raw)),)
    if not raw:
        raise ValueError("there is no rate")
    parts = [(parse_duration(key), parse_ramp(value) or ((0, parse_rate(value)),)) for key, value in raw.items()]
    steps = [(from_us + at_us, rate_uhz) for from_us, part in parts for at_us, rate_uhz in part]
    for (earlier, _), (later, _) in pairwise(steps):
        if later <= earlier:
            raise ValueError("the steps must be in the order of time, each time once")
    return tuple(steps) if steps[0][0] == 0 else ((0, 0), *steps)


def parse_keys(raw: Any) -> Keys:
    """``even``, ``zipf(1.1)`` or ``weights([3, 1, 1])``.

    Raises:
        ValueError: it is none of them.
    """
    if raw == "even":
        return Keys()
    if isinstance(raw, str):
        if match := re.fullmatch(r"\s*zipf\(\s*(\d+(?:\.\d+)?)\s*\)\s*", raw):
            if float(match.group(1)) > 10:
                raise ValueError("the exponent of zipf is at most 10")
            return Keys(exponent=float(match.group(1)))
        if match := re.fullmatch(r"\s*weights\(\s*\[?([\d\s,]+)\]?\s*\)\s*", raw):
            return _weights([int(part) for part in match.group(1).split(",") if part.strip()])
    if isinstance(raw, list) and raw and all(type(weight) is int for weight in raw):
        return _weights(raw)
    raise ValueError(f"must be even, zipf(1.1) or weights([3, 1, 1]), not {shown(raw)}")


def _weights(numbers: list[int]) -> Keys:
    if not numbers or min(numbers) < 0 or max(numbers) > LARGEST_WEIGHT or sum(numbers) == 0:
        raise ValueError("weights are whole numbers of 0 or more, not all of them 0")
    return Keys(weights=tuple(numbers))


NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")

CONFIG_SCHEMA = {
    "type": "object",
    "description": "Kafka's own names; times may have a unit (45s), plain numbers are Kafka's.",
    "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
}
CHANGE_SCHEMA = {
    **CONFIG_SCHEMA,
    "description": f"{CONFIG_SCHEMA['description']} null: left out from then on.",
    "additionalProperties": {"type": ["string", "number", "boolean", "array", "null"]},
}


def drift(raw: object) -> int:
    """How late each beat is, at most; ``random`` for phases that are never locked."""
    return RANDOM_DRIFT if raw == "random" else parse_duration(raw)


def start(raw: object) -> Distribution | None:
    """When the first start falls; None for ``never``."""
    return None if raw == "never" else parse_distribution(raw)


def run_length(raw: object) -> int | None:
    if raw == "auto":
        return None
    if not (length_us := parse_duration(raw)):
        raise ValueError("a run takes more than 0s; auto: until 60s after the group is stable")
    return length_us


UNTIL_STABLE = -1
"""A warm-up that lasts until the group has been stable for a minute."""


def warmup(raw: object) -> int:
    return UNTIL_STABLE if raw == "until stable" else parse_duration(raw)


def commit(raw: object) -> Commit:
    """``auto``, ``after-batch``, ``before-batch`` or ``every 5s``."""
    if isinstance(raw, str):
        head, _, rest = raw.strip().partition(" ")
        if head == "every" and rest:
            return Commit(mode=CommitMode.EVERY, interval_us=max(parse_duration(rest), 1))
        if head in ("auto", "after-batch", "before-batch") and not rest:
            return Commit(mode=CommitMode(head))
    known = ("auto", "after-batch", "before-batch", "every 5s")
    raise ValueError(f"must be one of {', '.join(known)}, not {shown(raw)}{did_you_mean(str(raw), known)}")


def which_of(words: tuple[str, str], means: str) -> Callable[[object], bool]:
    """Return what reads one of two words: whether it is the one that means true. It raises ValueError."""

    def read(raw: object) -> bool:
        if raw not in words:
            raise ValueError(f"must be {' or '.join(words)}, not {shown(raw)}")
        return raw == means

    return read


def one_of(choices: type[StrEnum]) -> Callable[[object], Any]:
    """Return what reads a member of an enum. It raises ValueError."""

    def read(raw: object) -> Any:
        if raw not in list(choices):
            near = did_you_mean(str(raw), tuple(map(str, choices)))
            raise ValueError(f"must be one of {', '.join(choices)}, not {shown(raw)}{near}")
        return choices(str(raw))

    return read


def allowed(raw: object) -> str:
    """Return the name of something that fails a run unasked. Raises ValueError."""
    name = str(raw)
    if name in TROUBLES:
        return name
    metrics = {kind.metric: kind.name for kind in TROUBLES.values() if kind.metric}
    near = f"; write {metrics[name]!r}" if name in metrics else did_you_mean(name, TROUBLES, list_up_to=12)
    raise ValueError(f"nothing that fails a run is named {name!r}{near}")


def nanoseconds(raw: object) -> int:
    """A duration in nanoseconds, down to ``0.5us`` and ``500ns``."""
    if isinstance(raw, str) and (match := re.fullmatch(r"\s*(\d{1,15})\s*ns\s*", raw)):
        return int(match.group(1))
    if isinstance(raw, str) and (match := re.fullmatch(r"\s*(\d{1,9}\.\d{1,3})\s*us\s*", raw)):
        return round(float(match.group(1)) * 1_000)
    return parse_duration(raw) * 1_000


def interval(raw: object) -> int:
    match = re.fullmatch(r"\s*(\d{1,6})\s*per\s*(\S+)\s*", raw) if isinstance(raw, str) else None
    if match is None or int(match.group(1)) == 0 or parse_duration(match.group(2)) == 0:
        raise ValueError(f"{shown(raw)} is no rate of faults; write one such as 1 per 5m")
    return max(parse_duration(match.group(2)) // int(match.group(1)), 1)


def config_text(raw: object) -> str:
    """A setting's value as a properties file has it; a duration with its unit is kept for `settings`."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, list):
        return ",".join(config_text(entry) for entry in raw)
    if isinstance(raw, dict) or raw is None:
        raise ValueError(f"a setting has a number, a text or a list of them, not {shown(raw)}")
    return str(raw)


def config(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        raise ValueError(f"must be a mapping of Kafka's settings, not {shown(raw)}")
    return plain_settings({name: config_text(value) for name, value in raw.items() if value is not None})


def config_change(raw: object) -> dict[str, str | None]:
    """As `config`, and None for a setting that is left out from then on, whatever it was."""
    found = config(raw)
    assert isinstance(raw, dict)
    return {name: found.get(name) for name in raw}


def changed_settings(settings: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The settings after such a change."""
    return {name: value for name, value in {**settings, **changes}.items() if value is not None}


def broker_version(raw: object) -> str:
    """``4.2``, which YAML takes for a number, or a release of it: ``4.2.0``."""
    from kgctl.coordinator.profile import profile_of

    if isinstance(raw, list) and raw:
        raise ValueError("a list makes a variant of each version, and the file has variants: say in each of them which version")
    if isinstance(raw, (bool, dict, list)):
        raise ValueError(f"must be a version of Kafka, such as 4.2, not {shown(raw)}")
    try:
        return profile_of(str(raw)).version
    except UsageError as error:
        raise ValueError(error.message) from None


def metric_texts(raw: object) -> list[str]:
    """One metric, or a list of them, as text; which there are is known elsewhere."""
    entries = raw if isinstance(raw, list) else [raw]
    if not entries or not all(isinstance(entry, str) and entry.strip() for entry in entries):
        raise ValueError(f"must be a metric such as max_gap, or a list of them, not {raw!r}")
    return [str(entry) for entry in entries]


_TIME = WithJsonSchema({"type": ["string", "integer"]})
Duration: TypeAlias = Annotated[int, as_written(parse_duration, format_duration), WithJsonSchema(DURATION_SCHEMA)]
Varying: TypeAlias = Annotated[
    Distribution, as_written(parse_distribution, distribution_text), WithJsonSchema(DISTRIBUTION_SCHEMA)
]
Start: TypeAlias = Annotated[Distribution | None, as_written(start, distribution_text), WithJsonSchema(DISTRIBUTION_SCHEMA)]
RunLength: TypeAlias = Annotated[int | None, as_written(run_length, lambda us: format_duration(us) if us else "auto"), _TIME]
Warmup: TypeAlias = Annotated[
    int, as_written(warmup, lambda us: "until stable" if us == UNTIL_STABLE else format_duration(us)), _TIME
]
Rate: TypeAlias = Annotated[int, as_written(parse_rate, rate_text), WithJsonSchema(RATE_SCHEMA)]
ShareOf: TypeAlias = Annotated[int, as_written(parse_share, share_text), WithJsonSchema(SHARE_SCHEMA)]
Nanoseconds: TypeAlias = Annotated[int, as_written(nanoseconds, lambda ns: format_duration(ns // 1_000)), _TIME]
Interval: TypeAlias = Annotated[
    int,
    as_written(interval, lambda us: f"1 per {format_duration(us)}"),
    WithJsonSchema({"type": "string", "pattern": "^.* per .*$"}),
]
Drift: TypeAlias = Annotated[int, as_written(drift), _TIME]
Config: TypeAlias = Annotated[dict[str, str], as_written(config), WithJsonSchema(CONFIG_SCHEMA)]
ConfigChange: TypeAlias = Annotated[dict[str, str | None], as_written(config_change), WithJsonSchema(CHANGE_SCHEMA)]
BrokerVersion: TypeAlias = Annotated[
    str | None, as_written(broker_version), WithJsonSchema({"type": ["number", "string", "array"]})
]
Allowed: TypeAlias = Annotated[str, as_written(allowed), WithJsonSchema({"enum": [*TROUBLES]})]
CommitText: TypeAlias = Annotated[
    Commit,
    as_written(commit, lambda each: str(each.mode)),
    WithJsonSchema({"type": "string", "pattern": "^(auto|after-batch|before-batch|every .+)$"}),
]
PoisonText: TypeAlias = Annotated[OnPoison, as_written(one_of(OnPoison)), WithJsonSchema({"enum": [*OnPoison]})]
OnFailure: TypeAlias = Annotated[
    bool,
    as_written(which_of(("stay", "restart"), "restart"), lambda restarts: "restart" if restarts else "stay"),
    WithJsonSchema({"enum": ["stay", "restart"]}),
]
OnStop: TypeAlias = Annotated[
    bool,
    as_written(which_of(("leave", "none"), "leave"), lambda leaves: "leave" if leaves else "none"),
    WithJsonSchema({"enum": ["leave", "none"]}),
]
Subscription: TypeAlias = Annotated[
    Subscribed,
    as_written(subscription),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                {
                    "type": "object",
                    "properties": {"pattern": {"type": "string"}, "by": {"enum": [*MATCHED_BY]}},
                    "required": ["pattern"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
MetricTexts: TypeAlias = Annotated[
    list[str],
    as_written(metric_texts),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
SweepValues: TypeAlias = Annotated[
    list[str], as_written(values_of), WithJsonSchema({"anyOf": [{"type": "array", "minItems": 1}, {"type": "string"}]})
]


def check_settings(config: Mapping[str, str], read: Callable[[Mapping[str, str]], object], path: Path, file: Reading) -> None:
    """Hand the settings to ``read`` one by one, then together; each complaint is a problem at its setting's place."""
    found = False
    for name, value in config.items():
        try:
            read({name: value})
        except UsageError as error:
            if "must not be below" in error.message:  # of two at once: the other may be given, too
                continue
            found = True
            file.wrong((*path, name), error.message)
    if not found:
        try:
            read(config)
        except UsageError as error:
            file.wrong(path, error.message)


def read_broker_settings(config: Mapping[str, str]) -> CoordinatorConfig:
    """The coordinator's own ones of the brokers' settings. Raises `UsageError`."""
    from kgctl.coordinator.config import CoordinatorConfig

    return CoordinatorConfig.from_properties({name: value for name, value in config.items() if name not in OTHER_BROKER_SETTINGS})


def read_client_settings(client: str) -> Callable[[Mapping[str, str]], object]:
    """How a client of this family reads its settings. An assignor that no client has is a slip: such a client would not start."""
    from kgctl.assignors.registry import assignor_names, has_assignor
    from kgctl.coordinator.config import group_setting_names, setting_names
    from kgctl.coordinator.profile import LATEST

    def read(config: Mapping[str, str]) -> object:
        for name, instead in _SAID_ELSEWHERE.items():
            if name in config:
                raise UsageError(f"{name} is not said in config, where all pods would have the same: write {instead}")
        for name, value in config.items():
            if name in group_setting_names(LATEST):
                brokers = f"cluster: {{config: {{group.{name}: {value}}}}}"
                own = f"group: {{type: share, config: {{{name}: {value}}}}}" if name.startswith("share.") else brokers
                raise UsageError(f"{name} is the group's own: write {own}")
            if name in setting_names() and name not in settings():
                raise UsageError(f"{name} is a setting of brokers: write cluster: {{config: {{{name}: {value}}}}}")
        found = MemberConfig.from_properties(config, client)
        for name in found.partition_assignment_strategy:
            if ":" not in name and not has_assignor(name) and not found.behaviour.runs_tasks:
                known = dict.fromkeys(name.rpartition(":")[2] for name in assignor_names())
                raise UsageError(f"unknown assignor {name!r}{did_you_mean(name, known, list_up_to=20)}")
        return found

    return read


_SAID_ELSEWHERE: Mapping[str, str] = {
    "group.instance.id": "instance_id: $name beside it",
    "client.rack": "rack: ... beside it",
    "group.id": "group: {id: ...}",
}
"""Settings of a client that a scenario has keys of its own for -> how they are written."""

OTHER_BROKER_SETTINGS = frozenset({"message.max.bytes", "default.replication.factor", "num.partitions"})
"""Settings of brokers that a scenario may have though the coordinator does not."""


class Settable(Protocol):
    """A set of members, as far as its clients' settings go."""

    @property
    def client(self) -> str: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def client_start(self) -> Distribution | None: ...
    @property
    def commit(self) -> Commit: ...
    @property
    def rate_uhz(self) -> int | None: ...


def member_config(members: Settable, settings: Mapping[str, str]) -> MemberConfig:
    """Return the settings of one of these members' processes as its client reads them. Raises `UsageError`."""
    given = dict(settings)
    if members.commit.mode is not CommitMode.AUTO:
        given["enable.auto.commit"] = "false"
    return MemberConfig.from_properties(given, members.client)


def commit_of(members: Settable, config: MemberConfig) -> Commit:
    """Return when the application commits: after each batch where it says nothing and its client does not do it."""
    if members.commit.mode is CommitMode.AUTO and not config.enable_auto_commit:
        return Commit(mode=CommitMode.AFTER_BATCH)
    return members.commit


def full_batch_us(members: Settable, config: MemberConfig) -> int:
    """Return how long a member works on ``max.poll.records``; 0 where it is as fast as records come."""
    return config.max_poll_records * UNIT_PR // members.rate_uhz if members.rate_uhz else 0


def client_start_of(members: Settable) -> Distribution:
    """Return how long one of these clients takes from subscribe() to its first request: as given, else as it was measured."""
    if members.client_start is not None:
        return members.client_start
    return Uniform(*get_profile(members.client)[0].behaviour.start_us)


_CLIENT_IDS: Mapping[str, str] = {
    "java": "consumer-$group-$instance",
    "librdkafka": "rdkafka",
    "kafka-go": "app@$name (github.com/segmentio/kafka-go)",
    "franz-go": "kgo",
    "kafka-python": "kafka-python-3.0.12",
    "aiokafka": "aiokafka-0.14.0",
}
"""Client -> its client.id where nobody has chosen one. Java's ends with the instance id, or counts the consumers of its process
(ConsumerConfig#maybeOverrideClientId), so it is the same in every pod; kafka-go's has the host."""


def client_id_of(members: Settable, group_id: str, pod: str, instance_id: str | None) -> str:
    """Return the client id of one of these members. Member ids begin with it, and assignors sort by those."""
    template = members.client_id or _CLIENT_IDS.get(members.client, "$name")
    return template.replace("$name", pod).replace("$group", group_id).replace("$instance", instance_id or "1")
