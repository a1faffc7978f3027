"""What a handler is given: the parts of the server, the connection and the request; and how an API is described."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from kgctl.model.access import AclOperation, Resource
from kgctl.model.error_codes import ErrorCode
from kgctl.model.requests import Request, Result
from kgctl.model.values import frozen_in_order
from kgctl.server.access import AccessControl
from kgctl.server.acls import CLUSTER_NAME, Who
from kgctl.server.cluster import Broker, Catalog, Cluster
from kgctl.server.config import BrokerConfig, GroupConfigs
from kgctl.server.partition_data import PartitionData
from kgctl.server.quotas import Quotas
from kgctl.server.runtime import Answer, CoordinatorRuntime, Values
from kgctl.server.security import Conversation, Credentials, IsRight
from kgctl.server.settings import Settings
from kgctl.server.traffic import Pieces, Work
from kgctl.server.transactions import Producers, Transactions

if TYPE_CHECKING:
    from kgctl.coordinator.profile import Profile
    from kgctl.server.auto_topic_creation import AutoTopicCreation
    from kgctl.server.responses import Repeated
    from kgctl.server.share.groups import ShareGroups
    from kgctl.server.share.sessions import ShareConnection

Handler = Callable[["RequestContext", Any], Answer | Work[Answer]]
"""``body`` is the request as it was decoded. A generator is driven by `Pieces`; an awaitable that it returns is awaited."""


SHARE_VERSION, STREAMS_VERSION = "share.version", "streams.version"
"""The features of brokers that stand for share groups and for streams groups."""


@frozen_in_order
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
    runs_in_thread: Callable[[RequestContext, Any], bool] | None = None
    """Whether the handler is to run beside the event loop for this request: it may touch partition data and the catalog only."""
    protocol: str = ""
    """The kind of groups that it is for; where ``group.coordinator.rebalance.protocols`` lacks it, ``when_off`` is the answer."""
    feature: str = ""
    """The broker's feature that it is for; where that is off, ``when_off`` is the answer, too."""
    when_off: Handler | None = None
    storage_failed: Callable[[RequestContext, Any], Values] | None = None
    """The answer where the handler could not write (`StorageError`) and nothing changed; without it the connection is closed."""
    right: ClusterRight | None = None
    """What of the cluster the user must be allowed for the handler to be asked at all."""

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version or version in self.hidden_versions


class ClusterRight(NamedTuple):
    """An operation on the cluster, the answer (to an error and its words) where it is not allowed, and since which version."""

    operation: AclOperation
    refusal: Callable[[RequestContext, Any, tuple[ErrorCode, str]], Values]
    since: int = 0


class ApiRegistry:
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
        return self._specs.get(api_key)

    def specs(self) -> list[ApiSpec]:
        return [self._specs[key] for key in sorted(self._specs)]


R = TypeVar("R", bound=Result)


class Login:
    """A connection's way through SASL: what is offered, and the conversation that has begun."""

    def __init__(self, mechanisms: Sequence[str], credentials: Credentials, is_right: IsRight) -> None:
        """``is_right`` is asked for passwords of PLAIN."""
        self.mechanisms = mechanisms
        self.credentials = credentials
        self.is_right = is_right
        self.is_raw = False
        """Tokens come as they are, without a request around them (SaslHandshake version 0)."""
        self._talk: Conversation | None = None

    @property
    def has_begun(self) -> bool:
        return self._talk is not None

    def begin(self, talk: Conversation, *, is_raw: bool) -> None:
        """Start the exchange of the mechanism that the client has chosen."""
        next(talk)
        self._talk = talk
        self.is_raw = is_raw

    def answer(self, token: bytes, session: ClientSession) -> bytes:
        """What to say to the client's token; with the last one it is logged in. Raises `AuthenticationFailed`."""
        assert self._talk is not None
        answer, user = self._talk.send(token)
        if user:
            session.is_authenticated, session.user, self.is_raw = True, user, False
            session.forget_beats()
        return answer


MAX_REPEATED_BYTES = 1_024
"""A longer heartbeat is read anew each time: a connection is to cost little."""


@dataclass(slots=True)
class ClientSession:
    """What the server remembers of a connection between requests. ``is_refused``: it is closed after the next answer."""

    listener: str = ""
    """The name of the one that it came in by."""
    client_host: str = "/127.0.0.1"
    peer: str = "?"
    """Address and port, for the log."""
    is_authenticated: bool = True
    login: Login | None = None
    user: str = ""
    """Who has logged in, or whose certificate was shown."""
    is_refused: bool = False
    last_beat: int | None = None
    """The hash of the last heartbeat that came, without its correlation id."""
    repeated: Repeated | None = None
    """The last heartbeat that has come twice in a row."""
    share_connection: ShareConnection | None = None
    """What ends with the connection of a share session that was opened on it."""

    @property
    def who(self) -> Who:
        """As access control lists name whoever this is. Kafka: DefaultKafkaPrincipalBuilder."""
        return Who(f"User:{self.user or 'ANONYMOUS'}", self.client_host.removeprefix("/"))

    def hears_again(self, payload: bytes) -> bool:
        """Whether this is the heartbeat that came last, but for its correlation id, and short enough to be kept."""
        before, self.last_beat = self.last_beat, hash((payload[:4], payload[8:]))
        return before == self.last_beat and len(payload) <= MAX_REPEATED_BYTES

    def forget_beats(self) -> None:
        """Read anew what comes next, whatever came before."""
        self.last_beat = self.repeated = None


@frozen_in_order
class RequestContext:
    """What a handler may use. ``broker`` is the one whose listener took the request."""

    services: Services
    broker: Broker
    session: ClientSession
    api_key: int
    version: int
    client_id: str

    def core(self) -> dict[str, Any]:
        return {
            "request_id": self.services.runtime.next_request_id(),
            "api_version": self.version,
            "client_id": self.client_id,
            "client_host": self.session.client_host,
        }

    def ask(self, request: Request, render: Callable[[R], Values]) -> Answer:
        """Hand the request to the coordinator; its result, rendered, is the answer, now or when it comes."""
        return self.services.runtime.ask(request, cast("Callable[[Result], Values]", render))

    def result(self, request: Request) -> Result | Awaitable[Result]:
        """Hand the request to the coordinator; its result, now or when it comes."""
        return self.services.runtime.result(request)

    @property
    def profile(self) -> Profile:
        """What the broker version does that this server plays."""
        return self.services.group_configs.broker.profile

    def group_error(self, operation: AclOperation, group_id: str | None) -> ErrorCode | None:
        """Why this broker does not do this with the group for this user: no right to, or another broker has it. Else None."""
        if not self.may(operation, Resource.GROUP, group_id or ""):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return self.not_coordinator(group_id)

    def not_coordinator(self, group_id: str | None) -> ErrorCode | None:
        """NOT_COORDINATOR when another broker has this group, else None."""
        if self.services.cluster.is_coordinator(self.broker, group_id or ""):
            return None
        return ErrorCode.NOT_COORDINATOR

    def may(self, operation: AclOperation, resource: Resource, name: str = CLUSTER_NAME) -> bool:
        """Whether whoever asks may do this."""
        access = self.services.access
        return not access.is_asked or access.allows(self.session.who, operation, resource, name)

    def may_with_any(self, operation: AclOperation, resource: Resource) -> bool:
        """Whether whoever asks may do this with some resource, whatever its name."""
        access = self.services.access
        return not access.is_asked or access.allows_any(self.session.who, operation, resource)

    def operations(self, resource: Resource, name: str = CLUSTER_NAME) -> int:
        """Which operations whoever asks may do, as a bit field."""
        return sum(each.bit for each in self.profile_operations(resource) if self.may(each, resource, name))

    def profile_operations(self, resource: Resource) -> Sequence[AclOperation]:
        """What can be done with such a resource at all; groups have settings since 4.0 (KIP-848). Kafka: AclEntry."""
        known = _OPERATIONS[resource]
        return known if resource is not Resource.GROUP or self.profile.is_since("4.0") else known[:3]


_CONFIGS = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
_OPERATIONS: Mapping[Resource, tuple[AclOperation, ...]] = {
    Resource.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *_CONFIGS),
    Resource.TOPIC: (*(AclOperation(each) for each in range(AclOperation.READ, AclOperation.CLUSTER_ACTION)), *_CONFIGS),
    Resource.CLUSTER: (
        *(AclOperation.CREATE, AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION, *_CONFIGS),
        AclOperation.IDEMPOTENT_WRITE,
    ),
}


@dataclass(slots=True)
class Services:
    """The parts, wired once by `kgctl.server.service`."""

    registry: ApiRegistry
    config: BrokerConfig
    cluster: Cluster
    catalog: Catalog
    runtime: CoordinatorRuntime
    data: PartitionData
    producers: Producers
    transactions: Transactions
    group_configs: GroupConfigs
    settings: Settings
    quotas: Quotas
    credentials: Credentials
    access: AccessControl
    pieces: Pieces
    shares: ShareGroups
    auto_topics: AutoTopicCreation
    log_levels: dict[str, str] = field(default_factory=lambda: {"root": "INFO"})
