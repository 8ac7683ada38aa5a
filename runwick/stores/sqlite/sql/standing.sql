-- How the store takes work of the application of the name ?1, which need not have used it yet.
-- returns: store_id, admission, capabilities (a JSON array)
SELECT store.store_id, coalesce(application.admission, 'open'), coalesce(application.capabilities, '[]')
FROM runwick_store AS store
LEFT JOIN runwick_application AS application ON application.name = ?1
WHERE store.one = 1;
