"""Tab in a real shell, at a pseudo-terminal: the values that kgctl offers come up."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from kgctl.cli.completion import script
from tests.support.members import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.serve import ServeProcess

SHELLS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], "source <(kgctl completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; source <(kgctl completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "kgctl completion fish | source"),
}
EVERY_SHELL = ["bash", *(pytest.param(name, marks=pytest.mark.needs(name)) for name in ("zsh", "fish"))]
TABS = {
    "kgctl list groups -o ya": "yaml",
    "kgctl delete-g": "delete-groups",
    "kgctl list groups --sort me": "members",
}
OF_THE_CLUSTER = {
    "kgctl list groups --state Sta": "Stable",
    "kgctl list groups --type cla": "classic",
    "kgctl describe group wor": "workers",
    "kgctl describe group workers --topic sol": "solo",
    "kgctl reset-offsets workers --topic solo:": "solo:0",
    "kgctl reset-offsets workers --topic=solo:": "solo:0",
    "kgctl remove-members workers --instance insta": "instance-1",
    "kgctl remove-members workers --member ins": "instance-1-",
    "kgctl reset-offsets --group=wor": "workers",
    "kgctl list groups --context de": "desk",
    "kgctl describe group --command-config=conf": "config.yaml",
}
READY = "shell-is-ready"


class Shell:
    """An interactive shell and what it has shown."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, text: str) -> None:
        """Until it has shown this since the last wait."""
        assert self.has_shown(text, PATIENCE_S), f"{text!r} is not in {self.shown!r}"
        self.shown = ""

    def has_shown(self, text: str, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            if time.monotonic() > deadline:
                return False
            if select.select([self._terminal], [], [], 0.2)[0]:
                self.shown += os.read(self._terminal, 65_536).decode(errors="replace")
        return True

    def completes(self, typed: str, completed: str) -> bool:
        """Whether Tab leads to this: asked again, as a cluster that does not answer at once completes to nothing."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            self.type(f"\x15echo {READY[:6]}''{READY[6:]}\n")
            self.wait_for(READY)
            self.type(f"{typed}\t")
            self.has_shown(typed, PATIENCE_S)
            self.shown = self.shown.rpartition(typed)[1] + self.shown.rpartition(typed)[2]
            if self.has_shown(completed, 5):
                return True
        return False


@contextmanager
def started(argv: list[str], home: Path) -> Iterator[Shell]:
    """The shell at a terminal of its own, with this Python's kgctl first in its path."""
    child, terminal = pty.fork()
    if child == 0:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.execvpe(argv[0], argv, {"PATH": path, "HOME": str(home), "TERM": "dumb", "KGCTL_CONFIG": str(home / "config.yaml")})
    termios.tcsetwinsize(terminal, (40, 200))  # a line that is too long is scrolled, and not shown whole
    try:
        yield Shell(terminal)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_SHELL)
def test_tab_completes_commands_and_values(name: str, tmp_path: Path) -> None:
    argv, set_up = SHELLS[name]
    with started(argv, tmp_path) as shell:
        shell.type(f"{set_up}\n")
        shell.type(f"echo {READY[:6]}''{READY[6:]}\n")
        shell.wait_for(READY)
        for typed, completed in TABS.items():
            shell.type(f"{typed}\t")
            shell.wait_for(completed)
            shell.type("\x15")


@pytest.fixture(scope="module")
def busy_cluster() -> Iterator[str]:
    """A group with a static member on a topic of one partition, and a commit there."""
    with ServeProcess({"solo": 1}) as server:
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "workers", "group.instance.id": "instance-1"})
        consumer.subscribe(["solo"])
        wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "the member has its partition")
        consumer.commit(offsets=[TopicPartition("solo", 0, 0)], asynchronous=False)
        yield server.bootstrap
        consumer.close()


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.parametrize("name", EVERY_SHELL)
def test_tab_completes_what_the_cluster_has(name: str, busy_cluster: str, tmp_path: Path) -> None:
    argv, set_up = SHELLS[name]
    config = f"current-context: desk\ncontexts:\n  desk:\n    bootstrap-server: {busy_cluster}\n"
    (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    with started(argv, tmp_path) as shell:
        shell.type(f"cd; {set_up}\n")
        failed = [typed for typed, completed in OF_THE_CLUSTER.items() if not shell.completes(typed, completed)]
        assert failed == [], shell.shown


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.needs("zsh")
def test_zsh_takes_the_script_from_its_own_folder(tmp_path: Path) -> None:
    """As distributions install it: a file ``_kgctl`` that zsh reads at the first Tab."""
    (tmp_path / "_kgctl").write_text(script("zsh"), encoding="utf-8")
    with started(["zsh", "-f", "-i"], tmp_path) as shell:
        shell.type("fpath=(~ $fpath); autoload -U compinit; compinit -D -u\n")
        assert shell.completes("kgctl list groups -o ya", "yaml"), shell.shown
