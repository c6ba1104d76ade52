--! Previous: sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1
--! Hash: sha1:5626b67a85f60383ece2535738e5fbd09ce3fbaa
--! Message: schemas

-- A schema says how far its contents can be reached: public is served, auth and api are reachable by name for who is
-- granted something in them, private is closed.
revoke all on schema public from public;
grant usage on schema public to anon, authenticated, service_role;

create schema auth;
grant usage on schema auth to anon, authenticated, service_role;
comment on schema auth is 'Who calls (helpers for policies) and how they proved it (closed tables).';

create schema api;
grant usage on schema api to anon, authenticated, service_role;
comment on schema api is 'What the interfaces themselves are: their versions, the shape of their answers.';

create schema private;
comment on schema private is 'The inside of the book: functions of triggers, policies and indexes.';

create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
comment on schema extensions is 'Extensions, away from the tables that are served.';

-- Nothing is served by accident: a new table has no grants, and a new function loses the execute that Postgres would
-- give to everybody. A table or a function becomes part of the interfaces by the line that grants it. This holds for
-- what the role that runs the migrations creates; another role that creates things needs the same line.
alter default privileges revoke execute on functions from public;
-- The functions of extensions are plain tools.
alter default privileges in schema extensions grant execute on functions to public;

create extension if not exists pg_trgm with schema extensions;
