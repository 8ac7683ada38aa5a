-- Put applications into a mode.
-- takes: ids, mode
UPDATE runwick.application SET admission = $2 WHERE id = ANY ($1::integer[]);
