"""One self-contained HTML file of an outcome."""

from __future__ import annotations

from kgctl.simulate.report.html.page import html_page

__all__ = ["html_page"]
