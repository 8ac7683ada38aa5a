-- A job that an operator names, as it stands.
-- takes: application, job id
-- returns: job, state, generation, revision, cancel_requested_at_ms, of the attempt that holds it begun_at_ms,
--          first_attempt_id, claim_token, worker; where it waits, called and due_at_ms; its active key, and whether a
--          live job has that
SELECT
  job.position,
  coalesce(hot.state, closing.state),
  coalesce(hot.generation, closing.generation),
  coalesce(hot.revision, closing.revision),
  hot.cancel_requested_at_ms, hot.begun_at_ms, claim.first_attempt_id, claim.token, claim.worker,
  hot.called, hot.due_at_ms, need.active,
  EXISTS (SELECT 1 FROM runwick_hot AS live WHERE live.active = need.active)
FROM runwick_job AS job
LEFT JOIN runwick_hot AS hot ON hot.job = job.position
LEFT JOIN runwick_claim AS claim ON claim.id = hot.claim
LEFT JOIN runwick_need AS need ON need.job = job.position
LEFT JOIN runwick_closing AS closing ON closing.job = job.position
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = job.position)
WHERE job.id = ?2 AND job.application = ?1;
