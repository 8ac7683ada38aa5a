-- Write down from now on which jobs are moved aside, or called in.
CREATE TABLE bench_moved (job INTEGER NOT NULL);

CREATE TRIGGER bench_moved AFTER UPDATE OF line, due_at_ms ON runwick_hot
WHEN OLD.line IS NOT NEW.line OR OLD.due_at_ms <> NEW.due_at_ms
BEGIN
  INSERT INTO bench_moved (job) VALUES (NEW.job);
END;
