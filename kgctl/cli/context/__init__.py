"""Named clusters: the file that has them, and the commands about it."""
