"""The assignors that run in the group coordinator: the consumer protocol's (KIP-848)."""
