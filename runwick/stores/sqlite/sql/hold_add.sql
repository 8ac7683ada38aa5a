-- An attempt holds a scope.
-- takes: job, scope, claim, fence
INSERT INTO runwick_hold (job, scope, claim, fence) VALUES (?1, ?2, ?3, ?4);
