-- Closed attempts for the history, all with the same outcome and code. What their hot rows know comes from there.
-- Sixteen at a time, because starting a statement costs more than a row; rows without a job are passed over.
-- takes: position of the first, outcome, code, ended_at_ms,
--        then 16 times: job, attempt_id, begun_at_ms, wall_us, cpu_us, rss_peak_bytes, usage
INSERT INTO runwick_attempt (
  position, job, kind, attempt_id, claim, generation, number, outcome, code, begun_at_ms, ended_at_ms, wall_us, cpu_us,
  rss_peak_bytes, usage
)
SELECT
  ?1 + ended.column1, hot.job, hot.kind, ended.column3, hot.claim, hot.generation, hot.attempts, ?2, ?3, ended.column4,
  ?4, ended.column5, ended.column6, ended.column7, ended.column8
FROM (VALUES
  ( 0, ?, ?, ?, ?, ?, ?, ?),
  ( 1, ?, ?, ?, ?, ?, ?, ?),
  ( 2, ?, ?, ?, ?, ?, ?, ?),
  ( 3, ?, ?, ?, ?, ?, ?, ?),
  ( 4, ?, ?, ?, ?, ?, ?, ?),
  ( 5, ?, ?, ?, ?, ?, ?, ?),
  ( 6, ?, ?, ?, ?, ?, ?, ?),
  ( 7, ?, ?, ?, ?, ?, ?, ?),
  ( 8, ?, ?, ?, ?, ?, ?, ?),
  ( 9, ?, ?, ?, ?, ?, ?, ?),
  (10, ?, ?, ?, ?, ?, ?, ?),
  (11, ?, ?, ?, ?, ?, ?, ?),
  (12, ?, ?, ?, ?, ?, ?, ?),
  (13, ?, ?, ?, ?, ?, ?, ?),
  (14, ?, ?, ?, ?, ?, ?, ?),
  (15, ?, ?, ?, ?, ?, ?, ?)
) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.column2;
