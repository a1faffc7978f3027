"""Sets up .venv in this checkout: kgctl, editable, with the locked versions of all it needs, each checked against its hash.

    python3 .ci/setup.py          what kgctl needs
    python3 .ci/setup.py history  what its history needs too
    python3 .ci/setup.py dev      what its tests and checks need too, and Spark where this machine has the Java for it
    python3 .ci/setup.py tests    that of dev, without Spark
    python3 .ci/setup.py spark    Spark too, whatever this machine has
    python3 .ci/setup.py ci       that of dev, and what deep tests and releases need

A second run finds everything done and asks no network. Standard library only; on a Python too old for kgctl it still says so.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "kgctl-setup.json"
LOCKS = {
    "": ("requirements.txt", "what kgctl needs"),
    "history": ("requirements-history.txt", "what the history needs"),
    "dev": ("requirements-dev.txt", "what its tests and checks need"),
    "spark": ("requirements-spark.txt", "Spark, which is large"),
    "ci": ("requirements-ci.txt", "what deep tests and releases need"),
}
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]


def main(extras):
    """Brings .venv up to the locks named by ``extras``."""
    if sys.version_info < (3, 11):
        fail("kgctl needs Python 3.11 or later, this is {}.{}: name a later one".format(*sys.version_info[:2]))
    unknown = [extra for extra in extras if extra not in (*LOCKS, "tests")]
    if unknown:
        fail("no such extra: {} (there are: {}, tests)".format(", ".join(unknown), ", ".join(filter(None, LOCKS))))
    done = installed()
    missing = [extra for extra in chosen(extras, has_java) if done.get(extra) != key(extra)]
    if missing:
        begun = time.monotonic()
        make_venv()
        install(missing)
        remember(missing)
        say("done in {:.0f} s".format(time.monotonic() - begun))


def chosen(extras, has_java):
    """The locks to install, in their order."""
    of_tests = not {"ci", "dev", "tests"}.isdisjoint(extras)
    with_spark = "spark" in extras or (not {"ci", "dev"}.isdisjoint(extras) and has_java())
    asked = {"history": of_tests or with_spark or "history" in extras, "dev": of_tests, "spark": with_spark, "ci": "ci" in extras}
    return ["", *(extra for extra in asked if asked[extra])]


def has_java():
    """Whether this machine has a Java that Spark runs on."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    sys.dont_write_bytecode = True
    import machine

    return machine.is_there("java")


def installed():
    """What earlier runs put into a .venv that still works."""
    return json.loads(STAMP.read_text()) if STAMP.exists() and works("import kgctl") else {}


def key(extra):
    """Changes with everything that an installation depends on."""
    parts = [str(ROOT).encode(), (ROOT / "pyproject.toml").read_bytes(), lock(extra).read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def lock(extra):
    """The file with the packages of an extra."""
    return ROOT / ".ci" / LOCKS[extra][0]


def make_venv():
    """Makes .venv, or makes it anew where it has stopped working (another Python, a moved checkout)."""
    moved = STAMP.exists() and json.loads(STAMP.read_text()).get("root") != str(ROOT)
    if works("import pip, sys; sys.exit(sys.version_info < (3, 11))") and not moved:
        return
    if VENV.is_symlink():  # venv --clear would empty what it leads to
        fail(".venv is a link to {}, which may be somebody else's; take the link away, then the same line".format(VENV.resolve()))
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        fail("this Python makes no virtual environments; on Debian and Ubuntu: apt-get install python3-venv, then the same line")
    say("making .venv, once, with Python {}.{}.{}".format(*sys.version_info[:3]))
    run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def works(statement):
    """Whether .venv has a Python that runs ``statement``."""
    try:
        return subprocess.run([str(PYTHON), "-c", statement], cwd="/", capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def install(extras):
    """Installs the locked packages, then kgctl itself; what is there already is not asked for.

    The plain lock comes first: it has what pyspark is built with, which pip would else take from the index as it comes. The locks
    are whole together, so that pip has nothing to resolve; and modules are compiled when they are first imported, which most
    never are.
    """
    for extra in extras:
        own = ["--no-build-isolation", "--use-pep517"] if extra else []
        say("installing {}".format(LOCKS[extra][1]))
        run([str(PYTHON), *PIP, "install", *own, "--no-compile", "--no-deps", "--require-hashes", "-r", str(lock(extra))])
    run([str(PYTHON), *PIP, "install", "--no-deps", "--no-build-isolation", "-e", str(ROOT)])


def remember(extras):
    """Notes what is installed, for the next run."""
    done = json.loads(STAMP.read_text()) if STAMP.exists() else {}
    done.update({"root": str(ROOT)}, **{extra: key(extra) for extra in extras})
    STAMP.write_text(json.dumps(done))


def run(command):
    """Runs one step; the first that fails ends the set-up with its words and its exit code."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH", "PIP_REQUIRE_VIRTUALENV")
    }
    code = subprocess.run(command, cwd=str(ROOT), env=environment, check=False).returncode
    if code:
        fail("this step ended with {}: {}".format(code, " ".join(command)))


def say(words):
    """One line for a phase, on stderr."""
    print("setup: " + words, file=sys.stderr, flush=True)


def fail(message):
    """Ends with one line on stderr and exit code 1."""
    sys.exit("setup: " + message)


if __name__ == "__main__":
    main(sys.argv[1:])
