"""AlterUserScramCredentials: users' salted passwords, as clients make them. Kafka: ScramControlManager."""

from __future__ import annotations

from typing import Any

from kgctl.errors import StorageError
from kgctl.model.access import AclOperation
from kgctl.model.error_codes import ErrorCode
from kgctl.scram import FEWEST_ITERATIONS, ScramKeys, keys_of_salted
from kgctl.server.api.fields import Refused, storage_failed
from kgctl.server.request_context import ApiSpec, ClusterRight, RequestContext
from kgctl.server.runtime import Values
from kgctl.server.security import MECHANISM_NUMBERS

MOST_ITERATIONS = 16_384
Outcome = tuple[ErrorCode, str | None]
DONE: Outcome = (ErrorCode.NONE, None)
TWICE: Outcome = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_MECHANISMS = {number: name for name, number in MECHANISM_NUMBERS.items()}


def handle(context: RequestContext, body: Any) -> Values:
    """One result a user; whoever is named twice keeps what there is."""
    outcomes: dict[str, Outcome] = {}
    changes: dict[str, tuple[str, ScramKeys | None]] = {}
    for entry in (*body.deletions, *body.upsertions):
        if entry.name in outcomes:
            if outcomes[entry.name] is DONE:
                outcomes[entry.name] = TWICE
                del changes[entry.name]
            continue
        problem = _problem(context, entry)
        outcomes[entry.name] = problem or DONE
        if problem is None:
            changes[entry.name] = (_MECHANISMS[entry.mechanism], _keys(entry))
    try:
        context.services.credentials.alter(changes)
    except StorageError as error:
        outcomes |= dict.fromkeys(changes, storage_failed(error))
    return {"results": [{"user": name, "error_code": code, "error_message": text} for name, (code, text) in outcomes.items()]}


def _problem(context: RequestContext, entry: Any) -> Outcome | None:
    if not entry.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    mechanism = _MECHANISMS.get(entry.mechanism)
    if mechanism is None:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    iterations = getattr(entry, "iterations", None)
    if iterations is None:
        is_there = mechanism in context.services.credentials.iterations(entry.name)
        missing = "Attempt to delete a user credential that does not exist"
        return None if is_there else (ErrorCode.RESOURCE_NOT_FOUND, missing)
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        which = "few" if iterations < FEWEST_ITERATIONS else "many"
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {which} iterations"
    return None


def _keys(entry: Any) -> ScramKeys | None:
    if not hasattr(entry, "iterations"):
        return None
    return keys_of_salted(_MECHANISMS[entry.mechanism], entry.salted_password, entry.salt, entry.iterations)


def _no_right(_context: RequestContext, body: Any, refused: Refused) -> Values:
    code, text = refused
    names = dict.fromkeys(entry.name for entry in (*body.deletions, *body.upsertions))
    return {"results": [{"user": name, "error_code": code, "error_message": text} for name in names]}


SPEC = ApiSpec(
    *(51, "AlterUserScramCredentials", 0, 0, handle),
    runs_in_thread=lambda *_: True,
    right=ClusterRight(AclOperation.ALTER, _no_right),
)
