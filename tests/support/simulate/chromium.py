"""Debian's Chromium without a window: what a page is after its scripts have run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--window-size=1400,1600",
    "--virtual-time-budget=20000",
)
COMMAND = "chromium"
_BAD = re.compile("error|refused|violat", re.IGNORECASE)


def dom_of(page: str, folder: Path, script: str = "") -> str:
    """The document once its scripts are done, with ``script`` run after them. Fails where the page's console has an error."""
    file = folder / "page.html"
    head, end, tail = page.rpartition("</body>")
    file.write_text(f"{head}<script>{script}</script>{end}{tail}", encoding="utf-8")
    command = [COMMAND, *OPTIONS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    errors = [line for line in done.stderr.splitlines() if ":CONSOLE" in line and _BAD.search(line)]
    assert errors == []
    return done.stdout
