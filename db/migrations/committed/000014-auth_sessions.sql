--! Previous: sha1:8477b7658d006b5ad52eb6ebb6874129695a0128
--! Hash: sha1:812eba0f32baf3f2fd8f93fe759a8570f36b8650
--! Message: auth_sessions

-- The cookie holds the session's id, the table only its SHA-256: who reads the table cannot sign in with it.
create table auth.sessions (
  id_hash         bytea primary key check (octet_length(id_hash) = 32),
  -- One session each: a new one replaces the old.
  user_id         bigint not null unique references public.users on delete cascade,
  created_at      timestamptz not null default now(),
  last_used_at    timestamptz not null default now(),
  idle_expires_at timestamptz not null,
  expires_at      timestamptz not null check (expires_at > created_at),
  address         inet,
  user_agent      text
);
create index on auth.sessions (least(idle_expires_at, expires_at));
alter table auth.sessions enable row level security;

comment on table auth.sessions is 'Browsers that are signed in by cookie.';
comment on column auth.sessions.created_at is 'When the user signed in.';
comment on column auth.sessions.idle_expires_at is 'The end when nothing happens; each request moves it.';
comment on column auth.sessions.expires_at is 'The end whatever happens.';
