"""The commands of the `simulate` family."""
