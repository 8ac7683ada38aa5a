-- A job, and what of it tells why it waits.
-- takes: application (its name), job id
-- returns: application, admission, whether its queue is paused, lane, queue, name, version, state, due_at_ms,
--          expires_at_ms, called, line, rank, scopes, rates (ids of 16 bytes each, or NULL)
SELECT
  job.application, application.admission,
  EXISTS (
    SELECT 1 FROM runwick_pause AS pause
    WHERE pause.application = job.application AND pause.queue = lane.queue AND pause.since_ms IS NOT NULL
  ),
  job.lane, lane.queue, kind.name, kind.version, coalesce(hot.state, closing.state), hot.due_at_ms, hot.expires_at_ms,
  hot.called, hot.line, hot.rank, need.scopes, need.rates
FROM runwick_job AS job
JOIN runwick_application AS application ON application.id = job.application
JOIN runwick_lane AS lane ON lane.id = job.lane
JOIN runwick_kind AS kind ON kind.id = job.kind
LEFT JOIN runwick_hot AS hot ON hot.job = job.position
LEFT JOIN runwick_need AS need ON need.job = job.position
LEFT JOIN runwick_closing AS closing ON closing.job = job.position
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = job.position)
WHERE job.id = ?2 AND application.name = ?1;
