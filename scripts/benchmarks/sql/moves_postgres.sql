-- returns: how many jobs were moved, how often all together, how often the one that was moved most
SELECT count(*), coalesce(sum(moved.times), 0)::bigint, coalesce(max(moved.times), 0)
FROM (SELECT count(*) AS times FROM public.bench_moved GROUP BY job) AS moved
