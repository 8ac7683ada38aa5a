-- Why a job waits: all that may keep it, of one moment.
-- takes: the gate's $1 to $3; name of the application, job, for how long an unseen worker counts as alive, up to how many
--        jobs in front are counted
-- returns: state, whether it waits, now_ms, due_at_ms, whether that is what keeps it, whether it has expired, whether
--          nothing is admitted, whether its queue is paused, workers that serve the queue, whether one of these decodes it,
--          whether one did not tell, jobs in front of it in its lane; then two JSON arrays, by id. Of the scopes that it
--          needs: an array of what `scopes` returns; whether it stands in that line, and behind how many of its priority.
--          Of the windows, likewise as `rates`, and whether it was promised a place there
WITH asked AS MATERIALIZED (
  SELECT
    gate.now_ms, application.id AS application, application.admission, job.id, job.scopes, job.rates, lane.queue,
    kind.name, kind.version, hot.lane, hot.due_at_ms, hot.expires_at_ms, hot.line, hot.rank, hot.called, hot.state,
    hot.job IS NOT NULL AND hot.claim IS NULL AS waits
  FROM (
    SELECT runwick.now_ms() AS now_ms WHERE runwick.gate($1, $2::integer, NULL, 'why', $3, NULL)
  ) AS gate
  JOIN runwick.application AS application ON application.name = $4
  JOIN runwick.job AS job ON job.id = $5 AND job.application = application.id
  JOIN runwick.lane AS lane ON lane.id = job.lane
  JOIN runwick.kind AS kind ON kind.id = job.kind
  LEFT JOIN runwick.hot AS hot ON hot.job = job.id
), scopes AS MATERIALIZED (
  SELECT own.*
  FROM asked
  CROSS JOIN LATERAL (
    SELECT scope.* FROM unnest(asked.scopes) AS need (id) JOIN runwick.scope AS scope ON scope.id = need.id
    UNION ALL
    SELECT scope.*
    FROM runwick.scope AS scope
    WHERE scope.application = asked.application
      AND (scope.kind = 'queue' AND scope.key = asked.queue OR scope.kind = 'job-type' AND scope.key = asked.name)
  ) AS own
  WHERE asked.waits
), windows AS MATERIALIZED (
  SELECT own.*, (
    SELECT count(*)
    FROM runwick.rate_grant AS made
    WHERE made.rate_window = own.id
      AND made.at_ms + own.window_ms > greatest(asked.now_ms + own.shift_ms, own.last_ms)
  ) AS in_window
  FROM asked
  CROSS JOIN LATERAL unnest(asked.rates) AS need (id)
  JOIN runwick.rate_window AS own ON own.id = need.id
  WHERE asked.waits
), ahead AS MATERIALIZED (
  SELECT count(*) AS in_line
  FROM asked
  CROSS JOIN LATERAL (
    SELECT FROM runwick.hot AS other
    WHERE other.line = asked.line AND other.rank = asked.rank AND other.job < asked.id
    LIMIT $7
  ) AS front
)
SELECT
  coalesce(asked.state, (
    SELECT ended.state FROM runwick.last_end(asked.id) AS ended
  )),
  asked.waits,
  asked.now_ms,
  asked.due_at_ms,
  asked.due_at_ms > asked.now_ms
    AND NOT EXISTS (SELECT FROM runwick.rate_window AS promised WHERE promised.id = asked.called),
  coalesce(asked.expires_at_ms <= asked.now_ms, false),
  asked.admission <> 'open',
  EXISTS (
    SELECT FROM runwick.pause AS pause
    WHERE pause.application = asked.application AND pause.queue = asked.queue AND pause.since_ms IS NOT NULL
  ),
  serving.workers,
  coalesce(serving.decodes, false),
  coalesce(serving.untold, false),
  (
    SELECT count(*)
    FROM (
      SELECT FROM runwick.hot AS other
      WHERE other.lane = asked.lane AND other.line IS NULL AND other.claim IS NULL
        AND (other.due_at_ms, other.job) < (asked.due_at_ms, asked.id)
      LIMIT $7
    ) AS front
  ),
  (
    SELECT coalesce(json_agg(json_build_array(
      json_build_array(
        scopes.id, scopes.kind, scopes.key, scopes.capacity, scopes.in_use,
        EXISTS (SELECT FROM runwick.hot AS other WHERE other.line = scopes.id LIMIT 1), scopes.revision, scopes.fence
      ),
      scopes.id IS NOT DISTINCT FROM asked.line, ahead.in_line
    ) ORDER BY scopes.id), '[]')::text
    FROM scopes CROSS JOIN ahead
  ),
  (
    SELECT coalesce(json_agg(json_build_array(
      json_build_array(
        windows.id, windows.kind, windows.key, windows.most, windows.window_ms, windows.granted, windows.in_window,
        EXISTS (SELECT FROM runwick.hot AS other WHERE other.line = windows.id LIMIT 1)
      ),
      windows.id IS NOT DISTINCT FROM asked.line, ahead.in_line,
      windows.id IS NOT DISTINCT FROM asked.called AND asked.due_at_ms > asked.now_ms
    ) ORDER BY windows.id), '[]')::text
    FROM windows CROSS JOIN ahead
  )
FROM asked
CROSS JOIN LATERAL (
  SELECT count(*) AS workers,
    bool_or(worker.kinds::jsonb @> jsonb_build_array(jsonb_build_array(asked.name, asked.version))) AS decodes,
    bool_or(worker.kinds IS NULL) AS untold
  FROM runwick.worker AS worker
  WHERE worker.application = asked.application AND worker.departed_at_ms IS NULL
    AND worker.seen_at_ms > asked.now_ms - $6 AND worker.queues::jsonb @> to_jsonb(asked.queue)
) AS serving;
