--! Previous: sha1:f2582ebe9877b34ca1c3cc070b1f42e15ed5828a
--! Hash: sha1:8e16df88db5ea017f937f8151beb082d4ab4e196
--! Message: accounts

--! split: 0010-accounts.sql
-- The functions of schema auth are the rules of signing in. The engine calls them as the owner; no role of a request may.
-- Whoever changes what a user is signed in by holds the account first (auth.hold_account), so what happens to one account
-- happens one after the other.
create type auth.sender as (address inet, user_agent text, request_id text);
comment on type auth.sender is 'Where a request came from.';

alter table auth.credentials
  add column tokens_valid_from timestamptz not null default date_trunc('second', now()),
  add column verified_email text,
  -- Whoever took another's address as a name would be signed in to in the other's place. Basic ends a name at the colon.
  add constraint credentials_username_format
    check (username like '%@%' or username ~ '^[^\s:[:cntrl:]]{1,254}$');
comment on column auth.credentials.username is
  'The e-mail address unless another name, without @, was chosen; unique whatever its case.';
comment on column auth.credentials.tokens_valid_from is
  'Access tokens issued before this moment have ended. In whole seconds, as a token tells the time.';
comment on column auth.credentials.verified_email is
  'The address that the user has proved to read; verified is the user as long as it is the user''s address.';
comment on constraint credentials_username_format on auth.credentials is
  'A user name has 1 to 254 characters, and neither spaces, nor colons, nor an @ unless it is the e-mail address.';

create table auth.deleted_accounts (
  user_id    bigint primary key,
  deleted_at timestamptz not null default now()
);
create index on auth.deleted_accounts (deleted_at);
alter table auth.deleted_accounts enable row level security;
comment on table auth.deleted_accounts is
  'Accounts that are gone, kept for a day: longer than the tokens that still name them.';

--! Included auth/log_event.sql
create or replace function auth.log_event(
  event text, user_id bigint, sender auth.sender, details jsonb default '{}'
) returns void as $$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.sender).address, (log_event.sender).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.sender).user_agent)) || log_event.details
  );
$$ language sql set search_path = '';
comment on function auth.log_event is 'Writes the audit log, in the transaction of what it tells.';
--! EndIncluded auth/log_event.sql
--! Included auth/find_account.sql
-- No user name with an @ is another user's e-mail address, so at most one account has the name either way.
create or replace function auth.find_account(name text) returns auth.credentials
language sql stable
begin atomic
  select account from auth.credentials as account
  where lower(account.username) = lower(find_account.name) or account.user_id = (
    select users.id from public.users where lower(users.email) = lower(find_account.name)
  );
end;

comment on function auth.find_account is 'The account of that user name or e-mail address.';
--! EndIncluded auth/find_account.sql
--! Included auth/hold_account.sql
-- The user first and then the account, as when a user is deleted: two who went different ways would wait for each other.
create or replace function auth.hold_account(user_id bigint) returns auth.credentials as $$
declare
  v_account auth.credentials;
begin
  perform from public.users where users.id = hold_account.user_id for key share;
  select * into v_account from auth.credentials where credentials.user_id = hold_account.user_id for no key update;
  return v_account;
end;
$$ language plpgsql set search_path = '';
comment on function auth.hold_account is
  'The account, held until the transaction ends; what the transaction asks afterwards is as the one before has left it.';
--! EndIncluded auth/hold_account.sql
--! Included auth/claims_of.sql
create or replace function auth.claims_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'sub', users.id::text,
    'name', users.name,
    'role', held.role,
    'permissions', (
      select coalesce(jsonb_agg(granted.permission order by granted.permission), '[]')
      from (
        select user_permissions.permission from auth.user_permissions where user_permissions.user_id = users.id
        union
        -- An admin may do what everybody who is signed in may: permissions are inherited as Postgres's own privileges are.
        select role_permissions.permission
        from auth.role_permissions
        join pg_roles as granted_to on granted_to.rolname = role_permissions.role
        join pg_roles as own on own.rolname = held.role
        where pg_has_role(own.oid, granted_to.oid, 'usage')
      ) as granted
    )
  )
  from public.users
  cross join lateral (
    select coalesce((
      select user_roles.role from auth.user_roles join auth.roles on roles.name = user_roles.role
      where user_roles.user_id = users.id and roles.assignable
    ), 'authenticated') as role
  ) as held
  where users.id = claims_of.user_id;
end;

comment on function auth.claims_of is 'What a credential of this user says: sub, name, role and permissions.';
--! EndIncluded auth/claims_of.sql
--! Included auth/token_claims.sql
-- Ours is the clock, whichever gateway signs. A token tells whole seconds only: the one that replaces those which were
-- ended a moment ago is dated to the moment from which tokens are valid.
create or replace function auth.token_claims(user_id bigint) returns jsonb
language sql
begin atomic
  select auth.claims_of(credentials.user_id) || jsonb_build_object(
    'iat', extract(epoch from greatest(date_trunc('second', clock_timestamp()), credentials.tokens_valid_from))::bigint
  )
  from auth.credentials where credentials.user_id = token_claims.user_id;
end;

comment on function auth.token_claims is 'The claims of an access token that is issued now.';
--! EndIncluded auth/token_claims.sql
--! Included auth/end_access_tokens.sql
-- A second later than all that were issued until now.
create or replace function auth.end_access_tokens(user_id bigint) returns void as $$
  update auth.credentials
  set tokens_valid_from = greatest(date_trunc('second', clock_timestamp()), tokens_valid_from) + interval '1 second'
  where credentials.user_id = end_access_tokens.user_id;
$$ language sql set search_path = '';
comment on function auth.end_access_tokens is 'Ends the access tokens that the user has; new ones can be had at once.';
--! EndIncluded auth/end_access_tokens.sql
--! Included auth/end_sign_ins.sql
create or replace function auth.end_sign_ins(user_id bigint) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = end_sign_ins.user_id and revoked_at is null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is 'Ends whatever the user is signed in by, everywhere. The account is held.';
--! EndIncluded auth/end_sign_ins.sql
--! Included auth/account_states.sql
-- Nothing is said of who is no user here: another issuer that shares the keys may name whom it likes.
create or replace function auth.account_states(user_ids bigint[])
returns table (user_id bigint, state text, tokens_valid_from bigint)
language sql stable
begin atomic
  select credentials.user_id, case when credentials.disabled_at is null then 'living' else 'disabled' end,
    extract(epoch from credentials.tokens_valid_from)::bigint
  from auth.credentials where credentials.user_id = any (account_states.user_ids)
  union all
  select deleted_accounts.user_id, 'deleted', null
  from auth.deleted_accounts
  where deleted_accounts.user_id = any (account_states.user_ids)
    and not exists (select from auth.credentials where credentials.user_id = deleted_accounts.user_id);
end;

comment on function auth.account_states is 'Which of these accounts are living, disabled or deleted.';
--! EndIncluded auth/account_states.sql
--! Included auth/register.sql
-- Clients never see a row of credentials, not even in the detail of a broken constraint: what they can get wrong is
-- looked at before.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, sender auth.sender
) returns public.users as $$
declare
  v_username text := coalesce(username, email);
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  if v_username like '%@%' and lower(v_username) <> lower(email) then
    raise exception 'A user name with an @ can only be your own e-mail address'
      using errcode = 'WRONG', detail = 'username';
  elsif username not like '%@%' and username !~ '^[^\s:[:cntrl:]]{1,254}$' then
    raise exception 'A user name has 1 to 254 characters, and neither spaces nor colons'
      using errcode = 'WRONG', detail = 'username';
  end if;

  begin
    insert into public.users (name, email, age) values (register.name, register.email, register.age)
      returning * into v_user;
  exception
    when unique_violation then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    when check_violation then
      get stacked diagnostics v_constraint = constraint_name;
      v_fault := api.field_error('public.users', v_constraint);
      raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  end;

  begin
    insert into auth.credentials (user_id, username, password_hash)
      values (v_user.id, v_username, register.password_hash);
  exception when unique_violation then
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.id, sender);
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is 'Makes a user who can sign in. Without a hash: through another provider only.';
--! EndIncluded auth/register.sql
--! Included auth/add_account.sql
-- For those who run the service: they vouch for the address. A user whom somebody has entered already is given an
-- account; one who has an account keeps it as it is, for its password is somebody else's.
create or replace function auth.add_account(
  name text, email text, role text, password_hash text, sender auth.sender
) returns bigint as $$
declare
  v_user_id bigint;
begin
  select users.id into v_user_id from public.users where lower(users.email) = lower(add_account.email);
  if not found then
    v_user_id := (auth.register(name, email, null, null, password_hash, sender)).id;
  else
    begin
      insert into auth.credentials (user_id, username, password_hash)
        values (v_user_id, add_account.email, add_account.password_hash);
    exception when unique_violation then
      raise exception 'This e-mail address already has an account' using errcode = 'TAKEN', detail = 'email';
    end;
    perform auth.log_event('account.created', v_user_id, sender);
  end if;
  update auth.credentials set verified_email = add_account.email where user_id = v_user_id;
  if role <> 'authenticated' then
    perform auth.assign_role(v_user_id, role, sender);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_account is 'Makes a user who can sign in, in that role and with a verified address.';
--! EndIncluded auth/add_account.sql
--! Included auth/assign_role.sql
create or replace function auth.assign_role(user_id bigint, role text, sender auth.sender) returns void as $$
begin
  perform auth.hold_account(assign_role.user_id);
  if not exists (select from auth.roles where roles.name = assign_role.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if assign_role.role = 'authenticated' then
    delete from auth.user_roles where user_roles.user_id = assign_role.user_id;
  else
    insert into auth.user_roles (user_id, role) values (assign_role.user_id, assign_role.role)
      on conflict on constraint user_roles_pkey do update set role = excluded.role, granted_at = now();
  end if;
  perform auth.log_event('role.assigned', assign_role.user_id, sender, jsonb_build_object('role', assign_role.role));
end;
$$ language plpgsql set search_path = '';
comment on function auth.assign_role is
  'Puts a user into a role. Tokens that name another one end within seconds; a refresh gives new ones.';
--! EndIncluded auth/assign_role.sql
--! Included auth/has_administrator.sql
create or replace function auth.has_administrator() returns boolean
language sql stable
return exists (select from auth.user_roles where role = 'admin');

comment on function auth.has_administrator is 'Whether somebody is an administrator.';
--! EndIncluded auth/has_administrator.sql
--! Included auth/ensure_administrator.sql
-- Gateways that start together ask one after the other.
create or replace function auth.ensure_administrator(name text, email text, password_hash text, sender auth.sender)
returns boolean as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('auth.ensure_administrator', 0));
  if auth.has_administrator() then
    return false;
  end if;
  perform auth.add_account(name, email, 'admin', password_hash, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ensure_administrator is 'Makes the first administrator. False: there is one.';
--! EndIncluded auth/ensure_administrator.sql
--! Included auth/disable_account.sql
create or replace function auth.disable_account(user_id bigint, sender auth.sender) returns boolean as $$
begin
  if (auth.hold_account(disable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.credentials set disabled_at = coalesce(disabled_at, now())
    where credentials.user_id = disable_account.user_id;
  perform auth.end_sign_ins(disable_account.user_id);
  perform auth.log_event('account.disabled', disable_account.user_id, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_account is
  'Nobody signs in to the account until it is enabled, and whoever is signed in is so no longer. False: no such account.';
--! EndIncluded auth/disable_account.sql
--! Included auth/enable_account.sql
create or replace function auth.enable_account(user_id bigint, sender auth.sender) returns boolean as $$
begin
  if (auth.hold_account(enable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.credentials set disabled_at = null where credentials.user_id = enable_account.user_id;
  perform auth.log_event('account.enabled', enable_account.user_id, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_account is 'Lets the user sign in again. False: no such account.';
--! EndIncluded auth/enable_account.sql
--! Included auth/tg_credentials__remember_deletion.sql
-- Runs for whoever deletes a user. Each deletion sweeps a few that no token can name any more.
create or replace function auth.tg_credentials__remember_deletion() returns trigger as $$
begin
  insert into auth.deleted_accounts (user_id) values (OLD.user_id)
    on conflict (user_id) do update set deleted_at = now();
  delete from auth.deleted_accounts where user_id in (
    select user_id from auth.deleted_accounts where deleted_at < now() - interval '1 day'
    order by deleted_at limit 10 for update skip locked
  );
  perform auth.log_event('account.deleted', OLD.user_id, null);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_credentials__remember_deletion is
  'After delete: remembers whose tokens have ended with the account.';
--! EndIncluded auth/tg_credentials__remember_deletion.sql
create trigger _100_remember_deletion after delete on auth.credentials
  for each row execute function auth.tg_credentials__remember_deletion();
--! Included auth/tg_user_roles__end_tokens.sql
create or replace function auth.tg_user_roles__end_tokens() returns trigger as $$
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_user_roles__end_tokens is
  'After a change, by whomever: ends the tokens that name the role the user had.';
--! EndIncluded auth/tg_user_roles__end_tokens.sql
create trigger _100_end_tokens after insert or update or delete on auth.user_roles
  for each row execute function auth.tg_user_roles__end_tokens();
--! Included auth/tg_users__rename_account.sql
-- Else the address would stay somebody's name after it had become somebody else's address.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.credentials set username = NEW.email
    where user_id = NEW.id and lower(username) = lower(OLD.email);
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: whose user name is the e-mail address signs in with the new one.';
--! EndIncluded auth/tg_users__rename_account.sql
create trigger _200_rename_account after update of email on public.users
  for each row when (OLD.email is distinct from NEW.email) execute function auth.tg_users__rename_account();
