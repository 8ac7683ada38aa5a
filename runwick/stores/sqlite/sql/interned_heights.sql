-- How far the tables of interned names reach; a store object compares it with what it has read.
-- takes: nothing
-- returns: one row: the last id of application, lane, kind, policy
SELECT
  (SELECT coalesce(max(id), 0) FROM application),
  (SELECT coalesce(max(id), 0) FROM lane),
  (SELECT coalesce(max(id), 0) FROM kind),
  (SELECT coalesce(max(id), 0) FROM policy);
