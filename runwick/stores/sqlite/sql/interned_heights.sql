-- How far the tables of interned names reach, and how often what may be claimed was changed; a store object compares it
-- with what it has read.
-- takes: nothing
-- returns: one row: the last id of application, lane, kind, policy; the sum of intake revisions
SELECT
  (SELECT coalesce(max(id), 0) FROM runwick_application),
  (SELECT coalesce(max(id), 0) FROM runwick_lane),
  (SELECT coalesce(max(id), 0) FROM runwick_kind),
  (SELECT coalesce(max(id), 0) FROM runwick_policy),
  (SELECT coalesce(sum(revision), 0) FROM runwick_intake);
