"""Where this server does otherwise than a broker, knowingly: the one list, from which manual, help and log are made."""

from __future__ import annotations

from kgctl.model.values import frozen_in_order

AT_ONCE = {"group.initial.rebalance.delay.ms": "0", "group.streams.initial.rebalance.delay.ms": "0"}
"""What servers for tests have otherwise than Kafka: a group does not wait three seconds for more first members."""


@frozen_in_order
class Difference:
    """One of them: ``subject`` is what it is about, ``here`` what happens here, ``kafka`` what a broker does."""

    subject: str
    here: str
    kafka: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.here} (Kafka: {self.kafka})"


DIFFERENCES = (
    Difference(
        "first members",
        "servers for tests begin at once",
        "wait 3 s for more (`group.initial.rebalance.delay.ms`, `group.streams.initial.rebalance.delay.ms`)",
    ),
    Difference("what was changed", "is seen by the next request", "a moment later, when a broker has the controller's word"),
    Difference("replicas", "one a partition, whatever is asked for; brokers share their data", "as many as asked for"),
    Difference("leader epochs", "always 0: nobody is ever elected", "rise with each election"),
    Difference("reassignments", "done at once, and forgotten at a restart", "data is copied, which takes time"),
    Difference("retention", "takes batches, each by itself", "takes segments (`segment.bytes`, `segment.ms`), so it comes later"),
    Difference(
        "compaction",
        "when a test asks for it (`EmbeddedServer.compact`), each batch by itself; `kgctl serve` compacts nothing",
        "in the background, of closed segments",
    ),
    Difference(
        "records in snappy, lz4 and zstd",
        "kept as they come: nothing in them is checked, and a topic that has some is not compacted",
        "unpacked, checked and compacted",
    ),
    Difference(
        "large requests",
        "refused: 16 MiB and more, but for Produce; what unpacks to more than 64 MiB; a member with more than 1,000 protocols",
        "refused above `socket.request.max.bytes` (100 MiB)",
    ),
    Difference("a disk that takes no writes", "goes on as soon as there is room", "is offline until the broker is started anew"),
    Difference("quotas", "kept and shown; nobody is slowed down", "clients wait"),
    Difference("settings without effect", "kept, shown and told in the log; most of a broker's have no bounds", "do something"),
    Difference("fetch sessions", "none is kept: each fetch names all its partitions", "only what changed is named"),
    Difference("transactions", "markers are written before the answer", "after it"),
    Difference("idempotent producers", "forgotten at a restart: any sequence goes on", "kept for a day"),
    Difference("`__consumer_offsets`", "always there, and cannot be changed by clients", "made at the first group"),
    Difference("subscriptions by a pattern", "match topics whatever the member may see", "those alone that it may describe"),
    Difference(
        "logins",
        "by PLAIN and SCRAM; `sasl.jaas.config` without a mechanism before it has users for both",
        "by GSSAPI and OAUTHBEARER too; such a line is ignored",
    ),
    Difference(
        "the state of share groups",
        "kept by the server itself: what brokers ask each other about it (APIs 83 to 87, FindCoordinator for it) is not answered",
        "answered to brokers",
    ),
    Difference(
        "locks of single records of a share group that end together",
        "a fetch that waits gets all of these records",
        "it may get the first alone, and the next one the others",
    ),
    Difference(
        "delegation tokens, clients' metrics, features, quorum changes, producers' states",
        "not served",
        "served",
    ),
)


def listed() -> str:
    """The list for a terminal, what happens here alone."""
    rows = (f"  {each.subject}: {each.here}".replace("`", "") for each in DIFFERENCES)
    return "\n".join(["Unlike a broker:", *rows])
