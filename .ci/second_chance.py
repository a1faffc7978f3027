"""Runs the tests that failed once more; `.ci/tests.py` starts it when pytest has ended with 1.

    python .ci/second_chance.py [deep]    ``deep``: the run that failed was one of deep tests

Real clients against real servers, Apache Kafka and JVMs among them, on a machine that others use too: somebody else's client can
miss one of its own time limits, and no patience of a test prevents that. So what failed gets a second chance in a fresh process,
and both outcomes are printed: a test that needed one is to be mended. Another process watches that one, or a test that ends it
would end the run, with whatever exit code. Where tests failed in more than `MOST` files, or what failed is no test, it prints
nothing and ends with 1: the first run's word stands.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = str(ROOT / ".venv" / "bin" / "pytest")
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
MOST = 4


def main(arguments):
    """The exit code of the second run, or 1 where there is none."""
    deep = "deep" in arguments
    failed = json.loads(LAST_FAILED.read_text()) if LAST_FAILED.exists() else {}
    files = {name.split("::")[0] for name in failed}
    if not 0 < len(files) <= MOST or not all((ROOT / name).is_file() for name in files):
        return 1
    print("\n== SECOND CHANCE: {} failed. Once more, by themselves:".format(len(failed)))
    for name in failed:
        print("FAILED AT FIRST {}".format(name), flush=True)
    command = [PYTEST, "--last-failed", "-n1", "-rfEp", *(["-m", "deep"] if deep else [])]
    return subprocess.run(command, cwd=str(ROOT), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
