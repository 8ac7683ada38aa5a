-- What the role of an application needs: data, and no rights to change the schema. Run it once for each such role, with
-- the role that migrates:
--
--   psql --set ON_ERROR_STOP=1 --set role=shop_app --file grants.sql postgresql://OWNER@HOST/DATABASE
--
-- It holds for tables that later migrations add. Who the store is, its revision, the admission modes, what was audited
-- and what commands were answered stay out of an application's reach.

GRANT USAGE ON SCHEMA runwick TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA runwick TO :"role";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA runwick TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA runwick GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA runwick GRANT USAGE ON SEQUENCES TO :"role";
REVOKE INSERT, UPDATE, DELETE ON runwick.store, runwick.migration FROM :"role";
REVOKE UPDATE, DELETE ON runwick.application, runwick.audit FROM :"role";
REVOKE UPDATE ON runwick.command FROM :"role";
