"""The server: a data folder, a coordinator, and the listeners of each broker."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kgctl.coordinator.config import CoordinatorConfig
from kgctl.errors import DamagedError, KgctlError, StorageError, UsageError
from kgctl.model.requests import TopicsChanged
from kgctl.server.access import AccessControl, split_access
from kgctl.server.api import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl,
    sync_group,
    transactions,
)
from kgctl.server.api.access import acls, alter_client_quotas, alter_scram, describe_client_quotas, describe_scram
from kgctl.server.api.configs import altering, describe, list_resources
from kgctl.server.api.inspect import (
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    list_transactions,
)
from kgctl.server.api.replicas import alter_log_dirs, alter_reassignments, elect_leaders, list_reassignments
from kgctl.server.api.share import acknowledge as share_acknowledge
from kgctl.server.api.share import describe as share_group_describe
from kgctl.server.api.share import fetch as share_fetch
from kgctl.server.api.share import heartbeat as share_group_heartbeat
from kgctl.server.api.share import offsets as share_group_offsets
from kgctl.server.api.streams import describe as streams_group_describe
from kgctl.server.api.streams import heartbeat as streams_group_heartbeat
from kgctl.server.api.transactions import finish_unfinished, recover
from kgctl.server.auto_topic_creation import AutoTopicCreation
from kgctl.server.cluster import Broker, Catalog, Cluster
from kgctl.server.config import GroupConfigs, ServeOptions, effective_names, share_config, split_config
from kgctl.server.connection import ClientConnection
from kgctl.server.differences import DIFFERENCES
from kgctl.server.dispatch import Dispatcher
from kgctl.server.listeners import Endpoint, check_listeners, listener_named
from kgctl.server.operator import Described, MetricsPage, Wanted, group_rows, status
from kgctl.server.partition_data import PartitionData
from kgctl.server.quotas import Quotas
from kgctl.server.request_context import ApiRegistry, ClientSession, Login, Services
from kgctl.server.runtime import Clock, CoordinatorRuntime, LogWriter, base64_uuid, new_member_id, steady_clock
from kgctl.server.security import Credentials, IsRight, passwords_of, split_security, tls_context
from kgctl.server.settings import Settings
from kgctl.server.share.groups import ShareGroups
from kgctl.server.share.persister import Persister
from kgctl.server.traffic import Host, Pieces, Work, finish, turns_of_running_loop
from kgctl.server.transactions import Producers, Transactions
from kgctl.server.upkeep import Collector, Upkeep
from kgctl.server.versions import registry_of
from kgctl.storage.batches import import_segments
from kgctl.storage.files import ADDRESS_FILE, WAY_OUT, write_json
from kgctl.storage.folder import DataFolder, load_coordinator, memory_folder, open_folder, written_groups

_SPECS = (
    *(api_versions.SPEC, metadata.SPEC, describe_cluster.SPEC, create_topics.SPEC, delete_topics.SPEC, delete_records.SPEC),
    *(create_partitions.SPEC, describe.SPEC, altering.INCREMENTAL, altering.WHOLE, list_resources.SPEC),
    *(sasl.HANDSHAKE, sasl.AUTHENTICATE),
    *(produce.SPEC, fetch.SPEC, list_offsets.SPEC, offset_for_leader_epoch.SPEC, transactions.INIT_PRODUCER_ID),
    *(find_coordinator.SPEC, join_group.SPEC, sync_group.SPEC, heartbeat.SPEC, leave_group.SPEC),
    *(offset_commit.SPEC, offset_fetch.SPEC, offset_delete.SPEC, list_groups.SPEC, describe_groups.SPEC, delete_groups.SPEC),
    *(transactions.ADD_PARTITIONS_TO_TXN, transactions.ADD_OFFSETS_TO_TXN),
    *(transactions.TXN_OFFSET_COMMIT, transactions.END_TXN),
    *(describe_log_dirs.SPEC, describe_quorum.SPEC, describe_topic_partitions.SPEC),
    *(describe_transactions.SPEC, list_transactions.SPEC),
    *(alter_log_dirs.SPEC, elect_leaders.SPEC, alter_reassignments.SPEC, list_reassignments.SPEC),
    *(acls.DESCRIBE, acls.CREATE, acls.DELETE, describe_scram.SPEC, alter_scram.SPEC),
    *(describe_client_quotas.SPEC, alter_client_quotas.SPEC),
    *(consumer_group_heartbeat.SPEC, consumer_group_describe.SPEC),
    *(share_group_heartbeat.SPEC, share_group_describe.SPEC, share_fetch.SPEC, share_acknowledge.SPEC),
    *(share_group_offsets.DESCRIBE, share_group_offsets.ALTER, share_group_offsets.DELETE),
    *(streams_group_heartbeat.SPEC, streams_group_describe.SPEC),
)
"""Every API that is answered, one module an API or a family; ApiVersions is derived from this table."""


def default_registry(config: CoordinatorConfig = CoordinatorConfig()) -> ApiRegistry:  # noqa: B008  # frozen
    """Return the table of every API that ``kgctl serve`` answers with this configuration."""
    return registry_of(config, _SPECS)


HANDSHAKE_S = 10.0
_ACCEPTED_IN_A_TURN = 64
"""What asyncio calls the backlog is also how many connections it takes in one go: 1,024 held the loop for 50 ms."""
_BACKLOG = 1_024

log = logging.getLogger(__name__)


class Server:
    """One run of ``kgctl serve``, in the event loop that calls `start`."""

    def __init__(
        self,
        options: ServeOptions,
        *,
        dispatcher: Callable[[Services, Broker, Described], Dispatcher] = Dispatcher,
        clock: Clock | None = None,
    ) -> None:
        """Reads the configs. Raises UsageError; nothing is opened yet."""
        self.options = options
        self._dispatcher = dispatcher
        self._clock = clock or steady_clock()
        access, config = split_access(options.config, options.acls)
        self._access = access
        check_listeners(options.listeners, options.brokers)
        self._security, self._config = split_security(options.listeners, config)
        self._tls = {name: tls_context(security) for name, security in self._security.items()}
        self._plain: dict[str, IsRight] = {}
        self._broker_config, coordinator_config = split_config(self._config)
        self._coordinator_config = CoordinatorConfig.from_properties(coordinator_config)
        self._share_config = share_config(self._config)
        self._listeners: dict[tuple[int, str], asyncio.Server] = {}
        limits = self._broker_config
        self.host = Host(
            max_frame_bytes=limits.socket_request_max_bytes,
            max_bytes=limits.queued_max_request_bytes,
            max_connections=limits.max_connections,
        )
        self._folder: DataFolder | None = None
        self.metrics_page: MetricsPage | None = None
        self._upkeep: Upkeep | None = None
        self.collector = Collector()
        self.ended = asyncio.Event()
        self.failure: BaseException | None = None
        self.services: Services
        self._loop: asyncio.AbstractEventLoop

    @property
    def bootstrap(self) -> str:
        """``HOST:PORT`` of each broker that listens, with commas: of its first listener."""
        return self.bootstrap_of(self.options.listeners[0].name)

    def bootstrap_of(self, listener: str) -> str:
        """The same of the listener of this name. Raises `UsageError` where there is none."""
        name = listener_named(listener, self.options.listeners).name
        return ",".join(broker.at(name).address for broker in self.services.cluster.live_brokers())

    @property
    def folder(self) -> DataFolder:
        """What is open, between `start` and `stop`."""
        assert self._folder is not None
        return self._folder

    def describe(self) -> dict[str, Any]:
        """Describe how the server is doing, as plain data: what an operator is told, with one row a group."""
        return finish(self.description(Wanted()))

    def description(self, wanted: Wanted) -> Work[dict[str, Any]]:
        """Describe the server in pieces of work, with the rows that are wanted."""
        found = yield from status(self.services, self.host)
        return {**found, "group_rows": (yield from group_rows(self.services, wanted))}

    async def _status(self) -> dict[str, Any]:
        found = self.services.pieces.begin(status(self.services, self.host))
        return await found if isinstance(found, Awaitable) else found

    async def write_status(self) -> None:
        """Write the status as one line of JSON on stderr."""
        json.dump(await self._status(), sys.stderr)
        sys.stderr.write("\n")
        sys.stderr.flush()

    def _describe_from_outside(self) -> dict[str, Any]:
        """Return the status to another thread."""
        return asyncio.run_coroutine_threadsafe(self._status(), self._loop).result(timeout=5)

    async def start(self) -> None:
        """Open the data, load the coordinator, make the topics, listen.

        Raises StorageError or RefusedError (the data folder, the log to import), NotFoundError (no such log), UsageError (a
        topic, the log's partition count), KgctlError (the address).
        """
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        folder = self._folder = self._open()
        try:
            if self.options.import_log is not None:
                import_segments(self.options.import_log, folder.record_log)
            self.services = self._wire(folder)
            self._make_topics()
            self._start_coordinator(folder)
            await finish_unfinished(self.services)
            await self._listen()
        except BaseException:
            await self._release()
            raise
        self._tell_address(self.bootstrap)
        if self.options.metrics is not None:
            self.metrics_page = MetricsPage(self.options.metrics, self._describe_from_outside)
        self.host.watch.start(turns_of_running_loop())
        self._upkeep = Upkeep(self.services, self.host.connections, self._broker_config.connections_max_idle_ms, self.collector)
        self._upkeep.start()
        for difference in DIFFERENCES:
            log.info("unlike a broker: %s", difference)

    async def stop(self) -> None:
        """Answer what is parked, write what is left, close everything. Safe to call twice."""
        if self._folder is None:
            return
        self.host.is_closing = True
        if self.metrics_page is not None:
            self.metrics_page.close()
        for listener in self._listeners.values():
            await _stop_listening(listener)
        if self._upkeep is not None:
            await self._upkeep.stop()
        self.services.shares.stop()
        await self.services.auto_topics.stop()
        await self.services.runtime.stop()
        await self.services.shares.persister.stop()
        self.host.watch.stop()
        self.services.data.stop()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await self.host.end_all()
        await self._release()

    def raise_failure(self) -> None:
        """Raise StorageError if the server ended because its log could neither be written nor read, or is damaged."""
        if isinstance(self.failure, DamagedError):
            raise DamagedError(f"{self.failure.message}; {WAY_OUT}") from self.failure
        if self.failure is not None:
            raise StorageError(f"the log can neither be written nor read: {self.failure}") from self.failure

    async def stop_broker(self, node_id: int) -> None:
        self._known(node_id).is_up = False
        for key in [key for key in self._listeners if key[0] == node_id]:
            await _stop_listening(self._listeners.pop(key))
        for connection in list(self.host.connections):
            if connection.node_id == node_id:
                connection.end()
        self.services.shares.broker_stopped(self._known(node_id))

    async def start_broker(self, node_id: int) -> None:
        """Let a stopped broker listen again, on its old ports."""
        broker = self._known(node_id)
        broker.is_up = True  # who connects from here on is let in
        try:
            await self._listen_as(broker)
        except KgctlError:
            broker.is_up = False
            raise

    def _broker(self, index: int) -> Broker:
        endpoints = [listener.of_broker(index) for listener in self.options.listeners]
        return Broker(self._broker_config.first_node_id + index, endpoints)

    def _known(self, node_id: int) -> Broker:
        return next(broker for broker in self.services.cluster.brokers if broker.node_id == node_id)

    def _open(self) -> DataFolder:
        partitions = self._coordinator_config.offsets_topic_num_partitions
        if self.options.data is None:
            return memory_folder(partitions)
        folder = open_folder(self.options.data, create=True, offsets_partitions=partitions, on_damage=self.options.on_damage)
        folder.settings.set_broker_properties(self._config)
        return folder

    def _wire(self, folder: DataFolder) -> Services:
        clock = self._clock
        group_configs = GroupConfigs(self._coordinator_config, folder.documents)
        core = load_coordinator(folder, self._coordinator_config, new_member_id, clock(), group_configs=group_configs.all())
        read = partial(written_groups, folder.record_log, self._coordinator_config)
        writer = LogWriter(folder.record_log, clock, self._fail, in_thread=folder.path is not None, read=read)
        partitions = folder.record_log.partition_count
        brokers = [self._broker(index) for index in range(self.options.brokers)]
        producers = Producers(first_id=clock())
        settings = Settings(self._config, folder.documents, compacts=self.options.compacts)
        settings.tell_idle_of_brokers(effective_names())
        data = PartitionData(folder.topics, folder.record_log, older_values=self._shows_older_values(), path=folder.path)
        cluster, catalog = Cluster(brokers, partitions, self._cluster_id()), Catalog(folder.topics, partitions)
        persister = Persister(
            self._share_config, data, catalog, settings, clock=clock, on_failure=self._fail, in_thread=folder.path is not None
        )
        return Services(
            registry=default_registry(self._coordinator_config),
            config=self._broker_config,
            cluster=cluster,
            catalog=catalog,
            runtime=CoordinatorRuntime(core, writer, clock),
            data=data,
            shares=ShareGroups(
                data,
                clock,
                persister,
                settings=core.shard.group_config,
                cluster=cluster,
                catalog=catalog,
                max_sessions=self._coordinator_config.group_share_max_share_sessions,
            ),
            auto_topics=AutoTopicCreation(clock),
            producers=producers,
            transactions=Transactions(producers, folder.documents, self._broker_config.transaction_max_timeout_ms),
            group_configs=group_configs,
            settings=settings,
            quotas=Quotas(folder.documents),
            credentials=self._open_credentials(folder),
            access=AccessControl(self._access, folder.documents),
            pieces=Pieces(self.host.watch),
        )

    def _shows_older_values(self) -> bool:
        return self._broker_config.kgctl_offsets_topic_older_values or not self._coordinator_config.profile.keeps_topic_ids

    def _cluster_id(self) -> str:
        data = self.options.data
        return base64_uuid(None if data is None else uuid5(NAMESPACE_URL, data.resolve().as_uri()))

    def _make_topics(self) -> None:
        catalog = self.services.catalog
        for name, partitions in self.options.topics.items():
            known = catalog.get(name)
            if known is None:
                catalog.create({name: partitions})
            elif known.partition_count < partitions:
                catalog.grow({name: partitions})

    def _start_coordinator(self, folder: DataFolder) -> None:
        services = self.services
        services.catalog.on_change = self._topics_changed
        services.runtime.topic_names = lambda: services.catalog.topics
        services.runtime.perform, services.runtime.refuse_call = services.shares.perform, services.shares.refuse
        services.shares.persister.load()
        services.catalog.refresh()
        services.runtime.writer.written.append(self._tell_readers)
        services.runtime.start()
        recover(services)
        folder.start_maintenance(services.runtime.clock, on_damage=self._found_damage)

    def _found_damage(self, error: DamagedError) -> None:
        """From another thread: what is damaged is not served on."""
        self._loop.call_soon_threadsafe(self._fail, error)

    def _topics_changed(self, event: TopicsChanged) -> None:
        """Tell the coordinator in the loop's thread, before the change is answered."""
        if threading.get_ident() == self._thread_id:
            self._tell_of_topics(event)
        else:
            self._loop.call_soon_threadsafe(self._tell_of_topics, event)

    def _tell_of_topics(self, event: TopicsChanged) -> None:
        self.services.runtime.tell(event)
        self.services.shares.topics_changed()

    def _tell_readers(self) -> None:
        self.services.data.offsets_appended(self.services.cluster.offsets_partitions)

    async def _listen(self) -> None:
        for broker in self.services.cluster.brokers:
            await self._listen_as(broker)

    def _session(self, listener: str) -> ClientSession:
        security = self._security[listener]
        if not security.has_sasl:
            return ClientSession(listener)
        login = Login(security.mechanisms, self.services.credentials, self._plain[listener])
        return ClientSession(listener, is_authenticated=False, login=login)

    def _open_credentials(self, folder: DataFolder) -> Credentials:
        credentials = Credentials(folder.documents)
        with_logins = {name: security for name, security in self._security.items() if security.has_sasl}
        for name, security in with_logins.items():
            credentials.set_passwords(security.users())
            users = security.plain_users()
            self._plain[name] = credentials.is_right if users is None else passwords_of(users)
            if not users and not len(credentials):
                raise UsageError(f"{security.protocol} needs users: set sasl.jaas.config to 'user_NAME=\"PASSWORD\"'")
        return credentials

    async def _listen_as(self, broker: Broker) -> None:
        dispatcher = self._dispatcher(self.services, broker, self.description)
        for endpoint in broker.endpoints:
            self._listeners[broker.node_id, endpoint.listener.name] = await self._listen_at(endpoint, broker.node_id, dispatcher)

    async def _listen_at(self, endpoint: Endpoint, node_id: int, dispatcher: Dispatcher) -> asyncio.Server:
        name, host, tls = endpoint.listener.name, endpoint.listener.host, self._tls[endpoint.listener.name]

        def connection() -> ClientConnection:
            return ClientConnection(dispatcher, self.host, self._session(name), node_id)

        try:
            listening = await asyncio.get_running_loop().create_server(
                connection,
                host,
                endpoint.port,
                backlog=_ACCEPTED_IN_A_TURN,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_S,
            )
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise KgctlError(f"cannot listen on {host}:{endpoint.port}: {reason}") from error
        with socket.socket(fileno=os.dup(listening.sockets[0].fileno())) as own:
            own.listen(_BACKLOG)
        endpoint.port = listening.sockets[0].getsockname()[1]
        return listening

    def _tell_address(self, address: str | None) -> None:
        """Beside the data stands where its server listens, for as long as it does."""
        if self.options.data is None:
            return
        path = self.options.data / ADDRESS_FILE
        if address is None:
            path.unlink(missing_ok=True)
        else:
            write_json(path, {"bootstrap": address})

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.ended.set()

    async def _release(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            self._tell_address(None)
            folder.close()


async def _stop_listening(listener: asyncio.Server) -> None:
    """Accept nobody any more. What has been accepted in this turn gets its transport before the listener is closed.

    Closed at once, asyncio would fail on it and leave its socket open.
    """
    loop = asyncio.get_running_loop()
    for one in listener.sockets:
        loop.remove_reader(one.fileno())
    await asyncio.sleep(0)
    listener.close()


ORPHAN_S = 0.5
"""How often it is looked whether the parent process is still there."""


def is_orphan() -> bool:
    """Whether the process that started this one is gone already, and another one, such as init, has taken it over.

    A process begins in its parent's session. One whose parent is in another session, and that has not begun its own, was taken
    over; where it has, or where all are in the session of a container's first process, nothing tells.
    """
    session = os.getsid(0)
    if session == os.getpid():
        return False
    try:
        return os.getsid(os.getppid()) != session
    except OSError:  # it is gone, or may not be looked at: not one of ours
        return os.getppid() > 0


async def _end_with_parent(server: Server, parent: int) -> None:
    while os.getppid() == parent and not is_orphan():  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(ORPHAN_S)
    server.ended.set()


async def serve(options: ServeOptions, on_listening: Callable[[Server], None], *, with_parent: bool = False) -> None:
    """Run until SIGTERM or SIGINT; ``with_parent``, until the process that started this one has ended, too.

    ``on_listening`` is called once it answers.

    Raises what `Server.start` raises, and StorageError when the log could neither be written nor read.
    """
    parent = os.getppid()
    server = Server(options)
    await server.start()
    loop = asyncio.get_running_loop()
    server.collector.start()
    with suppress(NotImplementedError):  # no signals in loops of other systems
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.ended.set)
        loop.add_signal_handler(signal.SIGUSR1, lambda: asyncio.ensure_future(server.write_status()))
    watch = asyncio.ensure_future(_end_with_parent(server, parent)) if with_parent else None
    try:
        on_listening(server)
        await server.ended.wait()
    finally:
        if watch is not None:
            watch.cancel()
        server.collector.stop()
        await server.stop()
    server.raise_failure()
