"""Changes of groups as ZooKeeper tells them: instances that come and go, partitions that are claimed and released."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.admin.zookeeper import nodes
from kgctl.admin.zookeeper.connection import Connection

MOST_GROUPS = 100
"""Of more groups nothing is watched: each watch is a request, and is kept by the server."""


class GroupWatches:
    """The watches of one connection; each holds for one change. Those that still hold are not asked for again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._names: dict[str, list[str]] = {}
        self._held: set[str] = set()
        self._changed: Callable[[], None] = lambda: None

    def hold(self, groups: Sequence[str], changed: Callable[[], None]) -> None:
        """Have ``changed`` called, from another thread, at the next change of the groups' instances or claims.

        Raises:
            KgctlError: ZooKeeper cannot be asked.
        """
        self._changed = changed
        if len(groups) > MOST_GROUPS:
            return
        owners = [nodes.owners_path(group) for group in groups]
        with self._connection.within():
            self._hold([*(nodes.ids_path(group) for group in groups), *owners])
            self._hold([f"{path}/{topic}" for path in owners for topic in self._names.get(path, ())])

    def _hold(self, paths: Sequence[str]) -> None:
        wanted = [path for path in paths if path not in self._held]
        self._held.update(wanted)  # before they are asked for: the change may be told before the answer is looked at
        try:
            answers = self._connection.children_watched(wanted, self._tell)
        except BaseException:
            self._held.difference_update(wanted)
            raise
        self._held.difference_update(answers.denied)
        for path in wanted:
            self._names[path] = answers.values.get(path, [])

    def _tell(self, path: str) -> None:
        self._held.discard(path)
        self._changed()
