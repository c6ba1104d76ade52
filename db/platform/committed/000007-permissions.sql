--! Previous: sha1:3a225e748b99bf18619af3c0db263c68b85a1fcc
--! Hash: sha1:78e0713b252846d891a277981a7987eb8058dad9

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
  user_id    bigint primary key references auth.users on delete cascade,
  role       text not null references auth.roles on update cascade,
  granted_at timestamptz not null default now()
);
create index on auth.user_roles (role);
alter table auth.user_roles enable row level security;
comment on table auth.user_roles is 'Users in another role than authenticated. One each: a token names one role.';

create table auth.user_permissions (
  user_id    bigint not null references auth.users on delete cascade,
  permission text not null references auth.permissions on update cascade on delete cascade,
  granted_at timestamptz not null default now(),
  primary key (user_id, permission)
);
create index on auth.user_permissions (permission);
alter table auth.user_permissions enable row level security;
comment on table auth.user_permissions is 'Permissions of one user besides those of the role.';

-- The subject is what auth.uid() reads: a uuid where a project's own auth.uid() returns one, and the id is another claim then.
-- The name is cut at 200 characters: a token travels in a header, whose length is limited.
create function auth.claims_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'sub', case when subject.is_uuid then account.id::text else claims_of.user_id::text end,
    'name', left(profile.name, 200),
    'role', held.role,
    'permissions', (
      select coalesce(jsonb_agg(granted.permission order by granted.permission), '[]')
      from (
        select user_permissions.permission from auth.user_permissions where user_permissions.user_id = claims_of.user_id
        union
        -- Permissions are inherited like Postgres privileges: an admin has those of authenticated.
        select role_permissions.permission
        from auth.role_permissions
        join pg_roles as granted_to on granted_to.rolname = role_permissions.role
        join pg_roles as own on own.rolname = held.role
        where pg_has_role(own.oid, granted_to.oid, 'usage')
      ) as granted
    )
  ) || case when subject.is_uuid then jsonb_build_object('user_id', claims_of.user_id::text) else '{}' end
  from auth.profile_of(claims_of.user_id) as profile
  cross join (select auth.has_uuid_subjects() as is_uuid) as subject
  left join auth.users as account on account.user_id = claims_of.user_id
  cross join lateral (
    select coalesce((
      select user_roles.role from auth.user_roles join auth.roles on roles.name = user_roles.role
      where user_roles.user_id = claims_of.user_id and roles.assignable
    ), 'authenticated') as role
  ) as held;
end;
comment on function auth.claims_of is 'The claims of a credential of this user: sub, name, role and permissions.';

-- The database's clock counts, whichever process signs. iat is in whole seconds: a token that replaces those just ended is dated to tokens_valid_from.
create function auth.token_claims(user_id bigint) returns jsonb
language sql
begin atomic
  select auth.claims_of(account.user_id) || jsonb_build_object(
    'iat', extract(epoch from greatest(date_trunc('second', clock_timestamp()), account.tokens_valid_from))::bigint
  )
  from auth.users as account where account.user_id = token_claims.user_id;
end;
comment on function auth.token_claims is 'The claims of an access token issued now.';

create function auth.assign_role(user_id bigint, role text, client_info auth.client_info) returns void as $$
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
comment on function auth.assign_role is 'Assigns a role. Access tokens with another role end within seconds; a refresh issues new ones.';

create function auth.has_administrator() returns boolean
language sql stable
return exists (select from auth.user_roles where role = 'admin');
comment on function auth.has_administrator is 'Whether there is an administrator.';

-- For operators, who vouch for the address. A user row without an account gets one; an existing account stays as it is, because its
-- password belongs to somebody else.
create function auth.add_account(name text, email text, role text, password_hash text, client_info auth.client_info) returns bigint as $$
declare
  v_user_id bigint := auth.find_user(add_account.email);
begin
  if v_user_id is null then
    v_user_id := auth.register(name, email, null, null, password_hash, client_info) ->> 'id';
  else
    begin
      insert into auth.users (user_id, username, password_hash)
        values (v_user_id, add_account.email, add_account.password_hash);
    exception when unique_violation then
      raise exception 'This e-mail address already has an account' using errcode = 'TAKEN', detail = 'email';
    end;
    perform auth.log_event('account.created', v_user_id, client_info);
  end if;
  update auth.users as account set verified_email = add_account.email where user_id = v_user_id;
  if role <> 'authenticated' then
    perform auth.assign_role(v_user_id, role, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_account is 'Creates a user who can sign in, in that role and with a verified address.';

-- Serialized: processes may start at the same time.
create function auth.ensure_administrator(name text, email text, password_hash text, client_info auth.client_info) returns boolean as $$
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

create function auth.tg_user_roles__end_tokens() returns trigger as $$
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
comment on function auth.tg_user_roles__end_tokens is 'After a change: ends tokens that name the previous role, and the user''s keys in it.';
create trigger _100_end_tokens after insert or update or delete on auth.user_roles for each row execute function auth.tg_user_roles__end_tokens();
