"""Share groups' records on their way: who holds which, and what is kept of that; no clock, no I/O, no randomness (KIP-932)."""
