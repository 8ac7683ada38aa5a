-- A scope as it stands now.
-- takes: id, in_use, fence, calls, has_line
UPDATE runwick_scope SET in_use = ?2, fence = ?3, calls = ?4, has_line = ?5 WHERE id = ?1;
