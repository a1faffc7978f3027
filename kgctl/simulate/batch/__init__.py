"""Variants times seeds: the runs of a scenario, in processes of their own where that helps, and what comes of them all."""
