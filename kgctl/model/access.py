"""What rights are about: resources, what can be done with them, and sets of that as brokers tell them (KIP-430)."""

from __future__ import annotations

from enum import IntEnum

NOT_TOLD = -(2**31)
"""In the place of a set: it was not asked for, or is not told."""


class Resource(IntEnum):
    """What a right is about, by the protocol's numbers."""

    TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)


class AclOperation(IntEnum):
    """What is done, by the protocol's numbers."""

    ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS = range(2, 12)
    IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = range(12, 16)

    @property
    def bit(self) -> int:
        """Return what stands for it in a set of operations."""
        return 1 << self
