-- What a process that opens a connection learns of its store: who it is, how far it has come, what time it is there.
-- The flushed position of the write-ahead log only rises, over crashes too, and a restored server is on another timeline.
-- returns: id, revision, now_ms, database, table, timeline, position, full_page_writes
SELECT
  own.id,
  (SELECT max(number) FROM runwick.migration),
  runwick.now_ms(),
  (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
  own.tableoid::bigint,
  ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::integer,
  (pg_current_wal_flush_lsn() - '0/0')::bigint,
  current_setting('full_page_writes')
FROM runwick.store AS own WHERE own.one;
