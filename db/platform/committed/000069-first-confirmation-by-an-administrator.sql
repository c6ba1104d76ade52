--! Previous: sha1:6f52e66bd6248a2d0541eba7c5db2f5fda9649ae
--! Hash: sha1:e55fca0f26c4db1d80d07889b8d2bfefe24adf1c
--! Message: first confirmation by an administrator

-- Without a default: Postgres refuses one while functions with a standard body take a row of the table.
alter table auth.users add column if not exists is_self_registered boolean;
comment on column auth.users.is_self_registered is
  'Whether the account was made by whoever asked for it, not by an administrator. Null: unknown, of an earlier version.';

--! Included auth/sign_up.sql
-- Administrators and operators create accounts by auth.create_account, auth.add_account and auth.import_account instead, whatever the setting.
create or replace function auth.sign_up(
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
comment on function auth.sign_up is
  'Creates an account for whoever asks for one, unless sign-ups are closed. Returns the row of the user.';
--! EndIncluded auth/sign_up.sql

--! Included auth/claim_profile.sql
-- A change of address is the mail of the account itself, and what administrators have written is nobody's sign-up.
create or replace function auth.claim_profile(user_id bigint, proof auth.mail_tokens) returns void as $$
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
comment on function auth.claim_profile is
  'Gives the account the name and metadata of the sign-up whose proof it is. The caller has locked the account.';
--! EndIncluded auth/claim_profile.sql

--! Included auth/claim_account.sql
-- Whoever proves an address or a number first may be another person than the one who entered it: nothing stays that was there before the proof.
-- The sign-up whose mail or message it was brings its password, name and metadata; other proofs leave none. The sign-in of the link that is being used stays.
create or replace function auth.claim_account(user_id bigint, proof auth.mail_tokens, client_info auth.client_info) returns void as $$
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
comment on function auth.claim_account is
  'Ends all that an account had before the first proof of its address or number. The caller has locked the account.';
--! EndIncluded auth/claim_account.sql

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
  elsif not (provider.sign_ups and auth.accepts_sign_ups()) then
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
    update auth.users as account set
        is_self_registered = true, verified_email = case when v_is_vouched then account.email end
      where account.user_id = federated_user.user_id;
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

--! Included auth/is_first_confirmation.sql
-- What administrators created is theirs to confirm as it is. An account of an earlier version may be anybody's.
create or replace function auth.is_first_confirmation(account auth.users, changes jsonb) returns boolean
language sql stable set search_path = ''
as $$
  select account.verified_email is null and account.is_self_registered is not false and coalesce(
    (changes ->> 'email_confirm')::boolean
      and (auth.own_email(account) is not null or account.phone is not null and account.phone_confirmed_at is null)
    or (changes ->> 'phone_confirm')::boolean and account.phone_confirmed_at is null
      and (auth.own_email(account) is not null or account.phone is not null), false
  );
$$;
comment on function auth.is_first_confirmation is
  'Whether an administrator who makes these changes gives the first proof of an address or number that somebody entered.';
--! EndIncluded auth/is_first_confirmation.sql

--! Included auth/apply_account_changes.sql
-- For administrators, who vouch for addresses: an address that replaces a confirmed one is confirmed.
create or replace function auth.apply_account_changes(account_before auth.users, changes jsonb, client_info auth.client_info)
returns void as $$
declare
  v_email constant text := changes ->> 'email';
  v_confirms_email constant boolean := coalesce((changes ->> 'email_confirm')::boolean, false);
  v_confirms_phone constant boolean := coalesce((changes ->> 'phone_confirm')::boolean, false);
begin
  if changes ? 'role' then
    perform auth.assign_role(account_before.user_id, changes ->> 'role', client_info);
  end if;
  if v_email <> account_before.email or account_before.email is null and v_email is not null then
    perform auth.set_email(account_before.user_id, v_email);
    -- Links and codes that were sent to the previous address end.
    delete from auth.mail_tokens as token where token.user_id = account_before.user_id;
  end if;
  begin
    update auth.users as account set
        verified_email = case
          when v_confirms_email or v_email is not null and account_before.email_confirmed_at is not null then account.email
          else account.verified_email
        end,
        phone = coalesce(changes ->> 'phone', account.phone),
        phone_confirmed_at = case when v_confirms_phone then coalesce(account.phone_confirmed_at, now()) else account.phone_confirmed_at end,
        is_anonymous = account.is_anonymous
          and not (v_confirms_email and account.email is not null)
          and not (v_confirms_phone and coalesce(changes ->> 'phone', account.phone) is not null)
      where account.user_id = account_before.user_id;
  exception when unique_violation then
    raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
  end;
  perform auth.set_metadata(account_before.user_id, changes -> 'user_metadata', changes -> 'app_metadata');
  if changes ? 'ban_seconds' then
    perform auth.ban_account(
      account_before.user_id, now() + make_interval(secs => nullif((changes ->> 'ban_seconds')::float, 0)), client_info
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_account_changes is
  'Changes what an administrator gives: role, address, number, metadata, ban. The caller has locked the account.';
--! EndIncluded auth/apply_account_changes.sql

--! Included auth/change_account.sql
create or replace function auth.change_account(
  user_id bigint, changes jsonb, password_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(change_account.user_id);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if auth.is_first_confirmation(v_account, changes) then
    perform auth.claim_account(v_account.user_id, null, client_info);
    update auth.users as account set phone = v_account.phone
      where account.user_id = v_account.user_id and (changes ->> 'phone_confirm')::boolean;
  end if;
  if change_account.password_hash is not null then
    perform auth.set_password(v_account.user_id, change_account.password_hash);
  end if;
  perform auth.apply_account_changes(v_account, changes, client_info);
  perform auth.log_event(
    'account.changed', v_account.user_id, client_info,
    jsonb_build_object('fields', (
      select coalesce(jsonb_agg(field order by field), '[]')
      from (
        select jsonb_object_keys(changes) union all select 'password' where change_account.password_hash is not null
      ) as changed (field)
    ))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_account is
  'Changes an account as an administrator, who gives the first proof of an address or number by confirming it. False: there is none.';
--! EndIncluded auth/change_account.sql

--! Included auth/create_account.sql
-- The metadata is what the administrator gives: a name that is not part of it is kept only where users have a table of their own. Each row of
-- users has an address, also that of an account with a phone number only.
create or replace function auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info)
returns bigint as $$
declare
  v_name constant text := attributes ->> 'name';
  v_email constant text := coalesce(attributes ->> 'email', gen_random_uuid() || '@phone.invalid');
  v_metadata constant jsonb := coalesce(attributes -> 'user_metadata', '{}');
  v_changes jsonb := attributes - '{id,name,email}'::text[];
  v_user_id bigint;
begin
  if exists (select from auth.users as account where account.phone = attributes ->> 'phone') then
    raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
  end if;
  if auth.find_user(v_email) is null then
    v_user_id := auth.register(v_name, v_email, null, null, create_account.password_hash, client_info, v_metadata) ->> 'id';
    v_changes := v_changes - 'user_metadata';
  else
    v_user_id := auth.add_account(v_name, v_email, 'authenticated', create_account.password_hash, client_info);
  end if;
  begin
    update auth.users as account set
        id = coalesce((attributes ->> 'id')::uuid, account.id),
        is_self_registered = false,
        verified_email = case when attributes ? 'email' and (attributes ->> 'email_confirm')::boolean then account.email end
      where account.user_id = v_user_id;
  exception when unique_violation then
    raise exception 'A user with this id exists already' using errcode = 'TAKEN', detail = 'id';
  end;
  if v_changes <> '{}' then
    perform auth.change_account(v_user_id, v_changes, null, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_account is 'Creates an account as an administrator, and returns its key.';
--! EndIncluded auth/create_account.sql
