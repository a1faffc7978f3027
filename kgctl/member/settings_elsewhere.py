"""Consumer settings that a member's life in its group does not depend on: accepted, so that a client's own file can be used."""

from __future__ import annotations

_NAMES = """
    allow.auto.create.topics auto.include.jmx.reporter bootstrap.servers bootstrap.resolve.timeout.ms check.crcs client.dns.lookup
    client.id config.providers connections.max.idle.ms enable.metrics.push exclude.internal.topics fetch.max.bytes
    fetch.max.wait.ms fetch.min.bytes group.id interceptor.classes isolation.level key.deserializer
    max.partition.fetch.bytes max.poll.records metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms security.protocol security.providers send.buffer.bytes share.acknowledgement.mode share.acquire.mode
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms value.deserializer
    sasl.jaas.config sasl.mechanism sasl.client.callback.handler.class sasl.login.class sasl.login.callback.handler.class
    sasl.kerberos.service.name sasl.username sasl.password
    ssl.ca.location ssl.certificate.location ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
    ssl.key.location ssl.key.password ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol
    ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""

SETTINGS_ELSEWHERE = frozenset(_NAMES.split())
