"""A request of the consumer protocol that is not accepted: nothing of what was planned for it is written."""

from __future__ import annotations

from kgctl.model.error_codes import ErrorCode


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """Raised while a request is looked at; its handler answers with it. ``message`` goes to the client."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(message)
        self.error = error
        self.message = message
