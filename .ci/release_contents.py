"""``python .ci/release_contents.py DIR``: what a wheel and an sdist in a folder must and must not have."""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BESIDES = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "completions/kgctl.bash",
    "tests/conftest.py",
    ".ci/setup.py",
    ".ci/requirements-dev.txt",
]


def main(folder):
    """Names what is missing and what is too much; the exit code."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    own = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kgctl").rglob("*") if path.is_file()}
    own = {name for name in own if "__pycache__" not in name}
    problems = ["wheel lacks {}".format(name) for name in sorted(own - in_wheel)]
    problems += ["sdist lacks {}".format(name) for name in sorted((own | set(BESIDES)) - in_sdist)]
    foreign = {name for name in in_wheel if name.partition("/")[0] != "kgctl" and ".dist-info/" not in name}
    problems += ["wheel has {}".format(name) for name in sorted(foreign | {name for name in in_wheel if name.endswith(".pyc")})]
    print("\n".join(problems) or "{}: {} files; {}: {} files".format(wheel.name, len(in_wheel), sdist.name, len(in_sdist)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
