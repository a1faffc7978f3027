"""The event log as JSON lines."""

from __future__ import annotations

from kgctl.simulate.batch.files import EventLines
from kgctl.simulate.recording.trace import Disowned, PodChanged


def test_each_run_is_named_before_its_events() -> None:
    lines: list[str] = []
    log = EventLines(lines.append)

    log.begin_run("crash", "eager", 7)
    log.on_trace(PodChanged(-5, "app-0", "boot"))
    log.on_trace(Disowned(9, "app-0", ("t-0", "t-1"), "detection"))
    log.on_step(9, None)

    assert "".join(lines) == (
        '{"kind":"run","scenario":"crash","variant":"eager","seed":7}\n'
        '{"at_us":-5,"kind":"pod","pod":"app-0","what":"boot"}\n'
        '{"at_us":9,"kind":"disown","pod":"app-0","cause":"detection","partitions":["t-0","t-1"]}\n'
    )
