"""Thousands of runs over a grid of parameters: which runs there are, one row for each, and what the rows say together.

What runs them (processes, Spark) and what they are kept in (Parquet) is another layer's: here is neither.
"""
