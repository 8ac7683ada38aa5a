-- Give a name its number. The new application is open, and as capable as its store says.
-- takes: name
-- returns: id
INSERT INTO runwick_application (name, capabilities) SELECT ?1, capabilities FROM runwick_store RETURNING id;
