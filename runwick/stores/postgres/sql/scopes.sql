-- Scopes of one kind of an application, by id.
-- takes: the gate's $1 to $3; name of the application, kind, id behind which to look, how many at most
-- returns: id, kind, key, capacity, in_use, whether jobs stand in its line, revision, fence
SELECT
  own.id, own.kind, own.key, own.capacity, own.in_use,
  EXISTS (SELECT FROM runwick.hot AS hot WHERE hot.line = own.id LIMIT 1), own.revision, own.fence
FROM (SELECT runwick.gate($1, $2::integer, NULL, 'scopes', $3, NULL) AS open) AS gate
JOIN runwick.application AS application ON gate.open AND application.name = $4
CROSS JOIN LATERAL (
  SELECT scope.*
  FROM runwick.scope AS scope
  WHERE scope.application = application.id AND scope.kind = $5 AND scope.id > $6
  ORDER BY scope.id
  LIMIT $7
) AS own
ORDER BY own.id;
