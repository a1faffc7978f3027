"""What was acknowledged is there after kill -9, at whatever moment it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kgctl.model.coordinator_records import OffsetCommitValue
from kgctl.storage.folder import open_folder
from tests.support.storage import contents

PARTITIONS = 20
APPEND = """
import sys
from pathlib import Path
from kgctl.storage.folder import open_folder
from tests.support.storage import commit

folder = open_folder(Path(sys.argv[1]), create=True, offsets_partitions=1)
folder.start_maintenance(lambda: 1, interval_s=0.001)
number = folder.record_log.end_offset(0)
while True:
    number += 1
    folder.record_log.append([commit("g", partition, number) for partition in range(int(sys.argv[2]))], number)
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("acknowledged", [1, 7, 60, 151])
def test_every_acknowledged_append_survives(tmp_path: Path, acknowledged: int) -> None:
    """The child dies in the midst of its next append; that one may be there, whole, or not."""
    with subprocess.Popen(
        [sys.executable, "-c", APPEND, str(tmp_path), str(PARTITIONS)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        assert child.stdout is not None
        seen = [int(child.stdout.readline()) for _ in range(acknowledged)]
        child.send_signal(signal.SIGKILL)
        seen += [int(line) for line in child.stdout if line.endswith("\n")]
    with open_folder(tmp_path, create=False) as folder:
        newest: dict[int, int] = {}
        for record in contents(folder):
            decoded = record.decode()
            assert isinstance(decoded.value, OffsetCommitValue)  # type: ignore[union-attr]  # no markers here
            newest[decoded.key.partition] = decoded.value.offset  # type: ignore[union-attr]
        entries = [entry.offset for entry in folder.commit_log.read("g")]

    assert set(newest) == set(range(PARTITIONS))
    assert len(set(newest.values())) == 1
    assert newest[0] in (seen[-1], seen[-1] + 1)
    assert entries == [number for number in range(1, newest[0] + 1) for _ in range(PARTITIONS)]
