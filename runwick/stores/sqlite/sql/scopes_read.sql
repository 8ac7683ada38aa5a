-- These scopes, as they stand.
-- takes: ids (16 bytes each)
-- returns: id, kind, capacity, in_use, fence, calls, has_line
WITH RECURSIVE asked (place) AS (
  SELECT 1 UNION ALL SELECT asked.place + 16 FROM asked WHERE asked.place + 16 <= length(?1)
)
SELECT scope.id, scope.kind, scope.capacity, scope.in_use, scope.fence, scope.calls, scope.has_line
FROM asked
CROSS JOIN runwick_scope AS scope ON scope.id = substr(?1, asked.place, 16);
