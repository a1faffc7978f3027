"""A build: what is new of records and samples, cut by groups into slices, each made into tables by the same pure functions.

``carry`` cuts and keeps what a slice goes on from, ``tables_of`` computes and writes a slice, here or as a plan of Spark, ``run``
plans and commits, going on from ``state``.
"""
