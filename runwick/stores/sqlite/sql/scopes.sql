-- Scopes of an application, by id.
-- takes: application (its name), kind, the id behind which to start, how many
-- returns: id, kind, key, capacity, in_use, whether jobs wait, revision, fence
SELECT scope.id, scope.kind, scope.key, scope.capacity, scope.in_use,
  EXISTS (SELECT 1 FROM runwick_hot AS hot WHERE hot.line = scope.id), scope.revision, scope.fence
FROM runwick_application AS application
CROSS JOIN runwick_scope AS scope ON scope.application = application.id
WHERE application.name = ?1 AND scope.kind = ?2 AND scope.id > ?3
ORDER BY scope.id
LIMIT ?4;
