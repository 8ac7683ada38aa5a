-- Write down from now on which jobs are moved aside, or called in.
CREATE TABLE public.bench_moved (job uuid NOT NULL);

CREATE FUNCTION public.bench_move() RETURNS trigger LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO public.bench_moved (job) VALUES (NEW.job);
  RETURN NULL;
END
$$;

CREATE TRIGGER bench_moved AFTER UPDATE OF line, due_at_ms ON runwick.hot FOR EACH ROW
  WHEN (OLD.line IS DISTINCT FROM NEW.line OR OLD.due_at_ms <> NEW.due_at_ms)
  EXECUTE FUNCTION public.bench_move()
