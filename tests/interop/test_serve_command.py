"""``kgctl serve`` as a process: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import io
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from kgctl.serde.messages import decode_response
from kgctl.server.differences import DIFFERENCES
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeFactory
from tests.support.wire.classic_member import ClassicMember
from tests.support.wire.raw_client import RawClient

pytestmark = pytest.mark.interop

LIST_GROUPS = 16


def refused(*arguments: str) -> tuple[int, str]:
    """Exit code and stderr of a serve that does not start; stdout must stay empty."""
    done = subprocess.run(
        [sys.executable, "-m", "kgctl", "serve", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert done.stdout == ""
    return done.returncode, done.stderr


def refused_here(*arguments: str) -> tuple[int, str]:
    """The same in this process, for what is seen before anything is begun."""
    out, errors = io.StringIO(), io.StringIO()
    code = run(["serve", *arguments], Environment(stdout=out, stderr=errors))

    assert out.getvalue() == ""
    return code, errors.getvalue()


def test_it_says_where_it_listens_and_nothing_else(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve()

    assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d+", server.bootstrap)
    assert server.terminate() == (0, "")


def test_an_ipv6_address_is_told_as_clients_take_it(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(listen="[::1]:0")

    assert re.fullmatch(r"\[::1\]:[1-9]\d+", server.bootstrap)
    ran = subprocess.run(
        [sys.executable, "-m", "kgctl", "list", "groups", "--bootstrap-server", server.bootstrap, "-o", "json"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "The cluster has no groups.\n")
    assert server.terminate() == (0, "")


def test_brokers_are_told_with_commas(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(brokers=3)

    assert len(set(server.bootstrap.split(","))) == 3
    assert server.terminate() == (0, "")


def test_the_same_address_again_after_a_restart(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve()
    server.terminate()

    assert kgctl_serve(listen=server.bootstrap).bootstrap == server.bootstrap


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "0.0.0.0:0"], "other machines can reach 0.0.0.0"),
        (["--listen", "example.org:9092"], "other machines can reach example.org"),
        (["--listen", "9092"], "'9092' is not HOST:PORT"),
        (["--listen", "127.0.0.1:70000"], "'127.0.0.1:70000' is not HOST:PORT"),
        (["--topic", "orders"], "'orders' is not NAME:PARTITIONS"),
        (["--topic", "orders:0"], "--topic: 'orders:0': a topic has 1 to 100000 partitions"),
        (["--topic", "orders:100001"], "--topic: 'orders:100001': a topic has 1 to 100000 partitions"),
        (["--topic", "orders:x"], "'orders:x' is not NAME:PARTITIONS"),
        (["--topic", "orders:1", "--topic", "users:1", "--topic", "orders:2"], "--topic: 'orders' is given twice"),
        (["--config", "group.max.size=1", "--config", "group.max.size=2"], "--config: 'group.max.size' is given twice"),
        (["--data", ""], "--data is empty (an unset variable?): leave it out, or give it a value"),
        (["--import-log", ""], "--import-log is empty (an unset variable?): leave it out, or give it a value"),
        (["--topic", "a b:1"], "'a b' cannot be the name of a topic"),
        (["--config", "num.partitions"], "'num.partitions' is not KEY=VALUE"),
        (["--config", "num.partition=1"], "did you mean num.partitions or offsets.topic.num.partitions?"),
        (["--config", "group.max.size=many"], "Invalid value many for configuration group.max.size: Not a number of type INT"),
        (["--brokers", "0"], "--brokers"),
    ],
)
def test_a_bad_argument_is_one_line_and_exit_2(arguments: list[str], message: str) -> None:
    code, errors = refused_here(*arguments)

    assert (code, errors.count("\n")) == (2, 1)
    assert message in errors


def test_a_port_in_use_is_one_line_and_exit_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, errors = refused("--listen", address)

    assert (code, errors) == (1, f"kgctl: cannot listen on {address}: Address already in use\n")


def test_a_folder_in_use_is_one_line_and_exit_5(kgctl_serve: ServeFactory, tmp_path: Path) -> None:
    kgctl_serve(data=tmp_path)
    code, errors = refused("--listen", "127.0.0.1:0", "--data", str(tmp_path))

    assert (code, errors.count("\n")) == (5, 1)
    assert str(tmp_path) in errors


def test_sigusr1_tells_how_it_is_doing(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve()
    with RawClient(server.bootstrap) as raw:
        ClassicMember(raw, "g", ["t"]).join(3)
        server.process.send_signal(signal.SIGUSR1)
        raw.call(LIST_GROUPS, 4)
        assert server.process.stderr is not None
        told = json.loads(server.process.stderr.readline())

    mine = ("connections", "groups", "members", "offsets", "rebalances")  # what the operator's view has besides is tested there
    assert {name: told[name] for name in mine} == {
        "connections": 1,
        "groups": [{"type": "classic", "state": "Stable", "count": 1}],
        "members": told["members"],
        "offsets": 0,
        "rebalances": [],
    }
    assert told["members"]["classic"] == 1


def test_a_server_for_tests_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    told = tmp_path / "kafka.env"
    start = '"$1" -m kgctl serve --for-tests > "$2" & echo $!; until [ -s "$2" ]; do sleep 0.1; done'

    done = subprocess.run(
        ["sh", "-c", start, "sh", sys.executable, told], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    line = told.read_text()

    assert re.fullmatch(r"export KAFKA_BOOTSTRAP_SERVERS=127\.0\.0\.1:[1-9]\d+\n", line)
    wait_until(lambda: has_ended(done.stdout.strip()), "the server has ended with the shell")


def test_a_server_for_tests_ends_though_its_parent_died_before_it_looked(tmp_path: Path) -> None:
    started = subprocess.run(
        ["sh", "-c", '"$1" -m kgctl serve --for-tests > "$2" 2>&1 & echo $!', "sh", sys.executable, tmp_path / "kafka.env"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        start_new_session=True,  # of a container's own first process, which takes orphans over, nobody could tell it
    )
    wait_until(lambda: has_ended(started.stdout.strip()), "the server has ended")


def has_ended(process_id: str) -> bool:
    """An orphan stays as a zombie, without a command line, where the first process is no init, as in containers."""
    try:
        return not Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return True


def test_clients_are_told_what_is_advertised(kgctl_serve: ServeFactory) -> None:
    server = kgctl_serve(options=["--advertise", "kafka.example:0"])
    with RawClient(server.bootstrap) as client:
        client.send(3, 12, {"topics": []})
        _, answer = decode_response(3, 12, client.receive())

    port = int(server.bootstrap.rpartition(":")[2])

    assert [(broker.host, broker.port) for broker in answer.brokers] == [("kafka.example", port)]


def test_what_a_broker_does_otherwise_is_one_list(kgctl_serve: ServeFactory) -> None:
    _, errors = kgctl_serve(options=["--verbose"]).terminate()
    logged = [line.partition("unlike a broker: ")[2] for line in errors.splitlines() if "unlike a broker" in line]
    assert logged == [str(difference) for difference in DIFFERENCES]
    shown = subprocess.run([sys.executable, "-m", "kgctl", "serve", "--help"], capture_output=True, text=True, check=True).stdout
    assert all(f"    {each.subject}: {each.here}".replace("`", "") in shown for each in DIFFERENCES)


def test_a_listener_a_network(tmp_path: Path) -> None:
    """A line for each; each says what it is told to advertise."""
    names = ["--config", "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"]
    where = [
        "--listen",
        "INSIDE://127.0.0.1:0",
        "--listen",
        "OUTSIDE://127.0.0.1:0",
        "--advertise",
        "OUTSIDE://kafka.example:29092",
    ]
    with serve_lines([*names, *where], count=2) as (first, second):
        assert (first[:23], second[:33]) == ("listening on 127.0.0.1:", "listening on OUTSIDE://127.0.0.1:")
        for line, host in ((first, "127.0.0.1"), (second, "kafka.example")):
            with RawClient(line.rpartition(" ")[2].rpartition("/")[2]) as client:
                (broker,) = client.call(3, 12, {"topics": []}).brokers
            assert broker.host == host
    with serve_lines(["--for-tests", *names, *where], count=2) as (first, second):
        assert re.fullmatch(r"export KAFKA_BOOTSTRAP_SERVERS=127\.0\.0\.1:\d+", first)
        assert re.fullmatch(r"export KAFKA_BOOTSTRAP_SERVERS_OUTSIDE=127\.0\.0\.1:\d+", second)


@contextmanager
def serve_lines(options: list[str], count: int) -> Iterator[list[str]]:
    command = [sys.executable, "-m", "kgctl", "serve", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield [process.stdout.readline().strip() for _ in range(count)]
        process.terminate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--listen", "INSIDE://127.0.0.1:0"], "--listen: 'INSIDE' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (["--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"], "there are two listeners 'PLAINTEXT'"),
        (["--listen", "A://127.0.0.1:0", "--listen", "127.0.0.1:0", "--advertise", "x:1"], "Write A://x:1"),
        (["--listen", "0.0.0.0:0", "--allow-remote"], "clients cannot connect to 0.0.0.0: --advertise HOST:PORT"),
        (["--listen", "[::]:0", "--allow-remote", "--listen", "A://127.0.0.1:0", "--advertise", "A://x:1"], "connect to ::"),
        (["--advertise", "SSL://x:1"], "there is no listener 'SSL'"),
        (["--advertise", "x:1", "--advertise", "PLAINTEXT://x:2"], "'PLAINTEXT' is given twice"),
        (["--listen", "A://127.0.0.1:0", "--listen", "127.0.0.1:9", "--listen", "B://0.0.0.0:0"], "reach 0.0.0.0"),
    ],
)
def test_listeners_that_cannot_be(options: list[str], message: str) -> None:
    names = ["--config", "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"]
    code, errors = refused(*names, *options)
    assert code == 2
    assert message in errors
