-- The tokens of the attempts under way of these jobs.
-- takes: jobs (a JSON array)
-- returns: job, scope, its key, token, ids of the job's resources in the order declared (16 bytes each)
SELECT hold.job, hold.scope, scope.key, hold.fence, need.scopes
FROM json_each(?1) AS asked
CROSS JOIN runwick_hold AS hold ON hold.job = asked.value
CROSS JOIN runwick_scope AS scope ON scope.id = hold.scope
CROSS JOIN runwick_need AS need ON need.job = hold.job
WHERE hold.fence IS NOT NULL;
