"""What can be wrong with bytes. All are ValueError: the peer's doing, never a bug of ours."""

from __future__ import annotations


class MalformedMessage(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes are not what their schema says; the connection they came on cannot be used any more."""


class MalformedFrame(MalformedMessage):
    """A length prefix that cannot be one."""


class FrameTooLarge(MalformedFrame):
    """A frame longer than the limit (``socket.request.max.bytes``)."""


class UnsupportedVersion(ValueError):  # noqa: N818 - said by Kafka itself
    """An API key or version that has no schema here; ``correlation_id`` is what an answer would need."""

    def __init__(self, api_key: int, version: int, correlation_id: int = -1) -> None:
        super().__init__(f"API key {api_key} version {version} is not supported")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
