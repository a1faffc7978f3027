"""Where records of ``__consumer_offsets`` come from, all as tables of `kgctl.pipeline.store.tables.RAW`.

At rest (`at_rest`): segment files of a broker, the record log of a data folder, Parquet of an earlier collection. Live (`live`):
a cluster, through kgctl's own connection or through confluent-kafka.
"""
