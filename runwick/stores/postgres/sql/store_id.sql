-- The store's identity.
-- returns: id
SELECT id FROM runwick.store WHERE one;
