"""One request on its way through the server: who asks, whom, in which version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kgctl.coordinator.requests import Request
from kgctl.coordinator.results import Result
from kgctl.model.error_codes import ErrorCode
from kgctl.server.registry import Answer, Values

if TYPE_CHECKING:
    from kgctl.server.cluster import Broker
    from kgctl.server.services import Services

R = TypeVar("R", bound=Result)


@dataclass(slots=True)
class ClientSession:
    """What the server remembers of a connection between requests."""

    client_host: str = "/127.0.0.1"
    is_authenticated: bool = True
    sasl: Any = None
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler may use. ``broker`` is the one whose listener took the request."""

    services: Services
    broker: Broker
    session: ClientSession
    api_key: int
    version: int
    client_id: str

    def core(self) -> dict[str, Any]:
        """The fields that every request to the core has."""
        return {
            "request_id": self.services.runtime.next_request_id(),
            "api_version": self.version,
            "client_id": self.client_id,
            "client_host": self.session.client_host,
        }

    def ask(self, request: Request, render: Callable[[R], Values]) -> Answer:
        """Hand the request to the coordinator; its result, rendered, is the answer, now or when it comes."""
        return self.services.runtime.ask(request, cast("Callable[[Result], Values]", render))

    def not_coordinator(self, group_id: str | None) -> ErrorCode | None:
        """NOT_COORDINATOR when another broker has this group, else None."""
        if self.services.cluster.is_coordinator(self.broker, group_id or ""):
            return None
        return ErrorCode.NOT_COORDINATOR
