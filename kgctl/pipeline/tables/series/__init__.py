"""Commits as time series, and samples beside them: what the tables of rates, lag, stalls and resets share."""
