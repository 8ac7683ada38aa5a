-- How many jobs PgQueuer ended well, how many it left, and when it wrote down the last end (seconds since the epoch).
SELECT count(*), (SELECT count(*) FROM pgqueuer), extract(epoch FROM max(created))::float8
FROM pgqueuer_log
WHERE status = 'successful'
