"""One HTML file: the frame, the style, and the scripts with their data, put together as one text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from importlib import resources
from string import Template
from typing import Any

from kgctl.charts.library import library_script


def page(title: str, kgctl: str, main: str, scripts: str = "") -> str:
    """The whole file. ``title`` and ``kgctl`` (its version) are plain text, ``main`` and ``scripts`` are HTML.

    Nothing in it is fetched from anywhere: its content security policy forbids the browser to.
    """
    frame, css = (resources.files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    return Template(frame).substitute(css=css, title=escape(title), kgctl=escape(kgctl), main=main, scripts=scripts)


def chart_scripts(values: Mapping[str, Any], script: str) -> str:
    """``values`` as JSON elements by their ids, then the library and its colours (``vegaEmbed``), then ``script``.

    Raises:
        UsageError: the extra ``html`` is not installed.
    """
    data = "".join(f'<script type="application/json" id="{name}">{_json(value)}</script>\n' for name, value in values.items())
    theme = resources.files(__package__).joinpath("theme.js").read_text(encoding="utf-8")
    return f"{data}<script>{library_script()}</script>\n<script>\n{theme}</script>\n<script>\n{script}</script>\n"


def _json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
