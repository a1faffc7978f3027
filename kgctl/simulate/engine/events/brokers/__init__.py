"""The kinds that act on brokers."""
