"""The consumer protocol (KIP-848): one request, ConsumerGroupHeartbeat, and reconciliation."""
