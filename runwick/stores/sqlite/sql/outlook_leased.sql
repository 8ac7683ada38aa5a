-- How many jobs of application ?1 are claimed, by anybody.
-- returns: lane, kind, count
SELECT lane, kind, count(*) FROM runwick_hot WHERE application = ?1 AND lease_until_ms IS NOT NULL GROUP BY lane, kind;
