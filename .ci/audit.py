"""Prints the known advisories about the packages that the locks name, by pip-audit.

    python .ci/audit.py             says what there is; a machine without such an index says so
    python .ci/audit.py --strict    ends with 1 where there is one, as before a release

An advisory is news about a package and no fault of the change that is being checked: without ``--strict`` it fails nothing.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 300


def main(arguments):
    """The exit code."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format=json", "--progress-spinner=off"]
    for lock in sorted((ROOT / ".ci").glob("requirements*.txt")):
        command += ["-r", str(lock)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        packages = json.loads(ran.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        print("audit: NOT DONE: no answer within {} s".format(PATIENCE_S))
        return 0
    except ValueError:
        print("audit: NOT DONE: {}".format((ran.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]))
        return 0
    known = [package for package in packages if "vulns" in package]
    if not known:
        print("audit: NOT DONE: the package index that this machine reaches has no advisories")
        return 0
    found = [(package, advisory) for package in known for advisory in package["vulns"]]
    for package, advisory in found:
        fixed = ", ".join(advisory["fix_versions"]) or "none yet"
        print("ADVISORY {} {}: {}, fixed in: {}".format(package["name"], package["version"], advisory["id"], fixed))
    print("audit: {} of {} packages looked up, {} advisories".format(len(known), len(packages), len(found)))
    return 1 if found and "--strict" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
