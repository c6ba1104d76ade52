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
