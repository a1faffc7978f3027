"""The APIs of streams groups (KIP-1071), and the topics that they have made."""
