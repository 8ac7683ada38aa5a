-- What these candidates need besides an executor.
-- takes: jobs (a JSON array)
-- returns: job, lane, kind, called, scopes, rates (ids of 16 bytes each, or NULL)
SELECT hot.job, hot.lane, hot.kind, hot.called, need.scopes, need.rates
FROM json_each(?1) AS asked
CROSS JOIN runwick_hot AS hot ON hot.job = asked.value
LEFT JOIN runwick_need AS need ON need.job = hot.job;
