-- What lists need to be quick however many jobs there are.

-- The jobs of a queue, of a type, or of both, the latest first: each pair of lane and kind is one run of this index, and a
-- list merges the runs that it needs. It is the one index that every dispatch pays for.
CREATE INDEX runwick_job_run ON runwick_job (lane, kind);

-- Those of a tenant. A job without one is not in it.
CREATE INDEX runwick_job_tenant ON runwick_job (application, tenant) WHERE tenant IS NOT NULL;

-- Who stands in lines, by lane, as outlooks and backlogs count them. Only those that are moved aside pay for it.
CREATE INDEX runwick_hot_blocked ON runwick_hot (lane, kind, due_at_ms, line) WHERE line IS NOT NULL;

-- What was done to one job.
CREATE INDEX runwick_audit_job ON runwick_audit (job) WHERE job IS NOT NULL;
