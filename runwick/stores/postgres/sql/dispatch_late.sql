-- Wait until nobody is creating these jobs any more: an earlier sending of the same operation may have passed its
-- deadline in time and not have ended yet. It waits at the key, by creating them itself, and leaves nothing behind: if one
-- of them is still not there, the statement undoes itself (RW006).
-- takes: ids, operation ids, by how many milliseconds each is late
-- returns: nothing; then all of them are there
WITH late AS MATERIALIZED (
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS late (id, operation_id, late_ms)
), tried AS (
  INSERT INTO runwick.job (id, operation_id, created_at_ms, application, lane, kind, policy, payload_bytes, payload)
  SELECT late.id, late.operation_id, 0, 0, 0, 0, 0, 0, '' FROM late ORDER BY late.id
  ON CONFLICT (id) DO NOTHING
  RETURNING id
)
SELECT runwick.undo('RW006', late.operation_id || ' ' || late.late_ms) FROM tried JOIN late ON late.id = tried.id;
