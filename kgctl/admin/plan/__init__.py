"""Pure planning: times, scopes, offset files, lag and resets as values. Nothing here talks to a cluster or reads a clock."""
