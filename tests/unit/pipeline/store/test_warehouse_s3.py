"""A warehouse on S3, as moto answers for it: collected, built and asked, by two at once too."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyarrow import fs

from kgctl.errors import AuthError, NotFoundError
from kgctl.pipeline.answers.history import History
from kgctl.pipeline.answers.series import offsets_at
from kgctl.pipeline.store import files
from kgctl.pipeline.store.warehouse import Warehouse
from tests.cli.harness import Cli
from tests.support.pipeline.warehouses import LOG, SAMPLES, add, built, tables_of, tables_of_whole


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The URL of a folder in a bucket that nothing is in: moto's servers of one process share their buckets."""
    from moto.server import ThreadedMotoServer  # half a second, of every process that collects tests

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _note_requests(server)
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    files._filesystem.cache_clear()
    store = fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True)
    store.create_dir("history")
    yield f"s3a://history/{tmp_path.name}"
    files._filesystem.cache_clear()
    server.stop()


REQUESTS: list[tuple[str, str, str]] = []
"""Method, path and query of what the bucket was asked."""


def _note_requests(server: Any) -> None:
    answer = server._server.app
    REQUESTS.clear()

    def noted(environ: Any, start_response: Any) -> Any:
        REQUESTS.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"]))
        return answer(environ, start_response)

    server._server.app = noted


def test_a_small_file_is_written_by_one_request(bucket: str) -> None:
    warehouse = Warehouse.create(bucket)
    REQUESTS.clear()
    add(warehouse, "c1", LOG[0])
    assert built(warehouse).failed == []

    writes = [each for each in REQUESTS if each[0] in ("PUT", "POST") and each[1].endswith(".parquet")]
    files_of = {path for _, path, _ in writes}
    assert len(files_of) > 8
    assert sorted(writes) == sorted(("PUT", path, "") for path in files_of)


def test_collected_built_and_asked_on_s3(bucket: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = tables_of_whole()
    warehouse = Warehouse.create(bucket)
    for part in LOG:
        add(warehouse, "c1", part)
    assert add(warehouse, "c1", LOG[0].slice(0, 30)) == 0
    warehouse.add_samples("c1", SAMPLES)

    assert (warehouse.location.uri, built(warehouse).failed) == (bucket.replace("s3a", "s3"), [])

    assert tables_of(warehouse) == expected
    assert offsets_at(History.open(bucket), None, 10**12)


def test_two_writers_at_once_both_land(bucket: str) -> None:
    warehouse = Warehouse.create(bucket)
    writers = [Thread(target=add, args=(Warehouse.open(bucket), "c1", part)) for part in LOG[:2]]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert warehouse.table("records").rows().num_rows == LOG[0].num_rows + LOG[1].num_rows


@pytest.mark.deep
def test_watch_goes_on_where_it_was_on_s3(bucket: str, tmp_path: Path) -> None:
    expected = tables_of_whole()
    warehouse = Warehouse.create(bucket)
    line = f"history watch --no-collect --once --alert gone --warehouse {bucket} --state {tmp_path / 'state.json'} -o json"
    for part in LOG:
        add(warehouse, "c1", part.slice(0, 35))
    warehouse.add_samples("c1", SAMPLES)
    cli = Cli(tmp_path)
    cli.now_ms = 200_000
    first = cli(line)
    for part in LOG:
        add(warehouse, "c1", part.slice(35))

    second = cli(line)

    assert (first.code, first.data, first.err) == (0, [], "No alert fires.\n")
    assert (second.code, second.err) == (6, "kgctl: group-0 was deleted, or has expired\n")
    assert tables_of(warehouse) == expected


class Refusing(BaseHTTPRequestHandler):
    """A store whose user may do nothing."""

    def refuse(self) -> None:
        """Answer 403 as S3 does."""
        told = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told if self.command != "HEAD" else b"")

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = refuse  # noqa: N815 - the names that are called

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_store_that_refuses_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        for do in (Warehouse.open, Warehouse.create):
            with pytest.raises(AuthError) as caught:
                do("s3://history/w")
            assert caught.value.message == "s3://history/w/clusters: cannot be read: 403 Forbidden: AccessDenied"
        server.shutdown()


def test_a_folder_of_a_bucket_that_nothing_is_in_is_not_found(bucket: str) -> None:
    with pytest.raises(NotFoundError, match=r"^no warehouse at s3://history/.*: kgctl history collect makes one$"):
        Warehouse.open(bucket)
