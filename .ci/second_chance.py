"""Runs the tests that failed once more, where the machine may be to blame; `.ci/tests.py` starts it when pytest has ended with 1.

    python .ci/second_chance.py [deep]    ``deep``: the run that failed was one of deep tests

Real clients against real servers, Apache Kafka and JVMs among them, on a machine that others use too: a client of somebody else's
can miss one of its own time limits, and no patience of a test prevents that. So failed tests of that kind (markers of
`REAL`) get a second chance in a fresh process, and both outcomes are printed. Where any other test failed too, or some in more
than `MOST` files (one server that did not start is many tests), it prints nothing and ends with 1: the first run's word stands.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTEST = str(ROOT / ".venv" / "bin" / "pytest")
LAST_FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
REAL = "interop or kafka or zookeeper"
MOST = 3
NO_TESTS = 5
"""pytest's exit code where it has selected nothing."""


def main(arguments):
    """The exit code of the second run, or 1 where there is none."""
    deep = "deep" in arguments
    failed = json.loads(LAST_FAILED.read_text()) if LAST_FAILED.exists() else {}
    files = {name.split("::")[0] for name in failed}
    if not 0 < len(files) <= MOST or not all_real(list(failed), deep):
        return 1
    print("\n== SECOND CHANCE: of the tests with real servers so many failed: {}. Once more:".format(len(failed)))
    for name in failed:
        print("FAILED AT FIRST {}".format(name), flush=True)
    command = [PYTEST, "--last-failed", "-rfEp", *(["-m", "deep"] if deep else [])]
    return subprocess.run(command, cwd=str(ROOT), check=False).returncode


def all_real(names, deep):
    """Whether all of them are tests of real clients and servers; what cannot even be collected is none."""
    others = "not ({})".format(REAL) + (" and deep" if deep else "")
    command = [PYTEST, "--collect-only", "-qq", "-m", others, *names]
    others = subprocess.run(command, cwd=str(ROOT), capture_output=True, check=False).returncode
    return others == NO_TESTS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
