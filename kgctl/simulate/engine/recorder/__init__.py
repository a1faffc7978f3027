"""What a run leaves behind: who consumed what when, how the group stood, what was counted. The metrics are worked out from it."""
