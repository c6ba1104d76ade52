--! Previous: sha1:fb93721ba98688be41a4f01cab9b61c8ba9f3923
--! Hash: sha1:6c8115dbdd5456055a28e27bbb6892ff48896c17
--! Message: auth_throttle

-- In Postgres, so that all gateways count together. A failure counts in three scopes: this user from this address, this
-- address, this user; each has a limit of its own, and a spray over many users or from many addresses meets the others.
create table auth.login_throttle (
  scope             text not null check (scope in ('pair', 'address', 'user')),
  key               text not null,
  failures          integer not null default 1 check (failures > 0),
  window_started_at timestamptz not null default now(),
  primary key (scope, key)
);
create index on auth.login_throttle (window_started_at);
alter table auth.login_throttle enable row level security;

comment on table auth.login_throttle is 'Failed sign-ins of the current window.';
comment on column auth.login_throttle.key is
  'What is counted: user name and address, address, or user name; names in lower case.';
