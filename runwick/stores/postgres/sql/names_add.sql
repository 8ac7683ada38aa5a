-- Give names of an application their numbers, if they have none. Nobody else's are changed by that, so it may be
-- committed before the act that needs them.
-- takes: the gate's $1 to $4; act, application; queues, priorities, names and versions of kinds, policies
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $6::integer, $5, $3, $4) AS open
), lanes AS (
  INSERT INTO runwick.lane (application, queue, priority)
  SELECT $6::integer, asked.queue, asked.priority
  FROM gate CROSS JOIN unnest($7::text[], $8::text[]) AS asked (queue, priority)
  WHERE gate.open
  ON CONFLICT DO NOTHING
), kinds AS (
  INSERT INTO runwick.kind (application, name, version)
  SELECT $6::integer, asked.name, asked.version
  FROM gate CROSS JOIN unnest($9::text[], $10::bigint[]) AS asked (name, version)
  WHERE gate.open
  ON CONFLICT DO NOTHING
)
INSERT INTO runwick.policy (json)
SELECT asked.json
FROM gate CROSS JOIN unnest($11::text[]) AS asked (json)
WHERE gate.open
ON CONFLICT DO NOTHING;
