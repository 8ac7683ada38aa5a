-- Give the store another identity.
-- takes: store_id
UPDATE runwick_store SET store_id = ?1 WHERE one = 1;
