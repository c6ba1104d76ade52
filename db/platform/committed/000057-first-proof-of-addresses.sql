--! Previous: sha1:cf3a57cf393a6eb3bdda47b142ad93a410936971
--! Hash: sha1:4be4e296ca2b00eb9290d8dcb1aa3ac2f73aab6d
--! Message: first proof of addresses

alter table auth.mail_tokens
  add column if not exists password_hash text constraint mail_tokens_password_hash_check check (password_hash like '$%'),
  add column if not exists user_name text constraint mail_tokens_user_name_max_length check (length(user_name) <= 200),
  add column if not exists user_metadata jsonb constraint mail_tokens_user_metadata_max_length check (octet_length(user_metadata::text) <= 8192);
comment on column auth.mail_tokens.password_hash is 'The password of the sign-up that this mail proves: the account has it afterwards.';
comment on column auth.mail_tokens.user_name is 'The name that this sign-up gives.';
comment on column auth.mail_tokens.user_metadata is 'The metadata that this sign-up gives.';

drop function if exists auth.claim_account(bigint, uuid, auth.client_info);
drop function if exists auth.add_mail_code(bytea, bytea, text, bigint, text, text, uuid, integer);
drop function if exists auth.add_mail_token(bytea, text, bigint, text, integer);
drop function if exists auth.apply_email_change(bigint, text, auth.client_info);

--! Included auth/replace_mail_tokens.sql
-- Several sign-ups may wait for the proof of one address: each mail proves its own, and a later one does not end those of others.
create or replace function auth.replace_mail_tokens(user_id bigint, purpose text, password_hash text) returns void as $$
declare
  v_max_others constant integer := case when purpose in ('signup', 'sms_signup', 'verify') then 2 else 0 end;
begin
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
--! EndIncluded auth/replace_mail_tokens.sql
--! Included auth/pending_sign_up.sql
-- Of several sign-ups, nobody knows whose mail is sent again: its proof brings the password of none.
create or replace function auth.pending_sign_up(user_id bigint, purpose text) returns jsonb as $$
declare
  v_pending auth.mail_tokens[];
begin
  if purpose in ('signup', 'sms_signup') then
    v_pending := array(
      select token from auth.mail_tokens as token
      where token.user_id = pending_sign_up.user_id and token.purpose in ('signup', 'sms_signup', 'verify')
        and token.expires_at > clock_timestamp()
      limit 2
    );
  end if;
  return case coalesce(cardinality(v_pending), 0)
    when 0 then (
      select jsonb_build_object('password_hash', account.password_hash)
      from auth.users as account where account.user_id = pending_sign_up.user_id
    )
    when 1 then jsonb_build_object(
      'password_hash', v_pending[1].password_hash, 'name', v_pending[1].user_name, 'metadata', v_pending[1].user_metadata
    )
  end;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.pending_sign_up is
  'What a mail to this account proves if it is of no sign-up of its own: {name, password_hash, metadata}; null: no password.';
--! EndIncluded auth/pending_sign_up.sql
--! Included auth/add_mail_code.sql
-- A mail that is sent again belongs to the sign-up that waits, if that is only one; a change of address, to the account as it is.
create or replace function auth.add_mail_code(
  token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer,
  sign_up jsonb default null
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
comment on function auth.add_mail_code is
  'Stores the link and the code of a mail, and the sign-up that they prove: {name, password_hash, metadata}. The caller has locked the account.';
--! EndIncluded auth/add_mail_code.sql
--! Included auth/add_mail_token.sql
-- At most one mail a minute, so that nobody can flood a mailbox.
create or replace function auth.add_mail_token(
  token_hash bytea, purpose text, user_id bigint, email text, seconds integer, sign_up jsonb default null
) returns text as $$
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
comment on function auth.add_mail_token is
  'The address to send the token to, which proves the sign-up {name, password_hash, metadata}; null when one was sent within the last minute.';
--! EndIncluded auth/add_mail_token.sql
--! Included auth/claim_account.sql
-- Whoever proves an address or a number first may be another person than the one who entered it: nothing stays that was there before the proof.
-- The sign-up whose mail or message it was brings its password; other proofs leave none. The sign-in of the link that is being used stays.
create or replace function auth.claim_account(user_id bigint, proof auth.mail_tokens, client_info auth.client_info) returns void as $$
begin
  -- Of another sign-up than the one that made the account.
  if proof.user_name is not null and exists (
    select from auth.users as account
    where account.user_id = claim_account.user_id and account.password_hash is distinct from proof.password_hash
  ) then
    perform auth.rename_user(claim_account.user_id, proof.user_name);
    update auth.users as account set raw_user_meta_data = auth.merge_metadata('{}', proof.user_metadata)
      where account.user_id = claim_account.user_id and proof.user_metadata is not null;
  end if;
  update auth.users as account set
      password_hash = proof.password_hash, password_changed_at = clock_timestamp(),
      phone = case when proof.purpose in ('sms', 'sms_signup') then account.phone end,
      phone_confirmed_at = case when proof.purpose in ('sms', 'sms_signup') then account.phone_confirmed_at end
    where account.user_id = claim_account.user_id;
  perform auth.end_sign_ins(claim_account.user_id);
  delete from auth.identities as identity where identity.user_id = claim_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = claim_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = claim_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = claim_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = claim_account.user_id and key.revoked_at is null;
  delete from auth.mail_tokens as token where token.user_id = claim_account.user_id;
  delete from auth.flow_states as flow where flow.user_id = claim_account.user_id and flow.id is distinct from proof.flow_id;
  delete from auth.federation_states as state where state.user_id = claim_account.user_id;
  delete from auth.federation_logins as login where login.user_id = claim_account.user_id;
  delete from auth.federation_codes as code where code.user_id = claim_account.user_id;
  perform auth.log_event('account.claimed', claim_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.claim_account is
  'Ends all that an account had before the first proof of its address or number. The caller has locked the account.';
--! EndIncluded auth/claim_account.sql
--! Included auth/set_confirmed_email.sql
-- What was sent to the previous address ends.
create or replace function auth.set_confirmed_email(user_id bigint, email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(set_confirmed_email.user_id, set_confirmed_email.email);
  update auth.users as account set verified_email = set_confirmed_email.email, is_anonymous = false
    where account.user_id = set_confirmed_email.user_id;
  delete from auth.mail_tokens as token where token.user_id = set_confirmed_email.user_id;
  perform auth.log_event('email.changed', set_confirmed_email.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_confirmed_email is 'Changes the address, which counts as proved. The caller has locked the account.';
--! EndIncluded auth/set_confirmed_email.sql
--! Included auth/apply_email_change.sql
-- Both sides have confirmed it. The first proof of an account ends all that was there before.
create or replace function auth.apply_email_change(account auth.users, proof auth.mail_tokens, client_info auth.client_info)
returns void as $$
begin
  if account.verified_email is null and account.phone_confirmed_at is null then
    perform auth.claim_account(account.user_id, proof, client_info);
  end if;
  perform auth.set_confirmed_email(account.user_id, proof.new_email, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address to one that was proved. The caller has locked the account.';
--! EndIncluded auth/apply_email_change.sql
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
  v_token.new_email := v_token.email;
  perform auth.apply_email_change(v_account, v_token, client_info);
  user_id := v_account.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_email is
  'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';
--! EndIncluded auth/change_email.sql
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
  elsif auth.add_mail_token(
    token_hash, 'change', v_account.user_id, begin_email_change.email, seconds,
    jsonb_build_object('password_hash', v_account.password_hash)
  ) is null then
    raise exception 'An e-mail was sent within the last minute' using errcode = 'TOMNY', hint = 'Try again in a minute.';
  end if;
  perform auth.log_event('email.change_requested', v_account.user_id, client_info);
  return v_current;
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_email_change is
  'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';
--! EndIncluded auth/begin_email_change.sql
--! Included auth/confirm_mail_code.sql
-- A number of an account whose address is proved was entered by an administrator: its proof ends nothing.
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
comment on function auth.confirm_mail_code is
  'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';
--! EndIncluded auth/confirm_mail_code.sql
--! Included auth/code_recipient.sql
-- The mail goes to the verified address, as that to set a password does. A user without an account gets one, which nobody can sign in to
-- before the mail has proved the address.
create or replace function auth.code_recipient(
  email text, out user_id bigint, out address text, out state text, out metadata jsonb, out new_email text
) as $$
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
comment on function auth.code_recipient is
  'The account with that address, which is locked, and is made for a user without one: absent, disabled, unconfirmed or confirmed.';
--! EndIncluded auth/code_recipient.sql
--! Included auth/begin_verification.sql
-- Asked for by the user who is signed in: the password of the account stays.
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
  return auth.add_mail_token(
    token_hash, 'verify', v_account.user_id, v_email, seconds, jsonb_build_object('password_hash', v_account.password_hash)
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_verification is
  'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';
--! EndIncluded auth/begin_verification.sql
--! Included auth/begin_sign_up.sql
-- The address has a row or an account that nobody has proved: the mail belongs to this sign-up, whose password the account then has.
create or replace function auth.begin_sign_up(
  email text, sign_up jsonb, token_hash bytea, seconds integer, client_info auth.client_info
) returns text as $$
declare
  v_recipient record;
begin
  v_recipient := auth.code_recipient(begin_sign_up.email);
  if v_recipient.state <> 'unconfirmed' then
    return null;
  end if;
  return auth.add_mail_token(
    begin_sign_up.token_hash, 'verify', v_recipient.user_id, v_recipient.address, begin_sign_up.seconds, begin_sign_up.sign_up
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.begin_sign_up is
  'The address to send a verification token to; null when the address is proved, or a token was sent within the last minute.';
--! EndIncluded auth/begin_sign_up.sql
--! Included auth/verify_email.sql
create or replace function auth.verify_email(token_hash bytea, client_info auth.client_info) returns bigint as $$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  v_account := auth.lock_account((select found.user_id from auth.find_mail_token(verify_email.token_hash, 'verify') as found));
  if v_account.user_id is null then
    return null;
  end if;
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash returning * into v_token;
  if not found then
    return null;
  end if;
  if lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, v_token, client_info);
  end if;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.verify_email is
  'Spends the token and marks the address as verified, which ends what was there before. Null: the token is invalid.';
--! EndIncluded auth/verify_email.sql
--! Included auth/reset_password.sql
create or replace function auth.reset_password(token_hash bytea, new_hash text, client_info auth.client_info) returns bigint as $$
declare
  v_token record;
  v_account auth.users;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  v_account := auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  -- An identity that was linked before may belong to somebody else: whoever created the account with this address before it was
  -- verified, or knew the password that is replaced.
  update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
  if v_account.user_id is not null and lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, null, client_info);
  end if;
  insert into auth.users (user_id, username)
    select v_token.user_id, v_token.email on conflict (user_id) do nothing;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.set_password(v_token.user_id, new_hash);
  perform auth.log_event('password.reset', v_token.user_id, client_info);
  return v_token.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.reset_password is
  'Spends the token, sets the password and ends all sign-ins of the user. Null: the token is invalid.';
--! EndIncluded auth/reset_password.sql
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject, and by e-mail address only where the provider has verified the address. Where nobody has proved
-- it here, this sign-in is the first proof: who entered the address before has no part in the account.
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
      or lower(v_account.verified_email collate "C") <> lower(v_current collate "C")
    then
      outcome := 'conflict';
      user_id := null;
      return;
    end if;
    if v_account.user_id is not null and v_account.verified_email is null and not auth.is_disabled(v_account) then
      perform auth.claim_account(user_id, null, client_info);
      update auth.users as account set verified_email = v_current where account.user_id = federated_user.user_id;
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
--! Included auth/session_claims.sql
-- sub is of the type that auth.uid() has in this database; the claims of an access token of /auth/v1 beside those of every token. Policies
-- trust the address and the number: they are empty until they are proved.
create or replace function auth.session_claims(user_id bigint, session_id uuid) returns jsonb as $$
declare
  v_account auth.users;
  v_session auth.token_sessions;
  v_providers jsonb := auth.providers_of(session_claims.user_id);
begin
  select * into v_account from auth.users as account where account.user_id = session_claims.user_id;
  select * into v_session from auth.token_sessions as session
    where session.id = session_claims.session_id and session.user_id = session_claims.user_id;
  return auth.token_claims(session_claims.user_id) || jsonb_build_object(
    'id', v_account.id,
    'email', coalesce(case when v_account.email_confirmed_at is not null then auth.own_email(v_account) end, ''),
    'phone', coalesce(case when v_account.phone_confirmed_at is not null then v_account.phone end, ''),
    'app_metadata', v_account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', v_providers -> 0, 'providers', v_providers, 'user_id', v_account.user_id
    )),
    'user_metadata', v_account.raw_user_meta_data,
    'session_id', v_session.id,
    'aal', 'aal' || v_session.aal,
    'amr', v_session.amr,
    'is_anonymous', v_account.is_anonymous
  ) || case when v_session.requires_factor then jsonb_build_object('required_aal', 'aal2') else '{}' end;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.session_claims is 'The claims of an access token of /auth/v1 issued now, and the id that may become its subject.';
--! EndIncluded auth/session_claims.sql
