-- What numbers stand for.
-- takes: numbers of lanes, of kinds, of policies
-- returns: 'lane', number, queue, priority; 'kind', number, name, version; 'policy', number, its JSON, nothing
SELECT 'lane', lane.id, lane.queue, lane.priority
FROM unnest($1::bigint[]) AS asked (id) JOIN runwick.lane AS lane ON lane.id = asked.id::integer
UNION ALL
SELECT 'kind', kind.id, kind.name, kind.version::text
FROM unnest($2::bigint[]) AS asked (id) JOIN runwick.kind AS kind ON kind.id = asked.id::integer
UNION ALL
SELECT 'policy', policy.id, policy.json, NULL
FROM unnest($3::bigint[]) AS asked (id) JOIN runwick.policy AS policy ON policy.id = asked.id::integer;
