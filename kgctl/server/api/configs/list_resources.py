"""ListConfigResources: what has configs of its own. Version 0 is ListClientMetricsResources. Kafka: ConfigHelper, KIP-1142."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.configs.altering import BROKER, CLIENT_METRICS, GROUP, KINDS, LOGGER, TOPIC
from kgctl.server.api.fields import refuse
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.settings import METRICS

TYPES_SINCE = 1


def handle(context: RequestContext, body: Any) -> Values:
    """All kinds where none is named."""
    asked = (body.resource_types or KINDS) if context.version >= TYPES_SINCE else (CLIENT_METRICS,)
    if any(kind not in KINDS for kind in asked):
        return {"error_code": ErrorCode.UNSUPPORTED_VERSION}
    services = context.services
    brokers = [str(broker.node_id) for broker in services.cluster.live_brokers()]
    names = {
        GROUP: services.group_configs.all(),
        CLIENT_METRICS: services.settings.names(METRICS),
        LOGGER: brokers,
        BROKER: brokers,
        TOPIC: services.catalog.topics,
    }
    resources = [
        {"resource_name": name, "resource_type": kind} for kind, found in names.items() if kind in asked for name in found
    ]
    return {"error_code": ErrorCode.NONE, "config_resources": resources}


SPEC = ApiSpec(74, "ListConfigResources", 0, 1, handle, right=ClusterRight(AclOperation.DESCRIBE_CONFIGS, refuse))
