"""What incremental builds raise where what they carried does not do."""

from __future__ import annotations


class OutdatedError(Exception):
    """What was made before is no longer what all records say: the slice must be made anew from them. The message says why."""


class SamplesMissingError(Exception):
    """A row needs samples of log ends that were not carried."""
