"""What the history commands have in common."""
