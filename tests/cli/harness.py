"""Runs kgctl in process, in an `Environment` made for the test: what it wrote, and its exit code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgctl.admin import Record
from kgctl.cli.app import run
from kgctl.cli.environment import Environment
from kgctl.errors import KgctlError
from kgctl.model.groups import MemberDescription, TopicPartition
from tests.cli.fake_admin import FakeGroupAdmin, FakeLog

if TYPE_CHECKING:
    from kgctl.admin import GroupAdmin
    from kgctl.admin.connect import ConnectionSettings

NOW_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z


class Terminal(io.StringIO):
    """A stream that says it is a terminal; ``asked`` is called before a line is read."""

    asked: Callable[[], object] = staticmethod(lambda: None)

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        self.asked()
        return super().readline(size)


class ClosedStream(io.StringIO):
    """A stream that cannot be written to."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def write(self, _: str, /) -> int:
        raise self.error


@dataclass(frozen=True)
class Ran:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON."""
        return json.loads(self.out)

    @property
    def data(self) -> Any:
        """The rows of the envelope."""
        return self.json["data"]

    @property
    def csv(self) -> list[dict[str, str]]:
        """stdout as CSV with a header."""
        return list(csv.DictReader(io.StringIO(self.out)))


class Cli:
    """kgctl with a fake cluster behind every address; ``settings`` notes what it connected with."""

    def __init__(self, folder: Path, admin: GroupAdmin | None = None) -> None:
        self.folder = folder
        self.admin = admin if admin is not None else FakeGroupAdmin()
        self.variables = {
            "KGCTL_CONFIG": str(folder / "config.yaml"),
            "KGCTL_BACKUP_DIR": str(folder / "backups"),
            "KGCTL_WAREHOUSE": str(folder / "warehouse"),
            "KGCTL_BOOTSTRAP_SERVER": "fake:9092",
        }
        self.settings: list[ConnectionSettings] = []
        self.connect_failure: KgctlError | None = None
        self.connect: Callable[[ConnectionSettings], GroupAdmin] = self._connect
        self.terminal = False
        self.now_ms = NOW_MS
        self.sleep_ms: Callable[[int], None] = self._sleep_ms
        self.answers = True
        """Whether what is on stdin is typed at a terminal."""
        self.while_asked: Callable[[], object] = lambda: None
        self.stdout_error: OSError | None = None

    def __call__(self, line: str, stdin: str = "", variables: Mapping[str, str] | None = None) -> Ran:
        """Run a command line, split at spaces."""
        return self.run(line.split(), stdin, variables)

    def run(self, argv: list[str], stdin: str = "", variables: Mapping[str, str] | None = None) -> Ran:
        """Run an argument list."""
        out, err = Terminal() if self.terminal else io.StringIO(), io.StringIO()
        if self.stdout_error is not None:
            out = ClosedStream(self.stdout_error)
        typed = Terminal(stdin) if stdin and self.answers else io.StringIO(stdin)
        if isinstance(typed, Terminal):
            typed.asked = self.while_asked
        environment = Environment(
            stdin=typed,
            stdout=out,
            stderr=err,
            variables={**self.variables, **(variables or {})},
            connect=self.connect,
            now_ms=lambda: self.now_ms,
            sleep_ms=self.sleep_ms,
        )
        code = run(argv, environment)
        _check_keys(out.getvalue())
        return Ran(int(code), out.getvalue(), err.getvalue())

    def _sleep_ms(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    def _connect(self, settings: ConnectionSettings) -> GroupAdmin:
        self.settings.append(settings)
        if self.connect_failure:
            raise self.connect_failure
        return self.admin


def _check_keys(out: str) -> None:
    """Hold a result in JSON to what its command promises."""
    from tests.cli import keys

    if out.lstrip().startswith("{") and '"kgctl_result_version"' in out[:40]:
        keys.check(json.loads(out))


def example_cluster() -> FakeGroupAdmin:
    """The cluster that the tests of the commands tell their stories with.

    t1: three partitions of 100 records, written one a minute before NOW_MS; t2: one partition, 40 to 90. g1 is empty, with 100
    and 50 on t1; g2 is stable, with one member on t1 and one idle; g3 is empty and committed below the start of t2.
    """
    admin = FakeGroupAdmin()
    minute_ms = 60_000
    stamps = tuple((offset, NOW_MS - (100 - offset) * minute_ms) for offset in range(100))
    admin.topic("t1", *(FakeLog(0, 100, stamps) for _ in range(3)))
    admin.topic("t2", FakeLog(40, 90))
    t1 = [TopicPartition("t1", number) for number in range(3)]
    admin.group("g1", {t1[0]: 100, t1[1]: 50})
    reader = MemberDescription(
        "c1-uuid", "c1", "/127.0.0.1", group_instance_id="i1", assignment={"t1": (0, 1, 2)}, subscribed_topics=("t1",)
    )
    idle = MemberDescription("c2-uuid", "c2", "/127.0.0.1", assignment={}, subscribed_topics=("t1",))
    admin.group("g2", dict.fromkeys(t1, 90), [reader, idle])
    admin.group("g3", {TopicPartition("t2", 0): 10})
    admin.records[t1[1], 50] = Record(50, NOW_MS, b"k", b"v")
    return admin
