-- Set right what a crash left behind in the lines of an application's limits, some limits at a time; and forget, some rows at
-- a time, window keys whose time is over and receipts that nobody is promised any more. Rows that somebody holds are left.
-- takes: the gate's $1 to $4; application, id behind which to look, how many limits, how many jobs to call at most; how long
--        receipts are kept after their deadline, in ms; how many rows to forget; whether to count who holds a scope
-- returns: per limit its id, whether the count of its holds was wrong, and three NULLs; behind it, each with the limit's id
--          and NULL, lane, due_at_ms and job of those that were called; limits in the order of ids
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'tend', $3, $4) AS open, runwick.now_ms() AS now_ms
), tended AS MATERIALIZED (
  SELECT tended.* FROM gate CROSS JOIN LATERAL runwick.tend($5::integer, $6, $7, $8, $11) AS tended WHERE gate.open
), forgotten AS (
  DELETE FROM runwick.uniqueness AS uniqueness
  USING gate CROSS JOIN LATERAL (
    SELECT over.id
    FROM runwick.uniqueness AS over
    WHERE gate.open AND over.until_ms <= gate.now_ms
    ORDER BY over.until_ms
    LIMIT $10
    FOR UPDATE SKIP LOCKED
  ) AS over
  WHERE uniqueness.id = over.id
), dropped AS (
  DELETE FROM runwick.reused AS reused
  USING gate CROSS JOIN LATERAL (
    SELECT over.operation
    FROM runwick.reused AS over
    WHERE gate.open AND over.deadline_ms < gate.now_ms - $9
    ORDER BY over.deadline_ms
    LIMIT $10
    FOR UPDATE SKIP LOCKED
  ) AS over
  WHERE reused.operation = over.operation
)
SELECT tended.at_limit, tended.mended, tended.lane, tended.due_at_ms, tended.job FROM tended;
