"""What a run leaves behind, append-only: who consumed what when, how the group stood, what was written and read."""
