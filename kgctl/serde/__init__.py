"""Bytes to values and back: frames, messages (on kio's schemas), the embedded consumer protocol, the coordinator's records."""
