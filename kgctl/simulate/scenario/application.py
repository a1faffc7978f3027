"""What an application does around its consumer: its poll loop, its callbacks."""

from typing import Any

from kgctl.simulate.scenario import fields
from kgctl.simulate.scenario.fields import Section, key
from kgctl.simulate.scenario.quantities import ZERO


class Callbacks(Section):
    """How long the application's rebalance callbacks take."""

    revoked: fields.Varying = ZERO
    assigned: fields.Varying = ZERO
    lost: fields.Varying = ZERO


class PollLoop(Section):
    """The application's poll loop: poll(), the batch that it returned, a pause."""

    timeout_us: fields.Duration | None = key(
        "What poll() is given: so long it waits for records; default: as long as there are none.", None, of="timeout"
    )
    pause: fields.Varying = key("From the end of a batch to the next poll().", ZERO)


USUAL_LOOP = PollLoop(timeout_us=100_000)
"""What most applications have: ``poll(Duration.ofMillis(100))`` again and again."""


def short_poll(raw: Any) -> Any:
    """Return ``poll: 0ms..100ms`` written out: it is the pause."""
    return raw if isinstance(raw, dict) else {"pause": raw}
