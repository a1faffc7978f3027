"""Building the tables: one task a partition of ``__consumer_offsets``, spread by an engine, published partition by partition.

A partition is decoded file by file (silver: each bronze file once), and its tables are computed anew (gold) when something of it
is new. A task ends with its manifest: a crash before that leaves the last state, whole, and the next build finishes the work.
"""
