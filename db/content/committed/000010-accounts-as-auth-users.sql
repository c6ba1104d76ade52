--! Previous: sha1:6310aa5a426898b6ce68bb76a475489cb265e9be
--! Hash: sha1:df3a11c3be2bd4870532b22d526bc4e650f3ad6a
--! Message: accounts as auth.users

-- public.users stays the home of name and address; auth.users.email is a copy.
--! Included auth/tg_accounts__copy_email.sql
create or replace function auth.tg_accounts__copy_email() returns trigger as $$
begin
  select users.email into NEW.email from public.users where users.id = NEW.user_id;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_accounts__copy_email is 'Before insert: an account has the address of its user.';
--! EndIncluded auth/tg_accounts__copy_email.sql
create trigger _050_copy_email before insert on auth.users
  for each row execute function auth.tg_accounts__copy_email();
update auth.users as account set email = users.email from public.users where users.id = account.user_id;
--! Included auth/begin_reset.sql
-- The mail goes to the verified address: entering another address does not take over the account. Also for a user without a password
-- or without an account: whoever reads the mail is that user.
create or replace function auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info)
returns text as $$
declare
  v_user public.users;
  v_account auth.users;
  v_address text;
begin
  select * into v_user from public.users where lower(users.email) = lower(begin_reset.email) for key share;
  v_account := auth.lock_account(v_user.id);
  if v_user.id is null or auth.is_disabled(v_account) then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user.id, coalesce(v_account.verified_email, v_user.email), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user.id, client_info);
  end if;
  return v_address;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_reset is 'The address to send a password-reset token to; null when there is none.';
--! EndIncluded auth/begin_reset.sql
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
  v_user public.users;
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

  select * into v_user from public.users where lower(users.email) = lower(v_email) for key share;
  if found then
    v_account := auth.lock_account(v_user.id);
    -- Case-insensitive within ASCII only, as for mail servers: the Kelvin sign is not a k.
    if not v_is_vouched or lower(v_email collate "C") <> lower(v_user.email collate "C")
      or v_account.user_id is not null
        and lower(v_account.verified_email collate "C") is distinct from lower(v_user.email collate "C")
    then
      outcome := 'conflict';
      return;
    end if;
    -- A user row without an account.
    insert into auth.users (user_id, username, verified_email) values (v_user.id, v_user.email, v_user.email)
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
      v_user := auth.register(left(coalesce(btrim(claims ->> 'name'), v_local_part), 200), v_email, null, null, null, client_info);
    exception when sqlstate 'WRONG' then
      -- The provider's name is not acceptable: use the local part. If the address is not acceptable, this raises.
      v_user := auth.register(left(v_local_part, 200), v_email, null, null, null, client_info);
    end;
    update auth.users as account set verified_email = v_user.email where account.user_id = v_user.id and v_is_vouched;
    outcome := 'registered';
  end if;
  user_id := v_user.id;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, v_user.id, v_is_vouched);
  perform auth.log_event('identity.linked', v_user.id, client_info, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is
  'The user of an identity: found, linked or registered; or why there is none: conflict, closed, nameless. Locks the account.';
--! EndIncluded auth/federated_user.sql
--! Included auth/find_account.sql
-- No user name with an @ is another user's e-mail address, so at most one account matches.
create or replace function auth.find_account(name text) returns auth.users
language sql stable
begin atomic
  select account from auth.users as account
  where lower(account.username) = lower(find_account.name) or account.user_id = (
    select users.id from public.users where lower(users.email) = lower(find_account.name)
  );
end;

comment on function auth.find_account is 'The account with that user name or e-mail address.';
--! EndIncluded auth/find_account.sql
--! Included auth/find_mail_token.sql
create or replace function auth.find_mail_token(token_hash bytea, purpose text)
returns table (user_id bigint, username text, email text)
language sql stable
begin atomic
  select token.user_id, account.username, token.email
  from auth.mail_tokens as token
  join public.users on users.id = token.user_id
  left join auth.users as account on account.user_id = token.user_id
  where token.token_hash = find_mail_token.token_hash and token.purpose = find_mail_token.purpose
    and token.expires_at > now() and not auth.is_disabled(account)
    and lower(token.email) = case token.purpose
      when 'reset' then lower(coalesce(account.verified_email, users.email))
      else lower(users.email)
    end;
end;

comment on function auth.find_mail_token is 'The user of a valid mail token.';
--! EndIncluded auth/find_mail_token.sql
--! Included auth/register.sql
-- Checks beforehand what a client can get wrong, so that no row of auth.users appears in the detail of an error.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info
) returns public.users as $$
declare
  v_username text := coalesce(username, email);
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
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
    insert into auth.users (user_id, username, password_hash)
      values (v_user.id, v_username, register.password_hash);
  exception when unique_violation then
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.id, client_info);
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is
  'Creates a user who can sign in; without a password hash, through another provider only.';
--! EndIncluded auth/register.sql
--! Included auth/tg_users__guard_address.sql
-- Whoever could enter another address could have the password reset by a mail to it.
create or replace function auth.tg_users__guard_address() returns trigger as $$
begin
  if exists (select from auth.users as account where user_id = OLD.id) then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__guard_address is
  'Before update by another caller: refuses to change the address of a user with an account.';
--! EndIncluded auth/tg_users__guard_address.sql
--! Included auth/tg_users__rename_account.sql
-- Otherwise the old address would remain this user's user name after another user has taken it.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.users as account set
      email = NEW.email, username = case when lower(account.username) = lower(OLD.email) then NEW.email else account.username end
    where account.user_id = NEW.id;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: the address of the account, and a user name that is the address, change with it.';
--! EndIncluded auth/tg_users__rename_account.sql
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
