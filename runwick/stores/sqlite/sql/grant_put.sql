-- Put a grant into its slot, over the one that has left.
-- takes: rate_window, slot, at_ms
INSERT INTO runwick_rate_grant (rate_window, slot, at_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (rate_window, slot) DO UPDATE SET at_ms = ?3;
