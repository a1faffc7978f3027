"""Share groups and streams groups as Java makes them: `KafkaShareConsumer`, and Kafka Streams with ``group.protocol=streams``."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.maven import FAST_JVM, compile_java, java_command

FOLDER = Path(__file__).parents[2] / "java" / "group_types"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"


class GroupMembers:
    """A process with members of groups, each with a name; it ends with the block."""

    def __init__(self, bootstrap: str) -> None:
        classes = compile_java(FOLDER / "pom.xml", [FOLDER / "GroupTypes.java"])
        command = java_command(classes, "GroupTypes", bootstrap, jvm=("-Xmx256m", *FAST_JVM))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def share(self, name: str, group: str, topic: str) -> None:
        """A consumer that takes what it gets."""
        self._tell("share", name, group, topic)

    def streams(self, name: str, group: str, source: str, sink: str, folder: Path) -> None:
        """An instance with one thread that counts the words of ``source``: two subtopologies, and a topic between them."""
        self._tell("streams", name, group, source, sink, str(folder))

    def stop(self, names: Sequence[str]) -> None:
        """Have these leave their groups."""
        for name in names:
            self._tell("stop", name)

    def _tell(self, *words: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n", f"the members' process ended at {words}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
