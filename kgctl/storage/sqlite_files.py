"""Opening the files of a data folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kgctl.storage.compaction import Compactor
from kgctl.storage.sqlite import COORDINATOR, TOPICS, Database
from kgctl.storage.sqlite_logs import SqliteCommitLog, SqliteCompactionTarget, SqliteRecordLog
from kgctl.storage.sqlite_topics import SqliteTopicStore


class OpenFiles:
    """The two databases and the logs in them."""

    def __init__(self, coordinator: Database, topics: Database, offsets_partitions: int) -> None:
        self._coordinator = coordinator
        self._topics = topics
        self.commit_log = SqliteCommitLog(coordinator)
        self.record_log = SqliteRecordLog(coordinator, self.commit_log, offsets_partitions)
        self.topics = SqliteTopicStore(topics)

    def compaction(self) -> SqliteCompaction:
        """Compaction of the record log on a connection of its own."""
        return SqliteCompaction(self._coordinator)

    def read_setting(self, name: str) -> str | None:
        """A named text, or None."""
        found = self._coordinator.value("SELECT value FROM meta WHERE name = ?", (f"setting.{name}",))
        return None if found is None else str(found)

    def write_setting(self, name: str, value: str) -> None:
        """Keep a named text."""
        with self._coordinator.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"setting.{name}", value))

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """One transaction of each database around everything inside."""
        with self._coordinator.transaction(), self._topics.transaction():
            yield

    def close(self) -> None:
        self._coordinator.close()
        self._topics.close()


class SqliteCompaction:
    """Compacts the record log of a file that is open elsewhere in this process."""

    def __init__(self, opened: Database) -> None:
        self._database = Database(opened.path, COORDINATOR, write_lock=opened.write_lock)
        self._compactor = Compactor(SqliteCompactionTarget(self._database))

    def compact_step(self, now_ms: int, max_records: int = 500) -> bool:
        return self._compactor.step(now_ms, max_records)

    def close(self) -> None:
        """Close the connection."""
        self._database.close()


def open_files(coordinator: Path, topics: Path, offsets_partitions: int) -> OpenFiles:
    """Open both files, or none. See `kgctl.storage.sqlite.Database` for what is raised."""
    with ExitStack() as opened:
        first = Database(coordinator, COORDINATOR)
        opened.callback(first.close)
        second = Database(topics, TOPICS, synchronous="NORMAL")
        opened.callback(second.close)
        files = OpenFiles(first, second, offsets_partitions)
        opened.pop_all()
    return files
