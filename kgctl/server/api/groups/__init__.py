"""Groups: membership, offsets, administration."""
