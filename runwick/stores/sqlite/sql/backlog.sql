-- How many jobs wait in each of these queues, in its lanes and in lines; no count goes beyond ?3.
-- takes: queues (a JSON array of [[[lane, kind], …] that wait, [lane, …]]), now_ms, the most that is counted
-- returns: which queue, from 0; in lanes due now and due later; in lines
SELECT queue.key,
  (SELECT count(*) FROM (
    SELECT 1
    FROM json_each(queue.value ->> 0) AS run
    CROSS JOIN runwick_hot AS hot ON hot.lane = run.value ->> 0 AND hot.kind = run.value ->> 1
    WHERE hot.lease_until_ms IS NULL AND hot.line IS NULL AND hot.due_at_ms <= ?2
    LIMIT ?3
  )),
  (SELECT count(*) FROM (
    SELECT 1
    FROM json_each(queue.value ->> 0) AS run
    CROSS JOIN runwick_hot AS hot ON hot.lane = run.value ->> 0 AND hot.kind = run.value ->> 1
    WHERE hot.lease_until_ms IS NULL AND hot.line IS NULL AND hot.due_at_ms > ?2
    LIMIT ?3
  )),
  (SELECT count(*) FROM (
    SELECT 1
    FROM json_each(queue.value ->> 1) AS own
    CROSS JOIN runwick_hot AS hot ON hot.lane = own.value
    WHERE hot.line IS NOT NULL
    LIMIT ?3
  ))
FROM json_each(?1) AS queue;
