"""Groups of an embedded coordinator's data folder, in process, with no server."""

from __future__ import annotations

from kgctl.admin.embedded.admin import EmbeddedGroupAdmin, open_embedded

__all__ = ["EmbeddedGroupAdmin", "open_embedded"]
