"""What is left out of the sequences because it is known to differ from Kafka's coordinator, or has no answer; with its reason.

In what is generated nothing may differ.
"""

from __future__ import annotations

NOT_GENERATED = {
    "metadata or assignments of the classic protocol that end inside a text or a list": (
        "Kafka's reader runs into an exception that its coordinator does not expect: a rebalance hangs half done, an upgrade is"
        " answered UNKNOWN_SERVER_ERROR. Here they are unreadable like all others, which Kafka expects and passes over."
    ),
    "a JoinGroup that names a protocol twice": (
        "Kafka counts it as two members' protocol, elects none and leaves the group in PreparingRebalance; here it counts once."
    ),
    "a group in the place of an empty streams group, or a share group in that of an empty consumer group, that a JoinGroup with a"
    " member id has made Kafka forget": ("Kafka forgets the group but not its records, and cannot load the log that follows."),
}
