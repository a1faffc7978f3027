"""``python -m tests.docs.update [PAGE...]`` writes what README.md, the manual and completions/ have from the code.

Look at what it changed before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.adding import PAGE, followed
from tests.docs.completions import FILES, script
from tests.docs.pages import PAGES, blocks, comparable, with_generated, with_output
from tests.docs.session import session_of
from tests.docs.shell import Shell

_NO_OUTPUT = ("internal error", "kgctl: interrupted")
"""With which no example of a page ends: a fault of kgctl, or of a machine on which the time was over before the example was."""


def main() -> None:
    """Write the pages that are named, or everything."""
    wanted = sys.argv[1:]
    for path in PAGES:
        if not wanted or path.stem in wanted:
            _update(path)
    if not wanted:
        for shell, file in FILES.items():
            file.write_text(script(shell), encoding="utf-8")


def _update(path: Path) -> None:
    before = path.read_text(encoding="utf-8")
    with (
        tempfile.TemporaryDirectory() as folder,
        session_of(path.stem, Path(folder)) as session,
        Shell(Path(folder), session) as shell,
    ):
        after = followed(before, Path(folder)) if path.stem == PAGE else with_output(before, shell)
    text = path.read_text(encoding="utf-8")  # again: somebody may have edited it while the examples ran
    for old, new in zip(blocks(before), blocks(after), strict=True):
        assert not any(end in new for end in _NO_OUTPUT), new
        text = text if comparable(old) == comparable(new) else text.replace(old, new)
    path.write_text(with_generated(text), encoding="utf-8")


if __name__ == "__main__":
    main()
