"""Kafka's nouns as frozen values; the standard library only."""
