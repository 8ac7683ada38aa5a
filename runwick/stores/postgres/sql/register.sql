-- Go on only if a worker of this application is admitted.
-- takes: the gate's $1 to $4; application
-- returns: one row
SELECT true WHERE runwick.gate($1, $2::integer, $5::integer, 'register', $3, $4);
