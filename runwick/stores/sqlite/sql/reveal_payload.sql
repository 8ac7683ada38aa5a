-- What job ?1 was dispatched with.
SELECT payload FROM runwick_job WHERE position = ?1;
