-- The next position in commit order. Read first in a writing transaction: the one writer makes it exact.
-- takes: nothing
-- returns: position
SELECT 1 + max(
  (SELECT position_floor FROM runwick_store),
  (SELECT coalesce(max(position), 0) FROM runwick_job),
  (SELECT coalesce(max(position), 0) FROM runwick_attempt),
  (SELECT coalesce(max(position), 0) FROM runwick_closing),
  (SELECT coalesce(max(position), 0) FROM runwick_audit)
);
