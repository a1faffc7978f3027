"""The names of a client's properties, which are librdkafka's, and what their values can be."""

from __future__ import annotations

import re

from kgctl.errors import UsageError, did_you_mean
from kgctl.wire.settings import MSK_PROPERTIES

_CLIENT = """
    allow.auto.create.topics
    api.version.fallback.ms
    api.version.request
    api.version.request.timeout.ms
    bootstrap.servers
    broker.address.family
    broker.address.ttl
    broker.version.fallback
    client.dns.lookup
    client.id
    client.rack
    connections.max.idle.ms
    debug
    enable.metrics.push
    enable.random.seed
    enable.sasl.oauthbearer.unsecure.jwt
    enable.ssl.certificate.verification
    https.ca.location
    https.ca.pem
    log.connection.close
    log.thread.name
    log_level
    max.in.flight
    max.in.flight.requests.per.connection
    message.copy.max.bytes
    message.max.bytes
    metadata.broker.list
    metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy
    plugin.library.paths
    receive.message.max.bytes
    reconnect.backoff.jitter.ms
    reconnect.backoff.max.ms
    reconnect.backoff.ms
    retry.backoff.max.ms
    retry.backoff.ms
    sasl.kerberos.keytab
    sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal
    sasl.kerberos.service.name
    sasl.mechanism
    sasl.mechanisms
    sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.private.key.pem
    sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret
    sasl.oauthbearer.config
    sasl.oauthbearer.extensions
    sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type
    sasl.oauthbearer.method
    sasl.oauthbearer.scope
    sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url
    sasl.password
    sasl.username
    security.protocol
    socket.blocking.max.ms
    socket.connection.setup.timeout.ms
    socket.keepalive.enable
    socket.max.fails
    socket.nagle.disable
    socket.receive.buffer.bytes
    socket.send.buffer.bytes
    socket.timeout.ms
    ssl.ca.certificate.stores
    ssl.ca.location
    ssl.ca.pem
    ssl.certificate.location
    ssl.certificate.pem
    ssl.cipher.suites
    ssl.crl.location
    ssl.curves.list
    ssl.endpoint.identification.algorithm
    ssl.engine.id
    ssl.engine.location
    ssl.key.location
    ssl.key.password
    ssl.key.pem
    ssl.keystore.location
    ssl.keystore.password
    ssl.providers
    ssl.sigalgs.list
    statistics.interval.ms
    topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
"""
CLIENT_PROPERTIES = frozenset(_CLIENT.split())
"""Properties that concern any client: these shape the connection of the admin client."""

_OTHER = """
    acks
    auto.commit.enable
    auto.commit.interval.ms
    auto.offset.reset
    batch.num.messages
    batch.size
    check.crcs
    compression.codec
    compression.level
    compression.type
    consume.callback.max.messages
    coordinator.query.interval.ms
    delivery.report.only.error
    delivery.timeout.ms
    enable.auto.commit
    enable.auto.offset.store
    enable.gapless.guarantee
    enable.idempotence
    enable.partition.eof
    fetch.error.backoff.ms
    fetch.max.bytes
    fetch.message.max.bytes
    fetch.min.bytes
    fetch.queue.backoff.ms
    fetch.wait.max.ms
    group.id
    group.instance.id
    group.protocol
    group.protocol.type
    group.remote.assignor
    heartbeat.interval.ms
    isolation.level
    linger.ms
    max.partition.fetch.bytes
    max.poll.interval.ms
    max.poll.records
    message.send.max.retries
    message.timeout.ms
    offset.store.method
    offset.store.path
    offset.store.sync.interval.ms
    partition.assignment.strategy
    partitioner
    produce.offset.report
    queue.buffering.backpressure.threshold
    queue.buffering.max.kbytes
    queue.buffering.max.messages
    queue.buffering.max.ms
    queued.max.messages.kbytes
    queued.min.messages
    queuing.strategy
    request.required.acks
    request.timeout.ms
    retries
    session.timeout.ms
    share.acknowledgement.mode
    sticky.partitioning.linger.ms
    transaction.timeout.ms
    transactional.id
"""
OTHER_PROPERTIES = frozenset(_OTHER.split())
"""Properties of consumers and producers: accepted, without effect on administration."""

KNOWN_PROPERTIES = CLIENT_PROPERTIES | OTHER_PROPERTIES | frozenset(MSK_PROPERTIES)

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BOOLEANS = {"true": "true", "t": "true", "1": "true", "yes": "true", "false": "false", "f": "false", "0": "false", "no": "false"}


def checked_property(name: str, value: str) -> str:
    """Return the value in the spelling that librdkafka and this package read.

    Raises:
        UsageError: there is no such property, or it cannot have this value.
    """
    if name not in KNOWN_PROPERTIES:
        raise UsageError(f"{name}: no such property{did_you_mean(name, KNOWN_PROPERTIES)}")
    if name == "security.protocol":
        if value.upper() not in SECURITY_PROTOCOLS:
            raise UsageError(f"{name}: '{value}' is none of {', '.join(SECURITY_PROTOCOLS)}")
        return value.upper()
    if name in ("sasl.mechanism", "sasl.mechanisms"):
        return value.upper()
    if name.endswith((".ms", ".bytes")) and not re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", value):
        raise UsageError(f"{name}: '{value}' is not a number")
    if name == "enable.ssl.certificate.verification":
        if value.lower() not in _BOOLEANS:
            raise UsageError(f"{name}: '{value}' is neither true nor false")
        return _BOOLEANS[value.lower()]
    return value
