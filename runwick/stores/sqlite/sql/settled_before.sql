-- Attempts that have ended already.
-- takes: jobs (a JSON array)
-- returns: attempt_id, outcome
SELECT attempt.attempt_id, attempt.outcome
FROM json_each(?1) AS asked
CROSS JOIN runwick_attempt AS attempt ON attempt.job = asked.value;
