-- A job of which something is to be shown.
-- takes: application, job id
-- returns: job, state, generation; or no row
SELECT job.position, coalesce(hot.state, closing.state), coalesce(hot.generation, closing.generation)
FROM runwick_job AS job
LEFT JOIN runwick_hot AS hot ON hot.job = job.position
LEFT JOIN runwick_closing AS closing ON closing.job = job.position
  AND closing.generation = (SELECT max(last.generation) FROM runwick_closing AS last WHERE last.job = job.position)
WHERE job.id = ?2 AND job.application = ?1;
