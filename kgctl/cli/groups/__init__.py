"""Commands about groups and their offsets: one module a command, and what they share."""
