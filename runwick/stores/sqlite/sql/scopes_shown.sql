-- These scopes, as people read them.
-- takes: ids (16 bytes each)
-- returns: as scopes
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT scope.id, scope.kind, scope.key, scope.capacity, scope.in_use,
  EXISTS (SELECT 1 FROM runwick_hot AS hot WHERE hot.line = scope.id), scope.revision, scope.fence
FROM asked
CROSS JOIN runwick_scope AS scope ON scope.id = substr(?1, asked.place, 16);
