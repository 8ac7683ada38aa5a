-- A worker says good-bye, and is seen for the last time; or it is known to be dead, whenever it was seen. The first end
-- counts.
-- takes: the gate's $1 to $4; application (NULL when it has no number), worker, whether it says so itself
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'depart', $3, $4) AS open, runwick.now_ms() AS now_ms
)
UPDATE runwick.worker AS worker SET
  departed_at_ms = gate.now_ms,
  seen_at_ms = CASE WHEN $7::boolean THEN gate.now_ms ELSE worker.seen_at_ms END
FROM gate
WHERE worker.id = CASE WHEN gate.open THEN $6::uuid END AND worker.application = $5 AND worker.departed_at_ms IS NULL;
