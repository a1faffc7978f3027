"""The warehouse: a folder of Parquet files, and manifests that say which of them count.

::

    warehouse.json                                   {"kgctl_warehouse_version": 1}
    bronze/records/cluster=C/partition=P/*.parquet   records of __consumer_offsets partition P   (`schemas.RAW`)
    bronze/log_offsets/cluster=C/*.parquet           samples of the topics' log offsets          (`schemas.LOG_OFFSETS`)
    bronze/damaged/cluster=C/*.parquet               what could not be read, and where           (`schemas.DAMAGED`)
    silver/TABLE/cluster=C/partition=P/*.parquet     decoded rows
    gold/TABLE/cluster=C/[partition=P/]*.parquet     derived tables
    state/collected/cluster=C/partition=P.json       manifest: the bronze files of P, and where to go on reading
    state/collected/cluster=C/cluster.json           manifest: samples, what was damaged
    state/collected/cluster=C/topics.json            the topics that the records so far have commits on
    state/built/cluster=C/[partition=P|cluster].json manifest: silver and gold files, and the bronze files they were built from

A file counts when a manifest names it. Data files are complete and on the device before their manifest is renamed into its place,
so that a crash at any moment leaves the last good state; files that nothing names are left-overs
(`warehouse.Warehouse.remove_left_overs`).
"""
