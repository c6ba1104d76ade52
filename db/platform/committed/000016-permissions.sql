--! Previous: sha1:5503c4af35ad7525fafe9338d7d38c024650fb17
--! Hash: sha1:a4a4a8ed36f0e917a4f29c7e5d574f2bd7e47910
--! Message: permissions

-- The database roles that a credential may name, and the permissions in a token's claims. Postgres enforces the role; permissions
-- are words that policies and clients can look for in the claims.
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
comment on table auth.role_permissions is 'Permissions of all users in a role.';

create table auth.user_roles (
  user_id    bigint primary key,
  role       text not null references auth.roles on update cascade,
  granted_at timestamptz not null default now()
);
create index on auth.user_roles (role);
alter table auth.user_roles enable row level security;
comment on table auth.user_roles is 'Users in another role than authenticated. One each: a token names one role.';

create table auth.user_permissions (
  user_id    bigint not null,
  permission text not null references auth.permissions on update cascade on delete cascade,
  granted_at timestamptz not null default now(),
  primary key (user_id, permission)
);
create index on auth.user_permissions (permission);
alter table auth.user_permissions enable row level security;
comment on table auth.user_permissions is 'Permissions of one user besides those of the role.';

--! Included auth/assign_role.sql
create or replace function auth.assign_role(user_id bigint, role text, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(assign_role.user_id);
  if not exists (select from auth.roles where roles.name = assign_role.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if assign_role.role = 'authenticated' then
    delete from auth.user_roles where user_roles.user_id = assign_role.user_id;
  else
    insert into auth.user_roles (user_id, role) values (assign_role.user_id, assign_role.role)
      on conflict on constraint user_roles_pkey do update set role = excluded.role, granted_at = now();
  end if;
  perform auth.log_event('role.assigned', assign_role.user_id, client_info, jsonb_build_object('role', assign_role.role));
end;
$$ language plpgsql set search_path = '';
comment on function auth.assign_role is
  'Assigns a role. Access tokens with another role end within seconds; a refresh issues new ones.';
--! EndIncluded auth/assign_role.sql
--! Included auth/has_administrator.sql
create or replace function auth.has_administrator() returns boolean
language sql stable
return exists (select from auth.user_roles where role = 'admin');

comment on function auth.has_administrator is 'Whether there is an administrator.';
--! EndIncluded auth/has_administrator.sql
--! Included auth/add_account.sql
-- For operators, who vouch for the address. A user row without an account gets one; an existing account stays as it is, because its
-- password belongs to somebody else.
create or replace function auth.add_account(
  name text, email text, role text, password_hash text, client_info auth.client_info
) returns bigint as $$
declare
  v_user_id bigint;
begin
  select users.id into v_user_id from public.users where lower(users.email) = lower(add_account.email);
  if not found then
    v_user_id := (auth.register(name, email, null, null, password_hash, client_info)).id;
  else
    begin
      insert into auth.credentials (user_id, username, password_hash)
        values (v_user_id, add_account.email, add_account.password_hash);
    exception when unique_violation then
      raise exception 'This e-mail address already has an account' using errcode = 'TAKEN', detail = 'email';
    end;
    perform auth.log_event('account.created', v_user_id, client_info);
  end if;
  update auth.credentials set verified_email = add_account.email where user_id = v_user_id;
  if role <> 'authenticated' then
    perform auth.assign_role(v_user_id, role, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_account is 'Creates a user who can sign in, in that role and with a verified address.';
--! EndIncluded auth/add_account.sql
--! Included auth/ensure_administrator.sql
-- Serialized: processes may start at the same time.
create or replace function auth.ensure_administrator(name text, email text, password_hash text, client_info auth.client_info)
returns boolean as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('auth.ensure_administrator', 0));
  if auth.has_administrator() then
    return false;
  end if;
  perform auth.add_account(name, email, 'admin', password_hash, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ensure_administrator is 'Creates the first administrator. False: there is one.';
--! EndIncluded auth/ensure_administrator.sql
--! Included auth/tg_user_roles__end_tokens.sql
create or replace function auth.tg_user_roles__end_tokens() returns trigger as $$
declare
  v_key_id bigint;
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
    -- A key in the role would be a way to keep it.
    for v_key_id in
      update auth.api_keys set revoked_at = now()
        where owner_id = OLD.user_id and role = OLD.role and revoked_at is null
        returning id
    loop
      perform auth.log_event('api_key.revoked', OLD.user_id, null, jsonb_build_object('api_key', v_key_id));
    end loop;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_user_roles__end_tokens is
  'After a change: ends tokens that name the previous role, and the user''s keys in it.';
--! EndIncluded auth/tg_user_roles__end_tokens.sql
create trigger _100_end_tokens after insert or update or delete on auth.user_roles
  for each row execute function auth.tg_user_roles__end_tokens();
