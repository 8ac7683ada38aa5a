-- How the applications stand, by name. Leases are found through the claims that may still hold some.
-- takes: how long after it was seen a worker counts as alive, in milliseconds
-- returns: id, name, admission, capabilities, leases, leases_valid, workers
SELECT a.id, a.name, a.admission, a.capabilities, held.leases, held.valid, alive.workers
FROM runwick.application AS a
CROSS JOIN LATERAL (
  SELECT count(h.job) AS leases, count(h.job) FILTER (WHERE h.lease_until_ms > (SELECT runwick.now_ms())) AS valid
  FROM runwick.claim AS c CROSS JOIN LATERAL unnest(c.jobs) AS taken (job)
  JOIN runwick.hot AS h ON h.job = taken.job AND h.claim = c.token
  WHERE c.application = a.id
) AS held
CROSS JOIN LATERAL (
  SELECT count(*) AS workers FROM runwick.worker AS w
  WHERE w.application = a.id AND w.departed_at_ms IS NULL AND w.seen_at_ms > (SELECT runwick.now_ms()) - $1::bigint
) AS alive
ORDER BY a.name COLLATE "C";
