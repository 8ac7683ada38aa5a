-- Go on only if a worker of this application is admitted, and read what its scopes allow.
-- takes: the gate's $1 to $4; application; scopes
-- returns: their capacities, in order; NULL where none were asked for
SELECT (
  SELECT array_agg(scope.capacity ORDER BY asked.place)
  FROM unnest($6::uuid[]) WITH ORDINALITY AS asked (id, place) JOIN runwick.scope AS scope ON scope.id = asked.id
)
WHERE runwick.gate($1, $2::integer, $5::integer, 'register', $3, $4);
