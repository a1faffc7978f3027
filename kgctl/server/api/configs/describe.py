"""DescribeConfigs: of topics, brokers, groups, and subscriptions to clients' metrics. Kafka: ConfigHelper#describeConfigs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from kgctl.coordinator.config import group_setting_names
from kgctl.errors import UsageError
from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.model.groups import topic_name_problem
from kgctl.server.api.configs.altering import BROKER, CLIENT_METRICS, GROUP, LOGGER, TOPIC, loggers, resource_of
from kgctl.server.api.fields import NO_RIGHT
from kgctl.server.cluster import OFFSETS_TOPIC
from kgctl.server.listeners import PROTOCOL_MAP, host_and_port
from kgctl.server.request_context import ApiSpec, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.settings import TOPICS, Described, Setting, SettingKind, SettingSource, Synonym, shown
from kgctl.server.traffic import Work, each

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
OFFSETS_TOPIC_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}

Found = tuple[ErrorCode, str, Iterable[Described]]


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a resource, in the order of the request."""
    with_synonyms = getattr(body, "include_synonyms", False)
    results = []
    for resource in body.resources:
        yield None
        error, message, found = _described(context, resource.resource_type, resource.resource_name)
        wanted = resource.configuration_keys
        chosen = [each for each in found if not wanted or each.setting.name in wanted]
        entries = yield from each(chosen, lambda one: _entry(one, with_synonyms=with_synonyms))
        results.append(
            {
                "error_code": error,
                "error_message": message,
                "resource_type": resource.resource_type,
                "resource_name": resource.resource_name,
                "configs": entries,
            }
        )
    return {"results": results}


def _entry(found: Described, *, with_synonyms: bool) -> dict[str, Any]:
    setting, secret = found.setting, found.setting.is_secret
    return {
        "name": setting.name,
        "value": None if secret or found.value is None else _shown(setting, found.value),
        "read_only": setting.is_static,
        "config_source": found.source,
        "is_sensitive": secret or (setting.kind is SettingKind.UNKNOWN and found.source is not SettingSource.LOGGER),
        "synonyms": [
            {"name": name, "value": None if secret else _shown(setting, value), "source": source}
            for name, value, source in found.synonyms
        ]
        if with_synonyms
        else [],
        "config_type": setting.kind,
        "documentation": None,
    }


def _shown(setting: Setting, text: str) -> str:
    try:
        return shown(setting.parsed(text))
    except UsageError:  # what was given at the start to a setting without effect here
        return text


def _described(context: RequestContext, kind: int, name: str) -> Found:
    describe = _KINDS.get(kind)
    if describe is None:
        return ErrorCode.INVALID_REQUEST, MALFORMED, ()
    resource, named = resource_of(kind, name)
    if not context.may(AclOperation.DESCRIBE_CONFIGS, resource, named):
        return *NO_RIGHT[resource], ()
    return describe(context, name)


def _topic(context: RequestContext, name: str) -> Found:
    if problem := topic_name_problem(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, problem, ()
    if context.services.catalog.get(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "", ()
    settings = context.services.settings
    own = OFFSETS_TOPIC_CONFIG if name == OFFSETS_TOPIC else settings.of(TOPICS, name)
    return ErrorCode.NONE, "", settings.topic(own, context.broker.node_id)


def _broker(context: RequestContext, name: str) -> Found:
    settings, node_id = context.services.settings, context.broker.node_id
    if not name:
        return ErrorCode.NONE, "", settings.all_brokers()
    if not name.lstrip("-").isdecimal():
        return ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}", ()
    if int(name) != node_id:
        return ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} or empty string, but received {name}", ()
    return ErrorCode.NONE, "", settings.broker(node_id, _identity(context))


def _identity(context: RequestContext) -> dict[str, str]:
    """What this broker is by itself, whatever it was given."""
    broker = context.broker
    mapped = [f"{each.listener.name}:{each.listener.protocol}" for each in broker.endpoints]
    is_named = any(each.listener.name != each.listener.protocol for each in broker.endpoints)
    return {
        "node.id": str(broker.node_id),
        "broker.id": str(broker.node_id),
        "process.roles": "broker,controller",
        "listeners": ",".join(f"{each.listener.name}://{each.address}" for each in broker.endpoints),
        "advertised.listeners": ",".join(f"{each.listener.name}://{host_and_port(*each.told)}" for each in broker.endpoints),
        **({PROTOCOL_MAP: ",".join(mapped)} if is_named else {}),
    }


def _logger(context: RequestContext, name: str) -> Found:
    if not name:
        return ErrorCode.INVALID_REQUEST, "Broker id must not be empty", ()
    if name != str(context.broker.node_id):
        return ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {context.broker.node_id} but received {name}", ()
    found = [
        Described(Setting(each, SettingKind.UNKNOWN), level, SettingSource.LOGGER, ()) for each, level in loggers(context).items()
    ]
    return ErrorCode.NONE, "", found


def _metrics(context: RequestContext, name: str) -> Found:
    if not name:
        return ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty", ()
    return ErrorCode.NONE, "", context.services.settings.metrics(name)


def _group(context: RequestContext, name: str) -> Found:
    """The group's own values, and where it has none those of the brokers' settings that they follow."""
    if not name:
        return ErrorCode.INVALID_REQUEST, "Group name must not be empty", ()
    configs, settings = context.services.group_configs, context.services.settings
    own = configs.of(name)
    config = configs.check(own)
    found, known = [], group_setting_names(context.profile)
    for item in (one for one in fields(config) if one.metadata["name"] in known):
        key = item.metadata["name"]
        value = getattr(config, item.name)
        kind = (
            SettingKind.BOOLEAN if isinstance(value, bool) else SettingKind.INT if isinstance(value, int) else SettingKind.STRING
        )
        above = settings.inherited(Setting(key, kind, shown(value), None, (f"group.{key}",)), {}, context.broker.node_id)
        mine = [Synonym(key, own[key], SettingSource.GROUP)] if key in own else []
        source = SettingSource.GROUP if mine else above.source
        default = above.synonyms or [Synonym(key, shown(item.default), SettingSource.DEFAULT)]
        found.append(Described(above.setting, shown(value), source, [*mine, *default]))
    return ErrorCode.NONE, "", found


_KINDS = {TOPIC: _topic, BROKER: _broker, LOGGER: _logger, CLIENT_METRICS: _metrics, GROUP: _group}

SPEC = ApiSpec(32, "DescribeConfigs", 1, 4, handle)
