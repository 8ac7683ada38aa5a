-- How many places these jobs hold.
-- takes: jobs (a JSON array)
-- returns: scope, one row for each place
SELECT hold.scope
FROM json_each(?1) AS asked
CROSS JOIN runwick_hold AS hold ON hold.job = asked.value;
