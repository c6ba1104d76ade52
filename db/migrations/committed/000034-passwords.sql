--! Previous: sha1:359436063fab871749cf5d27f67df50638d3c367
--! Hash: sha1:755397bd3f3931a8ec9d8a4e819796246ae45526
--! Message: passwords

--! split: 0070-passwords.sql
-- What a link in a mail carries. Whoever shows one reads the mail of that address.
create table auth.mail_tokens (
  token_hash bytea primary key check (octet_length(token_hash) = 32),
  purpose    text not null check (purpose in ('reset', 'verify')),
  user_id    bigint not null references public.users on delete cascade,
  email      text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null check (expires_at > created_at)
);
create index on auth.mail_tokens (user_id, purpose);
create index on auth.mail_tokens (expires_at);
alter table auth.mail_tokens enable row level security;

comment on table auth.mail_tokens is
  'Links that were sent by mail, as SHA-256 only: to set a password, or to verify the address. Each works once.';
comment on column auth.mail_tokens.email is 'Where it was sent: it ends when that is no longer the user''s address.';

--! Included auth/set_password.sql
-- Links to set another one go with the password that was forgotten.
create or replace function auth.set_password(user_id bigint, new_hash text) returns void as $$
begin
  update auth.credentials set password_hash = new_hash, password_changed_at = now()
    where credentials.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id);
  delete from auth.mail_tokens where mail_tokens.user_id = set_password.user_id and purpose = 'reset';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends whatever the user is signed in by. The account is held.';
--! EndIncluded auth/set_password.sql
--! Included auth/change_password.sql
create or replace function auth.change_password(
  counted_name text, user_id bigint, old_hash text, new_hash text, sender auth.sender
) returns boolean as $$
declare
  v_account constant auth.credentials := auth.hold_account(change_password.user_id);
begin
  if v_account.password_hash is distinct from old_hash or v_account.disabled_at is not null then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', sender);
    return false;
  end if;
  perform auth.end_attempt(counted_name, sender.address, 'passed');
  perform auth.set_password(v_account.user_id, new_hash);
  perform auth.log_event('password.changed', v_account.user_id, sender);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is
  'Sets the password of who has proved to know the old one, and ends whatever the user is signed in by.';
--! EndIncluded auth/change_password.sql
--! Included auth/add_mail_token.sql
-- One mail a minute: a mailbox is not to be filled by whoever knows its address. The one before ends.
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
comment on function auth.add_mail_token is 'The address to send the token to; null when one was sent just now.';
--! EndIncluded auth/add_mail_token.sql
--! Included auth/begin_reset.sql
-- The mail goes to the address that was verified: whoever gets another one entered does not get the account. Also for a
-- user without a password, or without an account: who reads the mail is that user.
create or replace function auth.begin_reset(email text, token_hash bytea, seconds integer, sender auth.sender)
returns text as $$
declare
  v_user public.users;
  v_account auth.credentials;
  v_address text;
begin
  select * into v_user from public.users where lower(users.email) = lower(begin_reset.email) for key share;
  v_account := auth.hold_account(v_user.id);
  if v_user.id is null or v_account.disabled_at is not null then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user.id, coalesce(v_account.verified_email, v_user.email), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user.id, sender);
  end if;
  return v_address;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_reset is 'Where to send the token that lets set a new password; null when nowhere.';
--! EndIncluded auth/begin_reset.sql
--! Included auth/begin_verification.sql
create or replace function auth.begin_verification(
  user_id bigint, token_hash bytea, seconds integer, sender auth.sender
) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(begin_verification.user_id);
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
  'Where to send the token that verifies the user''s address; null when it is verified, or was sent just now.';
--! EndIncluded auth/begin_verification.sql
--! Included auth/find_mail_token.sql
create or replace function auth.find_mail_token(token_hash bytea, purpose text)
returns table (user_id bigint, username text, email text)
language sql stable
begin atomic
  select token.user_id, credentials.username, token.email
  from auth.mail_tokens as token
  join public.users on users.id = token.user_id
  left join auth.credentials on credentials.user_id = token.user_id
  where token.token_hash = find_mail_token.token_hash and token.purpose = find_mail_token.purpose
    and token.expires_at > now() and credentials.disabled_at is null
    and lower(token.email) = case token.purpose
      when 'reset' then lower(coalesce(credentials.verified_email, users.email))
      else lower(users.email)
    end;
end;

comment on function auth.find_mail_token is 'Whose token that is, as long as it is good.';
--! EndIncluded auth/find_mail_token.sql
--! Included auth/reset_password.sql
create or replace function auth.reset_password(token_hash bytea, new_hash text, sender auth.sender) returns bigint as $$
declare
  v_token record;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  perform auth.hold_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  insert into auth.credentials (user_id, username)
    select v_token.user_id, v_token.email on conflict (user_id) do nothing;
  update auth.credentials set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.set_password(v_token.user_id, new_hash);
  perform auth.log_event('password.reset', v_token.user_id, sender);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.reset_password is
  'Spends the token: sets the password and ends whatever the user is signed in by. Null: the token is not good.';
--! EndIncluded auth/reset_password.sql
--! Included auth/verify_email.sql
create or replace function auth.verify_email(token_hash bytea, sender auth.sender) returns bigint as $$
declare
  v_token record;
begin
  select * into v_token from auth.find_mail_token(verify_email.token_hash, 'verify');
  if not found then
    return null;
  end if;
  perform auth.hold_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash;
  if not found then
    return null;
  end if;
  update auth.credentials set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, sender);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.verify_email is 'Spends the token: the user reads the mail of that address. Null: it is not good.';
--! EndIncluded auth/verify_email.sql
