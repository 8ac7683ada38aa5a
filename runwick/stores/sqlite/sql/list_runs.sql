-- The jobs of these lanes and kinds in front of a position, the latest first. The runs of the index are merged one step at
-- a time: whichever stands highest is taken and followed by the next of its run.
-- takes: pairs of lane and kind (a JSON array of arrays), position, how many
-- returns: job
WITH RECURSIVE walk (lane, kind, job) AS (
  SELECT asked.value ->> 0, asked.value ->> 1,
    (SELECT max(job.position) FROM runwick_job AS job
     WHERE job.lane = asked.value ->> 0 AND job.kind = asked.value ->> 1 AND job.position < ?2)
  FROM json_each(?1) AS asked
  UNION ALL
  SELECT walk.lane, walk.kind,
    (SELECT max(job.position) FROM runwick_job AS job
     WHERE job.lane = walk.lane AND job.kind = walk.kind AND job.position < walk.job)
  FROM walk
  WHERE walk.job IS NOT NULL
  ORDER BY 3 DESC
  LIMIT ?3
)
SELECT job FROM walk WHERE job IS NOT NULL;
