"""Notes in a wheel or an sdist which commit it was built from: `kgctl --version -v` says it."""

import subprocess
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface):
    """Adds kgctl/commit.txt where a checkout is built; what is built from an sdist has the sdist's."""

    def initialize(self, version, build_data):
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        command = ["git", "-C", self.root, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return
        self.folder = tempfile.TemporaryDirectory()
        noted = Path(self.folder.name) / "commit.txt"
        noted.write_text(commit, encoding="utf-8")
        build_data["force_include"][str(noted)] = "kgctl/commit.txt"

    def finalize(self, *_):
        if hasattr(self, "folder"):
            self.folder.cleanup()
