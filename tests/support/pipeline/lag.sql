-- The rows of kind sample of the table lag, from offset_commits, samples and the rows of kind commit: the rules of `kgctl manual tables`
-- once more, as windows over rows. In words that DuckDB and Spark both take.
WITH rounds AS (
  SELECT cluster, minute, lead(minute) OVER (PARTITION BY cluster ORDER BY minute) AS following
  FROM (SELECT DISTINCT cluster, CAST(floor(unix_millis(time) / 60000) AS bigint) AS minute FROM samples) AS minutes
), moments AS (
  SELECT cluster, topic, partition, unix_millis(time) AS t, max(log_start_offset) AS begin_, max(log_end_offset) AS e
  FROM samples GROUP BY cluster, topic, partition, time
), beside AS (
  SELECT m.*, r.following, lag(e) OVER log AS e_before, lead(e) OVER log AS e_after, lead(t) OVER log AS t_after
  FROM moments AS m JOIN rounds AS r ON r.cluster = m.cluster AND r.minute = CAST(floor(m.t / 60000) AS bigint)
  WINDOW log AS (PARTITION BY m.cluster, topic, partition ORDER BY t)
), soon AS (
  SELECT *, floor(t_after / 60000) <= floor(t / 60000)
    OR (following <= floor(t / 60000) + 240 AND floor(t_after / 60000) <= following + 1) AS is_soon
  FROM beside
), cleaned AS (
  SELECT *, lag(e) OVER (PARTITION BY cluster, topic, partition ORDER BY t) AS e_last FROM (
    SELECT cluster, topic, partition, t, begin_, e, following FROM soon
    WHERE e IS NOT NULL AND NOT coalesce(e < e_before AND e_after >= e_before AND is_soon, false)) AS fine
), lives AS (
  SELECT *, sum(CASE WHEN e < e_last THEN 1 ELSE 0 END)
    OVER (PARTITION BY cluster, topic, partition ORDER BY t ROWS UNBOUNDED PRECEDING) AS life
  FROM cleaned
), known AS (
  SELECT *, row_number() OVER life_ AS number, lead(t) OVER life_ AS t_next, lead(e) OVER life_ AS e_next,
    first_value(t) OVER life_ AS t_first, first_value(e) OVER life_ AS e_first, lead(t) OVER log AS t_log
  FROM lives WINDOW life_ AS (PARTITION BY cluster, topic, partition, life ORDER BY t),
    log AS (PARTITION BY cluster, topic, partition ORDER BY t)
), asked AS (
  SELECT *, coalesce(floor(t_next / 60000) <= floor(t / 60000)
    OR (following <= floor(t / 60000) + 240 AND floor(t_next / 60000) <= following + 1), false) AS next_counts
  FROM known WHERE t_log IS NULL OR floor(t_log / 60000) <> floor(t / 60000)
), clocked AS (
  SELECT *, max(unix_millis(time))
    OVER (PARTITION BY cluster, "group", topic, partition ORDER BY effect_offset ROWS UNBOUNDED PRECEDING) AS since
  FROM offset_commits
), commits AS (
  SELECT *, lead(since) OVER (PARTITION BY cluster, "group", topic, partition ORDER BY effect_offset) AS until_ms FROM clocked
), stands AS (
  SELECT a.*, c."group", c.committed_offset AS o,
    CASE WHEN a.next_counts AND c.committed_offset > a.e AND c.committed_offset <= a.e_next THEN c.committed_offset ELSE a.e END AS e_then
  FROM commits AS c JOIN asked AS a ON a.cluster = c.cluster AND a.topic = c.topic AND a.partition = c.partition
    AND a.t >= c.since AND (c.until_ms IS NULL OR a.t < c.until_ms)
  WHERE c.committed_offset IS NOT NULL
), places AS (
  SELECT cluster, topic, partition, life, o, is_asked,
    max(number) OVER (PARTITION BY cluster, topic, partition, life ORDER BY o, is_asked ROWS UNBOUNDED PRECEDING) AS number
  FROM (SELECT cluster, topic, partition, life, e AS o, number, 0 AS is_asked FROM known
    UNION ALL SELECT DISTINCT cluster, topic, partition, life, o, CAST(NULL AS bigint), 1 FROM stands WHERE o < e_then) AS either
), reached AS (
  SELECT p.cluster, p.topic, p.partition, p.life, p.o,
    k.t + (p.o - k.e) * 1.0 / CASE WHEN k.e_next > k.e THEN k.e_next - k.e ELSE 1 END * (k.t_next - k.t) AS at_ms
  FROM places AS p JOIN known AS k ON k.cluster = p.cluster AND k.topic = p.topic AND k.partition = p.partition
    AND k.life = p.life AND k.number = p.number
  WHERE p.is_asked = 1
), measured AS (
  SELECT s.*, s.o >= begin_ AND s.o <= e_then AS is_inside, r.at_ms,
    t_first + (s.o - e_first) * 1.0 / nullif(CASE WHEN next_counts THEN e_next ELSE e END - e_first, 0)
      * (CASE WHEN next_counts THEN t_next ELSE t END - t_first) AS early_ms
  FROM stands AS s LEFT JOIN reached AS r ON r.cluster = s.cluster AND r.topic = s.topic AND r.partition = s.partition
    AND r.life = s.life AND r.o = s.o
), points AS (
  SELECT cluster, "group", topic, partition, t, 1 AS is_sample, o AS committed_offset, e_then AS log_end_offset,
    CASE WHEN is_inside THEN e_then - o END AS lag,
    CASE WHEN is_inside THEN CASE WHEN o = e_then THEN 0 WHEN t < coalesce(at_ms, early_ms) THEN 0 ELSE t - coalesce(at_ms, early_ms) END
      END AS lag_ms
  FROM measured
  UNION ALL SELECT cluster, "group", topic, partition, unix_millis(time), 0, committed_offset, log_end_offset, lag, lag_ms
  FROM lag WHERE kind = 'commit'
), before AS (
  SELECT *, lag(log_end_offset) OVER series AS end_before, lag(t) OVER series AS t_before
  FROM points WINDOW series AS (PARTITION BY cluster, "group", topic, partition ORDER BY t, is_sample)
)
SELECT "group", topic, partition, t AS time_ms, committed_offset, log_end_offset, lag, CAST(round(lag_ms) AS bigint) AS lag_ms
FROM before
WHERE is_sample = 1
  AND (end_before IS NULL OR log_end_offset <> end_before OR (t <> t_before AND log_end_offset > committed_offset))
ORDER BY "group", topic, partition, t
