-- Stacks that are asked for of attempts that a worker still holds, in the order in which they were first asked for. What
-- was asked for too long ago is not waited for any more.
-- takes: worker, asked_at_ms behind which to look, how many
-- returns: attempt_id, job, claim_token
SELECT look.attempt_id, look.job, look.claim_token
FROM runwick_look AS look
CROSS JOIN runwick_hot AS hot ON hot.job = look.job
CROSS JOIN runwick_claim AS claim ON claim.id = hot.claim
WHERE look.worker = ?1 AND look.answered_at_ms IS NULL AND claim.token = look.claim_token
  AND look.asked_at_ms > ?2
ORDER BY look.rowid
LIMIT ?3;
