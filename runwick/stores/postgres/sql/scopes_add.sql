-- Let the scopes of an application come to be that are not there yet. Nobody is hindered by that who was not told: claims
-- see by the application's number that there is something new.
-- takes: the gate's $1 to $4; application; ids, kinds, keys, capacities
WITH gate AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms WHERE runwick.gate($1, $2::integer, $5::integer, 'register', $3, $4)
), added AS (
  INSERT INTO runwick.scope (id, created_at_ms, application, kind, key, capacity)
  SELECT need.id, gate.now_ms, $5::integer, need.kind, need.key, need.capacity
  FROM gate
  CROSS JOIN (
    SELECT DISTINCT ON (asked.id) asked.*
    FROM unnest($6::uuid[], $7::text[], $8::text[], $9::bigint[]) WITH ORDINALITY
      AS asked (id, kind, key, capacity, place)
    ORDER BY asked.id, asked.place
  ) AS need
  ORDER BY need.id
  ON CONFLICT (id) DO NOTHING
  RETURNING kind
)
UPDATE runwick.intake AS intake SET revision = intake.revision + 1
WHERE (SELECT count(*) FROM added WHERE kind <> 'resource') > 0 AND intake.application = $5;
