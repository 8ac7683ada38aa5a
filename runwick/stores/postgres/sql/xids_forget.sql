-- Let all that was written so far stand before all that will be, in the order of its positions.
WITH jobs AS (
  UPDATE runwick.job SET xid = '0' WHERE xid > '0'
), attempts AS (
  UPDATE runwick.attempt SET xid = '0' WHERE xid > '0'
), closings AS (
  UPDATE runwick.closing SET xid = '0' WHERE xid > '0'
), live AS (
  UPDATE runwick.hot SET told_xid = NULL WHERE told_xid IS NOT NULL
)
UPDATE runwick.audit SET xid = '0' WHERE xid > '0';
