-- One job in every place a job can be, as the release of revision 1 wrote them at 1750000000000.
INSERT INTO runwick_application VALUES (1, 'shop');
INSERT INTO runwick_lane VALUES (1, 1, 'reports', 'medium');
INSERT INTO runwick_kind VALUES (1, 1, 'reports.build', 1);
INSERT INTO runwick_policy VALUES (1, '{"max_executions":3,"execution_timeout_ms":null,"retry_initial_ms":5000,"retry_max_ms":60000,"max_unstarted":5,"unstarted_initial_ms":1000,"unstarted_max_ms":30000,"max_crashes":3}');
INSERT INTO runwick_recovery VALUES (1, 1750000005000);
INSERT INTO runwick_worker VALUES (X'0000000000000000000000000000000A', 1, 'worker-1', 7, '["reports"]', 2, 1750000000000, NULL);
INSERT INTO runwick_claim VALUES (1, X'000000000000000000000000000000CC', X'00000000000000000000000000000000', X'0000000000000000000000000000000A', 1750000000000);

-- 1 waits
INSERT INTO runwick_job VALUES (1, X'00000000000000000000000000000001', 1, 1, 1, 1, X'00000000000000000000000000000000', 1750000000000, NULL, NULL, NULL, NULL, NULL, 2, X'7B7D');
INSERT INTO runwick_hot (job, application, lane, kind, state, due_at_ms, job_id, payload_bytes, max_executions, ahead)
VALUES (1, 1, 1, 1, 'pending', 1750000000000, X'00000000000000000000000000000001', 2, 3, 1);

-- 2 runs
INSERT INTO runwick_job VALUES (2, X'00000000000000000000000000000002', 1, 1, 1, 1, X'00000000000000000000000000000003', 1750000000000, NULL, NULL, NULL, NULL, NULL, 2, X'7B7D');
INSERT INTO runwick_hot (job, application, lane, kind, state, due_at_ms, job_id, payload_bytes, max_executions, ahead, attempts, executions, claim, lease_until_ms)
VALUES (2, 1, 1, 1, 'running', 1750000000000, X'00000000000000000000000000000002', 2, 3, 1, 1, 1, 1, 1750000060000);

-- 3 has ended
INSERT INTO runwick_job VALUES (3, X'00000000000000000000000000000004', 1, 1, 1, 1, X'00000000000000000000000000000005', 1750000000000, NULL, NULL, NULL, NULL, NULL, 2, X'7B7D');
INSERT INTO runwick_attempt VALUES (4, 3, 1, X'0000000000000000000000000000000B', 1, 1, 1, 'succeeded', NULL, NULL, 1750000000000, 5, 4, 3, '[5,4]', NULL, NULL);
INSERT INTO runwick_closing VALUES (5, 3, 1, 1, 'succeeded', NULL, 3, 1, 1750000000000, NULL);
INSERT INTO runwick_detail VALUES (4, 1750000000000, NULL, X'37', NULL);
