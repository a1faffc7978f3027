"""What a scenario can make happen: one file a kind, one line of the registry."""
