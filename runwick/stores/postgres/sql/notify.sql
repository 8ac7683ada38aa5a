-- Tell who listens that these applications have work. The text is as short for a large job as for a small one.
-- takes: applications
SELECT pg_notify('runwick', application::text) FROM unnest($1::bigint[]) AS told (application);
