-- Which operation created the job with id ?1.
-- returns: operation_id, or no row while there is no such job
SELECT operation_id FROM runwick_job WHERE id = ?1;
