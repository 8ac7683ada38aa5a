-- Make an application capable of something; no row when it was already.
-- takes: id, name of the capability
-- returns: capabilities before, capabilities after
UPDATE runwick.application AS application SET capabilities = array_append(before.capabilities, $2::text)
FROM (SELECT id, capabilities FROM runwick.application WHERE id = $1::integer FOR NO KEY UPDATE) AS before
WHERE application.id = before.id AND $2::text <> ALL (before.capabilities)
RETURNING before.capabilities, application.capabilities;
