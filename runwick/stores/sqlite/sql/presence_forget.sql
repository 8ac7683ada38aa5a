-- Forget workers that were not seen since ?1.
DELETE FROM runwick_worker WHERE seen_at_ms < ?1;
