-- How the generations of these jobs ended, all in the same way.
-- takes: jobs (a JSON array), position of the first, state, code, ended_at_ms
INSERT INTO runwick_closing (
  position, job, application, generation, state, code, revision, executions, ended_at_ms, cancel_requested_at_ms
)
SELECT
  ?2 + ended.key, hot.job, hot.application, hot.generation, ?3, ?4, hot.revision + 1, hot.executions, ?5,
  hot.cancel_requested_at_ms
FROM json_each(?1) AS ended
CROSS JOIN runwick_hot AS hot ON hot.job = ended.value;
