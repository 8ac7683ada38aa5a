-- Whether a claim with the token ?1 took something before, so that this one is sent again.
-- returns: id, or no row
SELECT id FROM runwick_claim WHERE token = ?1;
