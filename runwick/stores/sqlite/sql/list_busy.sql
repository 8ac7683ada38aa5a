-- The jobs of an application that are leased, or between two executions, in no order.
-- takes: application, whether leased ones, whether retrying ones, how many
-- returns: job
SELECT job FROM runwick_hot WHERE application = ?1 AND lease_until_ms IS NOT NULL AND ?2
UNION ALL
SELECT job FROM runwick_hot WHERE application = ?1 AND state = 'retrying' AND ?3
LIMIT ?4;
