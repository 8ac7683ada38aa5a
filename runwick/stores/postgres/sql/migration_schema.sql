-- Where all of ours lies. An operator may have created it beforehand.
CREATE SCHEMA IF NOT EXISTS runwick;
