--! Previous: sha1:b5fb6ba4a16ee91c6984f2dfa9a9d671ce756357
--! Hash: sha1:4b453185651648b4d7768221ab132f45fef4c1be
--! Message: sign-ups by settings

create table if not exists auth.account_settings (
  is_only  boolean primary key default true
           constraint account_settings_is_only check (is_only),
  sign_ups boolean not null
);
alter table auth.account_settings enable row level security;
comment on table auth.account_settings is 'Settings of the service that rules of the database need, as of its last start.';
--! Included auth/set_account_settings.sql
-- Who may create accounts is a rule of the database, which every interface obeys, so it has to know the setting. A standby, which has it already,
-- refuses to write.
create or replace function auth.set_account_settings(sign_ups boolean) returns void as $$
begin
  if exists (select from auth.account_settings as settings where settings.sign_ups = set_account_settings.sign_ups) then
    return;
  end if;
  insert into auth.account_settings as settings (sign_ups) values (set_account_settings.sign_ups)
    on conflict (is_only) do update set sign_ups = excluded.sign_ups;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_account_settings is 'Saves AUTH_SIGN_UPS. Each start of the service calls it.';
--! EndIncluded auth/set_account_settings.sql
--! Included auth/accepts_sign_ups.sql
-- With the owner's rights, because policies call it as the caller, who reads no table of the schema.
create or replace function auth.accepts_sign_ups() returns boolean as $$
  select coalesce((select settings.sign_ups from auth.account_settings as settings), true);
$$ language sql stable security definer set search_path = '';

grant execute on function auth.accepts_sign_ups to anon, authenticated, service_role;
comment on function auth.accepts_sign_ups is
  'Whether others than administrators may create users (AUTH_SIGN_UPS).';
--! EndIncluded auth/accepts_sign_ups.sql
--! Included auth/sign_up.sql
-- Administrators and operators create accounts by auth.create_account, auth.add_account and auth.import_account instead, whatever the setting.
create or replace function auth.sign_up(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null, is_anonymous boolean default false
) returns jsonb as $$
begin
  if not auth.accepts_sign_ups() then
    raise exception 'Sign-ups are closed' using errcode = 'NSIGN', hint = 'Ask an administrator for an account.';
  end if;
  return auth.register(
    sign_up.name, sign_up.email, sign_up.age, sign_up.username, sign_up.password_hash, sign_up.client_info,
    sign_up.user_metadata, sign_up.is_anonymous
  );
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_up is
  'Creates an account for whoever asks for one, unless sign-ups are closed. Returns the row of the user.';
--! EndIncluded auth/sign_up.sql
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
