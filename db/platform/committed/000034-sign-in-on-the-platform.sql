--! Previous: sha1:331747ad373909053e82932185482784c3c26cd0
--! Hash: sha1:2c2f6823ee50d59902cd4ff606e646eb80ea0a45
--! Message: sign-in on the platform

--! after content/000010
-- Sign-in without a table of users: auth.users is the home of name and address. An application with such a table, as the example has, replaces
-- the functions that know the home: account_faults, delete_user, find_user, insert_user, lock_address, lock_user,
-- profile_of, rename_user, set_email.
do $$
declare
  v_table text;
  v_column text;
begin
  foreach v_table in array
    '{user_roles,user_permissions,sessions,refresh_tokens,mfa_factors,api_keys,mail_tokens,identities,federation_states,federation_logins,federation_codes}'::text[]
  loop
    v_column := case v_table when 'api_keys' then 'owner_id' else 'user_id' end;
    -- With a table of users, the rows belong to that: a user without an account has some of them, too.
    if not exists (
      select from pg_constraint
      where conrelid = format('auth.%I', v_table)::regclass and contype = 'f' and conname = v_table || '_' || v_column || '_fkey'
    ) then
      execute format(
        'alter table auth.%I add constraint %I foreign key (%I) references auth.users on delete cascade',
        v_table, v_table || '_' || v_column || '_fkey', v_column
      );
    end if;
  end loop;
end $$;
drop function if exists auth.register(text, text, integer, text, text, auth.client_info);
--! Included auth/has_uuid_subjects.sql
-- By name: a reference to the function would forbid a project to replace it.
create or replace function auth.has_uuid_subjects() returns boolean
language sql stable set search_path = ''
as $$
  select prorettype = 'uuid'::regtype from pg_catalog.pg_proc where oid = to_regprocedure('auth.uid()')
$$;
comment on function auth.has_uuid_subjects is 'Whether auth.uid() returns the uuid of the calling user, as at Supabase.';
--! EndIncluded auth/has_uuid_subjects.sql
--! Included auth/lock_user.sql
create or replace function auth.lock_user(user_id bigint) returns void
language sql
begin atomic
end;

comment on function auth.lock_user is 'Locks what a deletion of the user locks before the account. The account is the user.';
--! EndIncluded auth/lock_user.sql
--! Included auth/find_user.sql
create or replace function auth.find_user(email text) returns bigint
language sql stable
begin atomic
  select account.user_id from auth.users as account where lower(account.email) = lower(find_user.email);
end;

comment on function auth.find_user is 'The user with that e-mail address.';
--! EndIncluded auth/find_user.sql
--! Included auth/profile_of.sql
create or replace function auth.profile_of(user_id bigint) returns table (name text, email text)
language sql stable
begin atomic
  select coalesce(account.raw_user_meta_data ->> 'name', account.email, ''), account.email
  from auth.users as account where account.user_id = profile_of.user_id;
end;

comment on function auth.profile_of is 'The name and e-mail address of a user.';
--! EndIncluded auth/profile_of.sql
--! Included auth/account_faults.sql
-- The rules of the example application's public.users, which replaces this function by one that reads the constraints there.
create or replace function auth.account_faults(name text, email text, age integer, username text)
returns setof public.field_error as $$
begin
  if name is not null and name !~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]' then
    return next row('name', 'Give a name.')::public.field_error;
  elsif length(name) > 200 then
    return next row('name', 'Give a name of at most 200 characters.')::public.field_error;
  end if;
  if length(email) > 254 or email !~ '^(?=.{1,64}@)[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+)*@([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$' then
    return next row('email', 'Give an e-mail address such as name@example.org.')::public.field_error;
  end if;
  if age not between 0 and 150 then
    return next row('age', 'Give an age between 0 and 150, or none.')::public.field_error;
  end if;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_faults is
  'Everything that prevents such a user from being registered, except values that are taken.';
--! EndIncluded auth/account_faults.sql
--! Included auth/insert_user.sql
-- The row of auth.users is inserted by auth.register, with the metadata.
create or replace function auth.insert_user(
  name text, email text, age integer, out user_id bigint, out user_row jsonb, out metadata jsonb
) as $$
declare
  v_fault public.field_error;
begin
  select * into v_fault from auth.account_faults(insert_user.name, insert_user.email, age, null) limit 1;
  if found then
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  elsif auth.find_user(insert_user.email) is not null then
    raise exception 'This e-mail address is already registered'
      using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
  end if;
  user_id := nextval(pg_get_serial_sequence('auth.users', 'user_id'));
  metadata := jsonb_strip_nulls(jsonb_build_object('name', insert_user.name, 'age', age));
  user_row := jsonb_build_object('id', user_id, 'email', insert_user.email) || metadata;
end;
$$ language plpgsql set search_path = '';
comment on function auth.insert_user is
  'Begins a user: the id, the row that a registration returns, and the metadata of the account.';
--! EndIncluded auth/insert_user.sql
--! Included auth/rename_user.sql
create or replace function auth.rename_user(user_id bigint, name text) returns void as $$
declare
  v_fault public.field_error;
begin
  select * into v_fault from auth.account_faults(rename_user.name, null, null, null) as fault where fault.field = 'name' limit 1;
  if found then
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  end if;
  update auth.users as account set raw_user_meta_data = account.raw_user_meta_data || jsonb_build_object('name', rename_user.name)
    where account.user_id = rename_user.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rename_user is 'Changes the name of the user who is signed in.';
--! EndIncluded auth/rename_user.sql
--! Included auth/set_email.sql
create or replace function auth.set_email(user_id bigint, email text) returns void as $$
begin
  update auth.users as account set
      email = set_email.email,
      username = case
        when lower(account.username) = lower(account.email) or account.is_anonymous then set_email.email
        else account.username
      end
    where account.user_id = set_email.user_id;
exception when unique_violation then
  raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
--! EndIncluded auth/set_email.sql
--! Included auth/delete_user.sql
create or replace function auth.delete_user(user_id bigint) returns void as $$
  delete from auth.users as account where account.user_id = delete_user.user_id;
$$ language sql set search_path = '';
comment on function auth.delete_user is 'Deletes the user and the account.';
--! EndIncluded auth/delete_user.sql
--! Included auth/lock_account.sql
-- Locks the user first and then the account, in the order of a deletion; otherwise the two could deadlock.
create or replace function auth.lock_account(user_id bigint) returns auth.users as $$
declare
  v_account auth.users;
begin
  perform auth.lock_user(lock_account.user_id);
  select * into v_account from auth.users as account where account.user_id = lock_account.user_id for no key update;
  return v_account;
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_account is
  'Locks the account until the end of the transaction and returns it; later queries see what the previous holder committed.';
--! EndIncluded auth/lock_account.sql
--! Included auth/find_account.sql
-- No user name with an @ is another user's e-mail address, so at most one account matches.
create or replace function auth.find_account(name text) returns auth.users
language sql stable
begin atomic
  select account from auth.users as account
  where lower(account.username) = lower(find_account.name) or account.user_id = auth.find_user(find_account.name);
end;

comment on function auth.find_account is 'The account with that user name or e-mail address.';
--! EndIncluded auth/find_account.sql
--! Included auth/claims_of.sql
-- The subject is what auth.uid() reads: a uuid where a project's own auth.uid() returns one, and the id is another claim then.
-- The name is cut at 200 characters: a token travels in a header, whose length is limited.
create or replace function auth.claims_of(user_id bigint) returns jsonb
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
--! EndIncluded auth/claims_of.sql
--! Included auth/token_claims.sql
-- The database's clock counts, whichever process signs. iat is in whole seconds: a token that replaces those just ended is dated to
-- tokens_valid_from.
create or replace function auth.token_claims(user_id bigint) returns jsonb
language sql
begin atomic
  select auth.claims_of(account.user_id) || jsonb_build_object(
    'iat', extract(epoch from greatest(date_trunc('second', clock_timestamp()), account.tokens_valid_from))::bigint
  )
  from auth.users as account where account.user_id = token_claims.user_id;
end;

comment on function auth.token_claims is 'The claims of an access token issued now.';
--! EndIncluded auth/token_claims.sql
--! Included auth/use_session.sql
-- Extends the session at most four times a minute, to save writes.
create or replace function auth.use_session(id_hash bytea, idle_seconds integer)
returns table (user_id bigint, username text, claims jsonb, signed_in_at timestamptz, expires_at timestamptz)
language sql
begin atomic
  with live as (
    select session.id_hash, session.user_id, account.username, session.created_at, session.expires_at
    from auth.sessions as session join auth.users as account on account.user_id = session.user_id
    where session.id_hash = use_session.id_hash and least(session.idle_expires_at, session.expires_at) > now()
      and not auth.is_disabled(account)
  ), moved as (
    update auth.sessions as session
    set last_used_at = now(), idle_expires_at = now() + make_interval(secs => use_session.idle_seconds)
    where session.id_hash in (
      select sessions.id_hash from auth.sessions
      where sessions.id_hash in (select live.id_hash from live)
        and sessions.last_used_at < now() - interval '15 seconds'
      for no key update skip locked
    )
  )
  select live.user_id, live.username, auth.claims_of(live.user_id), live.created_at, live.expires_at
  from live;
end;

comment on function auth.use_session is 'The user and claims of a session. No row: it has ended.';
--! EndIncluded auth/use_session.sql
--! Included auth/find_mail_token.sql
create or replace function auth.find_mail_token(token_hash bytea, purpose text)
returns table (user_id bigint, username text, email text)
language sql stable
begin atomic
  select token.user_id, account.username, token.email
  from auth.mail_tokens as token
  cross join lateral auth.profile_of(token.user_id) as profile
  left join auth.users as account on account.user_id = token.user_id
  where token.token_hash = find_mail_token.token_hash and token.purpose = find_mail_token.purpose
    and token.expires_at > now() and not auth.is_disabled(account)
    and lower(token.email) = case token.purpose
      when 'reset' then lower(coalesce(account.verified_email, profile.email))
      else lower(profile.email)
    end;
end;

comment on function auth.find_mail_token is 'The user of a valid mail token.';
--! EndIncluded auth/find_mail_token.sql
--! Included auth/begin_reset.sql
-- The mail goes to the verified address: entering another address does not take over the account. Also for a user without a password
-- or without an account: whoever reads the mail is that user.
create or replace function auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info)
returns text as $$
declare
  v_user_id constant bigint := auth.find_user(begin_reset.email);
  v_account auth.users;
  v_current text;
  v_address text;
begin
  v_account := auth.lock_account(v_user_id);
  select profile.email into v_current from auth.profile_of(v_user_id) as profile;
  if v_current is null or auth.is_disabled(v_account) then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user_id, coalesce(v_account.verified_email, v_current), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user_id, client_info);
  end if;
  return v_address;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_reset is 'The address to send a password-reset token to; null when there is none.';
--! EndIncluded auth/begin_reset.sql
--! Included auth/register.sql
-- Checks beforehand what a client can get wrong, so that no row of auth.users appears in the detail of an error.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null
) returns jsonb as $$
declare
  v_user record;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
  end if;

  if octet_length(register.user_metadata::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;

  v_user := auth.insert_user(name, email, age);
  begin
    insert into auth.users (user_id, username, email, password_hash, raw_user_meta_data)
      values (
        v_user.user_id, coalesce(register.username, register.email), register.email, register.password_hash,
        case when register.user_metadata is null then v_user.metadata else auth.merge_metadata('{}', register.user_metadata) end
      );
  exception when unique_violation then
    -- Also of the address, where another sign-up has just taken it.
    if auth.find_user(register.email) is distinct from v_user.user_id and auth.find_user(register.email) is not null then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    end if;
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.user_id, client_info);
  return v_user.user_row;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is
  'Creates a user who can sign in; without a password hash, through another provider only. Returns the row of the user.';
--! EndIncluded auth/register.sql
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject, and by e-mail address only where both the provider and this service have verified the
-- address: otherwise whoever enters another person's address first, there or here, would share the account.
create or replace function auth.federated_user(
  provider auth.providers, subject text, claims jsonb, client_info auth.client_info, out outcome text, out user_id bigint
) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
  v_local_part constant text := split_part(v_email, '@', 1);
  v_is_vouched constant boolean := provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false);
  v_identity auth.identities;
  v_account auth.users;
  v_current text;
begin
  -- Serializes concurrent first sign-ins of the same identity.
  perform pg_advisory_xact_lock(hashtextextended(provider.issuer || ' ' || subject, 0));
  select * into v_identity from auth.identities
    where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
  if found then
    v_account := auth.lock_account(v_identity.user_id);
    -- Read again: the transaction that held the account may have changed it.
    select * into v_identity from auth.identities
      where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
    user_id := v_account.user_id;
    -- A password was set by mail after the identity was linked: the identity only counts if the provider vouches for that address.
    outcome := case
      when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at
        or v_is_vouched and lower(v_email collate "C") = lower(v_account.verified_email collate "C")
      then 'found'
      else 'conflict'
    end;
    return;
  end if;

  user_id := auth.find_user(v_email);
  v_account := auth.lock_account(user_id);
  select profile.email into v_current from auth.profile_of(user_id) as profile;
  if v_current is not null then
    -- Case-insensitive within ASCII only, as for mail servers: the Kelvin sign is not a k.
    if not v_is_vouched or lower(v_email collate "C") <> lower(v_current collate "C")
      or v_account.user_id is not null
        and lower(v_account.verified_email collate "C") is distinct from lower(v_current collate "C")
    then
      outcome := 'conflict';
      user_id := null;
      return;
    end if;
    -- A user row without an account.
    insert into auth.users (user_id, username, verified_email) values (federated_user.user_id, v_current, v_current)
      on conflict on constraint users_pkey do nothing;
    outcome := 'linked';
  elsif not provider.sign_ups then
    outcome := 'closed';
    return;
  elsif v_email is null then
    outcome := 'nameless';
    return;
  else
    begin
      user_id := auth.register(left(coalesce(btrim(claims ->> 'name'), v_local_part), 200), v_email, null, null, null, client_info) ->> 'id';
    exception when sqlstate 'WRONG' then
      -- The provider's name is not acceptable: use the local part. If the address is not acceptable, this raises.
      user_id := auth.register(left(v_local_part, 200), v_email, null, null, null, client_info) ->> 'id';
    end;
    update auth.users as account set verified_email = account.email
      where account.user_id = federated_user.user_id and v_is_vouched;
    outcome := 'registered';
  end if;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, federated_user.user_id, v_is_vouched);
  perform auth.log_event('identity.linked', user_id, client_info, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is
  'The user of an identity: found, linked or registered; or why there is none: conflict, closed, nameless. Locks the account.';
--! EndIncluded auth/federated_user.sql
--! Included auth/create_api_key.sql
create or replace function auth.create_api_key(
  key_hash bytea, prefix text, role text, owner_id bigint, name text, expires_at timestamptz, client_info auth.client_info
) returns bigint as $$
declare
  v_id bigint;
begin
  -- Locks the lower id first: otherwise two transactions could deadlock.
  perform auth.lock_account(held.id)
    from (select distinct unnest(array[create_api_key.owner_id, (client_info).actor]) as id order by id) as held;
  -- An access token outlives a change of roles by some seconds. A role from another issuer's token is trusted.
  if exists (
    select from auth.users as account left join auth.user_roles using (user_id)
    where account.user_id = (client_info).actor
      and (auth.is_disabled(account)
        or account.tokens_valid_from > now() - interval '1 minute' and user_roles.role is distinct from 'admin')
  ) then
    raise exception 'Only an administrator may do this' using errcode = 'NOPER';
  elsif not exists (select from auth.roles where roles.name = create_api_key.role) then
    raise exception 'There is no role of that name for keys' using errcode = 'WRONG', detail = 'role';
  elsif owner_id is not null and not exists (select from auth.profile_of(owner_id)) then
    raise exception 'There is no user of that id' using errcode = 'NTFND', detail = 'owner';
  elsif create_api_key.expires_at <= now() then
    raise exception 'A key expires in the future' using errcode = 'WRONG', detail = 'expires';
  end if;
  insert into auth.api_keys (key_hash, prefix, role, owner_id, name, expires_at)
    values (
      create_api_key.key_hash, create_api_key.prefix, create_api_key.role, create_api_key.owner_id,
      create_api_key.name, create_api_key.expires_at
    )
    returning id into v_id;
  perform auth.log_event('api_key.created', owner_id, client_info, jsonb_build_object('api_key', v_id, 'role', role));
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_api_key is 'Stores an API key in any role; for an administrator or an operator.';
--! EndIncluded auth/create_api_key.sql
--! Included auth/begin_verification.sql
create or replace function auth.begin_verification(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(begin_verification.user_id);
  v_email text;
begin
  select profile.email into v_email from auth.profile_of(v_account.user_id) as profile;
  if v_email is null or lower(v_account.verified_email) = lower(v_email) then
    return null;
  end if;
  return auth.add_mail_token(token_hash, 'verify', v_account.user_id, v_email, seconds);
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_verification is
  'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';
--! EndIncluded auth/begin_verification.sql
--! Included auth/begin_email_change.sql
-- Tells that an address is taken, as auth.register does.
create or replace function auth.begin_email_change(
  user_id bigint, email text, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(begin_email_change.user_id);
  v_current text;
  v_message text;
begin
  select profile.email into v_current from auth.profile_of(v_account.user_id) as profile;
  select fault.message into v_message
    from auth.account_faults(null, begin_email_change.email, null, null) as fault where fault.field = 'email' limit 1;
  if v_message is not null then
    raise exception '%', v_message using errcode = 'WRONG', detail = 'email';
  elsif v_current = begin_email_change.email then
    raise exception 'This is your e-mail address already' using errcode = 'WRONG', detail = 'email';
  elsif auth.find_user(begin_email_change.email) <> begin_email_change.user_id then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  elsif auth.add_mail_token(token_hash, 'change', v_account.user_id, begin_email_change.email, seconds) is null then
    raise exception 'An e-mail was sent within the last minute' using errcode = 'TOMNY', hint = 'Try again in a minute.';
  end if;
  perform auth.log_event('email.change_requested', v_account.user_id, client_info);
  return v_current;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_email_change is
  'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';
--! EndIncluded auth/begin_email_change.sql
--! Included auth/change_email.sql
create or replace function auth.change_email(
  token_hash bytea, client_info auth.client_info, out user_id bigint, out previous_email text
) as $$
declare
  v_token auth.mail_tokens;
  v_account auth.users;
begin
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = change_email.token_hash and token.purpose = 'change' and token.expires_at > now();
  v_account := auth.lock_address(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = v_token.token_hash;
  if not found or v_account.user_id is null or auth.is_disabled(v_account) then
    return;
  end if;
  select profile.email into previous_email from auth.profile_of(v_account.user_id) as profile;
  perform auth.set_email(v_account.user_id, v_token.email);
  update auth.users as account set verified_email = v_token.email where account.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  perform auth.log_event('email.changed', v_account.user_id, client_info);
  user_id := v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_email is
  'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';
--! EndIncluded auth/change_email.sql
--! Included auth/account_of.sql
create or replace function auth.account_of(user_id bigint) returns table (
  name text, email text, username text, role text, is_verified boolean, has_password boolean,
  factor_enabled_at timestamptz, backup_codes integer
) as $$
begin
  return query
    select profile.name, profile.email, account.username, auth.claims_of(account.user_id) ->> 'role',
      coalesce(lower(account.verified_email) = lower(profile.email), false), account.password_hash is not null,
      (
        select min(factor.enabled_at) from auth.mfa_factors as factor
        where factor.user_id = account.user_id and factor.factor_type = 'totp'
      ),
      (select count(*)::integer from auth.mfa_backup_codes as codes where codes.user_id = account.user_id and codes.used_at is null)
    from auth.users as account
    cross join auth.profile_of(account.user_id) as profile
    where account.user_id = account_of.user_id;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_of is 'What a user sees of the own account.';
--! EndIncluded auth/account_of.sql
--! Included auth/add_account.sql
-- For operators, who vouch for the address. A user row without an account gets one; an existing account stays as it is, because its
-- password belongs to somebody else.
create or replace function auth.add_account(
  name text, email text, role text, password_hash text, client_info auth.client_info
) returns bigint as $$
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
--! EndIncluded auth/add_account.sql
--! Included auth/lock_address.sql
create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is
  'Locks the account as auth.lock_account does, for a change of its address.';
--! EndIncluded auth/lock_address.sql
--! Included auth/apply_email_change.sql
-- Both sides have confirmed it. What was sent to the previous address ends.
create or replace function auth.apply_email_change(user_id bigint, new_email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(apply_email_change.user_id, apply_email_change.new_email);
  update auth.users as account set verified_email = apply_email_change.new_email, is_anonymous = false
    where account.user_id = apply_email_change.user_id;
  delete from auth.mail_tokens as token where token.user_id = apply_email_change.user_id;
  perform auth.log_event('email.changed', apply_email_change.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address, which is verified by that. The caller has locked the account.';
--! EndIncluded auth/apply_email_change.sql
--! Included auth/delete_account.sql
-- A deletion that keeps the row removes what names the person, and every way to sign in.
create or replace function auth.delete_account(user_id bigint, keeps_row boolean, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(delete_account.user_id);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if keeps_row and v_account.deleted_at is not null then
    return true;
  end if;
  perform auth.log_event(
    'account.deletion_requested', v_account.user_id, client_info, jsonb_build_object('keeps_row', keeps_row)
  );
  if not keeps_row then
    perform auth.delete_user(v_account.user_id);
    return true;
  end if;
  perform auth.set_password(v_account.user_id, null);
  perform auth.set_email(v_account.user_id, 'deleted-' || v_account.id || '@deleted.invalid');
  perform auth.rename_user(v_account.user_id, 'Deleted user');
  update auth.users as account set
      username = account.email, verified_email = null, phone = null, phone_confirmed_at = null,
      raw_user_meta_data = '{}', raw_app_meta_data = '{}', deleted_at = clock_timestamp()
    where account.user_id = v_account.user_id;
  delete from auth.token_sessions as session where session.user_id = v_account.user_id;
  delete from auth.refresh_tokens as token where token.user_id = v_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = v_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = v_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = v_account.user_id;
  delete from auth.identities as identity where identity.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = v_account.user_id and key.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_account is 'Deletes an account as an administrator. False: there is none.';
--! EndIncluded auth/delete_account.sql
