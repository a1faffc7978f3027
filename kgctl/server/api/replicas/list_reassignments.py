"""ListPartitionReassignments: none is ever under way, as each is done at once."""

from __future__ import annotations

from typing import Any

from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.server.api.fields import refuse
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values


def handle(_context: RequestContext, _body: Any) -> Values:
    """Nothing, whatever is asked for."""
    return {"error_code": ErrorCode.NONE, "error_message": None, "topics": []}


SPEC = ApiSpec(46, "ListPartitionReassignments", 0, 0, handle, right=ClusterRight(AclOperation.DESCRIBE, refuse))
