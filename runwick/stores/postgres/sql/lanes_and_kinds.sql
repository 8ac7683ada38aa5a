-- The numbers of an application's queues and of the versions of one job type.
-- takes: the gate's $1 to $3; application; name of the type (NULL: no type matters)
-- returns: number of a lane and its queue, or number of a kind and NULL; kinds by version, the latest first
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, NULL, 'jobs', $3, NULL) AS open
)
SELECT named.id, named.queue
FROM (
  SELECT lane.id, lane.queue, 0 AS version
  FROM gate JOIN runwick.lane AS lane ON gate.open AND lane.application = $4
  UNION ALL
  SELECT kind.id, NULL, kind.version
  FROM gate JOIN runwick.kind AS kind ON gate.open AND kind.application = $4 AND kind.name = $5
) AS named
ORDER BY named.version DESC, named.id;
