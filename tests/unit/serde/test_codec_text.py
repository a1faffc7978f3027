"""Text that is no UTF-8, as Java's String reads it (run on Java 17)."""

from __future__ import annotations

import pytest

from kgctl.serde.codec import readable_text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("6162c3a4", "ab\u00e4"),
        ("61ff62", "a\ufffdb"),
        ("ffff", "\ufffd\ufffd"),
        ("e28261", "\ufffda"),
        ("e282", "\ufffd"),
        ("eda08061", "\ufffda"),
        ("eda061", "\ufffda"),
        ("edbf", "\ufffd"),
        ("ed80", "\ufffd"),
        ("c080", "\ufffd\ufffd"),
        ("f0908061", "\ufffda"),
        ("f888808080", "\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_mistakes_are_replaced(data: str, text: str) -> None:
    assert readable_text(bytes.fromhex(data)) == text
