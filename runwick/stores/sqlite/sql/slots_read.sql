-- What lies in these slots of a rate window.
-- takes: rate_window, slots (a JSON array)
-- returns: slot, at_ms
SELECT given.slot, given.at_ms
FROM json_each(?2) AS asked
CROSS JOIN runwick_rate_grant AS given ON given.rate_window = ?1 AND given.slot = asked.value;
