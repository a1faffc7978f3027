CREATE TABLE meta (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

-- "crc" is null in rows that were written in format 1.
-- Key and value are the bytes that Kafka has in __consumer_offsets. "sequence" is the order over all partitions.
CREATE TABLE record (
    sequence INTEGER PRIMARY KEY,
    "partition" INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL,
    "key" BLOB,
    value BLOB,
    producer_id INTEGER,
    producer_epoch INTEGER,
    "commits" INTEGER,
    coordinator_epoch INTEGER,
    member_id TEXT,
    crc INTEGER
);

CREATE UNIQUE INDEX record_place ON record ("partition", "offset");

CREATE INDEX record_of_transaction ON record (sequence) WHERE producer_id IS NOT NULL;

-- Names repeat in every row of the commit log, so it holds numbers; the view "commits" is for reading it by hand.
CREATE TABLE name (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

CREATE TABLE commit_entry (
    sequence INTEGER PRIMARY KEY,
    group_name INTEGER NOT NULL REFERENCES name,
    topic_name INTEGER NOT NULL REFERENCES name,
    "partition" INTEGER NOT NULL,
    "offset" INTEGER,
    timestamp_ms INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    leader_epoch INTEGER NOT NULL,
    member_name INTEGER REFERENCES name,
    crc INTEGER
);

CREATE INDEX commit_entry_of_partition ON commit_entry (group_name, topic_name, "partition", timestamp_ms);

CREATE VIEW commits AS
    SELECT c.sequence, datetime(c.timestamp_ms / 1000, 'unixepoch') AS time, c.timestamp_ms, g.text AS "group",
           t.text AS topic, c."partition", c."offset", c.metadata, c.leader_epoch, m.text AS member_id
    FROM commit_entry c
    JOIN name g ON g.id = c.group_name
    JOIN name t ON t.id = c.topic_name
    LEFT JOIN name m ON m.id = c.member_name;
