"""A build: what is new of records and samples, cut by groups into slices, each made into tables by the same pure functions.

``slices`` cuts, ``tables_of`` computes and writes a slice, ``run`` plans and commits, ``on_spark`` and ``spread`` do the work.
"""
