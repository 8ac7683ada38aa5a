-- Which kinds ever had a job in these lanes. It jumps from kind to kind through the index, so that its cost is the number
-- of kinds and not the number of jobs.
-- takes: lanes (a JSON array of ids)
-- returns: lane, kind
WITH RECURSIVE present (lane, kind) AS (
  SELECT asked.value, (SELECT min(job.kind) FROM runwick_job AS job WHERE job.lane = asked.value)
  FROM json_each(?1) AS asked
  UNION ALL
  SELECT present.lane,
    (SELECT min(job.kind) FROM runwick_job AS job WHERE job.lane = present.lane AND job.kind > present.kind)
  FROM present
  WHERE present.kind IS NOT NULL
)
SELECT lane, kind FROM present WHERE kind IS NOT NULL;
