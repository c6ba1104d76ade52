-- Which migrations of the Supabase project this database has.
create schema supabase_migrations;
create table supabase_migrations.schema_migrations (
  version         text primary key,
  statements      text[],
  name            text,
  created_by      text,
  idempotency_key text unique,
  rollback        text[]
);
create table supabase_migrations.seed_files (
  path text primary key,
  hash text not null
);
comment on schema supabase_migrations is 'The migrations of the Supabase project, by their versions.';
