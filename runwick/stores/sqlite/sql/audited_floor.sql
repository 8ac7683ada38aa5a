-- The last of as many rows of the audit trail as a page looks at, in front of a position.
-- takes: position, how many
-- returns: position; no row where there are fewer
SELECT position FROM runwick_audit WHERE position < ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2 - 1;
