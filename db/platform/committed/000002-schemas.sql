--! Previous: sha1:de578ca582f33ba09bc65b82f4a989da35ac1448
--! Hash: sha1:762c893fe0db91a2146e2f4ae4e9880582287553
--! Message: schemas

-- A schema determines how its contents can be reached: public is served by every interface; auth, api and realtime can be used by
-- name by roles that are granted something in them; private is closed.
revoke all on schema public from public;
grant usage on schema public to anon, authenticated, service_role;

create schema auth;
grant usage on schema auth to anon, authenticated, service_role;
comment on schema auth is 'Helpers for policies about the caller, and closed tables about credentials.';

create schema api;
grant usage on schema api to anon, authenticated, service_role;
comment on schema api is 'Versions of the conventional interface, and helpers for its responses.';

create schema private;
-- The login may call the few functions here that are granted to it.
grant usage on schema private to authenticator;
comment on schema private is 'Internal functions of triggers, policies and indexes, and tables of the service itself.';

create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
comment on schema extensions is 'Extensions, apart from the tables that are served.';

-- Nothing is served by accident: a new table has no grants, and a new function loses the EXECUTE that Postgres grants to PUBLIC.
-- A table or function becomes part of the interfaces by the GRANT that names it. Default privileges apply to objects that the
-- role that runs the migrations creates; another role that creates objects needs the same statement.
alter default privileges revoke execute on functions from public;
alter default privileges in schema extensions grant execute on functions to public;
