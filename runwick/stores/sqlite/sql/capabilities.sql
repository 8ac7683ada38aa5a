-- What the application of the name ?1 is capable of, or will be when it is new.
-- returns: capabilities (a JSON array)
SELECT coalesce(
  (SELECT capabilities FROM runwick_application WHERE name = ?1),
  (SELECT capabilities FROM runwick_store WHERE one = 1)
);
