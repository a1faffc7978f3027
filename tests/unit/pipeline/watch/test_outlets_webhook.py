"""A webhook gets what Alertmanager would post; one that is away is asked again, one that refuses is not."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kgctl.errors import KgctlError, UsageError
from kgctl.pipeline.watch.outlets import NotTakenError, Webhook
from kgctl.pipeline.watch.rules import Alert

ALERT = Alert("stopped", "stopped", "g", "t", 0, None, "g on t-0 has stopped, lag 5", 5, False, since_ms=1_000, fired_ms=2_000)
ENDED = Alert("lag > 1", "lag", "g", None, None, None, "lag of g is 5, over 1", 5, False, 1_000, 2_000, resolved_ms=3_000)


class Receiver:
    """Answers with ``codes``, one a post, then with 200; -1 is no answer at all."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.bodies: list[Any] = []
        self.tokens: list[str | None] = []
        self.is_over = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                receiver.tokens.append(self.headers["Authorization"])
                code = receiver.codes.pop(0) if receiver.codes else 200
                if code < 0:
                    receiver.is_over.wait()
                    return
                self.send_response(code)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.is_over.set()
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_the_body(receiver: Receiver) -> None:
    Webhook(receiver.url, {"Authorization": "Bearer x"}).send("c1", [ALERT, ENDED])
    (body,) = receiver.bodies
    assert receiver.tokens == ["Bearer x"]
    assert {key: body[key] for key in ("version", "status", "commonLabels")} == {
        "version": "4",
        "status": "firing",
        "commonLabels": {"cluster": "c1"},
    }
    first, second = body["alerts"]
    assert first["labels"] == {"alertname": "stopped", "cluster": "c1", "group": "g", "topic": "t", "partition": "0"}
    assert first["annotations"] == {"summary": "g on t-0 has stopped, lag 5", "rule": "stopped"}
    assert [(each["status"], each["startsAt"], each["endsAt"]) for each in (first, second)] == [
        ("firing", "1970-01-01T00:00:01.000Z", "0001-01-01T00:00:00Z"),
        ("resolved", "1970-01-01T00:00:01.000Z", "1970-01-01T00:00:03.000Z"),
    ]
    assert len({each["fingerprint"] for each in (first, second)}) == 2


def test_one_that_is_busy_is_asked_again(receiver: Receiver) -> None:
    receiver.codes = [503, 429]
    pauses: list[float] = []
    Webhook(receiver.url, pause=pauses.append).send("c", [ALERT])
    assert (len(receiver.bodies), pauses) == (3, [0.5, 1.0])


def test_one_that_stays_away(receiver: Receiver) -> None:
    receiver.codes = [500] * 9
    with pytest.raises(NotTakenError, match="the webhook answered 500"):
        Webhook(receiver.url, pause=bool).send("c", [ALERT])
    assert len(receiver.bodies) == 3
    with pytest.raises(NotTakenError, match=r"the webhook cannot be reached: .*refused"):
        Webhook("http://127.0.0.1:1/", pause=bool).send("c", [ALERT])


def test_one_that_refuses_is_not_asked_again(receiver: Receiver) -> None:
    receiver.codes = [404]
    with pytest.raises(KgctlError, match="the webhook refused the alerts: 404") as caught:
        Webhook(receiver.url, pause=bool).send("c", [ALERT])
    assert (len(receiver.bodies), isinstance(caught.value, NotTakenError)) == (1, False)


def test_one_that_does_not_answer_is_given_up(receiver: Receiver) -> None:
    receiver.codes = [-1]
    with pytest.raises(NotTakenError, match=r"did not answer within 0\.2 s"):
        Webhook(receiver.url, timeout_s=0.2, pause=bool).send("c", [ALERT])


@pytest.mark.parametrize("url", ["", "ftp://a/b", "http://", "localhost:80", "http://a:b/"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(UsageError, match="--webhook"):
        Webhook(url)
