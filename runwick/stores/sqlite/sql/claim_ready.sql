-- The next due jobs of one kind in one lane, in claim order, from the index alone.
-- takes: lane, kind, now_ms, the due_at_ms and job_id behind which to start, how many
-- returns: due_at_ms, job_id, job, ahead, payload_bytes, expires_at_ms, limited
SELECT due_at_ms, job_id, job, ahead, payload_bytes, expires_at_ms, limited
FROM runwick_hot
WHERE lane = ?1 AND kind = ?2 AND lease_until_ms IS NULL AND line IS NULL
  AND due_at_ms <= ?3 AND (due_at_ms, job_id) > (?4, ?5)
ORDER BY due_at_ms, job_id
LIMIT ?6;
