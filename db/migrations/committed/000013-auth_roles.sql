--! Previous: sha1:4d8f5fd4bcd02e88290a8a3a18eaa538a719bc8d
--! Hash: sha1:8477b7658d006b5ad52eb6ebb6874129695a0128
--! Message: auth_roles

-- Which database roles a credential may name, and what else a token says its bearer may do. Postgres enforces the role;
-- permissions are words that policies and clients can look for in the claims.
create table auth.roles (
  name        text primary key,
  description text not null,
  assignable  boolean not null default false
);
alter table auth.roles enable row level security;
comment on table auth.roles is 'The database roles that an API key may act in and, where assignable, a user.';

insert into auth.roles (name, description, assignable) values
  ('anon', 'Anybody: reads what is public.', false),
  ('authenticated', 'A user who is signed in; the role of everybody without another.', true),
  ('admin', 'Passes every check of ownership.', true),
  ('service_role', 'Another server of ours: policies do not bind it.', false);

create table auth.permissions (
  name        text primary key check (name ~ '^[a-z][a-z0-9_.:-]*$'),
  description text not null
);
alter table auth.permissions enable row level security;
comment on table auth.permissions is 'Words for the claim permissions, such as articles:review.';

create table auth.role_permissions (
  role       text not null references auth.roles on update cascade on delete cascade,
  permission text not null references auth.permissions on update cascade on delete cascade,
  primary key (role, permission)
);
create index on auth.role_permissions (permission);
alter table auth.role_permissions enable row level security;
comment on table auth.role_permissions is 'What everybody in a role may do.';

create table auth.user_roles (
  user_id    bigint primary key references public.users on delete cascade,
  role       text not null references auth.roles on update cascade,
  granted_at timestamptz not null default now()
);
create index on auth.user_roles (role);
alter table auth.user_roles enable row level security;
comment on table auth.user_roles is 'Users in another role than authenticated. One each: a token names one role.';

create table auth.user_permissions (
  user_id    bigint not null references public.users on delete cascade,
  permission text not null references auth.permissions on update cascade on delete cascade,
  granted_at timestamptz not null default now(),
  primary key (user_id, permission)
);
create index on auth.user_permissions (permission);
alter table auth.user_permissions enable row level security;
comment on table auth.user_permissions is 'What one user may do beyond the role.';
