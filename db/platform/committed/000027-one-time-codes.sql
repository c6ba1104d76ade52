--! Previous: sha1:9b23713589d06de882c74b9d99b30a4e1620bcf1
--! Hash: sha1:c79dca753bfd5672f5d34feb4bc2866c32935827
--! Message: one-time codes

-- One mail has a link and a code of six digits, for the same purpose; either can be used, once. And sign-ins that end with a code for tokens
-- (PKCE), whichever way they began.
create table auth.flow_states (
  id               uuid primary key default gen_random_uuid(),
  code_hash        bytea constraint flow_states_code_hash_key unique check (octet_length(code_hash) = 32),
  challenge        text not null check (challenge ~ '^[A-Za-z0-9._~-]{43,128}$'),
  challenge_method text not null check (challenge_method in ('s256', 'plain')),
  method           text not null constraint flow_states_method_max_length check (length(method) <= 50),
  user_id          bigint constraint flow_states_user_id_fkey references auth.users on delete cascade,
  sealed           bytea,
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null check (expires_at > created_at)
);
create index on auth.flow_states (user_id);
create index on auth.flow_states (expires_at);
alter table auth.flow_states enable row level security;
comment on table auth.flow_states is
  'Sign-ins that end with a code, which only the client that began them can exchange for tokens (PKCE, RFC 7636).';
comment on column auth.flow_states.code_hash is 'SHA-256 of the code; null until the user has signed in.';
comment on column auth.flow_states.challenge is 'What the client proves to know the verifier of.';
comment on column auth.flow_states.method is 'How the user signs in, for the claim amr.';
comment on column auth.flow_states.sealed is
  'What the exchange returns besides the tokens, encrypted with a key that only the bearer of the code can derive.';

alter table auth.mail_tokens
  drop constraint mail_tokens_purpose_check,
  add constraint mail_tokens_purpose_check check (purpose in (
    'reset', 'verify', 'change',
    'signup', 'invite', 'magiclink', 'recovery', 'email_change_current', 'email_change_new', 'reauthentication', 'sms', 'phone_change'
  )),
  add column code_hash bytea check (octet_length(code_hash) = 32),
  add column attempts smallint not null default 0,
  add column new_email text constraint mail_tokens_new_email_max_length check (length(new_email) <= 254),
  add column flow_id uuid constraint mail_tokens_flow_id_fkey references auth.flow_states on delete set null,
  add column is_pkce boolean not null default false,
  add column used_at timestamptz;
create index on auth.mail_tokens (lower(email)) where purpose in ('email_change_new', 'phone_change');
create index on auth.mail_tokens (flow_id);
comment on table auth.mail_tokens is
  'Links and codes sent by mail, as hashes only: to sign in, to set a password, or to verify or change the address. Each works once.';
comment on column auth.mail_tokens.email is
  'Where it was sent: an e-mail address, or a phone number. Unless the purpose is a change, the token is invalid when this is no longer the user''s.';
comment on column auth.mail_tokens.code_hash is
  'The code of the same mail: an HMAC whose key the database does not have, because six digits could be guessed from a hash. Null without a code.';
comment on column auth.mail_tokens.attempts is 'How many wrong codes were tried; after five the code is invalid, the link is not.';
comment on column auth.mail_tokens.new_email is 'The address, or the phone number, that the user changes to.';
comment on column auth.mail_tokens.is_pkce is 'Whether the link leads to a code for tokens; without flow_id that sign-in has expired.';
comment on column auth.mail_tokens.used_at is 'When one side of a change of address was confirmed, which waits for the other.';

--! Included auth/lock_address.sql
-- Of a table public.users the row is locked for the update of a column with a unique constraint, before the account: another transaction
-- that has locked the account holds a weaker lock on this row, which the update would wait for.
create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  if to_regclass('public.users') is not null then
    perform from public.users where users.id = lock_address.user_id for update;
  end if;
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is
  'Locks the account as auth.lock_account does, for a change of its address.';
--! EndIncluded auth/lock_address.sql
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
  select users.email into previous_email from public.users where users.id = v_account.user_id;
  begin
    update public.users set email = v_token.email where users.id = v_account.user_id;
  exception when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  end;
  update auth.users as account set verified_email = v_token.email where account.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  perform auth.log_event('email.changed', v_account.user_id, client_info);
  user_id := v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_email is
  'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';
--! EndIncluded auth/change_email.sql
--! Included auth/add_flow_state.sql
-- Each call deletes a few expired ones.
create or replace function auth.add_flow_state(
  challenge text, challenge_method text, method text, user_id bigint, seconds integer
) returns uuid as $$
declare
  v_id uuid;
begin
  insert into auth.flow_states (challenge, challenge_method, method, user_id, expires_at)
    values (
      add_flow_state.challenge, add_flow_state.challenge_method, add_flow_state.method, add_flow_state.user_id,
      now() + make_interval(secs => seconds)
    ) returning id into v_id;
  delete from auth.flow_states as expired where expired.id in (
    select flow_states.id from auth.flow_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_flow_state is 'Begins a sign-in that ends with a code for tokens.';
--! EndIncluded auth/add_flow_state.sql
--! Included auth/issue_flow_code.sql
create or replace function auth.issue_flow_code(
  flow_id uuid, user_id bigint, code_hash bytea, sealed bytea, seconds integer
) returns boolean as $$
begin
  update auth.flow_states as flow set
    user_id = issue_flow_code.user_id, code_hash = issue_flow_code.code_hash, sealed = issue_flow_code.sealed,
    expires_at = clock_timestamp() + make_interval(secs => seconds)
  where flow.id = issue_flow_code.flow_id and flow.code_hash is null and flow.expires_at > clock_timestamp()
    and (flow.user_id is null or flow.user_id = issue_flow_code.user_id);
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.issue_flow_code is
  'Stores the code of a user who has signed in. False: the sign-in has expired, or has a code already. The caller has locked the account.';
--! EndIncluded auth/issue_flow_code.sql
--! Included auth/use_flow_code.sql
-- A wrong verifier does not end the sign-in: only the client that began it has the right one.
create or replace function auth.use_flow_code(
  code_hash bytea, verifier text, client_info auth.client_info,
  out outcome text, out user_id bigint, out method text, out sealed bytea
) as $$
declare
  v_account auth.users;
  v_flow auth.flow_states;
begin
  select flow.user_id into v_account.user_id from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_flow from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  outcome := case
    when v_flow.id is null or v_account.user_id is null then 'absent'
    when v_flow.expires_at <= clock_timestamp() then 'expired'
    when auth.is_disabled(v_account) then 'disabled'
    when v_flow.challenge is distinct from case v_flow.challenge_method
      when 'plain' then verifier
      else rtrim(translate(encode(sha256(convert_to(verifier, 'UTF8')), 'base64'), '+/', '-_'), '=')
    end then 'verifier'
    else 'passed'
  end;
  if outcome = 'passed' then
    user_id := v_flow.user_id;
    method := v_flow.method;
    sealed := v_flow.sealed;
  end if;
  if outcome in ('passed', 'expired') then
    delete from auth.flow_states as flow where flow.id = v_flow.id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_flow_code is
  'Spends a code for tokens and locks the account: passed, or why not: absent, expired, disabled, or another verifier.';
--! EndIncluded auth/use_flow_code.sql
--! Included auth/add_mail_code.sql
-- A new one ends the previous one of the same purpose.
create or replace function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer
) returns void as $$
begin
  delete from auth.mail_tokens as sent
    where sent.user_id = add_mail_code.user_id and sent.purpose = add_mail_code.purpose;
  insert into auth.mail_tokens (token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at)
    values (
      add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
      add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds)
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_code is 'Stores the link and the code of a mail. The caller has locked the account.';
--! EndIncluded auth/add_mail_code.sql
--! Included auth/cancel_email_change.sql
create or replace function auth.cancel_email_change(user_id bigint) returns void as $$
  delete from auth.mail_tokens as token
  where token.user_id = cancel_email_change.user_id and token.purpose in ('email_change_current', 'email_change_new');
$$ language sql set search_path = '';
comment on function auth.cancel_email_change is 'Ends a change of address that is in progress.';
--! EndIncluded auth/cancel_email_change.sql
--! Included auth/pending_email.sql
create or replace function auth.pending_email(user_id bigint) returns text
language sql stable
begin atomic
  select token.new_email from auth.mail_tokens as token
  where token.user_id = pending_email.user_id and token.purpose in ('email_change_new', 'email_change_current')
    and token.expires_at > now()
  order by token.created_at desc
  limit 1;
end;

comment on function auth.pending_email is 'The address that the user changes to, once it is confirmed; null without a change.';
--! EndIncluded auth/pending_email.sql
--! Included auth/code_recipient.sql
-- The mail goes to the verified address, as that to set a password does.
create or replace function auth.code_recipient(
  email text, out user_id bigint, out address text, out state text, out metadata jsonb, out new_email text
) as $$
declare
  v_account auth.users;
begin
  select account.user_id into user_id from auth.users as account where lower(account.email) = lower(code_recipient.email);
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  address := coalesce(v_account.verified_email, v_account.email);
  metadata := v_account.raw_user_meta_data;
  new_email := auth.pending_email(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    when v_account.email_confirmed_at is null then 'unconfirmed'
    else 'confirmed'
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.code_recipient is
  'The account with that address, which is locked: absent, disabled, unconfirmed or confirmed.';
--! EndIncluded auth/code_recipient.sql
--! Included auth/is_current_address.sql
create or replace function auth.is_current_address(account auth.users, token auth.mail_tokens) returns boolean
language sql immutable
return case token.purpose
  when 'email_change_new' then true
  when 'phone_change' then true
  when 'sms' then token.email = account.phone
  else lower(token.email) = lower(coalesce(account.verified_email, account.email))
end;

comment on function auth.is_current_address is 'Whether a link or code was sent to where the user is reached now.';
--! EndIncluded auth/is_current_address.sql
--! Included auth/apply_email_change.sql
-- Both sides have confirmed it. What was sent to the previous address ends.
create or replace function auth.apply_email_change(user_id bigint, new_email text, client_info auth.client_info) returns void as $$
begin
  begin
    if exists (
      select from pg_constraint
      where conrelid = 'auth.users'::regclass and contype = 'f' and confrelid = to_regclass('public.users')
    ) then
      update public.users set email = apply_email_change.new_email where users.id = apply_email_change.user_id;
    else
      update auth.users as account set email = apply_email_change.new_email where account.user_id = apply_email_change.user_id;
    end if;
  exception when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  end;
  update auth.users as account set verified_email = apply_email_change.new_email, is_anonymous = false
    where account.user_id = apply_email_change.user_id;
  delete from auth.mail_tokens as token where token.user_id = apply_email_change.user_id;
  perform auth.log_event('email.changed', apply_email_change.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address, which is verified by that. The caller has locked the account.';
--! EndIncluded auth/apply_email_change.sql
--! Included auth/confirm_mail_code.sql
-- Whoever asks for a link to set a password proves the address. A password, sign-ins and identities from before that belong to whoever
-- registered the address, which may be somebody else.
create or replace function auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info)
returns text as $$
begin
  if token.purpose in ('email_change_current', 'email_change_new') then
    update auth.mail_tokens as side set used_at = clock_timestamp(), code_hash = null where side.token_hash = token.token_hash;
    if exists (
      select from auth.mail_tokens as side
      where side.user_id = account.user_id and side.purpose in ('email_change_current', 'email_change_new')
        and side.used_at is null and side.expires_at > now()
    ) then
      return 'half';
    end if;
    perform auth.apply_email_change(account.user_id, token.new_email, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose = 'recovery' and account.email_confirmed_at is null then
    update auth.identities set is_vouched = false where identities.user_id = account.user_id;
    update auth.users as claimed set password_hash = null, password_changed_at = clock_timestamp()
      where claimed.user_id = account.user_id;
    perform auth.end_sign_ins(account.user_id);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  if account.email_confirmed_at is null then
    delete from auth.mail_tokens as spent where spent.user_id = account.user_id and spent.purpose in ('signup', 'verify', 'invite');
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';
--! EndIncluded auth/confirm_mail_code.sql
--! Included auth/use_mail_link.sql
create or replace function auth.use_mail_link(
  token_hash bytea, purposes text[], client_info auth.client_info,
  out outcome text, out user_id bigint, out purpose text, out flow_id uuid
) as $$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  select token.user_id into v_account.user_id from auth.mail_tokens as token where token.token_hash = use_mail_link.token_hash;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = use_mail_link.token_hash and token.purpose = any (purposes)
      and token.used_at is null and token.expires_at > clock_timestamp()
      and auth.is_current_address(v_account, token);
  if v_token.user_id is null or v_account.user_id is null then
    outcome := 'expired';
  elsif auth.is_disabled(v_account) then
    outcome := 'disabled';
  elsif v_token.is_pkce and v_token.flow_id is null then
    outcome := 'flow_expired';
  else
    outcome := auth.confirm_mail_code(v_token, v_account, client_info);
    user_id := v_token.user_id;
    purpose := v_token.purpose;
    flow_id := v_token.flow_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_link is
  'Spends a link and locks the account: passed, half, or why not: expired, disabled, or the sign-in that it belongs to has expired.';
--! EndIncluded auth/use_mail_link.sql
--! Included auth/use_mail_code.sql
-- Counts as an attempt to sign in, by the address that the client names and by where it is. Runs the same queries whether or not the
-- account exists.
create or replace function auth.use_mail_code(
  email text, code_hash bytea, purposes text[], client_info auth.client_info,
  out outcome text, out user_id bigint, out purpose text, out wait integer
) as $$
declare
  v_max_attempts constant integer := 5;
  v_counted_name constant text := 'code ' || left(email, 254);
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  -- A pending change names the new address. Of several accounts that change to it, the one whose code this is counts.
  select token.user_id into v_account.user_id from auth.mail_tokens as token
    where lower(token.email) = lower(use_mail_code.email) and token.purpose in ('email_change_new', 'phone_change')
      and token.purpose = any (purposes) and token.used_at is null
    order by token.code_hash is not distinct from use_mail_code.code_hash desc, token.created_at desc
    limit 1;
  if not found then
    select account.user_id into v_account.user_id from auth.users as account
      where case when 'sms' = any (purposes) then account.phone = use_mail_code.email else lower(account.email) = lower(use_mail_code.email) end;
  end if;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  wait := auth.count_attempt(v_counted_name, client_info.address);
  if wait > 0 then
    outcome := 'wait';
    return;
  end if;
  select * into v_token from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
      and token.expires_at > clock_timestamp() and token.attempts < v_max_attempts
      and token.code_hash = use_mail_code.code_hash and auth.is_current_address(v_account, token)
    limit 1;
  if v_token.user_id is null then
    update auth.mail_tokens as token set attempts = token.attempts + 1
      where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
        and token.attempts < v_max_attempts;
    perform auth.end_attempt(v_counted_name, client_info.address, 'failed');
    outcome := 'expired';
    return;
  end if;
  perform auth.end_attempt(v_counted_name, client_info.address, 'passed');
  if auth.is_disabled(v_account) then
    outcome := 'disabled';
    return;
  end if;
  outcome := auth.confirm_mail_code(v_token, v_account, client_info);
  user_id := v_token.user_id;
  purpose := v_token.purpose;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_code is
  'Spends a code of six digits and locks the account: passed, half, or why not: expired, disabled, or wait for some seconds.';
--! EndIncluded auth/use_mail_code.sql
--! Included auth/use_reauthentication.sql
create or replace function auth.use_reauthentication(user_id bigint, code_hash bytea, client_info auth.client_info)
returns boolean as $$
declare
  v_max_attempts constant integer := 5;
  v_account constant auth.users := auth.lock_account(use_reauthentication.user_id);
begin
  delete from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.expires_at > clock_timestamp()
      and token.attempts < v_max_attempts and token.code_hash = use_reauthentication.code_hash;
  if found then
    return true;
  end if;
  update auth.mail_tokens as token set attempts = token.attempts + 1
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.attempts < v_max_attempts;
  return false;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_reauthentication is 'Spends the code that a signed-in user confirms a change with; false if it is wrong.';
--! EndIncluded auth/use_reauthentication.sql
--! Included auth/set_password.sql
-- Also deletes links and codes to sign in, to set another password or another address, and everything in progress: identities being linked,
-- sign-ins that still need a code, and codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create or replace function auth.set_password(user_id bigint, new_hash text) returns void as $$
begin
  update auth.users as account set password_hash = new_hash, password_changed_at = clock_timestamp()
    where account.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id);
  delete from auth.mail_tokens
    where mail_tokens.user_id = set_password.user_id and purpose not in ('verify', 'signup', 'invite');
  delete from auth.flow_states where flow_states.user_id = set_password.user_id;
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is
  'Sets the password and ends all sign-ins of the user. The caller has locked the account.';
--! EndIncluded auth/set_password.sql
