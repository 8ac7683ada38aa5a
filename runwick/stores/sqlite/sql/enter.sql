-- What every transaction meets first: whose store this is, how late it is there at least, and which applications do not
-- stand like most others. Most are open, with the capabilities of a store that is new, or of an old one.
-- takes: nothing
-- returns: one row: revision, store_id, the latest time that a worker has seen (or NULL), applications
--          (a JSON array of [id, name, admission, capabilities])
SELECT
  (SELECT max(number) FROM runwick_migration),
  (SELECT store_id FROM runwick_store WHERE one = 1),
  (SELECT max(seen_at_ms) FROM runwick_worker),
  (SELECT json_group_array(json_array(id, name, admission, json(capabilities))) FROM runwick_application
   WHERE admission <> 'open' OR capabilities NOT IN ('[]', '["rate_admission","scheduler"]'));
