-- What may be claimed in application ?1 has changed.
INSERT INTO runwick_intake (application, revision) VALUES (?1, 1)
ON CONFLICT (application) DO UPDATE SET revision = revision + 1;
