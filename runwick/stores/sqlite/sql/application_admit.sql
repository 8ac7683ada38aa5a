-- Put an application into a mode.
-- takes: id, admission
UPDATE runwick_application SET admission = ?2 WHERE id = ?1;
