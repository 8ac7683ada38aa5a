-- What `claim` does, for jobs of which not all can be taken as they come: some end the claim, some have expired, some meet a
-- limit that is full.
--
--   candidate   the first due rows behind each lane's mark, locked; what somebody else has locked is passed over
--   judged      what becomes of each, as `judge` says
--   leased      what is taken        aside   what waits in a line, or longer        expired   what is closed instead
--
-- Candidates come in the order of the lanes, within a lane in claim order; that is their place, and they are not sorted
-- again until they are judged.
-- takes: $1 to $20 as `claim`; $21 and $22, per lane: the rank of its priority, its queue's scope (NULL: it has none); kinds
--        that have a scope, and these; how many more of each lane to read than it may give, how many to move aside and
--        how many to call at most
-- returns: rows that say in their first column what they are about. One each of
--            now             number: now_ms, due_at_ms: when the next is due, as `claim` says
--            claimed_before  in its stead: the token has claimed before
--            moved           in its stead: the number of what keeps jobs from being claimed is another one
--          and what there is of
--            lone, full, again, short   why it went no further, see `judge`; after short alone, nothing was written
--            limited         some of the candidates have limits
--            cut             number: from this lane on (from 1), there may be more
--            looked          number: a lane; how far it was judged: due_at_ms and job
--            left            number: a lane of which some stay behind that
--            called          lane, due_at_ms, job: a job that stands in its lane again
--            parked          number: how many
--            deferred        due_at_ms
--            taken           number: its place; due_at_ms and the columns of an attempt under way; whether it has limits of its own, how many
--                            scopes it holds, its tokens ([key, value] as declared, or NULL)
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'claim', $3, $4) AS open,
    EXISTS (SELECT FROM runwick.claim AS before WHERE before.token = $6) AS claimed_before,
    (SELECT intake.revision FROM runwick.intake AS intake WHERE intake.application = $5) <> $20 AS moved
), asking AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms,
    CASE WHEN $25 < $26 / greatest(cardinality($9::bigint[]), 1) THEN greatest($14, 1) + $25 * cardinality($9::bigint[]) END AS most
  FROM gate
  WHERE gate.open AND NOT gate.claimed_before AND NOT gate.moved
), candidate AS MATERIALIZED (
  SELECT lane.number, lane.rank, lane.scope, hot.*, coalesce(hot.expires_at_ms <= asking.now_ms, false) AS expired
  FROM asking
  CROSS JOIN unnest(
    $9::bigint[], $10::bigint[], $11::uuid[], $18::bigint[], $19::bigint[], $21::bigint[], $22::uuid[]
  ) WITH ORDINALITY AS lane (id, due_at_ms, job, most, waited_ms, rank, scope, number)
  CROSS JOIN LATERAL (
    SELECT hot.job, hot.due_at_ms, hot.kind, hot.payload_bytes, hot.max_executions - hot.executions < 2 AS lone,
      hot.expires_at_ms, hot.limited, hot.called
    FROM runwick.hot AS hot
    WHERE hot.lane = lane.id AND hot.due_at_ms <= asking.now_ms - lane.waited_ms
      AND (hot.due_at_ms, hot.job) > (lane.due_at_ms, lane.job)
      AND hot.kind = ANY ($12::bigint[]) AND hot.claim IS NULL AND hot.line IS NULL
    ORDER BY hot.due_at_ms, hot.job
    LIMIT least(lane.most, greatest($14, 1)) + $25
    FOR UPDATE SKIP LOCKED
  ) AS hot
  LIMIT (SELECT asking.most FROM asking)
), every AS MATERIALIZED (
  SELECT
    array_agg(job) AS jobs, array_agg(number) AS lanes, array_agg(due_at_ms) AS dues_ms, array_agg(rank::integer) AS ranks,
    array_agg(payload_bytes) AS bytes, array_agg(lone) AS lone, array_agg(expired) AS expired, array_agg(called) AS called,
    array_agg(limited) AS limited, array_agg(scope) AS lane_scopes,
    array_agg(($24::uuid[])[array_position($23::bigint[], kind::bigint)]) AS kind_scopes
  FROM candidate
), judged AS MATERIALIZED (
  SELECT judged.*, every.jobs[judged.place] AS own, every.dues_ms[judged.place] AS stood_ms,
    every.lanes[judged.place] AS number, every.ranks[judged.place] AS rank
  FROM every
  CROSS JOIN LATERAL runwick.judge(
    $6, every.jobs, every.lanes, every.bytes, every.lone, every.expired, every.called, every.ranks, every.limited,
    every.lane_scopes, every.kind_scopes, $18::bigint[], $14, $13, $15, $25, $26, $27
  ) AS judged
  WHERE every.jobs IS NOT NULL
), head AS MATERIALIZED (
  SELECT runwick.now_ms() AS now_ms, cardinality(every.jobs) AS found, count(judged.fate) AS judged
  FROM every LEFT JOIN judged ON true
  GROUP BY every.jobs
), leased AS (
  UPDATE runwick.hot AS hot SET
    state = CASE WHEN hot.payload_bytes <= $17 OR job.rates IS NOT NULL THEN 'running' ELSE 'reserved' END,
    revision = hot.revision + 1,
    attempts = hot.attempts + 1,
    executions = hot.executions + (hot.payload_bytes <= $17 OR job.rates IS NOT NULL)::integer,
    holds = judged.holds,
    called = NULL,
    claim = $6,
    lease_until_ms = head.now_ms + $16
  FROM head JOIN judged ON judged.fate = 'taken' JOIN runwick.job AS job ON job.id = judged.own
  WHERE hot.job = judged.own
  RETURNING
    judged.place::bigint, hot.due_at_ms, hot.job, hot.lane, hot.kind, job.policy, hot.state = 'running' AS begun, hot.generation, hot.attempts,
    hot.executions, hot.max_executions, hot.unstarted, hot.crashes, hot.payload_bytes, job.created_at_ms, job.metadata,
    job.tenant, job.traceparent, job.tracestate, CASE WHEN hot.state = 'running' THEN job.payload END AS payload,
    hot.limited, hot.holds, judged.fences
), claimed AS (
  INSERT INTO runwick.claim (token, first_attempt_id, worker, claimed_at_ms, check_at_ms, application, jobs)
  SELECT $6, $7, $8, asking.now_ms, head.now_ms + $16, $5::integer, (SELECT array_agg(judged.own) FROM judged WHERE judged.fate = 'taken')
  FROM asking CROSS JOIN head
  WHERE EXISTS (SELECT FROM judged WHERE judged.fate = 'taken')
), aside AS (
  UPDATE runwick.hot AS hot SET
    line = CASE judged.fate WHEN 'parked' THEN judged.at_limit END,
    rank = CASE judged.fate WHEN 'parked' THEN judged.rank END,
    called = CASE judged.fate WHEN 'deferred' THEN judged.at_limit END,
    due_at_ms = coalesce(judged.due_at_ms, hot.due_at_ms)
  FROM judged
  WHERE judged.fate IN ('parked', 'deferred') AND hot.job = judged.own
), expired AS (
  DELETE FROM runwick.hot AS hot USING judged
  WHERE hot.job = judged.own AND judged.fate = 'expired'
  RETURNING greatest(pg_current_xact_id(), hot.told_xid) AS told_xid, hot.job, hot.generation, hot.application,
    hot.revision + 1 AS revision, hot.executions
), closed AS (
  INSERT INTO runwick.closing (xid, job, generation, application, revision, executions, ended_at_ms, state, code)
  SELECT expired.*, head.now_ms, 'failed', 'expired' FROM head CROSS JOIN expired
), looked AS (
  SELECT read.number, judged.number AS judged_number, judged.stood_ms, judged.own, coalesce(judged.many, 0) < read.many
      OR read.many >= least(($18::bigint[])[read.number], greatest($14, 1)) + $25 AS is_left
  FROM (SELECT candidate.number, count(*) AS many FROM candidate GROUP BY candidate.number) AS read
  LEFT JOIN LATERAL (
    SELECT judged.number, judged.stood_ms, judged.own, count(*) OVER () AS many
    FROM judged
    WHERE judged.number = read.number
    ORDER BY judged.place DESC
    LIMIT 1
  ) AS judged ON true
)
SELECT
  CASE WHEN gate.claimed_before THEN 'claimed_before' WHEN gate.moved THEN 'moved' ELSE 'now' END AS about,
  asking.now_ms AS number,
  CASE WHEN head.found > 0 THEN asking.now_ms ELSE runwick.next_due_ms($9, $19, $12, asking.now_ms) END AS due_at_ms,
  nobody.job, nobody.lane, nobody.kind, nobody.policy, nobody.begun, nobody.generation, nobody.attempts,
  nobody.executions, nobody.max_executions, nobody.unstarted, nobody.crashes, nobody.payload_bytes, nobody.created_at_ms,
  nobody.metadata, nobody.tenant, nobody.traceparent, nobody.tracestate, nobody.payload, nobody.limited, nobody.holds,
  nobody.fences
FROM gate CROSS JOIN head LEFT JOIN asking ON true LEFT JOIN leased AS nobody ON false
UNION ALL
SELECT note.*, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM (
  SELECT judged.fate, NULL::bigint AS number, judged.due_at_ms, judged.job, judged.lane
  FROM judged
  WHERE judged.fate IN ('called', 'deferred', 'lone', 'full', 'again', 'short')
  UNION ALL
  SELECT 'parked', count(*), NULL, NULL, NULL FROM judged WHERE judged.fate = 'parked'
  UNION ALL
  SELECT 'limited', NULL, NULL, NULL, NULL
  WHERE EXISTS (SELECT FROM candidate WHERE limited OR scope IS NOT NULL) OR cardinality($24::uuid[]) > 0
  UNION ALL
  SELECT 'cut', max(candidate.number), NULL, NULL, NULL FROM candidate HAVING count(*) >= (SELECT asking.most FROM asking)
  UNION ALL
  SELECT 'looked', looked.number, looked.stood_ms, looked.own, NULL FROM looked WHERE looked.own IS NOT NULL
  UNION ALL
  SELECT 'left', looked.number, NULL, NULL, NULL FROM looked WHERE looked.is_left
) AS note
UNION ALL
SELECT 'taken', leased.* FROM leased;
