"""The only place that makes a Spark session: quiet, in UTC, without a web page, and as quick to start as Spark can be.

Spark's JVM is a child of this process. It ends with the session, and by itself when this process is killed.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kgctl.errors import KgctlError, UnreachableError
from kgctl.extras import require
from kgctl.model.values import frozen
from kgctl.pipeline.java import ClassArchive, cache_folder, find_java

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_PORTS = {"sc": 15002, "spark": 7077}

_QUICK = "-Xms64m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java begins otherwise with a share of the machine's memory, which it never gives back."""
_KEPT = (
    "spark.ui.retainedJobs",
    "spark.ui.retainedStages",
    "spark.sql.ui.retainedExecutions",
    "spark.sql.codegen.cache.maxEntries",
)
"""Of jobs that are over Spark keeps, for a page that nobody sees, so many hundreds that a long build would grow by them."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@frozen
class SparkOptions:
    """How to start Spark.

    ``master``: any that Spark knows; None is ``local[*]``, or what ``spark-submit`` says. ``remote``: a server of Spark Connect
    (``sc://HOST:PORT``), which has a master and settings of its own. ``is_light``: the JVM only hands out
    work that Python does, so it may compile less and start sooner; rows that pass through such a JVM are up to ten times slower.
    ``settings``: Spark's own names, over kgctl's choice. ``shows_log``: the JVM's log goes to stderr. ``archive``: where classes
    are loaded from, or written to; None is the one in the user's cache.
    """

    master: str | None = None
    remote: str | None = None
    is_light: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    shows_log: bool = False
    archive: ClassArchive | None = None

    @property
    def is_local(self) -> bool:
        """Whether all work is done on this machine, in the JVM's own process and its children."""
        return (self.master or LOCAL).startswith("local")


@contextmanager
def spark_session(options: SparkOptions) -> Iterator[SparkSession]:
    """A session; the one there is already if there is one, which then goes on.

    Raises `UsageError` (pyspark or Java is missing), `KgctlError` (Spark does not start, or its server does not answer).
    """
    require("Spark", "pyspark")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if options.remote is not None:
        yield from _remote(options.remote)
        return
    existing = SparkContext._active_spark_context  # getOrCreate would make one
    if existing is not None:
        yield SparkSession.getActiveSession() or SparkSession(existing)
        return
    if options.master is not None and options.master.startswith("spark://"):
        several = options.master.removeprefix("spark://").split(",")
        _require_answer(options.master, [f"spark://{each}" for each in several], "master of Spark")
    made = _under_spark_submit if "PYSPARK_GATEWAY_PORT" in os.environ else _own
    with made(options) as context:
        yield SparkSession(context)


def _remote(url: str) -> Iterator[SparkSession]:
    """A session of a server that runs already; Java is needed there alone."""
    require("--remote", "grpc", "grpc_status")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from kgctl.pipeline.engines import SparkError

    _require_answer(url, [url.split(";", 1)[0]], "server of Spark Connect")
    try:
        session = SparkSession.builder.remote(url).create()
        session.version  # noqa: B018 - the first call that goes there
    except (PySparkException, ValueError) as error:
        raise SparkError(f"{url}: no session of Spark Connect: {java_message(error)}") from error
    session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        yield session
    finally:
        with suppress(Exception):  # a server that has gone need not be told
            session.stop()


def _require_answer(url: str, addresses: Iterable[str], what: str) -> None:
    """Raise where nobody listens at any of these: pyspark would try for ten minutes to find a server, and for one a master."""
    said = ""
    for address in addresses:
        found = urlsplit(address)
        try:
            socket.create_connection((found.hostname or "", found.port or _PORTS[found.scheme]), timeout=10).close()
        except (OSError, ValueError) as error:
            said = (error.strerror if isinstance(error, OSError) else None) or str(error)
        else:
            return
    raise UnreachableError(f"{url}: no {what} answers: {said}")


@contextmanager
def _under_spark_submit(options: SparkOptions) -> Iterator[SparkContext]:
    """The JVM is there already and has its settings; the context is made as it says."""
    from pyspark import SparkConf, SparkContext

    conf = SparkConf()
    for key, value in {**_common(options), **options.settings}.items():
        conf.setIfMissing(key, value)
    if options.master:
        conf.setMaster(options.master)
    with _signals_kept():
        context = SparkContext(conf=conf)
    try:
        yield context
    finally:
        context.stop()


@contextmanager
def _own(options: SparkOptions) -> Iterator[SparkContext]:
    started = _Started(options)
    try:
        yield started.context
    finally:
        started.stop()


class _Started:
    """A JVM that this process has started, and the Spark context in it."""

    def __init__(self, options: SparkOptions) -> None:
        java = find_java(os.environ, wrappers=cache_folder() / "java")
        self.archive = options.archive or ClassArchive.of(java)
        self.log = _Log(shown=options.shows_log)
        settings = {**_common(options), **options.settings}
        launcher = {"JAVA_HOME": str(java.home), "SPARK_LAUNCHER_OPTS": _QUICK, **_python_variables(options)}
        launcher["MALLOC_ARENA_MAX"] = os.environ.get("MALLOC_ARENA_MAX", "2")  # pools that each thread would have, and keep
        try:
            with _variables(launcher), _signals_kept():
                self.gateway = self._launch(settings, options)
                self.context = self._make_context(settings)
        except BaseException:
            self._end_process()
            self.log.remove()
            raise

    gateway: JavaGateway | None = None

    def _launch(self, settings: Mapping[str, str], options: SparkOptions) -> JavaGateway:
        """The JVM; if it does not start with the archive of classes, then without it."""
        from pyspark.errors import PySparkRuntimeError

        flags = self.archive.java_options()
        with suppress(PySparkRuntimeError):
            return self._launched(settings, options, flags)
        if flags and not self.archive.is_being_made:
            with suppress(PySparkRuntimeError):
                gateway = self._launched(settings, options, "")
                self.archive.discard()
                return gateway
        raise KgctlError(f"Spark does not start: {self.log.kept()}")

    def _launched(self, settings: Mapping[str, str], options: SparkOptions, flags: str) -> JavaGateway:
        from pyspark import java_gateway

        words = " ".join(filter(None, (_QUICK if options.is_light else "", flags, settings.get(_JAVA_OPTIONS))))
        conf, target = _conf({**settings, _JAVA_OPTIONS: words} if words else settings), self.log.target
        with _given_up_whole(java_gateway):
            return java_gateway.launch_gateway(conf, {"stdout": target, "stderr": target, "start_new_session": True})  # type: ignore[no-untyped-call]

    def _make_context(self, settings: Mapping[str, str]) -> SparkContext:
        from py4j.protocol import Py4JError
        from pyspark import SparkContext

        try:
            return SparkContext(conf=_conf(settings), gateway=self.gateway)
        except Py4JError as error:
            said = java_message(error)
            raise KgctlError(f"Spark does not start on {settings['spark.master']}: {said}") from None

    def stop(self) -> None:
        """End the context and its JVM; none of their processes is left."""
        with suppress(Exception):  # what has broken already need not be ended
            self.context.stop()
        self._end_process()
        self.log.remove()
        self.archive.make_in_background()

    def _end_process(self) -> None:
        from pyspark import SparkContext

        gateway, self.gateway = self.gateway, None
        SparkContext._gateway = SparkContext._jvm = None  # a later context starts a JVM of its own
        if gateway is None:
            return
        process: Any = gateway.proc
        with suppress(Exception):
            gateway.shutdown()
        process.stdin.close()
        try:
            process.wait(timeout=self.archive.exit_timeout_s)
        except Exception:  # noqa: BLE001 - it must be gone, whatever it is busy with
            process.kill()
            process.wait()


class _Log:
    """Where the JVM's words go: a file that is removed at the end, or stderr."""

    def __init__(self, *, shown: bool) -> None:
        self.target = 2
        self.path: Path | None = None
        if not shown:
            self.target, name = tempfile.mkstemp(prefix="kgctl-spark-", suffix=".log")
            self.path = Path(name)

    def kept(self) -> str:
        """Return what the log says of an error; the file stays for whoever wants to read on."""
        if self.path is None:
            return "see its log above"
        path, self.path = self.path, None
        os.close(self.target)
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        told = [line.strip() for line in lines if re.search(r"error|exception|invalid|could not", line, re.IGNORECASE)]
        return f"{(told or ['it ended at once'])[0][:300]} (its log: {path})"

    def remove(self) -> None:
        """Delete the log, unless it is to be kept."""
        if self.path is not None:
            os.close(self.target)
            self.path.unlink(missing_ok=True)
            self.path = None


def _common(options: SparkOptions) -> dict[str, str]:
    """Return kgctl's own Spark settings, which the options override."""
    found = {
        "spark.app.name": "kgctl",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.memory": "512m" if options.is_light else "1g",
        **dict.fromkeys(_KEPT, "20"),
    }
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        found["spark.master"] = options.master or LOCAL
    if folder := _folder_of_kgctl():
        found["spark.executorEnv.PYTHONPATH"] = folder
    return found


def _python_variables(options: SparkOptions) -> dict[str, str]:
    """Return the variables by which workers run this Python and find this kgctl."""
    found = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    if options.is_local:
        found["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    if folder := _folder_of_kgctl():
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))
    return found


def _folder_of_kgctl() -> str:
    """The folder that kgctl is imported from, where that is a checkout; an installed kgctl is found without being told."""
    import kgctl

    folder = Path(kgctl.__file__).resolve().parent.parent
    return "" if folder.name in ("site-packages", "dist-packages") else str(folder)


def _conf(settings: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


@contextmanager
def _variables(changed: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the time of a start."""
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _given_up_whole(java_gateway: Any) -> Iterator[None]:
    """A start that is interrupted takes its JVM along: pyspark forgets that process, which then waits for ever."""
    make, started = java_gateway.Popen, []

    def recorded(*words: Any, **settings: Any) -> Any:
        started.append(make(*words, **settings))
        return started[-1]

    java_gateway.Popen = recorded
    try:
        yield
    except BaseException:
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    finally:
        java_gateway.Popen = make


@contextmanager
def _signals_kept() -> Iterator[None]:
    """pyspark takes SIGINT for itself; whoever had it before has it again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Callable[[int, Any], Any] | int | None = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def java_message(error: BaseException) -> str:
    """What went wrong, in one line: the message of the Java exception that is behind an error, without its stack."""
    java = getattr(error, "java_exception", None)
    with suppress(Exception):
        if java is not None:
            return str(java.toString()).split("\n", 1)[0]
    return str(error).split("\n", 1)[0]
