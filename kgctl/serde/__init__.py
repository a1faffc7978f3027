"""Bytes to values and back: frames, Kafka's messages, the embedded consumer protocol, the coordinator's records."""
