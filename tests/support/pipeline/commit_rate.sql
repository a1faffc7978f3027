-- The table commit_rate from offset_commits and resets, in words that DuckDB and Spark both take.
WITH clocked AS (
  SELECT *, lag(committed_offset) OVER series AS o_before,
    max(unix_millis(time)) OVER (PARTITION BY cluster, "group", topic, partition ORDER BY effect_offset ROWS UNBOUNDED PRECEDING) AS t
  FROM offset_commits WINDOW series AS (PARTITION BY cluster, "group", topic, partition ORDER BY effect_offset)
), steps AS (
  SELECT c.*, CASE WHEN r.log_offset IS NULL AND committed_offset > o_before THEN committed_offset - o_before
    WHEN o_before IS NOT NULL THEN 0 END AS step
  FROM clocked AS c LEFT JOIN resets AS r ON r.cluster = c.cluster AND r."group" = c."group" AND r.topic = c.topic
    AND r.partition = c.partition AND r.log_offset = c.log_offset
  WHERE committed_offset IS NOT NULL
)
SELECT "group", topic, partition, CAST(floor(t / 60000) * 60000 AS bigint) AS window_start_ms, count(*) AS commits,
  CAST(sum(step) AS bigint) AS records_consumed
FROM steps GROUP BY cluster, "group", topic, partition, floor(t / 60000)
ORDER BY "group", topic, partition, window_start_ms
