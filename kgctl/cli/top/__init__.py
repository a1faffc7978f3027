"""``kgctl top``: the command with its frames, and the live view."""
