--! Previous: sha1:70b5e625d144fec879547cdcc1c4f67a90217c83
--! Hash: sha1:4d8f5fd4bcd02e88290a8a3a18eaa538a719bc8d
--! Message: auth_credentials

-- The tables of schema auth are closed: row-level security without a policy, and no grant to any role of a request.
-- The one way in are functions that the engine calls as the owner.
create table auth.credentials (
  user_id             bigint primary key references public.users on delete cascade,
  username            text not null check (btrim(username) <> ''),
  -- A PHC string ($argon2id$…); null for who signs in through another provider only.
  password_hash       text check (password_hash like '$%'),
  password_changed_at timestamptz not null default now(),
  disabled_at         timestamptz,
  created_at          timestamptz not null default now()
);
create unique index credentials_username_any_case_key on auth.credentials (lower(username));
alter table auth.credentials enable row level security;

comment on table auth.credentials is 'How a user signs in. A user without a row here cannot.';
comment on column auth.credentials.username is
  'The e-mail address unless another was chosen; unique whatever its case.';
comment on column auth.credentials.password_changed_at is
  'Sessions and refresh tokens from before this moment have ended.';
comment on column auth.credentials.disabled_at is 'Since when the account may not sign in; null when it may.';
comment on index auth.credentials_username_any_case_key is 'This user name is already taken.';
