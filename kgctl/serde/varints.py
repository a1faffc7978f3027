"""Unsigned varints, as compact lengths and tags are written."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))
