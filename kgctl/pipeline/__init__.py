"""The data pipeline: the history of groups, collected from ``__consumer_offsets``, as tables that answer. PySpark spreads it."""
