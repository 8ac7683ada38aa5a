-- Do what was decided by what `keyed` read: make jobs durable with their keys and limits, and note which dispatches found
-- existing ones; all of it or nothing. What came in between is met at an index, in one order for everybody: dispatches,
-- window keys and limits by their ids, jobs, active keys. There the statement waits for who is just writing that; if that
-- is committed, it fails or undoes itself (RW007) with nothing written, and sees it when it is run again.
-- takes: the gate's $1 to $4; application; when it was read; per new job: id, operation, lane, kind, policy, most
--        executions, deadline, not before, or a delay, expiry, or a time to live, tenant, traceparent, tracestate,
--        metadata, payload, both keys, the id of the active one;
--        $26 to $29, what jobs need: for each resource the job's place (from 1) and the scope, in the order declared; for
--        each window likewise;
--        $30 to $38, limits that may be new: of scopes id, kind, key, capacity; of windows id, kind, key, most, window_ms;
--        $39 to $42, per window key that is given away: id, job, for how many milliseconds, fingerprint;
--        $43 to $47, per dispatch that found an existing job: operation, job, deadline, which key found it, whether
--        policies differ (0 or 1); whether to tell who listens;
--        $49 to $55, none or one, of a dispatch by hand: actor, its name for people, its scheme, reason, for the audit
--        trail; operation, fingerprint, reply, which are kept as a command
-- returns: whether something came after its deadline; then nothing was written
WITH gate AS MATERIALIZED (
  SELECT runwick.gate($1, $2::integer, $5::integer, 'dispatch', $3, $4) AS open, runwick.now_ms() AS now_ms
), intime AS MATERIALIZED (
  SELECT gate.now_ms
  FROM gate
  WHERE gate.open AND gate.now_ms <= ALL ($13::bigint[]) AND gate.now_ms <= ALL ($45::bigint[])
), noted AS (
  INSERT INTO runwick.reused (operation, application, job, deadline_ms, match, drift)
  SELECT found.operation, $5::integer, found.job, found.deadline_ms, found.match, found.drift = 1
  FROM intime
  CROSS JOIN unnest($43::uuid[], $44::uuid[], $45::bigint[], $46::text[], $47::bigint[])
    AS found (operation, job, deadline_ms, match, drift)
  ORDER BY found.operation
  RETURNING 1
), given AS (
  INSERT INTO runwick.uniqueness AS own (id, application, job, until_ms, fingerprint)
  SELECT key.id, $5::integer, key.job, intime.now_ms + key.window_ms, key.fingerprint
  FROM intime CROSS JOIN unnest($39::uuid[], $40::uuid[], $41::bigint[], $42::bytea[]) AS key (id, job, window_ms, fingerprint)
  WHERE (SELECT count(*) FROM noted) IS NOT NULL
  ORDER BY key.id
  ON CONFLICT (id) DO UPDATE
    SET job = excluded.job, until_ms = excluded.until_ms, fingerprint = excluded.fingerprint
    WHERE own.until_ms <= $6
  RETURNING 1
), going AS MATERIALIZED (
  SELECT intime.now_ms
  FROM intime
  WHERE CASE WHEN (SELECT count(*) FROM given) = cardinality($39::uuid[]) THEN true ELSE runwick.undo('RW007', '') END
), scopes AS (
  INSERT INTO runwick.scope (id, created_at_ms, application, kind, key, capacity)
  SELECT need.id, going.now_ms, $5::integer, need.kind, need.key, need.capacity
  FROM going CROSS JOIN unnest($30::uuid[], $31::text[], $32::text[], $33::bigint[]) AS need (id, kind, key, capacity)
  ORDER BY need.id
  ON CONFLICT (id) DO NOTHING
  RETURNING kind
), windows AS (
  INSERT INTO runwick.rate_window (id, created_at_ms, application, kind, key, most, window_ms)
  SELECT need.id, going.now_ms, $5::integer, need.kind, need.key, need.most, need.window_ms
  FROM going
  CROSS JOIN unnest($34::uuid[], $35::text[], $36::text[], $37::bigint[], $38::bigint[])
    AS need (id, kind, key, most, window_ms)
  WHERE (SELECT count(*) FROM scopes) IS NOT NULL
  ORDER BY need.id
  ON CONFLICT (id) DO NOTHING
  RETURNING 1
), raised AS (
  UPDATE runwick.intake AS intake SET revision = intake.revision + 1
  WHERE (SELECT count(*) FROM windows) IS NOT NULL AND (SELECT count(*) FROM scopes WHERE kind <> 'resource') > 0
    AND intake.application = $5
  RETURNING 1
), fresh AS MATERIALIZED (
  SELECT
    asked.*, going.now_ms, coalesce(going.now_ms + asked.expires_in_ms, asked.expires_at_ms) AS expiry_ms,
    (
      SELECT array_agg(need.id ORDER BY need.number)
      FROM unnest($26::bigint[], $27::uuid[]) WITH ORDINALITY AS need (place, id, number)
      WHERE need.place = asked.place
    ) AS scopes,
    (
      SELECT array_agg(need.id ORDER BY need.number)
      FROM unnest($28::bigint[], $29::uuid[]) WITH ORDINALITY AS need (place, id, number)
      WHERE need.place = asked.place
    ) AS rates
  FROM going
  CROSS JOIN unnest(
    $7::uuid[], $8::uuid[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $14::bigint[], $15::bigint[],
    $16::bigint[], $17::bigint[], $18::text[], $19::text[], $20::text[], $21::bytea[], $22::bytea[], $23::text[],
    $24::text[], $25::uuid[]
  ) WITH ORDINALITY AS asked (
    id, operation_id, lane, kind, policy, max_executions, not_before_ms, delay_ms, expires_at_ms, expires_in_ms, tenant,
    traceparent, tracestate, metadata, payload, active_key, window_key, active, place
  )
), created AS (
  INSERT INTO runwick.job (
    id, created_at_ms, expires_at_ms, operation_id, application, lane, kind, policy, payload_bytes, tenant, traceparent,
    tracestate, metadata, payload, active_key, window_key, scopes, rates
  )
  SELECT
    id, now_ms, expiry_ms, operation_id, $5::integer, lane, kind, policy, octet_length(payload), tenant, traceparent,
    tracestate, metadata, payload, active_key, window_key, scopes, rates
  FROM fresh
  WHERE (SELECT count(*) FROM raised) IS NOT NULL
  ORDER BY place
  RETURNING 1
), waiting AS (
  INSERT INTO runwick.hot (
    job, due_at_ms, expires_at_ms, application, lane, kind, payload_bytes, max_executions, limited, active
  )
  SELECT
    id, coalesce(now_ms + delay_ms, greatest(now_ms, not_before_ms)), expiry_ms, $5::integer, lane, kind,
    octet_length(payload), max_executions, scopes IS NOT NULL OR rates IS NOT NULL, active
  FROM fresh
  WHERE (SELECT count(*) FROM created) IS NOT NULL
  ORDER BY active, place
), audited AS (
  INSERT INTO runwick.audit (
    at_ms, job, command_id, application, generation, actor, actor_display, actor_scheme, action, after, reason
  )
  SELECT
    fresh.now_ms, fresh.id, fresh.operation_id, $5::integer, 1, note.actor, note.display, note.scheme, 'dispatch', 'pending',
    note.reason
  FROM fresh
  CROSS JOIN unnest($49::text[], $50::text[], $51::text[], $52::text[]) AS note (actor, display, scheme, reason)
  WHERE (SELECT count(*) FROM created) IS NOT NULL  -- first what was done: positions tell what followed from what
), kept AS (
  INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply)
  SELECT $5::integer, command.id, going.now_ms, command.fingerprint, command.reply
  FROM going CROSS JOIN unnest($53::uuid[], $54::bytea[], $55::text[]) AS command (id, fingerprint, reply)
  WHERE (SELECT count(*) FROM created) IS NOT NULL  -- of two sendings at once, one waits at the job
), told AS MATERIALIZED (
  SELECT pg_notify('runwick', $5::text) FROM going WHERE $48 AND EXISTS (SELECT FROM fresh)
)
SELECT NOT EXISTS (SELECT FROM intime) WHERE (SELECT count(*) FROM told) IS NOT NULL;
