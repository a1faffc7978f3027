"""What altering configs means for each kind of resource; IncrementalAlterConfigs and AlterConfigs say what is to change.

Kafka: ConfigAdminManager, which looks at what a broker decides, and the controller's ConfigurationControlManager.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kgctl.errors import StorageError, UsageError
from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import topic_name_problem
from kgctl.model.requests import UpdateGroupConfig
from kgctl.server.acls import CLUSTER_NAME
from kgctl.server.api.fields import NO_RIGHT, storage_failed
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import EVENT_ID, Values
from kgctl.server.settings import (
    ALL_BROKERS,
    BROKERS,
    METRICS,
    METRICS_SETTINGS,
    TOPIC_SETTINGS,
    TOPICS,
    Setting,
    SettingKind,
    WrongRequest,
    broker_settings,
    check_metrics,
    check_topic,
)
from kgctl.server.traffic import Work, each

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = (TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP)
SET, DELETE, APPEND, SUBTRACT = range(4)
WORDS = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
LEVELS = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")


class ConfigChange(NamedTuple):
    """What a client wants of one setting."""

    name: str
    operation: int
    value: str | None


Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)


class AlterRefusal(Exception):  # noqa: N818 - an answer
    """Why a resource is not altered."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.outcome: Outcome = (code, message)


def alter(context: RequestContext, body: Any, *, is_whole: bool) -> Work[Values]:
    """Alter the resources of a request, each for itself. ``is_whole``: what is not named falls back to its default."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in body.resources)

    def altered(resource: Any) -> Values:
        kind, name = resource.resource_type, resource.resource_name
        if times[kind, name] > 1:
            return _response(kind, name, (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."))
        changes = [ConfigChange(one.name, SET if is_whole else one.config_operation, one.value) for one in resource.configs]
        return _response(kind, name, _outcome(context, kind, name, changes, validate_only=body.validate_only, is_whole=is_whole))

    return {"responses": (yield from each(body.resources, altered))}


def _response(kind: int, name: str, outcome: Outcome) -> Values:
    return {"error_code": outcome[0], "error_message": outcome[1], "resource_type": kind, "resource_name": name}


def _outcome(
    context: RequestContext, kind: int, name: str, changes: Sequence[ConfigChange], *, validate_only: bool, is_whole: bool
) -> Outcome:
    if kind not in KINDS or (kind == LOGGER and is_whole):
        return ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}"
    try:
        _check_form(changes)
        if kind != BROKER:
            _check_right(context, kind, name)
        put = _PREPARE[kind](context, name, changes, is_whole)
        if kind == BROKER:  # whose settings the broker itself looks at first
            _check_right(context, kind, name)
        if not validate_only:
            put()
    except AlterRefusal as refusal:
        return refusal.outcome
    except UsageError as error:
        return ErrorCode.INVALID_REQUEST if isinstance(error, WrongRequest) else ErrorCode.INVALID_CONFIG, error.message
    except StorageError as error:
        return storage_failed(error)
    return DONE


def resource_of(kind: int, name: str) -> tuple[Resource, str]:
    """What a user needs rights to for such configs: the topic, the group, or the cluster."""
    if kind not in (TOPIC, GROUP):
        return Resource.CLUSTER, CLUSTER_NAME
    return (Resource.TOPIC if kind == TOPIC else Resource.GROUP), name


def _check_right(context: RequestContext, kind: int, name: str) -> None:
    resource, named = resource_of(kind, name)
    if not context.may(AclOperation.ALTER_CONFIGS, resource, named):
        code, text = NO_RIGHT[resource]
        raise AlterRefusal(code, None if kind == LOGGER else text)


def _check_form(changes: Sequence[ConfigChange]) -> None:
    if any(times > 1 for times in Counter(change.name for change in changes).values()):
        raise WrongRequest("Error due to duplicate config keys")
    nulls = [change.name for change in changes if change.value is None and change.operation != DELETE]
    if nulls:
        raise WrongRequest(f"Null value not supported for : {','.join(nulls)}")
    if any(change.operation not in WORDS for change in changes):
        raise AlterRefusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _altered(
    own: Mapping[str, str], changes: Sequence[ConfigChange], settings: Mapping[str, Setting], *, is_whole: bool
) -> dict[str, str]:
    """The settings after the changes; nothing is checked but that what is appended to is a list."""
    found = {} if is_whole else dict(own)
    for name, operation, value in changes:
        if operation == SET:
            found[name] = value or ""
        elif operation == DELETE:
            found.pop(name, None)
        else:
            found[name] = _altered_list(found.get(name), name, operation, value or "", settings.get(name))
    return found


def _altered_list(own: str | None, name: str, operation: int, value: str, setting: Setting | None) -> str:
    if setting is None or setting.kind is not SettingKind.LIST:
        raise UsageError(f"Can't {WORDS[operation]} to key {name} because its type is not LIST.")
    text = (setting.default or "") if own is None else own
    parts = text.split(",") if text else []
    for element in value.split(","):
        if operation == APPEND and element not in parts:
            parts.append(element)
        elif operation == SUBTRACT and element in parts:
            parts.remove(element)
    return ",".join(parts)


Put = Callable[[], None]


def _prepare_topic(context: RequestContext, name: str, changes: Sequence[ConfigChange], is_whole: bool) -> Put:  # noqa: FBT001
    settings = context.services.settings
    wanted = _altered(settings.of(TOPICS, name), changes, TOPIC_SETTINGS, is_whole=is_whole)
    if not name:
        raise WrongRequest("Default topic resources are not allowed.")
    if problem := topic_name_problem(name):
        raise AlterRefusal(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if context.services.catalog.get(name) is None:
        raise AlterRefusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if name == OFFSETS_TOPIC:
        raise WrongRequest("The coordinator's own log cannot be changed.")
    check_topic(wanted)
    return lambda: settings.put(TOPICS, {name: wanted})


def _prepare_broker(context: RequestContext, name: str, changes: Sequence[ConfigChange], is_whole: bool) -> Put:  # noqa: FBT001
    """Kafka: DynamicBrokerConfig#validate, by the broker itself."""
    settings, known = context.services.settings, broker_settings()
    if name != ALL_BROKERS:
        _check_node(context, name, "Unexpected broker id, expected {}, but received {}")
    static = [change.name for change in changes if change.name in known and known[change.name].is_static]
    if static:
        raise WrongRequest(f"Cannot update these configs dynamically: [{', '.join(static)}]")
    wanted = _altered(settings.of(BROKERS, name), changes, known, is_whole=is_whole)
    try:
        for key, value in wanted.items():
            if key in known:
                known[key].parsed(value)
    except UsageError as error:
        raise WrongRequest(error.message) from None
    return lambda: settings.put(BROKERS, {name: wanted})


def _check_node(context: RequestContext, name: str, words: str) -> None:
    if not name.lstrip("-").isdecimal():
        raise WrongRequest(f"Node id must be an integer, but it is: {name}")
    if int(name) != context.broker.node_id:
        raise WrongRequest(words.format(context.broker.node_id, name))


def _prepare_logger(context: RequestContext, name: str, changes: Sequence[ConfigChange], _: bool) -> Put:  # noqa: FBT001
    _check_node(context, name, "Unexpected node id. Expected {}, but received {}")
    levels = loggers(context)
    for logger, operation, level in changes:
        if operation in (APPEND, SUBTRACT):
            raise WrongRequest(f"{WORDS[operation]} operation is not allowed for the BROKER_LOGGER resource")
        if logger not in levels:
            raise UsageError(f"Logger {logger} does not exist!")
        if operation == SET and level not in LEVELS:
            raise UsageError(
                f"Cannot set the log level of {logger} to {level} as it is not a supported log level. "
                f"Valid log levels are {', '.join(LEVELS)}"
            )
    return lambda: levels.update({change.name: change.value or "INFO" for change in changes})


def loggers(context: RequestContext) -> dict[str, str]:
    """The levels that clients have set, which change nothing of what kgctl logs: those are Python's to set."""
    return context.services.log_levels


def _prepare_metrics(context: RequestContext, name: str, changes: Sequence[ConfigChange], is_whole: bool) -> Put:  # noqa: FBT001
    settings = context.services.settings
    if not name:
        raise WrongRequest("Subscription name can't be empty")
    wanted = _altered(settings.of(METRICS, name), changes, METRICS_SETTINGS, is_whole=is_whole)
    check_metrics(wanted)
    return lambda: settings.put(METRICS, {name: wanted})


def _prepare_group(context: RequestContext, name: str, changes: Sequence[ConfigChange], is_whole: bool) -> Put:  # noqa: FBT001
    configs = context.services.group_configs
    if not name:
        raise WrongRequest("Default group resources are not allowed.")
    wanted = _altered(configs.of(name), changes, {}, is_whole=is_whole)
    configs.check(wanted)

    def put() -> None:
        configs.put(name, wanted)
        context.services.runtime.tell(UpdateGroupConfig(request_id=EVENT_ID, group_id=name, config=wanted))

    return put


_PREPARE = {
    TOPIC: _prepare_topic,
    BROKER: _prepare_broker,
    LOGGER: _prepare_logger,
    CLIENT_METRICS: _prepare_metrics,
    GROUP: _prepare_group,
}
"""Resource type -> what checks a change and gives back what does it."""


INCREMENTAL = ApiSpec(44, "IncrementalAlterConfigs", 0, 1, partial(alter, is_whole=False))
WHOLE = ApiSpec(33, "AlterConfigs", 0, 2, partial(alter, is_whole=True))
"""All settings of a resource at once: those that are not named fall back to their defaults."""
