-- The store's identity.
-- returns: store_id
SELECT store_id FROM store WHERE one = 1;
