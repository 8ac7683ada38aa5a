-- Whether rows bear transactions of another server: a dump that was read back here brought them along, and they count
-- further than this one.
SELECT
  EXISTS (SELECT FROM runwick.job AS job WHERE job.xid >= here.next_xid)
  OR EXISTS (SELECT FROM runwick.attempt AS attempt WHERE attempt.xid >= here.next_xid)
  OR EXISTS (SELECT FROM runwick.closing AS closing WHERE closing.xid >= here.next_xid)
  OR EXISTS (SELECT FROM runwick.audit AS audit WHERE audit.xid >= here.next_xid)
  OR EXISTS (SELECT FROM runwick.hot AS hot WHERE hot.told_xid >= here.next_xid)
FROM (SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next_xid) AS here;
