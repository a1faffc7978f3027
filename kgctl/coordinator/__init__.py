"""The group coordinator: requests in, effects out; no clock, no I/O, no randomness."""
