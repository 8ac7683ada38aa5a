-- 6 waits for its second try, and an operator has looked at job 2, as the release of revision 2 wrote them.
INSERT INTO runwick_job VALUES (6, X'00000000000000000000000000000006', 1, 1, 1, 1, X'00000000000000000000000000000007', 1750000000000, NULL, NULL, NULL, NULL, NULL, 2, X'7B7D');
INSERT INTO runwick_hot (job, application, lane, kind, state, due_at_ms, job_id, payload_bytes, max_executions, ahead, attempts, executions, code)
VALUES (6, 1, 1, 1, 'retrying', 1750000000000, X'00000000000000000000000000000006', 2, 3, 1, 1, 1, 'handler_failed');
INSERT INTO runwick_attempt VALUES (7, 6, 1, X'0000000000000000000000000000000C', 1, 1, 1, 'failed', 'handler_failed', NULL, 1750000000000, 5, 4, 3, '[5,4]', 0, NULL);
INSERT INTO runwick_audit VALUES (8, 1, 'ops-bot', 'look', 'running', 'running', 1750000000000, 'Ops bot', 'service', NULL, X'0000000000000000000000000000000E', 2, 1);
