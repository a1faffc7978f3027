"""Length-prefixed frames: the int32 before each message on a Kafka connection. Sans-IO."""

from __future__ import annotations

import struct


class MalformedMessage(ValueError):  # noqa: N818 - says what the bytes are
    """The bytes are not what their schema says; the connection they came on cannot be used any more."""


class MalformedFrame(MalformedMessage):
    """The four bytes before a frame are a negative number, and no length."""


class FrameTooLarge(MalformedFrame):
    """A frame longer than the limit (``socket.request.max.bytes``)."""


class UnsupportedVersion(ValueError):  # noqa: N818 - said by Kafka itself
    """An API key or version that has no schema here; ``correlation_id`` is what an answer would need."""

    def __init__(self, api_key: int, version: int, correlation_id: int = -1) -> None:
        super().__init__(f"API key {api_key} version {version} is not supported")
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id


DEFAULT_MAX_FRAME_BYTES = 104_857_600
"""``socket.request.max.bytes``."""

_LENGTH = struct.Struct(">i")


def frame(payload: bytes) -> bytes:
    """Return ``payload`` with its length of four bytes in front."""
    return _LENGTH.pack(len(payload)) + payload


class FrameReader:
    """Cuts a stream of bytes into frames, however it arrives.

    A frame of zero bytes is a frame; what is in it is the next layer's question. After an error the reader is of no more use:
    where the next frame begins cannot be known.
    """

    __slots__ = ("_buffer", "_max_frame_bytes")

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an incomplete frame have arrived, its length prefix included."""
        return len(self._buffer)

    @property
    def expected_bytes(self) -> int:
        """How long the frame under way will be, its length prefix included; 0 while that is not known."""
        if len(self._buffer) < _LENGTH.size:
            return 0
        return _LENGTH.size + int(_LENGTH.unpack_from(self._buffer)[0])

    def receive(self, data: bytes | memoryview) -> list[bytes]:
        """Take what arrived; give back the frames it completes, in order.

        Raises FrameTooLarge as soon as a length above the limit is seen, before its bytes are kept, and MalformedFrame for a
        negative length.
        """
        if not self._buffer and self._is_whole(data):
            return [bytes(data[_LENGTH.size :])]
        self._buffer += data
        frames: list[bytes] = []
        position = 0
        while (end := self._end_of_frame(position)) is not None:
            frames.append(bytes(memoryview(self._buffer)[position + 4 : end]))
            position = end
        if position:
            del self._buffer[:position]
        return frames

    def _is_whole(self, data: bytes | memoryview) -> bool:
        """Whether this is one frame, no more and no less, as nearly all that arrives is."""
        size = len(data) - _LENGTH.size
        return 0 <= size <= self._max_frame_bytes and bool(_LENGTH.unpack_from(data)[0] == size)

    def _end_of_frame(self, position: int) -> int | None:
        """Where the frame that begins at ``position`` ends, or None when it is not all there."""
        if len(self._buffer) - position < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, position)
        if length < 0:
            raise MalformedFrame(f"a frame of {length} bytes")
        if length > self._max_frame_bytes:
            raise FrameTooLarge(f"a frame of {length} bytes, the limit is {self._max_frame_bytes}")
        end = position + _LENGTH.size + int(length)
        return end if end <= len(self._buffer) else None
