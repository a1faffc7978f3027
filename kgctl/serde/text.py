"""Text as Java reads it: whatever is no UTF-8 becomes U+FFFD, and nothing is refused."""

from __future__ import annotations

import codecs

_REPLACEMENT = "\ufffd"
_ERRORS = "kgctl-java"


def readable_text(data: bytes) -> str:
    """``new String(data, UTF_8)``."""
    return data.decode("utf-8", _ERRORS)


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Python takes each byte of a surrogate, whole or cut short, for a mistake, Java all of them for one."""
    assert isinstance(error, UnicodeDecodeError)
    sequence = error.object[error.start : error.start + 3]
    if sequence[0] == 0xED and len(sequence) > 1 and 0xA0 <= sequence[1] <= 0xBF:
        is_whole = len(sequence) == 3 and 0x80 <= sequence[2] <= 0xBF
        return _REPLACEMENT, error.start + (3 if is_whole else 2)
    return _REPLACEMENT, error.end


codecs.register_error(_ERRORS, _replace)
