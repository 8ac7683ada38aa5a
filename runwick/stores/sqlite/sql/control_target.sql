-- A job that an operator names, as it stands.
-- takes: application, job id
-- returns: job, state, generation, revision, cancel_requested_at_ms, and of the attempt that holds it begun_at_ms,
--          first_attempt_id, claim_token, worker
SELECT
  job.position,
  coalesce(hot.state, closing.state),
  coalesce(hot.generation, closing.generation),
  coalesce(hot.revision, closing.revision),
  hot.cancel_requested_at_ms, hot.begun_at_ms, claim.first_attempt_id, claim.token, claim.worker
FROM runwick_job AS job
LEFT JOIN runwick_hot AS hot ON hot.job = job.position
LEFT JOIN runwick_claim AS claim ON claim.id = hot.claim
LEFT JOIN runwick_closing AS closing ON closing.job = job.position
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = job.position)
WHERE job.id = ?2 AND job.application = ?1;
