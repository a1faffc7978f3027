"""``python -m tests.calibration.profiles [-n TIMES] [--save] [--table] [CLIENT ...]``: what real clients do, request by request.

Each client joins a group on Apache Kafka, sees another one join, sees its topic grow, polls nothing for longer than
``max.poll.interval.ms``, and closes. A proxy between them notes each request and when it came. What profiles.json keeps, in
milliseconds: from the application's wish for a consumer to the end of subscribe() (``made``; its classes are loaded), from there
to the first request about the group (``start``) and to the JoinGroup (``join``), from the heartbeat that tells of a rebalance to
the JoinGroup (``rejoin``), from close() to the LeaveGroup (``leave``) and to its return (``close``), from a topic growing to the
group joining (``grow``; the client looks at metadata every 3 s), between two heartbeats (``beat``), from the limit's end to the
LeaveGroup (``limit``), and from the next poll() to the JoinGroup (``back``, below 0: before it).
"""

from __future__ import annotations

import argparse
import io
import json
import queue
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kgctl.simulate.against.fleet import Client, ClientKind, ClientLine
from kgctl.simulate.against.playable import settings_of
from kgctl.simulate.engine.simulation import Simulation
from kgctl.simulate.scenario.load import load
from kgctl.simulate.scenario.sources import read_source
from tests.calibration.cases import FOLDER
from tests.calibration.kinds import kind_of
from tests.support.kafka.broker import KafkaBroker
from tests.support.kafka.data import wait_until_coordinating

PROFILES = FOLDER / "profiles.json"
"""Client -> what was measured -> milliseconds: least, median, most; ``version`` is the client's."""
REFRESH_MS = 3_000
LIMIT_MS = 8_000
"""``max.poll.interval.ms``."""
STALL_MS = 16_000
JOIN, HEARTBEAT, LEAVE, FIND, SYNC, CONSUMER = 11, 12, 13, 10, 14, 68
REBALANCE_IN_PROGRESS = 27
_PATIENCE_S = 60.0
_FILE = f"""\
kgctl: 1
name: profile
topics: {{{{t: 1}}}}
members:
  one:
    client: {{client}}
    client_id: {{id}}
    poll: {{{{timeout: 50ms, pause: 0ms}}}}
    config:
      {{{{metadata.max.age.ms: {REFRESH_MS}, max.poll.interval.ms: {LIMIT_MS}, session.timeout.ms: {LIMIT_MS},
        auto.offset.reset: earliest}}}}
"""


class Seen(NamedTuple):
    """A request, or the answer to one, as it passed: of which client id, which API, and the error of a heartbeat's answer."""

    at_us: int
    client: str
    api: int
    is_answer: bool
    error: int = 0


class Recorder:
    """A proxy before one broker that notes what passes; ``seen`` grows."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.target = ("", 0)
        self.seen: list[Seen] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self.target)
            asked: dict[int, tuple[str, int, int]] = {}
            for source, goal, is_answer in ((client, server, False), (server, client, True)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pass, args=(source, goal, asked, is_answer), daemon=True).start()

    def _pass(self, source: socket.socket, goal: socket.socket, asked: dict[int, tuple[str, int, int]], is_answer: bool) -> None:
        kept = b""
        try:
            while data := source.recv(65_536):
                now_us = time.time_ns() // 1000
                kept += data
                while len(kept) >= 4 and len(kept) >= (end := 4 + struct.unpack_from(">i", kept)[0]):
                    self._note(kept[4:end], now_us, asked, is_answer=is_answer)
                    kept = kept[end:]
                goal.sendall(data)
        except OSError:
            pass
        finally:
            for each in (source, goal):
                each.close()

    def _note(self, frame: bytes, now_us: int, asked: dict[int, tuple[str, int, int]], *, is_answer: bool) -> None:
        if not is_answer:
            api, version, correlation, length = struct.unpack_from(">hhih", frame)
            client = frame[10 : 10 + max(length, 0)].decode()
            asked[correlation] = client, api, version
            self.seen.append(Seen(now_us, client, api, is_answer=False))
            return
        client, api, version = asked.pop(struct.unpack_from(">i", frame)[0], ("", -1, 0))
        error = 0
        if api == HEARTBEAT:  # v1 and later: throttle time, error; flexible from v4 on
            error = struct.unpack_from(">h", frame, 4 + (1 if version >= 4 else 0) + (4 if version >= 1 else 0))[0]
        self.seen.append(Seen(now_us, client, api, is_answer=True, error=error))


class Process:
    """A client in a process of its own, and the times of what it says."""

    def __init__(self, kind: ClientKind, bootstrap: str, group: str, topic: str, client_id: str) -> None:
        self.client_id = client_id
        self._lines: queue.Queue[ClientLine] = queue.Queue()
        self._client = Client(kind.command(), {"bootstrap.servers": bootstrap}, self._lines)
        self._client.wait_until_ready()
        variant = load(read_source("-", io.StringIO(_FILE.format(client=kind.profile, id=client_id)))).variants[0]
        settings = settings_of(Simulation(variant.scenario, 1).pods[0], group)
        self.begin_us = time.time_ns() // 1000
        self._client.tell("start", "one", topic, *(f"{key}={value}" for key, value in settings.items()))

    def said(self, word: str) -> int:
        """Return when it says this next."""
        while (line := self._lines.get(timeout=_PATIENCE_S)).what != word:
            if line.what == "failed":
                raise RuntimeError(f"{self.client_id}: {line.rest}")
        return line.at_us

    def stall(self) -> None:
        self._client.tell("stall", "one", str(STALL_MS))

    def close(self) -> None:
        self._client.tell("close", "one")

    def kill(self) -> None:
        self._client.kill()


def measure(kind: ClientKind, bootstrap: str, recorder: Recorder, number: int) -> dict[str, list[float]]:
    """What one play of two of these clients comes to, in milliseconds."""
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    name = f"{kind.profile}-{number}"
    admin, topic, group = AdminClient({"bootstrap.servers": bootstrap}), f"t-{name}", f"g-{name}"
    for future in admin.create_topics([NewTopic(topic, 4, 1)]).values():
        future.result(_PATIENCE_S)
    time.sleep(1)
    since = len(recorder.seen)
    first = _joined(kind, bootstrap, group, topic, recorder, found)
    time.sleep(8)
    second = _joined(kind, bootstrap, group, topic, recorder, found)
    time.sleep(10)
    found["rejoin"] = list(_rejoins(recorder.seen[since:], first.client_id))
    grown_us = time.time_ns() // 1000
    for future in admin.create_partitions([NewPartitions(topic, 6)]).values():
        future.result(_PATIENCE_S)
    time.sleep(9)
    joins = [each.at_us for each in recorder.seen if each.api == JOIN and not each.is_answer and each.at_us > grown_us]
    found["grow"] = [(min(joins) - grown_us) / 1000] if joins else []
    found["beat"] = list(_beats(recorder.seen[since:]))
    _stall(second, recorder, found)
    for process in (second, first):
        process.close()
        closing = process.said("closing")
        closed = process.said("closed")
        found["leave"] += [(at_us - closing) / 1000 for at_us in _asked(recorder, process, LEAVE, closing) if at_us <= closed][:1]
        found["close"].append((closed - closing) / 1000)
        process.kill()
    return found


def _stall(process: Process, recorder: Recorder, found: dict[str, list[float]]) -> None:
    """The application polls nothing for longer than it may."""
    process.stall()
    begin_us = process.said("stalls")
    time.sleep(STALL_MS / 1000 + 4)
    left = _asked(recorder, process, LEAVE, begin_us)
    found["limit"] = [(at_us - begin_us) / 1000 - LIMIT_MS for at_us in left[:1]]
    joins = _asked(recorder, process, JOIN, left[0]) if left else []
    found["back"] = [(at_us - begin_us) / 1000 - STALL_MS for at_us in joins[:1]]


def _asked(recorder: Recorder, process: Process, api: int, since_us: int) -> list[int]:
    """Return when the process sent such requests."""
    return [
        each.at_us
        for each in recorder.seen
        if (each.client, each.api, each.is_answer) == (process.client_id, api, False) and each.at_us >= since_us
    ]


def _joined(
    kind: ClientKind, bootstrap: str, group: str, topic: str, recorder: Recorder, found: dict[str, list[float]]
) -> Process:
    process = Process(kind, bootstrap, group, topic, f"{kind.profile}-{len(recorder.seen)}")
    subscribed = process.said("subscribed")
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s:
        joins = _asked(recorder, process, JOIN, subscribed - 1000)
        if joins:
            finds = _asked(recorder, process, FIND, subscribed - 1000)
            found["made"].append((subscribed - process.begin_us) / 1000)
            found["start"].append((min(finds + joins) - subscribed) / 1000)
            found["join"].append((joins[0] - subscribed) / 1000)
            return process
        time.sleep(0.01)
    raise RuntimeError(f"{kind.profile} does not join")


def _rejoins(seen: list[Seen], client: str) -> Iterator[float]:
    heard = None
    for each in seen:
        if each.client != client:
            continue
        if each.api == HEARTBEAT and each.is_answer and each.error == REBALANCE_IN_PROGRESS and heard is None:
            heard = each.at_us
        elif each.api == JOIN and not each.is_answer and heard is not None:
            yield (each.at_us - heard) / 1000
            heard = None


def _beats(seen: list[Seen]) -> Iterator[float]:
    last: dict[str, int] = {}
    for each in seen:
        if each.is_answer or each.api not in (HEARTBEAT, JOIN, SYNC):
            continue
        if each.api == HEARTBEAT and each.client in last:
            yield (each.at_us - last[each.client]) / 1000
        if each.api == HEARTBEAT:
            last[each.client] = each.at_us
        else:
            last.pop(each.client, None)


@contextmanager
def cluster() -> Iterator[tuple[str, Recorder]]:
    """Apache Kafka behind a recorder."""
    recorder = Recorder()
    with tempfile.TemporaryDirectory() as folder:
        overrides = {
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{recorder.port}",
            "group.initial.rebalance.delay.ms": "0",
        }
        broker = KafkaBroker(Path(folder), overrides=overrides)
        host, _, port = broker.bootstrap.rpartition(":")
        recorder.target = (host, int(port))
        broker.start()
        bootstrap = f"127.0.0.1:{recorder.port}"
        wait_until_coordinating(bootstrap)
        try:
            yield bootstrap, recorder
        finally:
            broker.stop()


COLUMNS = {
    "join": "subscribe() to JoinGroup",
    "rejoin": "told of a rebalance to JoinGroup",
    "leave": "close() to LeaveGroup",
    "close": "close()",
    "grow": "topic grown to JoinGroup",
    "beat": "between heartbeats",
    "limit": "`max.poll.interval.ms` over to LeaveGroup",
    "back": "next poll() to JoinGroup",
}
NAMES = ("made", "start", *COLUMNS)


def table() -> str:
    """Markdown: of each client the least, median and most of what was measured, in milliseconds."""
    lines = [f"| Client | {' | '.join(COLUMNS.values())} |", "|---|" + "---|" * len(COLUMNS)]
    for client, found in sorted(json.loads(PROFILES.read_text()).items()):
        cells = (" / ".join(f"{value:.0f}" for value in found[name]) if name in found else "-" for name in COLUMNS)
        lines.append(f"| {client} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.profiles")
    parser.add_argument("clients", nargs="*", default=["java", "librdkafka", "kafka-python", "aiokafka", "kafka-go", "franz-go"])
    parser.add_argument("-n", "--times", type=int, default=3)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--table", action="store_true", help="print the table of page believing-it")
    options = parser.parse_args()
    if options.table:
        print(table())
        return
    kept = json.loads(PROFILES.read_text()) if PROFILES.exists() else {}
    with cluster() as (bootstrap, recorder):
        for client in options.clients:
            found: dict[str, list[float]] = {}
            with closing(kind_of(client)) as kind:
                for number in range(options.times):
                    for name, values in measure(kind, bootstrap, recorder, number).items():
                        found.setdefault(name, []).extend(values)
            kept[client] = {
                name: [round(value, 1) for value in (min(values), median(values), max(values))]
                for name, values in found.items()
                if values
            }
            print(
                client,
                json.dumps({name: sorted(round(value, 1) for value in values) for name, values in found.items()}),
                flush=True,
            )
    if options.save:
        PROFILES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
