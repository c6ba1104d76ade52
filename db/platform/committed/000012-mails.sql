--! Previous: sha1:f3a4b60e25bf2a519f44edd8cb47c7e871655917
--! Hash: sha1:30048eff30c5180bc117822ec9d11b206f1a9f3b

-- Links and codes sent by mail, and codes sent as text messages. A request that shows one proves that its sender reads the mail of that address. One mail has a
-- link and a code of six digits, for the same purpose; either can be used, once. And sign-ins that end with a code for tokens (PKCE), whichever way they began.
create table auth.flow_states (
  id               uuid primary key default gen_random_uuid(),
  code_hash        bytea constraint flow_states_code_hash_key unique check (octet_length(code_hash) = 32),
  challenge        text not null check (challenge ~ '^[A-Za-z0-9._~-]{43,128}$'),
  challenge_method text not null check (challenge_method in ('s256', 'plain')),
  method           text not null constraint flow_states_method_max_length check (length(method) <= 50),
  user_id          bigint references auth.users on delete cascade,
  sealed           bytea,
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null check (expires_at > created_at)
);
create index on auth.flow_states (user_id);
create index on auth.flow_states (expires_at);
alter table auth.flow_states enable row level security;
comment on table auth.flow_states is 'Sign-ins that end with a code, which only the client that began them can exchange for tokens (PKCE, RFC 7636).';
comment on column auth.flow_states.code_hash is 'SHA-256 of the code; null until the user has signed in.';
comment on column auth.flow_states.challenge is 'What the client proves to know the verifier of.';
comment on column auth.flow_states.method is 'How the user signs in, for the claim amr.';
comment on column auth.flow_states.sealed is 'What the exchange returns besides the tokens, encrypted with a key that only the bearer of the code can derive.';

create table auth.mail_tokens (
  token_hash    bytea primary key check (octet_length(token_hash) = 32),
  purpose       text not null check (purpose in (
    'reset', 'verify', 'change', 'signup', 'invite', 'magiclink', 'recovery', 'email_change_current', 'email_change_new',
    'reauthentication', 'sms', 'sms_signup', 'phone_change'
  )),
  user_id       bigint not null references auth.users on delete cascade,
  email         text not null,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null check (expires_at > created_at),
  code_hash     bytea check (octet_length(code_hash) = 32),
  attempts      smallint not null default 0,
  new_email     text constraint mail_tokens_new_email_max_length check (length(new_email) <= 254),
  flow_id       uuid references auth.flow_states on delete set null,
  is_pkce       boolean not null default false,
  used_at       timestamptz,
  password_hash text check (password_hash like '$%'),
  user_name     text constraint mail_tokens_user_name_max_length check (length(user_name) <= 200),
  user_metadata jsonb constraint mail_tokens_user_metadata_max_length check (octet_length(user_metadata::text) <= 8192)
);
alter table auth.mail_tokens add constraint mail_tokens_email_max_length check (length(email) <= 254) not valid;
create index on auth.mail_tokens (user_id, purpose);
create index on auth.mail_tokens (expires_at);
create index on auth.mail_tokens (lower(email)) where purpose in ('email_change_new', 'phone_change');
create index on auth.mail_tokens (flow_id);
alter table auth.mail_tokens enable row level security;
comment on table auth.mail_tokens is 'Links and codes sent by mail, as hashes only: to sign in, to set a password, or to verify or change the address. Each works once.';
comment on column auth.mail_tokens.email is 'Where it was sent: an e-mail address, or a phone number. Unless the purpose is a change, the token is invalid when this is no longer the user''s.';
comment on column auth.mail_tokens.code_hash is 'The code of the same mail: an HMAC whose key the database does not have, because six digits could be guessed from a hash. Null without a code.';
comment on column auth.mail_tokens.attempts is 'How many wrong codes were tried; after five the code is invalid, the link is not.';
comment on column auth.mail_tokens.new_email is 'The address, or the phone number, that the user changes to.';
comment on column auth.mail_tokens.is_pkce is 'Whether the link leads to a code for tokens; without flow_id that sign-in has expired.';
comment on column auth.mail_tokens.used_at is 'When one side of a change of address was confirmed, which waits for the other.';
comment on column auth.mail_tokens.password_hash is 'The password of the sign-up that this mail proves: the account has it afterwards.';
comment on column auth.mail_tokens.user_name is 'The name that this sign-up gives.';
comment on column auth.mail_tokens.user_metadata is 'The metadata that this sign-up gives.';

-- Each call deletes a few expired ones.
create function auth.add_flow_state(challenge text, challenge_method text, method text, user_id bigint, seconds integer) returns uuid as $$
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

create function auth.issue_flow_code(flow_id uuid, user_id bigint, code_hash bytea, sealed bytea, seconds integer) returns boolean as $$
begin
  update auth.flow_states as flow set
    user_id = issue_flow_code.user_id, code_hash = issue_flow_code.code_hash, sealed = issue_flow_code.sealed,
    expires_at = clock_timestamp() + make_interval(secs => seconds)
  where flow.id = issue_flow_code.flow_id and flow.code_hash is null and flow.expires_at > clock_timestamp()
    and (flow.user_id is null or flow.user_id = issue_flow_code.user_id);
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.issue_flow_code is 'Stores the code of a user who has signed in. False: the sign-in has expired, or has a code already. The caller has locked the account.';

-- A wrong verifier does not end the sign-in: only the client that began it has the right one.
create function auth.use_flow_code(
  code_hash bytea, verifier text, client_info auth.client_info, out outcome text, out user_id bigint, out method text, out sealed bytea
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
comment on function auth.use_flow_code is 'Spends a code for tokens and locks the account: passed, or why not: absent, expired, disabled, or another verifier.';

create function auth.is_current_address(account auth.users, token auth.mail_tokens) returns boolean as $$
  select case token.purpose
    when 'email_change_new' then true
    when 'phone_change' then true
    when 'sms' then token.email = account.phone
    when 'sms_signup' then token.email = account.phone
    else lower(token.email) = lower(coalesce(account.verified_email, account.email))
  end;
$$ language sql immutable set search_path = '';
comment on function auth.is_current_address is 'Whether a link or code was sent to where the user is reached now.';

-- Where somebody else has signed up, too, nobody knows whose mail is sent again: its proof brings the password of none.
create function auth.pending_sign_up(user_id bigint, purpose text) returns jsonb
language sql stable set search_path = ''
as $$
  select coalesce(sign_up.token, jsonb_build_object('password_hash', account.password_hash))
  from auth.users as account
  left join lateral (
    select jsonb_build_object('password_hash', token.password_hash, 'name', token.user_name, 'metadata', token.user_metadata) as token
    from auth.mail_tokens as token
    where token.user_id = account.user_id and token.purpose = pending_sign_up.purpose
      and token.purpose in ('signup', 'sms_signup') and token.password_hash is not null
    order by token.created_at desc limit 1
  ) as sign_up on true
  where account.user_id = pending_sign_up.user_id
    and not (account.has_several_sign_ups is true and pending_sign_up.purpose in ('signup', 'sms_signup'));
$$;
comment on function auth.pending_sign_up is 'What a mail to this account proves if it is of no sign-up of its own: {name, password_hash, metadata}; null: no password.';

-- Several sign-ups may wait for the proof of one address: each mail proves its own, and a later one does not end those of others.
create function auth.replace_mail_tokens(user_id bigint, purpose text, password_hash text) returns void as $$
declare
  v_max_others constant integer := case when purpose in ('signup', 'sms_signup', 'verify') then 2 else 0 end;
begin
  -- Remembered beyond the time that the mails are valid.
  update auth.users as account set has_several_sign_ups = true
    where account.user_id = replace_mail_tokens.user_id and replace_mail_tokens.password_hash is not null
      and account.has_several_sign_ups is not true and (
        account.password_hash <> replace_mail_tokens.password_hash
        or exists (
          select from auth.mail_tokens as pending
          where pending.user_id = replace_mail_tokens.user_id and pending.password_hash <> replace_mail_tokens.password_hash
        )
      );
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = 'sms_signup' and replace_mail_tokens.purpose = 'sms';
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = replace_mail_tokens.purpose and sent.token_hash not in (
      select kept.token_hash from auth.mail_tokens as kept
      where kept.user_id = replace_mail_tokens.user_id and kept.purpose = replace_mail_tokens.purpose
        and kept.password_hash is distinct from replace_mail_tokens.password_hash
      order by kept.created_at desc limit v_max_others
    );
end;
$$ language plpgsql set search_path = '';
comment on function auth.replace_mail_tokens is 'Deletes the links and codes that a new mail of this purpose replaces.';

-- At most one mail a minute, so that nobody can flood a mailbox.
create function auth.add_mail_token(token_hash bytea, purpose text, user_id bigint, email text, seconds integer, sign_up jsonb default null) returns text as $$
begin
  if exists (
    select from auth.mail_tokens as sent
    where sent.user_id = add_mail_token.user_id and sent.purpose = add_mail_token.purpose
      and sent.created_at > now() - interval '1 minute'
  ) then
    return null;
  end if;
  perform auth.replace_mail_tokens(add_mail_token.user_id, add_mail_token.purpose, sign_up ->> 'password_hash');
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at, password_hash, user_name, user_metadata)
    values (
      add_mail_token.token_hash, add_mail_token.purpose, add_mail_token.user_id, add_mail_token.email,
      now() + make_interval(secs => seconds), sign_up ->> 'password_hash', sign_up ->> 'name', nullif(sign_up -> 'metadata', 'null')
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return email;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_token is 'The address to send the token to, which proves the sign-up {name, password_hash, metadata}; null when one was sent within the last minute.';

-- A mail that is sent again belongs to the sign-up that waits, if that is only one; a change of address, to the account as it is.
create function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer, sign_up jsonb default null
) returns void as $$
declare
  v_sign_up jsonb := add_mail_code.sign_up;
begin
  if v_sign_up is null and purpose in ('signup', 'sms_signup', 'email_change_new', 'email_change_current') then
    v_sign_up := auth.pending_sign_up(add_mail_code.user_id, add_mail_code.purpose);
  end if;
  perform auth.replace_mail_tokens(add_mail_code.user_id, add_mail_code.purpose, v_sign_up ->> 'password_hash');
  insert into auth.mail_tokens (
    token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at, password_hash, user_name, user_metadata
  ) values (
    add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
    add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds),
    v_sign_up ->> 'password_hash', v_sign_up ->> 'name', nullif(v_sign_up -> 'metadata', 'null')
  );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_mail_code is 'Stores the link and the code of a mail, and the sign-up that they prove: {name, password_hash, metadata}. The caller has locked the account.';

create function auth.pending_email(user_id bigint) returns text
language sql stable
begin atomic
  select token.new_email from auth.mail_tokens as token
  where token.user_id = pending_email.user_id and token.purpose in ('email_change_new', 'email_change_current')
    and token.expires_at > now()
  order by token.created_at desc
  limit 1;
end;
comment on function auth.pending_email is 'The address that the user changes to, once it is confirmed; null without a change.';

create function auth.find_mail_token(token_hash bytea, purpose text) returns table (user_id bigint, username text, email text)
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

-- The mail goes to the verified address, as that to set a password does. A user without an account gets one, which nobody can sign in to
-- before the mail has proved the address.
create function auth.code_recipient(email text, out user_id bigint, out address text, out state text, out metadata jsonb, out new_email text) as $$
declare
  v_account auth.users;
begin
  user_id := auth.find_user(code_recipient.email);
  v_account := auth.lock_account(user_id);
  if v_account.user_id is null and user_id is not null then
    insert into auth.users (user_id, username, email) values (user_id, code_recipient.email, code_recipient.email) on conflict do nothing;
    v_account := auth.lock_account(user_id);
  end if;
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
comment on function auth.code_recipient is 'The account with that address, which is locked, and is made for a user without one: absent, disabled, unconfirmed or confirmed.';

-- Without a requested purpose, that of the last code is repeated. While a code to sign in is valid, a sign-up sends such a code too: whoever
-- registers the number again must not get the owner of the number to confirm the first password.
create function auth.phone_recipient(phone text, requested text default 'sms', out user_id bigint, out state text, out purpose text, out user_json jsonb) as $$
declare
  v_account auth.users;
  v_last auth.mail_tokens;
begin
  select account.user_id into user_id from auth.users as account where account.phone = phone_recipient.phone;
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  user_json := auth.user_json(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    else 'found'
  end;
  select * into v_last from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose in ('sms', 'sms_signup')
    order by token.expires_at desc limit 1;
  purpose := case
    when v_last.purpose = 'sms' and v_last.expires_at > now() then 'sms'
    else coalesce(requested, v_last.purpose, 'sms')
  end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.phone_recipient is 'The account with that phone number, which is locked: absent, disabled or found; and what a code is for: to sign in, or to confirm a sign-up.';

-- A number of an account whose address is proved was entered by an administrator: its proof ends nothing.
create function auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info) returns text as $$
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
    perform auth.apply_email_change(account, token, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose in ('sms', 'sms_signup') then
    if account.phone_confirmed_at is null and account.verified_email is null then
      perform auth.claim_account(account.user_id, token, client_info);
    end if;
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if lower(account.verified_email) is distinct from lower(token.email) then
    perform auth.claim_account(account.user_id, token, client_info);
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  return 'passed';
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_mail_code is 'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';

create function auth.use_mail_link(
  token_hash bytea, purposes text[], needs_flow boolean, client_info auth.client_info, out outcome text, out user_id bigint, out purpose text, out flow_id uuid
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
  elsif needs_flow and v_token.is_pkce and v_token.flow_id is null then
    outcome := 'flow_expired';
  else
    outcome := auth.confirm_mail_code(v_token, v_account, client_info);
    user_id := v_token.user_id;
    purpose := v_token.purpose;
    flow_id := v_token.flow_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_link is 'Spends a link and locks the account: passed, half, or why not: expired, disabled, or the sign-in that it belongs to has expired.';

-- Counts as an attempt to sign in, by the address that the client names and by where it is. Runs the same queries whether or not the account exists.
create function auth.use_mail_code(
  email text, code_hash bytea, purposes text[], client_info auth.client_info, out outcome text, out user_id bigint, out purpose text, out wait integer
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
  wait := auth.count_attempt(
    v_counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
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
comment on function auth.use_mail_code is 'Spends a code of six digits and locks the account: passed, half, or why not: expired, disabled, or wait for some seconds.';

create function auth.use_reauthentication(user_id bigint, code_hash bytea, client_info auth.client_info) returns boolean as $$
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
