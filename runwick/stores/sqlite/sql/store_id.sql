-- The store's identity.
-- returns: store_id
SELECT store_id FROM runwick_store WHERE one = 1;
