"""What is legal in a scenario and most likely not meant: each rule says so with its place, without a run."""
