"""Groups of the streams protocol (KIP-1071)."""
