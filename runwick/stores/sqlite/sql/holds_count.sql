-- How many attempts under way hold the scope ?1.
-- returns: count
SELECT count(*)
FROM runwick_hold AS hold
CROSS JOIN runwick_hot AS hot ON hot.job = hold.job AND hot.claim = hold.claim
WHERE hold.scope = ?1;
