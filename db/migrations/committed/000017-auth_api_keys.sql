--! Previous: sha1:42c69dbd158282ca9148b6c0a516441a6868b59c
--! Hash: sha1:fcb3e8d8403d814bfc5dbb38ba3ececf7c8d3bc4
--! Message: auth_api_keys

create table auth.api_keys (
  id           bigint generated always as identity primary key,
  key_hash     bytea not null unique check (octet_length(key_hash) = 32),
  prefix       text not null check (length(prefix) between 4 and 12),
  role         text not null references auth.roles on update cascade,
  owner_id     bigint references public.users on delete cascade,
  name         text not null default '',
  created_at   timestamptz not null default now(),
  expires_at   timestamptz check (expires_at > created_at),
  revoked_at   timestamptz,
  last_used_at timestamptz
);
create index on auth.api_keys (role);
create index on auth.api_keys (owner_id);
alter table auth.api_keys enable row level security;

comment on table auth.api_keys is 'Keys of programs, as SHA-256 only.';
comment on column auth.api_keys.prefix is 'The key''s first characters, to tell keys apart in a list.';
comment on column auth.api_keys.owner_id is 'The user it acts for; null when it acts for none.';
comment on column auth.api_keys.expires_at is 'When it ends by itself; null when never.';
