"""Open tables: Delta Lake, without any jar. ``delta`` commits, ``files`` writes Parquet, ``tables`` says what the columns are."""
