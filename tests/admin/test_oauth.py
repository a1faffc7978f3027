"""OAUTHBEARER against Apache Kafka, through kgctl's own connection and librdkafka: unsecured tokens, own or of an endpoint."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

import kgctl
from kgctl.admin import GroupAdmin
from kgctl.admin.confluent import ConfluentGroupAdmin
from kgctl.admin.connect import ConnectionSettings, connect, resolved
from kgctl.admin.live import LiveGroupAdmin
from kgctl.admin.properties import load_command_config, parse_x
from kgctl.errors import AuthError, UnreachableError, UsageError, UserCodeError
from kgctl.model.groups import OffsetAndMetadata, TopicPartition
from kgctl.pipeline.sources.live import ReaderName, open_reader
from tests.support.kafka import SecureKafkaBroker, create_topic, produce, unique
from tests.support.patience import PATIENCE_MS

pytestmark = pytest.mark.kafka


def encoded(value: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives who knows the secret a token in the client's name."""

    def do_POST(self) -> None:
        who = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        is_right = who.endswith(":s3cret") and fields == {"grant_type": ["client_credentials"], "scope": ["kafka"]}
        name, now_s = who.partition(":")[0], int(time.time())
        token = f"{encoded({'alg': 'none'})}.{encoded({'sub': name, 'iat': now_s, 'exp': now_s + 600})}."
        body = json.dumps({"access_token": token, "token_type": "bearer", "expires_in": 600} if is_right else {"error": "no"})
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def unsecured(broker: SecureKafkaBroker, user: str = "admin") -> dict[str, str]:
    return {
        "bootstrap.servers": broker.address("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal={user}",
    }


def fetched(broker: SecureKafkaBroker, endpoint: str, secret: str = "s3cret") -> dict[str, str]:
    return {
        "bootstrap.servers": broker.address("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.id": "admin",
        "sasl.oauthbearer.client.secret": secret,
        "sasl.oauthbearer.scope": "kafka",
    }


def reads_and_changes(admin: GroupAdmin, topic: str) -> None:
    group, partition = unique("group"), TopicPartition(topic, 0)
    assert admin.alter_offsets(group, {partition: OffsetAndMetadata(5)}).status == "ok"
    assert admin.list_committed_offsets([group]).values == {group: {partition: OffsetAndMetadata(5)}}
    assert admin.delete_groups([group]).status == "ok"


@pytest.mark.parametrize("kind", ["unsecured", "fetched"])
@pytest.mark.parametrize("backend", [LiveGroupAdmin, ConfluentGroupAdmin])
def test_a_token_logs_in(
    secure_kafka_broker: SecureKafkaBroker, endpoint: str, backend: type[LiveGroupAdmin | ConfluentGroupAdmin], kind: str
) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    properties = unsecured(secure_kafka_broker) if kind == "unsecured" else fetched(secure_kafka_broker, endpoint)
    with backend(properties, PATIENCE_MS) as admin:
        reads_and_changes(admin, topic)


def test_a_java_clients_file_gives_the_same_login(secure_kafka_broker: SecureKafkaBroker, endpoint: str, tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={secure_kafka_broker.address('SASL_PLAINTEXT')}\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        "sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={endpoint}\n"
        f'sasl.jaas.config={module} clientId="admin" clientSecret="s3cret" scope="kafka";\n'
    )
    with connect(ConnectionSettings(properties=load_command_config(file), timeout_ms=PATIENCE_MS)) as admin:
        assert isinstance(admin, LiveGroupAdmin)
        assert admin.list_groups().status == "ok"


def test_who_gets_no_token_is_told(secure_kafka_broker: SecureKafkaBroker, endpoint: str) -> None:
    wrong = fetched(secure_kafka_broker, endpoint, secret="wrong")
    with connect(ConnectionSettings(properties=wrong, timeout_ms=PATIENCE_MS)) as admin, pytest.raises(AuthError) as caught:
        admin.list_groups()
    assert "gives 'admin' no token: 401" in caught.value.message
    assert "wrong" not in caught.value.message

    gone = fetched(secure_kafka_broker, "http://127.0.0.1:1/token")
    with (
        connect(ConnectionSettings(properties=gone, timeout_ms=PATIENCE_MS)) as admin,
        pytest.raises(UnreachableError, match="token"),
    ):
        admin.list_groups()


def test_a_token_that_the_broker_does_not_take_is_told(secure_kafka_broker: SecureKafkaBroker) -> None:
    late = {**unsecured(secure_kafka_broker), "sasl.oauthbearer.config": "principal=admin lifeSeconds=-600"}
    with connect(ConnectionSettings(properties=late, timeout_ms=PATIENCE_MS)) as admin, pytest.raises(AuthError) as caught:
        admin.list_groups()
    assert "refused the login of 'admin'" in caught.value.message


@pytest.mark.parametrize("backend", [LiveGroupAdmin, ConfluentGroupAdmin])
def test_a_token_of_ones_own_program(
    secure_kafka_broker: SecureKafkaBroker, backend: type[LiveGroupAdmin | ConfluentGroupAdmin], tmp_path: Path
) -> None:
    now_s = int(time.time())
    token = f"{encoded({'alg': 'none'})}.{encoded({'sub': 'admin', 'iat': now_s, 'exp': now_s + 600})}."
    (tmp_path / "token").write_text(f"{token}\n")
    given = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=OAUTHBEARER", f"sasl.oauthbearer.token=cmd:cat {tmp_path}/token"]
    properties = resolved({**parse_x(given), "bootstrap.servers": secure_kafka_broker.address("SASL_PLAINTEXT")}, {})
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    with backend(properties, PATIENCE_MS) as admin:
        reads_and_changes(admin, topic)


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Amazon's signer, whose tokens are unsecured ones of the user admin; what it is asked is noted."""
    asked: list[tuple[str, ...]] = []

    def sign(*arguments: str) -> tuple[str, int]:
        asked.append(arguments)
        now_s = int(time.time())
        return f"{encoded({'alg': 'none'})}.{encoded({'sub': 'admin', 'iat': now_s, 'exp': now_s + 600})}.", (now_s + 600) * 1000

    provider = types.SimpleNamespace(
        generate_auth_token=lambda region: sign("default", region),
        generate_auth_token_from_profile=lambda region, profile: sign("profile", region, profile),
        generate_auth_token_from_role_arn=lambda region, *role: sign("role", region, *role),
    )
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", types.SimpleNamespace(MSKAuthTokenProvider=provider))
    return asked


@pytest.mark.parametrize("backend", [LiveGroupAdmin, ConfluentGroupAdmin])
def test_amazons_login_goes_through_both_connections(
    secure_kafka_broker: SecureKafkaBroker, signer: list[tuple[str, ...]], backend: type[LiveGroupAdmin | ConfluentGroupAdmin]
) -> None:
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    given = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=AWS_MSK_IAM", "aws.msk.region=eu-west-1", "aws.msk.profile=ops"]
    properties = {**parse_x(given), "bootstrap.servers": secure_kafka_broker.address("SASL_PLAINTEXT")}
    with backend(properties, PATIENCE_MS) as admin:
        reads_and_changes(admin, topic)
    assert set(signer) == {("profile", "eu-west-1", "ops")}


@pytest.mark.parametrize("reader", ["wire", "confluent"])
@pytest.mark.parametrize("mechanism", ["AWS_MSK_IAM", "OAUTHBEARER"])
def test_amazons_login_goes_through_both_readers_of_the_history(
    secure_kafka_broker: SecureKafkaBroker, signer: list[tuple[str, ...]], reader: ReaderName, mechanism: str
) -> None:
    properties = {
        "bootstrap.servers": secure_kafka_broker.address("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "aws.msk.iam": "true",
        "aws.msk.region": "eu-west-1",
        "aws.msk.role.arn": "arn:r",
    }
    committed(secure_kafka_broker)
    opened, why = open_reader(properties, PATIENCE_MS, reader)
    try:
        assert (len(opened.log_state().bounds) > 0, why) == (True, None)
    finally:
        opened.close()
    assert set(signer) == {("role", "eu-west-1", "arn:r")}


def committed(broker: SecureKafkaBroker) -> None:
    """A commit, so that the cluster has the log of commits."""
    partition = TopicPartition(create_topic(broker.bootstrap, unique("topic")), 0)
    with kgctl.connect(broker.bootstrap, timeout_ms=PATIENCE_MS) as admin:
        assert not admin.alter_offsets(unique("group"), {partition: OffsetAndMetadata(0)}).errors


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_amazons_login_goes_through_the_library(
    secure_kafka_broker: SecureKafkaBroker, signer: list[tuple[str, ...]], name: str
) -> None:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        name: "AWS_MSK_IAM",
        "aws.msk.region": "eu-west-1",
        "aws.msk.profile": "ops",
    }
    address, group = secure_kafka_broker.address("SASL_PLAINTEXT"), unique("group")
    topic = create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    partition = TopicPartition(topic, 0)
    with kgctl.connect(address, properties=properties, timeout_ms=PATIENCE_MS) as admin:
        assert not admin.alter_offsets(group, {partition: OffsetAndMetadata(0)}).errors
        assert admin.list_committed_offsets([group]).values[group] == {partition: OffsetAndMetadata(0)}
    with kgctl.ConsumerGroup(address, group, [topic], properties=properties) as member:
        assert list(member.next(timeout_ms=PATIENCE_MS).assignments) == [partition]
    assert set(signer) == {("profile", "eu-west-1", "ops")}


def test_a_java_clients_file_for_amazon_works_as_it_stands(
    secure_kafka_broker: SecureKafkaBroker, signer: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={secure_kafka_broker.address('SASL_PLAINTEXT')}\n"
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=AWS_MSK_IAM\n"
        'sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="arn:r" awsRoleSessionName="s";\n'
        "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler\n"
    )
    with connect(ConnectionSettings(properties=load_command_config(file), timeout_ms=PATIENCE_MS)) as admin:
        assert isinstance(admin, LiveGroupAdmin)
        assert admin.list_groups().status == "ok"
    assert signer == [("role", "us-east-1", "arn:r", "s")]


class TokenMaker:
    """A program's function that makes tokens of the user admin; the first ``wrong`` calls of it raise."""

    def __init__(self, wrong: int = 0) -> None:
        self.wrong = wrong
        self.calls: list[threading.Thread] = []

    def __call__(self) -> str:
        self.calls.append(threading.current_thread())
        if len(self.calls) <= self.wrong:
            raise LookupError("no token today")
        now_s = int(time.time())
        return f"{encoded({'alg': 'none'})}.{encoded({'sub': 'admin', 'iat': now_s, 'exp': now_s + 600})}."


def by_function(make: Callable[[], Any]) -> dict[str, Any]:
    return {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token": make}


def test_a_function_makes_the_tokens(secure_kafka_broker: SecureKafkaBroker) -> None:
    """Of the admin, of a member on threads and one in an event loop, and of the fetcher, which is librdkafka's."""
    bootstrap, topic = secure_kafka_broker.address("SASL_PLAINTEXT"), create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    make = TokenMaker()
    with kgctl.connect(bootstrap, properties=by_function(make), timeout_ms=PATIENCE_MS) as admin:
        assert admin.list_groups().errors == {}
    produce(secure_kafka_broker.bootstrap, topic, {0: 3})
    of_member: dict[str, Any] = {"properties": by_function(make), "auto_offset_reset": "earliest"}
    with kgctl.ConsumerGroup(bootstrap, unique("group"), [topic], **of_member) as group:
        records = group.next(timeout_ms=PATIENCE_MS).records(max_records=3)
        assert len(next(iter(records))) > 0

    async def live() -> tuple[tuple[int, ...], threading.Thread]:
        async with kgctl.AsyncConsumerGroup(bootstrap, unique("group"), [topic], **of_member) as member:
            return (await member.next(timeout_ms=PATIENCE_MS)).topics[topic], threading.current_thread()

    before = len(make.calls)
    partitions, loops_own = asyncio.run(live())
    assert partitions == (0,)
    assert make.calls[before:]
    assert loops_own not in make.calls[before:]  # whoever makes a token may take their time


class AsyncTokenMaker(TokenMaker):
    """The same as a coroutine function."""

    async def make(self) -> str:
        await asyncio.sleep(0)
        return self()


def test_a_coroutine_function_makes_the_tokens_in_the_loop_that_waits(secure_kafka_broker: SecureKafkaBroker) -> None:
    """Of a member, of its fetcher and of an admin, so that it may use what belongs to the loop."""
    bootstrap, topic = secure_kafka_broker.address("SASL_PLAINTEXT"), create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    produce(secure_kafka_broker.bootstrap, topic, {0: 3})
    maker = AsyncTokenMaker()
    properties = by_function(maker.make)

    async def live() -> list[int]:
        seen = [len(maker.calls)]
        async with kgctl.AsyncAdmin(kgctl.connect(bootstrap, properties=properties, timeout_ms=PATIENCE_MS)) as admin:
            assert (await admin.list_groups()).errors == {}
        seen.append(len(maker.calls))
        given: dict[str, Any] = {"properties": properties, "auto_offset_reset": "earliest"}
        async with kgctl.AsyncConsumerGroup(bootstrap, unique("group"), [topic], **given) as member:
            generation = await member.next(timeout_ms=PATIENCE_MS)
            seen.append(len(maker.calls))
            async for batch in generation.records(max_records=3):
                assert batch
                break
        return [*seen, len(maker.calls)]

    first, after_admin, after_join, after_records = asyncio.run(live())
    assert first < after_admin < after_join < after_records
    assert set(maker.calls) == {threading.current_thread()}


def test_a_coroutine_function_has_a_loop_of_its_own_where_none_waits(secure_kafka_broker: SecureKafkaBroker) -> None:
    bootstrap, topic = secure_kafka_broker.address("SASL_PLAINTEXT"), create_topic(secure_kafka_broker.bootstrap, unique("topic"))
    maker = AsyncTokenMaker()

    def asked() -> object:
        with kgctl.connect(bootstrap, properties=by_function(maker.make), timeout_ms=PATIENCE_MS) as admin:
            return admin.list_groups().errors

    async def in_a_loop_that_stands_still() -> object:
        return asked()

    assert asked() == {}
    assert asyncio.run(in_a_loop_that_stands_still()) == {}
    with kgctl.ConsumerGroup(bootstrap, unique("group"), [topic], properties=by_function(maker.make)) as group:
        assert group.next(timeout_ms=PATIENCE_MS).topics == {topic: (0,)}
    assert len(maker.calls) >= 3


def test_a_coroutine_function_that_makes_no_token_is_named_with_its_place(secure_kafka_broker: SecureKafkaBroker) -> None:
    bootstrap = secure_kafka_broker.address("SASL_PLAINTEXT")
    said = rf"sasl.oauthbearer.token failed \({__file__}:\d+\): LookupError: no token today"
    properties = by_function(AsyncTokenMaker(wrong=99).make)

    async def listed() -> None:
        async with kgctl.AsyncAdmin(kgctl.connect(bootstrap, properties=properties)) as admin:
            await admin.list_groups()

    async def member() -> None:
        async with kgctl.AsyncConsumerGroup(bootstrap, "g", ["t"], properties=properties) as group:
            await group.next(timeout_ms=PATIENCE_MS)

    for work in (listed, member):
        with pytest.raises(UserCodeError, match=said) as caught:
            asyncio.run(work())
        assert isinstance(caught.value.__cause__, LookupError)
    with kgctl.connect(bootstrap, properties=properties) as admin, pytest.raises(UserCodeError, match=said):
        admin.list_groups()


def test_a_function_that_makes_no_token_is_named_with_its_place(secure_kafka_broker: SecureKafkaBroker) -> None:
    bootstrap = secure_kafka_broker.address("SASL_PLAINTEXT")
    said = rf"sasl.oauthbearer.token failed \({__file__}:\d+\): LookupError: no token today"
    with (
        kgctl.connect(bootstrap, properties=by_function(TokenMaker(wrong=9)), timeout_ms=PATIENCE_MS) as admin,
        pytest.raises(UserCodeError, match=said) as caught,
    ):
        admin.list_groups()
    assert isinstance(caught.value.__cause__, LookupError)
    with (
        kgctl.ConsumerGroup(bootstrap, "g", ["t"], properties=by_function(TokenMaker(wrong=9))) as group,
        pytest.raises(UserCodeError, match=said),
    ):
        group.next(timeout_ms=PATIENCE_MS)

    async def live() -> None:
        async with kgctl.AsyncConsumerGroup(bootstrap, "g", ["t"], properties=by_function(TokenMaker(wrong=9))) as member:
            await member.next(timeout_ms=PATIENCE_MS)

    with pytest.raises(UserCodeError, match=said):
        asyncio.run(live())


@pytest.mark.parametrize(("made", "told"), [(None, "a NoneType that is none"), ("", "an empty text"), (b"t", "a bytes that is")])
def test_what_is_no_token_is_not_sent(secure_kafka_broker: SecureKafkaBroker, made: object, told: str) -> None:
    bootstrap = secure_kafka_broker.address("SASL_PLAINTEXT")
    with (
        kgctl.connect(bootstrap, properties=by_function(lambda: made)) as admin,
        pytest.raises(UserCodeError, match=rf"sasl.oauthbearer.token \({__file__}:\d+\) should make a token, and made {told}"),
    ):
        admin.list_groups()


def test_no_other_property_is_a_function() -> None:
    wrong: dict[str, Any] = {"sasl.password": str}
    with pytest.raises(UsageError, match=r"sasl.password: must be a text, not .*; only sasl.oauthbearer.token can be a function"):
        kgctl.connect("127.0.0.1:1", properties=wrong)
    with pytest.raises(UsageError, match="must be a text"):
        kgctl.ConsumerGroup("127.0.0.1:1", "g", ["t"], properties=wrong)
