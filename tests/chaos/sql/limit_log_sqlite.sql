-- The log of limits and keys: each change is written down in the transaction that makes it, so what was rolled back is
-- not there, and the order is that of the commits.

CREATE TABLE chaos_log (
  number   INTEGER PRIMARY KEY AUTOINCREMENT,
  what     TEXT NOT NULL,
  limit_id BLOB,
  job      INTEGER,
  value    INTEGER,
  at_ms    INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE TRIGGER chaos_scope_made AFTER INSERT ON runwick_scope BEGIN
  INSERT INTO chaos_log (what, limit_id, value) VALUES ('capacity', NEW.id, NEW.capacity);
END;

CREATE TRIGGER chaos_scope_changed AFTER UPDATE OF capacity ON runwick_scope WHEN OLD.capacity <> NEW.capacity BEGIN
  INSERT INTO chaos_log (what, limit_id, value) VALUES ('capacity', NEW.id, NEW.capacity);
END;

CREATE TRIGGER chaos_taken AFTER INSERT ON runwick_hold BEGIN
  INSERT INTO chaos_log (what, limit_id, job, value) VALUES ('take', NEW.scope, NEW.job, NEW.fence);
END;

CREATE TRIGGER chaos_freed AFTER DELETE ON runwick_hold BEGIN
  INSERT INTO chaos_log (what, limit_id, job) VALUES ('free', OLD.scope, OLD.job);
END;

CREATE TRIGGER chaos_granted AFTER INSERT ON runwick_rate_grant BEGIN
  INSERT INTO chaos_log (what, limit_id, value) VALUES ('grant', NEW.rate_window, NEW.at_ms);
END;

CREATE TRIGGER chaos_granted_again AFTER UPDATE ON runwick_rate_grant BEGIN
  INSERT INTO chaos_log (what, limit_id, value) VALUES ('grant', NEW.rate_window, NEW.at_ms);
END;

CREATE TRIGGER chaos_live AFTER INSERT ON runwick_hot BEGIN
  INSERT INTO chaos_log (what, job) VALUES ('live', NEW.job);
END;

CREATE TRIGGER chaos_over AFTER DELETE ON runwick_hot BEGIN
  INSERT INTO chaos_log (what, job) VALUES ('over', OLD.job);
END;

CREATE TRIGGER chaos_promised AFTER UPDATE OF called, due_at_ms ON runwick_hot
WHEN NEW.called IS NOT NULL AND (NEW.called IS NOT OLD.called OR NEW.due_at_ms <> OLD.due_at_ms) BEGIN
  INSERT INTO chaos_log (what, limit_id, job, value) VALUES ('promise', NEW.called, NEW.job, NEW.due_at_ms);
END;

CREATE TRIGGER chaos_settled AFTER UPDATE OF called ON runwick_hot
WHEN NEW.called IS NULL AND OLD.called IS NOT NULL BEGIN
  INSERT INTO chaos_log (what, limit_id, job) VALUES ('settled', OLD.called, OLD.job);
END;
