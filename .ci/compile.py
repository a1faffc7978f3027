"""The pure core compiled by mypyc, for tests: there an annotation that does not hold is a TypeError.

    python .ci/compile.py FOLDER   a copy of this checkout in FOLDER, its core compiled in place, to run tests in

The sources stay as they are: a compiled module stands beside its own and is found before it. mypyc wants to see what a dataclass
is where it stands, so the copy that is compiled says ``@dataclass(...)`` in the place of our two decorators. It is no form of
kgctl to be installed (`kgctl manual development` says why, with figures): ``isinstance`` of a compiled class with an abstract
base is wrong where a module asks that is not compiled, as all those classes share the answers kept for the base.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("model", "coordinator", "member", "assignors", "simulate/engine", "simulate/recording")
MODULES = ("serde/consumer_protocol.py", "serde/coordinator_records.py", "serde/record_schema.py")
AS_THEY_ARE = ("model/values.py", "model/meanings.py", "model/error_codes.py", "model/lag.py")
"""The first makes the decorators themselves: classes are made of what it is given, which is nothing to compile. In the others an
enum's ``__new__`` makes members of its own, which mypyc calls with another class."""
DECORATORS = {
    "@frozen": "@dataclass(slots=True, kw_only=True, unsafe_hash=True)",
    "@frozen_in_order": "@dataclass(slots=True, unsafe_hash=True)",
}
FUTURE = "from __future__ import annotations\n"
CONFIG = "[mypy]\nignore_missing_imports = True\nfollow_imports = silent\n"


def compiled(root, into):
    """Compile the core of ``root``/kgctl; returns the paths of what was made, as they are below ``into``."""
    package = Path(root) / "kgctl"
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(package, Path(work) / "kgctl", ignore=shutil.ignore_patterns("__pycache__"))
        sources = [rewritten(path).relative_to(work) for path in core(Path(work) / "kgctl")]
        config = Path(work) / "mypy.ini"
        config.write_text(CONFIG, encoding="utf-8")
        command = [sys.executable, "-m", "mypyc", "--config-file", str(config), *map(str, sources)]
        environment = {"MYPYC_DEBUG_LEVEL": "0", **os.environ}
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{done.stderr}\nkgctl's core cannot be compiled: see above")
        made = sorted(path for path in Path(work).rglob("*.so") if "build" not in path.relative_to(work).parts)
        for path in made:
            (Path(into) / path.relative_to(work)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, Path(into) / path.relative_to(work))
        return [path.relative_to(work) for path in made]


def core(package):
    """The modules to compile."""
    found = [path for room in ROOMS for path in sorted((package / room).rglob("*.py"))] + [package / name for name in MODULES]
    return [path for path in found if path.name != "__init__.py" and str(path.relative_to(package)) not in AS_THEY_ARE]


def rewritten(path):
    """The same file, with the decorators that mypyc knows."""
    text = path.read_text(encoding="utf-8")
    new = re.sub(r"^@frozen(_in_order)?$", lambda match: DECORATORS[match[0]], text, flags=re.MULTILINE)
    if new != text:
        assert FUTURE in new, f"{path} has no line {FUTURE}"
        path.write_text(new.replace(FUTURE, f"{FUTURE}from dataclasses import dataclass\n", 1), encoding="utf-8")
    return path


def main(folder):
    """Copy what git knows of this checkout, and compile there."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")):
        if (ROOT / name).is_file():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, Path(folder) / name)
    for path in compiled(ROOT, folder):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1])
