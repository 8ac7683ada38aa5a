-- What a schema holds, and what hangs on its tables from elsewhere. Names are written as the session's search path
-- allows, so that the same objects in two schemas read the same when each stands first in it. How rows are stored
-- (fill factors, autovacuum, tablespaces, statistics) is the operator's own.
-- takes: the schema's name
-- returns: kind, name, the table or function that it belongs to, definition
WITH ours AS (
  SELECT oid, relname::text AS name, relkind, relpersistence, relrowsecurity, relforcerowsecurity
  FROM pg_class WHERE relnamespace = $1::text::regnamespace
), tables AS (
  SELECT * FROM ours WHERE relkind IN ('r', 'p', 'f', 'v', 'm')
)
SELECT 'table', name, name, concat_ws(' ', relkind, relpersistence, relrowsecurity, relforcerowsecurity)
FROM tables
UNION ALL
SELECT 'column', t.name || '.' || c.attname, t.name, concat_ws(' ',
  row_number() OVER (PARTITION BY t.oid ORDER BY c.attnum), format_type(c.atttypid, c.atttypmod), c.attnotnull,
  c.attidentity, c.attgenerated, nullif(c.attcollation, 0)::regcollation, pg_get_expr(d.adbin, d.adrelid, true))
FROM tables AS t JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
UNION ALL
SELECT 'constraint', coalesce(t.name, c.conrelid::regclass::text) || '.' || c.conname, coalesce(t.name, target.name),
  concat_ws(' ', pg_get_constraintdef(c.oid, true), c.convalidated)
FROM pg_constraint AS c LEFT JOIN tables AS t ON t.oid = c.conrelid LEFT JOIN tables AS target ON target.oid = c.confrelid
WHERE c.contype IN ('p', 'u', 'f', 'c', 'x') AND (t.oid IS NOT NULL OR target.oid IS NOT NULL)
UNION ALL
SELECT 'index', i.relname, t.name, concat_ws(' ', pg_get_indexdef(x.indexrelid, 0, true), x.indisunique, x.indisvalid)
FROM tables AS t JOIN pg_index AS x ON x.indrelid = t.oid JOIN pg_class AS i ON i.oid = x.indexrelid
WHERE NOT EXISTS (SELECT FROM pg_constraint AS c WHERE c.conindid = x.indexrelid AND c.conrelid = x.indrelid)
UNION ALL
SELECT 'trigger', t.name || '.' || g.tgname, t.name, concat_ws(' ', pg_get_triggerdef(g.oid, true), g.tgenabled)
FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid AND NOT g.tgisinternal
UNION ALL
SELECT 'rule', t.name || '.' || r.rulename, t.name, pg_get_ruledef(r.oid, true)
FROM tables AS t JOIN pg_rewrite AS r ON r.ev_class = t.oid
UNION ALL
SELECT 'policy', t.name || '.' || p.polname, t.name, concat_ws(' ', p.polcmd, p.polpermissive)
FROM tables AS t JOIN pg_policy AS p ON p.polrelid = t.oid
UNION ALL
SELECT 'child table', h.inhrelid::regclass::text, t.name, ''
FROM tables AS t JOIN pg_inherits AS h ON h.inhparent = t.oid
UNION ALL
SELECT 'sequence', s.name, s.name, concat_ws(' ', q.seqtypid::regtype, q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcycle)
FROM ours AS s JOIN pg_sequence AS q ON q.seqrelid = s.oid
UNION ALL
SELECT 'function', f.proname || '(' || pg_get_function_identity_arguments(f.oid) || ')', f.proname, concat_ws(' ',
  f.prokind, pg_get_function_arguments(f.oid), pg_get_function_result(f.oid), l.lanname, f.provolatile, f.prosecdef,
  f.proisstrict, f.proparallel, replace(f.proconfig::text, quote_ident($1::text), 'ours'), f.prosrc,
  pg_get_function_sqlbody(f.oid))
FROM pg_proc AS f JOIN pg_language AS l ON l.oid = f.prolang
WHERE f.pronamespace = $1::text::regnamespace;
