-- A store in long use: 100,000 waiting jobs, 100,000 ended ones with attempts, 10,000 leased ones in as many claims.
-- Application 1, its lanes 1 to 3 and kinds 1 and 2, and policy 1 exist. Waiting jobs have been due for 600 s to 500 s; one
-- in ten expires in an hour. Of the leased ones, one in a hundred has expired and one in two hundred is asked to stop.
-- Job ids count up: 1… wait, 200001… have ended, 400001… are leased.

CREATE FUNCTION public.id_of(number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
  RETURN ('01900000-0000-7000-8000-' || lpad(to_hex(number), 12, '0'))::uuid;

INSERT INTO runwick.job (id, created_at_ms, operation_id, application, lane, kind, policy, payload_bytes, payload)
SELECT public.id_of(number), 0, public.id_of(number), 1, 2, 1, 1, 2, '{}'
FROM (VALUES (1), (200001), (400001)) AS start (first)
CROSS JOIN LATERAL generate_series(first, first + CASE first WHEN 400001 THEN 9999 ELSE 99999 END) AS number;

INSERT INTO runwick.hot (job, due_at_ms, expires_at_ms, application, lane, kind, payload_bytes, max_executions)
SELECT
  public.id_of(number), now.ms - 600000 + number, CASE number % 10 WHEN 0 THEN now.ms + 3600000 END, 1, 2, 1, 2, 3
FROM (SELECT runwick.now_ms() AS ms) AS now CROSS JOIN generate_series(1, 100000) AS number;

INSERT INTO runwick.attempt (
  job, generation, number, attempt_id, ended_at_ms, application, revision, kind, executions, outcome
)
SELECT public.id_of(number), 1, 1, public.id_of(number + 1000000), 0, 1, 3, 1, 1, 'succeeded'
FROM generate_series(200001, 300000) AS number;

INSERT INTO runwick.hot (
  job, due_at_ms, application, lane, kind, payload_bytes, max_executions, attempts, executions, revision, state,
  claim, lease_until_ms, expires_at_ms, cancel_requested_at_ms
)
SELECT
  public.id_of(number), now.ms - 700000, 1, 2, 1, 2, 3, 1, 1, 2, 'running', public.id_of(number), now.ms + 3600000,
  CASE number % 100 WHEN 0 THEN 1 END, CASE number % 200 WHEN 0 THEN 1 END
FROM (SELECT runwick.now_ms() AS ms) AS now CROSS JOIN generate_series(400001, 410000) AS number;

INSERT INTO runwick.claim (token, first_attempt_id, worker, claimed_at_ms, check_at_ms, application, jobs)
SELECT
  public.id_of(number), public.id_of(number + 2000000), public.id_of(0), 0, now.ms + 3600000, 1,
  ARRAY[public.id_of(number)]
FROM (SELECT runwick.now_ms() AS ms) AS now CROSS JOIN generate_series(400001, 410000) AS number;
