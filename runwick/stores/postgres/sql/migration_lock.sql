-- Be the only migrator of this database, until the session ends.
SELECT pg_advisory_lock(8247619751747218176);
