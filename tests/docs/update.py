"""``python -m tests.docs.update`` writes what README.md and completions/ have from the code. Look at it before you commit it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.docs.completions import FILES, script
from tests.docs.readme import README, blocks, comparable, with_generated, with_output
from tests.docs.session import readme_session


def main() -> None:
    """Write them all."""
    for shell, path in FILES.items():
        path.write_text(script(shell), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, readme_session(Path(folder)) as variables:
        before = README.read_text(encoding="utf-8")
        after = with_output(before, Path(folder), variables)
    text = README.read_text(encoding="utf-8")  # again: somebody may have edited it while the examples ran
    for old, new in zip(blocks(before), blocks(after), strict=True):
        assert "internal error" not in new, new
        text = text if comparable(old) == comparable(new) else text.replace(old, new)
    README.write_text(with_generated(text), encoding="utf-8")


if __name__ == "__main__":
    main()
