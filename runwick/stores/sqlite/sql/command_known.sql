-- What a command was and what was answered, if it changed something before.
-- takes: application, id
-- returns: fingerprint, reply; or no row
SELECT fingerprint, reply FROM runwick_command WHERE application = ?1 AND id = ?2;
