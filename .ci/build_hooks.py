"""What a build adds: the commit that `kgctl --version -v` names, and README.md as a package index can show it."""

import re
import subprocess
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    """Makes the description of README.md, without its links to pages of the manual: an index has no such files."""

    def update(self, metadata):
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"\[([^\]]+)\]\((?!https://)[^)]+\)", r"\1", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


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
