-- The numbers of names, as far as they have any: an application, lanes and kinds of it, policies.
-- takes: the gate's $1 to $3; name of the application, queues, priorities, names and versions of kinds, policies
-- returns: 'application', 'lane', 'kind' or 'policy'; the number; the place in what was asked for, from 1
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, NULL, 'names', $3, NULL) AS open
), found AS MATERIALIZED (
  SELECT application.id FROM gate JOIN runwick.application AS application ON gate.open AND application.name = $4
)
SELECT 'application', found.id, 1 FROM found
UNION ALL
SELECT 'lane', lane.id, asked.place
FROM found
CROSS JOIN unnest($5::text[], $6::text[]) WITH ORDINALITY AS asked (queue, priority, place)
JOIN runwick.lane AS lane
  ON lane.application = found.id AND lane.queue = asked.queue AND lane.priority = asked.priority
UNION ALL
SELECT 'kind', kind.id, asked.place
FROM found
CROSS JOIN unnest($7::text[], $8::bigint[]) WITH ORDINALITY AS asked (name, version, place)
JOIN runwick.kind AS kind ON kind.application = found.id AND kind.name = asked.name AND kind.version = asked.version
UNION ALL
SELECT 'policy', policy.id, asked.place
FROM unnest($9::text[]) WITH ORDINALITY AS asked (json, place)
JOIN runwick.policy AS policy ON policy.json = asked.json;
