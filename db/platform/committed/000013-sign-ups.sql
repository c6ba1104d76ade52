--! Previous: sha1:30048eff30c5180bc117822ec9d11b206f1a9f3b
--! Hash: sha1:e0d7fd94b567ba6e7289b6f8ebf7c98744757b4e

-- Sign-ups, the proof of an address or number, changes of it, and passwords.
create table auth.account_settings (
  is_only  boolean primary key default true constraint account_settings_is_only check (is_only),
  sign_ups boolean not null
);
alter table auth.account_settings enable row level security;
comment on table auth.account_settings is 'Settings of the service that rules of the database need, as of its last start.';

-- Who may create accounts is a rule of the database, which every interface obeys, so it has to know the setting. A standby, which has it already,
-- refuses to write.
create function auth.set_account_settings(sign_ups boolean) returns void as $$
begin
  if exists (select from auth.account_settings as settings where settings.sign_ups = set_account_settings.sign_ups) then
    return;
  end if;
  insert into auth.account_settings as settings (sign_ups) values (set_account_settings.sign_ups)
    on conflict (is_only) do update set sign_ups = excluded.sign_ups;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_account_settings is 'Saves AUTH_SIGN_UPS. Each start of the service calls it.';

-- With the owner's rights, because policies call it as the caller, who reads no table of the schema.
create function auth.accepts_sign_ups() returns boolean as $$
  select coalesce((select settings.sign_ups from auth.account_settings as settings), true);
$$ language sql stable security definer set search_path = '';
grant execute on function auth.accepts_sign_ups to anon, authenticated, service_role;
comment on function auth.accepts_sign_ups is 'Whether others than administrators may create users (AUTH_SIGN_UPS).';

-- Checks beforehand what a client can get wrong, so that no row of auth.users appears in the detail of an error.
-- The address of an anonymous account is only kept where each row of users has one: triggers copy it from there.
create function auth.register(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null, is_anonymous boolean default false
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
    insert into auth.users (user_id, username, email, password_hash, is_anonymous, raw_user_meta_data)
      values (
        v_user.user_id, coalesce(register.username, register.email),
        case when not register.is_anonymous then register.email end, register.password_hash, register.is_anonymous,
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
comment on function auth.register is 'Creates a user who can sign in; without a password hash, through another provider only. Returns the row of the user.';

-- Administrators and operators create accounts by auth.create_account, auth.add_account and auth.import_account instead, whatever the setting.
create function auth.sign_up(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null, is_anonymous boolean default false
) returns jsonb as $$
declare
  v_user jsonb;
begin
  if not auth.accepts_sign_ups() then
    raise exception 'Sign-ups are closed' using errcode = 'NSIGN', hint = 'Ask an administrator for an account.';
  end if;
  v_user := auth.register(
    sign_up.name, sign_up.email, sign_up.age, sign_up.username, sign_up.password_hash, sign_up.client_info,
    sign_up.user_metadata, sign_up.is_anonymous
  );
  update auth.users as account set is_self_registered = true where account.user_id = (v_user ->> 'id')::bigint;
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_up is 'Creates an account for whoever asks for one, unless sign-ups are closed. Returns the row of the user.';

-- The address has a row or an account that nobody has proved: the mail belongs to this sign-up, whose password the account then has.
create function auth.begin_sign_up(email text, sign_up jsonb, token_hash bytea, seconds integer, client_info auth.client_info) returns text as $$
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
comment on function auth.begin_sign_up is 'The address to send a verification token to; null when the address is proved, or a token was sent within the last minute.';

-- The first proof of an address.

-- What administrators created is theirs to confirm as it is. An account of an earlier version may be anybody's.
create function auth.is_first_confirmation(account auth.users, changes jsonb) returns boolean
language sql stable set search_path = ''
as $$
  select account.verified_email is null and account.is_self_registered is not false and coalesce(
    (changes ->> 'email_confirm')::boolean
      and (auth.own_email(account) is not null or account.phone is not null and account.phone_confirmed_at is null)
    or (changes ->> 'phone_confirm')::boolean and account.phone_confirmed_at is null
      and (auth.own_email(account) is not null or account.phone is not null), false
  );
$$;
comment on function auth.is_first_confirmation is 'Whether an administrator who makes these changes gives the first proof of an address or number that somebody entered.';

-- A change of address is the mail of the account itself, and what administrators have written is nobody's sign-up.
create function auth.claim_profile(user_id bigint, proof auth.mail_tokens) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(claim_profile.user_id);
  v_is_of_account constant boolean := coalesce(
    proof.purpose in ('email_change_new', 'email_change_current') or proof.password_hash = v_account.password_hash, false
  );
  v_metadata jsonb := auth.merge_metadata('{}', proof.user_metadata);
  v_given_name constant text := nullif(btrim(coalesce(proof.user_name, v_metadata ->> 'name')), '');
  v_usual_name constant text := coalesce(nullif(split_part(auth.own_email(v_account), '@', 1), ''), 'User');
begin
  if v_is_of_account or v_account.is_self_registered is not true and proof.user_name is null then
    return;
  end if;
  -- Metadata of a sign-up for an address that had an account already was not checked then.
  if octet_length(v_metadata::text) > 8192 then
    v_metadata := '{}';
  end if;
  update auth.users as account set raw_user_meta_data = v_metadata where account.user_id = claim_profile.user_id;
  begin
    perform auth.rename_user(claim_profile.user_id, left(coalesce(v_given_name, v_usual_name), 200));
  exception when sqlstate 'WRONG' then
    perform auth.rename_user(claim_profile.user_id, left(v_usual_name, 200));
  end;
  -- Metadata that a sign-up gives stays as it was given, without the name.
  update auth.users as account set raw_user_meta_data = v_metadata
    where account.user_id = claim_profile.user_id and proof.user_metadata is not null;
end;
$$ language plpgsql set search_path = '';
comment on function auth.claim_profile is 'Gives the account the name and metadata of the sign-up whose proof it is. The caller has locked the account.';

-- Whoever proves an address or a number first may be another person than the one who entered it: nothing stays that was there before the proof.
-- The sign-up whose mail or message it was brings its password, name and metadata; other proofs leave none. The sign-in of the link that is being used stays.
create function auth.claim_account(user_id bigint, proof auth.mail_tokens, client_info auth.client_info) returns void as $$
begin
  perform auth.claim_profile(claim_account.user_id, proof);
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
comment on function auth.claim_account is 'Ends all that an account had before the first proof of its address or number. The caller has locked the account.';

-- Asked for by the user who is signed in: the password of the account stays.
create function auth.begin_verification(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info) returns text as $$
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
comment on function auth.begin_verification is 'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';

create function auth.verify_email(token_hash bytea, client_info auth.client_info) returns bigint as $$
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
comment on function auth.verify_email is 'Spends the token and marks the address as verified, which ends what was there before. Null: the token is invalid.';

-- Another address or number.

-- What was sent to the previous address ends.
create function auth.set_confirmed_email(user_id bigint, email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(set_confirmed_email.user_id, set_confirmed_email.email);
  update auth.users as account set verified_email = set_confirmed_email.email, is_anonymous = false
    where account.user_id = set_confirmed_email.user_id;
  delete from auth.mail_tokens as token where token.user_id = set_confirmed_email.user_id;
  perform auth.log_event('email.changed', set_confirmed_email.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_confirmed_email is 'Changes the address, which counts as proved. The caller has locked the account.';

-- Both sides have confirmed it. The first proof of an account ends all that was there before.
create function auth.apply_email_change(account auth.users, proof auth.mail_tokens, client_info auth.client_info) returns void as $$
begin
  if account.verified_email is null and account.phone_confirmed_at is null then
    perform auth.claim_account(account.user_id, proof, client_info);
  end if;
  perform auth.set_confirmed_email(account.user_id, proof.new_email, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address to one that was proved. The caller has locked the account.';

-- Tells that an address is taken, as auth.register does.
create function auth.begin_email_change(user_id bigint, email text, token_hash bytea, seconds integer, client_info auth.client_info) returns text as $$
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
comment on function auth.begin_email_change is 'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';

create function auth.change_email(token_hash bytea, client_info auth.client_info, out user_id bigint, out previous_email text) as $$
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
comment on function auth.change_email is 'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';

create function auth.cancel_email_change(user_id bigint) returns void as $$
  delete from auth.mail_tokens as token
  where token.user_id = cancel_email_change.user_id and token.purpose in ('email_change_current', 'email_change_new');
$$ language sql set search_path = '';
comment on function auth.cancel_email_change is 'Ends a change of address that is in progress.';

create function auth.set_phone(user_id bigint, phone text, is_confirmed boolean) returns void as $$
begin
  update auth.users as account set
    phone = set_phone.phone, phone_confirmed_at = case when is_confirmed then clock_timestamp() end
  where account.user_id = set_phone.user_id;
exception when unique_violation then
  raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_phone is 'Sets the phone number of an account.';

-- Passwords.

-- Also deletes links and codes to sign in, to set another password or another address, and everything in progress: identities being linked,
-- sign-ins that still need a code, and codes for tokens. password_changed_at is later than any identity that was linked before the account was locked.
create function auth.set_password(user_id bigint, new_hash text, kept_session uuid default null) returns void as $$
begin
  update auth.users as account set password_hash = new_hash, password_changed_at = clock_timestamp()
    where account.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id, kept_session);
  delete from auth.mail_tokens
    where mail_tokens.user_id = set_password.user_id and purpose not in ('verify', 'signup', 'invite');
  delete from auth.flow_states where flow_states.user_id = set_password.user_id;
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_password is 'Sets the password and ends all sign-ins of the user, except one by tokens. The caller has locked the account.';

create function auth.confirm_password(counted_name text, user_id bigint, password_hash text, client_info auth.client_info) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(confirm_password.user_id);
begin
  if v_account.password_hash is distinct from confirm_password.password_hash or auth.is_disabled(v_account) then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.confirm_password is 'Whether a password that was compared with this hash is still the one of the account, which is locked until the end of the transaction.';

create function auth.change_password(user_id bigint, new_hash text, client_info auth.client_info, kept_session uuid default null) returns void as $$
begin
  perform auth.set_password(change_password.user_id, new_hash, kept_session);
  perform auth.log_event('password.changed', change_password.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_password is 'Sets the password of a user who may do that in this transaction, and ends the user''s other sign-ins.';

-- The mail goes to the verified address: entering another address does not take over the account. Also for a user without a password
-- or without an account: whoever reads the mail is that user.
create function auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info) returns text as $$
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

create function auth.reset_password(token_hash bytea, new_hash text, client_info auth.client_info) returns bigint as $$
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
comment on function auth.reset_password is 'Spends the token, sets the password and ends all sign-ins of the user. Null: the token is invalid.';
