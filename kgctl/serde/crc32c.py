"""CRC-32C (Castagnoli), the checksum of record batches and of everything that kgctl stores: of bytes, which no view is."""

from __future__ import annotations

from collections.abc import Callable

import google_crc32c

crc32c: Callable[[bytes], int] = google_crc32c.value

crc32c_on: Callable[[int, bytes], int] = google_crc32c.extend
"""The checksum of what has this one, with more bytes behind it."""
