-- Everything that the schema consists of, except what SQLite makes by itself.
-- returns: type, name, table, text
SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\';
