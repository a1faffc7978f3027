"""DescribeUserScramCredentials: which mechanisms users have, and with how many iterations. Kafka: ScramImage#describe."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import Refused
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.security import MECHANISM_NUMBERS
from kgctl.server.traffic import Work, each

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(context: RequestContext, body: Any) -> Work[Values]:
    """One result a user, of all users where none is named."""
    credentials = context.services.credentials
    times = Counter(user.name for user in body.users) if body.users else Counter(credentials.names())
    rows = yield from each(times.items(), lambda of_user: _row(context, *of_user))
    return {"error_code": ErrorCode.NONE, "error_message": "", "results": rows}


def _row(context: RequestContext, name: str, times: int) -> Values:
    if times > 1:
        return {"user": name, "error_code": ErrorCode.DUPLICATE_RESOURCE, "error_message": f"{TWICE}{name}"}
    found = context.services.credentials.iterations(name)
    if not found:
        return {"user": name, "error_code": ErrorCode.RESOURCE_NOT_FOUND, "error_message": f"{UNKNOWN}{name}"}
    infos = [{"mechanism": MECHANISM_NUMBERS[mechanism], "iterations": count} for mechanism, count in found.items()]
    return {"user": name, "error_code": ErrorCode.NONE, "error_message": "", "credential_infos": infos}


def _no_right(_context: RequestContext, body: Any, refused: Refused) -> Values:
    """Without names, as in Kafka."""
    error = {"error_code": refused[0], "error_message": None}
    return {**error, "results": [{"user": "", **error} for _ in body.users or ()]}


SPEC = ApiSpec(50, "DescribeUserScramCredentials", 0, 0, handle, right=ClusterRight(AclOperation.DESCRIBE, _no_right))
