-- Which kinds wait in these lanes (those in lines aside), and when the first of each is due. It jumps from kind to kind through the index,
-- so that its cost is the number of kinds and not the number of jobs.
-- takes: lanes (a JSON array of ids)
-- returns: lane, kind, due_at_ms
WITH RECURSIVE present (lane, kind) AS (
  SELECT asked.value,
    (SELECT min(hot.kind) FROM runwick_hot AS hot
     WHERE hot.lane = asked.value AND hot.lease_until_ms IS NULL AND hot.line IS NULL)
  FROM json_each(?1) AS asked
  UNION ALL
  SELECT present.lane,
    (SELECT min(hot.kind) FROM runwick_hot AS hot
     WHERE hot.lane = present.lane AND hot.kind > present.kind AND hot.lease_until_ms IS NULL
       AND hot.line IS NULL)
  FROM present
  WHERE present.kind IS NOT NULL
)
SELECT present.lane, present.kind,
  (SELECT min(hot.due_at_ms) FROM runwick_hot AS hot
   WHERE hot.lane = present.lane AND hot.kind = present.kind AND hot.lease_until_ms IS NULL AND hot.line IS NULL)
FROM present
WHERE present.kind IS NOT NULL;
