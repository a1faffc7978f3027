"""What the simulate commands have in common: reading a scenario, running it with a progress bar, writing the result."""
