-- returns: how many jobs were moved, how often all together, how often the one that was moved most
SELECT count(*), coalesce(sum(moved.times), 0), coalesce(max(moved.times), 0)
FROM (SELECT count(*) AS times FROM bench_moved GROUP BY job) AS moved
