-- What an application is capable of from now on.
-- takes: id, capabilities (a sorted JSON array)
UPDATE runwick_application SET capabilities = ?2 WHERE id = ?1;
