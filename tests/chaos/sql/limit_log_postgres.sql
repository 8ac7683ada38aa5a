-- The log of limits and keys: each change is written down in the transaction that makes it, so what was rolled back is
-- not there. Numbers of one scope, window or key are given under its lock, so they stand in the order of the commits.

CREATE SCHEMA chaos;

CREATE TABLE chaos.log (
  number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  what     text   NOT NULL,
  limit_id uuid,
  job      uuid,
  value    bigint,
  at_ms    bigint NOT NULL DEFAULT runwick.now_ms()
);

CREATE FUNCTION chaos.scope_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.log (what, limit_id, value) VALUES ('capacity', NEW.id, NEW.capacity);
  RETURN NULL;
END $$;

CREATE FUNCTION chaos.hold_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO chaos.log (what, limit_id, job, value) VALUES ('take', NEW.scope, NEW.job, NEW.fence);
  ELSE
    INSERT INTO chaos.log (what, limit_id, job) VALUES ('free', OLD.scope, OLD.job);
  END IF;
  RETURN NULL;
END $$;

CREATE FUNCTION chaos.granted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO chaos.log (what, limit_id, value) VALUES ('grant', NEW.rate_window, NEW.at_ms);
  RETURN NULL;
END $$;

CREATE FUNCTION chaos.hot_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO chaos.log (what, job) VALUES ('live', NEW.job);
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO chaos.log (what, job) VALUES ('over', OLD.job);
  ELSIF NEW.called IS NOT NULL THEN
    INSERT INTO chaos.log (what, limit_id, job, value) VALUES ('promise', NEW.called, NEW.job, NEW.due_at_ms);
  ELSE
    INSERT INTO chaos.log (what, limit_id, job) VALUES ('settled', OLD.called, OLD.job);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER chaos_scope_made AFTER INSERT ON runwick.scope FOR EACH ROW EXECUTE FUNCTION chaos.scope_changed();
CREATE TRIGGER chaos_scope_changed AFTER UPDATE OF capacity ON runwick.scope FOR EACH ROW
  WHEN (OLD.capacity <> NEW.capacity) EXECUTE FUNCTION chaos.scope_changed();
CREATE TRIGGER chaos_hold AFTER INSERT OR DELETE ON runwick.hold FOR EACH ROW EXECUTE FUNCTION chaos.hold_changed();
CREATE TRIGGER chaos_grant AFTER INSERT OR UPDATE ON runwick.rate_grant FOR EACH ROW EXECUTE FUNCTION chaos.granted();
CREATE TRIGGER chaos_hot AFTER INSERT OR DELETE ON runwick.hot FOR EACH ROW EXECUTE FUNCTION chaos.hot_changed();
CREATE TRIGGER chaos_promised AFTER UPDATE ON runwick.hot FOR EACH ROW
  WHEN (
    OLD.called IS DISTINCT FROM NEW.called OR (NEW.called IS NOT NULL AND OLD.due_at_ms <> NEW.due_at_ms)
  ) EXECUTE FUNCTION chaos.hot_changed();
