-- Which operation created the job with id ?1.
-- returns: operation_id
SELECT operation_id FROM runwick_job WHERE id = ?1;
