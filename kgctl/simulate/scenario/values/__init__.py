"""What single values of a scenario mean: durations, rates, shares, distributions, members chosen."""
