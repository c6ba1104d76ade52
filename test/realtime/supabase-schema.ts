/**
 * The objects of a Supabase project that private channels use, as the migrations of its Realtime server define them (version 2026-07,
 * Apache-2.0): the role that owns them is the database owner here. The server creates a partition for each day; there is none.
 */
export const SUPABASE_REALTIME = `
  create schema auth;
  create function auth.uid() returns uuid language sql stable as
    $$ select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''),
      (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub'))::uuid $$;
  create function auth.jwt() returns jsonb language sql stable as
    $$ select coalesce(nullif(current_setting('request.jwt.claim', true), ''), nullif(current_setting('request.jwt.claims', true), ''))::jsonb $$;
  grant usage on schema auth to anon, authenticated, service_role;
  create schema realtime;
  create table realtime.messages (
    topic text not null,
    extension text not null,
    payload jsonb,
    event text,
    private boolean default false,
    updated_at timestamp without time zone default now() not null,
    inserted_at timestamp without time zone default now() not null,
    id uuid default gen_random_uuid() not null,
    binary_payload bytea,
    broadcasted_at timestamp,
    constraint messages_pkey primary key (id, inserted_at)
  ) partition by range (inserted_at);
  create index messages_inserted_at_topic_index on only realtime.messages using btree (inserted_at desc, topic)
    where extension = 'broadcast' and private is true;
  create function realtime.topic() returns text language sql stable as
    $$ select nullif(current_setting('realtime.topic', true), '')::text; $$;
  grant usage on schema realtime to anon, authenticated, service_role;
  grant select, insert, update on realtime.messages to anon, authenticated, service_role;
  alter table realtime.messages enable row level security;
  create publication supabase_realtime;`;
