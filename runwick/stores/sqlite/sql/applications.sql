-- How the applications stand, by name.
-- takes: now_ms, the time after which a worker must have been seen to count as alive
-- returns: id, name, admission, capabilities (a JSON array), leases, leases that have not run out, workers alive
SELECT
  application.id, application.name, application.admission, application.capabilities,
  (SELECT count(*) FROM runwick_hot AS hot
   WHERE hot.application = application.id AND hot.lease_until_ms IS NOT NULL),
  (SELECT count(*) FROM runwick_hot AS hot
   WHERE hot.application = application.id AND hot.lease_until_ms IS NOT NULL AND hot.lease_until_ms > ?1),
  (SELECT count(*) FROM runwick_worker AS worker
   WHERE worker.application = application.id AND worker.departed_at_ms IS NULL AND worker.seen_at_ms > ?2)
FROM runwick_application AS application
ORDER BY application.name;
