"""The server in a thread of its own: for the demo, for tests, for whoever is not asyncio."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kgctl.server.config import ServeOptions
from kgctl.server.listeners import BrokerListener
from kgctl.server.service import Server
from kgctl.server.traffic import run_in_loop

logging.getLogger("kgctl.server").addHandler(logging.NullHandler())  # the program around it decides what of the log is shown

T = TypeVar("T")


class BackgroundServer:
    """A context manager: listening inside the block, stopped with all acknowledged writes on disk after it.

    Entering raises what `Server.start` raises, leaving StorageError when the log could not be written.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, str] | None = None,
        data: Path | None = None,
        port: int = 0,
        brokers: int = 1,
        *,
        protocol: str = "PLAINTEXT",
        listeners: Sequence[BrokerListener] = (),
        metrics: tuple[str, int] | None = None,
        acls: Sequence[str] | None = None,
        compacts: bool = False,
        **given: Any,
    ) -> None:
        """``listeners``, unless one of ``protocol`` does; ``given``: what `Server` takes beside its options."""
        self._given = given
        self._options = ServeOptions(
            listeners=listeners or (BrokerListener(protocol, protocol, port=port),),
            data=data,
            topics=dict(topics or {}),
            config=dict(config or {}),
            brokers=brokers,
            metrics=metrics,
            acls=acls,
            compacts=compacts,
        )
        self._thread = threading.Thread(target=self._run, name="kgctl-serve", daemon=True)
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self.server: Server

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.end()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def end(self) -> None:
        """Let it stop, without waiting for it."""
        with suppress(RuntimeError):  # the loop is closed: the server ended by itself
            self._loop.call_soon_threadsafe(self.server.ended.set)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run something in the server's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _run(self) -> None:
        try:
            run_in_loop(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.server = Server(self._options, **self._given)
        await self.server.start()
        self._started.set()
        try:
            await self.server.ended.wait()
        finally:
            await self.server.stop()
        self.server.raise_failure()
