"""Which Kafka APIs the server has, in which versions, and who answers them. ApiVersions is derived from this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgctl.server.call import Call

Values = Mapping[str, Any]
"""A response body, as `kgctl.serde.messages.encode_response` takes it."""

Answer = Values | Awaitable[Values | None] | None
"""At once, later, or never (a produce request with acks=0)."""

Handler = Callable[["Call", Any], Answer]
"""``body`` is kio's entity of the request."""


@dataclass(frozen=True, slots=True)
class ApiSpec:
    """One API. ``advertised_min`` may be lower than what is served: KAFKA-18659, clients infer old brokers' features from it."""

    key: int
    name: str
    min_version: int
    max_version: int
    handler: Handler
    advertised_min: int | None = None
    hidden_versions: frozenset[int] = frozenset()
    before_authentication: bool = False

    def serves(self, version: int) -> bool:
        """Whether a request of this version is answered."""
        return self.min_version <= version <= self.max_version or version in self.hidden_versions


class Registry:
    """API key to ApiSpec."""

    def __init__(self, specs: Iterable[ApiSpec]) -> None:
        self._specs: dict[int, ApiSpec] = {}
        for spec in specs:
            self.register(spec)

    def register(self, spec: ApiSpec) -> None:
        """Add one API. Raises ValueError when its key is taken."""
        if spec.key in self._specs:
            raise ValueError(f"API key {spec.key} is both {self._specs[spec.key].name} and {spec.name}")
        self._specs[spec.key] = spec

    def get(self, api_key: int) -> ApiSpec | None:
        """The API with this key, or None."""
        return self._specs.get(api_key)

    def specs(self) -> list[ApiSpec]:
        """All of them by key."""
        return [self._specs[key] for key in sorted(self._specs)]


def default_registry() -> Registry:
    """Everything that ``kgctl serve`` answers."""
    from kgctl.server.api import all_specs

    return Registry(all_specs())
