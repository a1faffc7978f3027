CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

CREATE TABLE topic (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    topic_id BLOB NOT NULL,
    partition_count INTEGER NOT NULL,
    crc INTEGER
);

CREATE TABLE log_start (
    topic INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE,
    "partition" INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    crc INTEGER,
    PRIMARY KEY (topic, "partition")
) WITHOUT ROWID;

CREATE TABLE batch (
    id INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL REFERENCES topic ON DELETE CASCADE,
    "partition" INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    max_timestamp_ms INTEGER NOT NULL,
    data BLOB NOT NULL
);

CREATE UNIQUE INDEX batch_place ON batch (topic, "partition", base_offset);
