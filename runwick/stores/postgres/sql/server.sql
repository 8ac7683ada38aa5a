-- What a store depends on in its server and its session.
-- returns: version_number, version, encoding, standard_strings, in_recovery, read_only, synchronous_commit, fsync
SELECT
  current_setting('server_version_num')::integer,
  current_setting('server_version'),
  current_setting('server_encoding'),
  current_setting('standard_conforming_strings'),
  pg_is_in_recovery(),
  current_setting('transaction_read_only'),
  current_setting('synchronous_commit'),
  current_setting('fsync');
