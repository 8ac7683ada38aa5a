-- A worker says good-bye.
-- takes: the gate's $1 to $4; application (NULL when it has no number), worker
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'depart', $3, $4) AS open, runwick.now_ms() AS now_ms
)
UPDATE runwick.worker AS worker SET departed_at_ms = gate.now_ms
FROM gate
WHERE worker.id = CASE WHEN gate.open THEN $6::uuid END;
