--! Previous: sha1:0be254af64c1ff745e3d57c99317830de30ee0f9
--! Hash: sha1:2825ae7899223aa7426125c6bf6703ae85897357
--! Message: passwords

-- Links sent by mail. A request that shows a token proves that its client_info reads the mail of that address.
create table auth.mail_tokens (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  purpose    text not null check (purpose in ('reset', 'verify')),
  user_id    bigint not null,
  email      text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null check (expires_at > created_at)
);
alter table auth.mail_tokens add constraint mail_tokens_email_max_length check (length(email) <= 254) not valid;
create index on auth.mail_tokens (user_id, purpose);
create index on auth.mail_tokens (expires_at);
alter table auth.mail_tokens enable row level security;

comment on table auth.mail_tokens is
  'Links sent by mail, as SHA-256 only: to set a password, or to verify the address. Each works once.';
comment on column auth.mail_tokens.email is 'Where it was sent; the token is invalid when this is no longer the user''s address.';

--! Included auth/end_sign_ins.sql
create or replace function auth.end_sign_ins(user_id bigint) returns void as $$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id;
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = end_sign_ins.user_id and revoked_at is null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_sign_ins is 'Ends all sign-ins of the user. The caller has locked the account.';
--! EndIncluded auth/end_sign_ins.sql
--! Included auth/disable_account.sql
create or replace function auth.disable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(disable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.credentials set disabled_at = coalesce(disabled_at, now())
    where credentials.user_id = disable_account.user_id;
  perform auth.end_sign_ins(disable_account.user_id);
  perform auth.log_event('account.disabled', disable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_account is
  'Ends all sign-ins of the account and refuses new ones until it is enabled. False: no such account.';
--! EndIncluded auth/disable_account.sql
--! Included auth/enable_account.sql
create or replace function auth.enable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(enable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.credentials set disabled_at = null where credentials.user_id = enable_account.user_id;
  perform auth.log_event('account.enabled', enable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_account is 'Allows the user to sign in again. False: no such account.';
--! EndIncluded auth/enable_account.sql
--! Included auth/set_password.sql
-- Also deletes links to set another password, and everything in progress: identities being linked, sign-ins that still need a code, and
-- codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create or replace function auth.set_password(user_id bigint, new_hash text) returns void as $$
begin
  update auth.credentials set password_hash = new_hash, password_changed_at = clock_timestamp()
    where credentials.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id);
  delete from auth.mail_tokens where mail_tokens.user_id = set_password.user_id and purpose = 'reset';
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends all sign-ins of the user. The caller has locked the account.';
--! EndIncluded auth/set_password.sql
--! Included auth/change_password.sql
create or replace function auth.change_password(
  counted_name text, user_id bigint, old_hash text, new_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.credentials := auth.lock_account(change_password.user_id);
begin
  if v_account.password_hash is distinct from old_hash or v_account.disabled_at is not null then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  perform auth.set_password(v_account.user_id, new_hash);
  perform auth.log_event('password.changed', v_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of a user who has proved to know the old one, and ends the user''s other sign-ins.';
--! EndIncluded auth/change_password.sql
--! Included auth/add_mail_token.sql
-- At most one mail a minute, so that nobody can flood a mailbox. A new token replaces the previous one.
create or replace function auth.add_mail_token(
  token_hash bytea, purpose text, user_id bigint, email text, seconds integer
) returns text as $$
begin
  if exists (
    select from auth.mail_tokens as sent
    where sent.user_id = add_mail_token.user_id and sent.purpose = add_mail_token.purpose
      and sent.created_at > now() - interval '1 minute'
  ) then
    return null;
  end if;
  delete from auth.mail_tokens as sent
    where sent.user_id = add_mail_token.user_id and sent.purpose = add_mail_token.purpose;
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at)
    values (
      add_mail_token.token_hash, add_mail_token.purpose, add_mail_token.user_id, add_mail_token.email,
      now() + make_interval(secs => seconds)
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return email;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_token is
  'The address to send the token to; null when one was sent within the last minute.';
--! EndIncluded auth/add_mail_token.sql
--! Included auth/begin_verification.sql
create or replace function auth.begin_verification(
  user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_account constant auth.credentials := auth.lock_account(begin_verification.user_id);
  v_email text;
begin
  select email into v_email from public.users where users.id = v_account.user_id;
  if v_email is null or lower(v_account.verified_email) = lower(v_email) then
    return null;
  end if;
  return auth.add_mail_token(token_hash, 'verify', v_account.user_id, v_email, seconds);
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_verification is
  'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';
--! EndIncluded auth/begin_verification.sql
--! Included auth/reset_password.sql
create or replace function auth.reset_password(token_hash bytea, new_hash text, client_info auth.client_info) returns bigint as $$
declare
  v_token record;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  perform auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  -- An identity that was linked before may belong to somebody else: whoever created the account with this address before it was
  -- verified, or knew the password that is replaced.
  update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
  insert into auth.credentials (user_id, username)
    select v_token.user_id, v_token.email on conflict (user_id) do nothing;
  update auth.credentials set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.set_password(v_token.user_id, new_hash);
  perform auth.log_event('password.reset', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.reset_password is
  'Spends the token, sets the password and ends all sign-ins of the user. Null: the token is invalid.';
--! EndIncluded auth/reset_password.sql
--! Included auth/verify_email.sql
create or replace function auth.verify_email(token_hash bytea, client_info auth.client_info) returns bigint as $$
declare
  v_token record;
begin
  select * into v_token from auth.find_mail_token(verify_email.token_hash, 'verify');
  if not found then
    return null;
  end if;
  perform auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash;
  if not found then
    return null;
  end if;
  update auth.credentials set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.verify_email is
  'Spends the token and marks the address as verified. Null: the token is invalid.';
--! EndIncluded auth/verify_email.sql
