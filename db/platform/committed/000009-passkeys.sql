--! Previous: sha1:740a88b48ee81056f4553281f44739463568717b
--! Hash: sha1:84694dcccd089e5621e194934fee3ed0b20525a5

-- Passkeys, which users sign in with, and the keys of security keys, which are second factors.
create table auth.passkeys (
  id                 uuid primary key default gen_random_uuid(),
  user_id            bigint not null references auth.users on delete cascade,
  factor_id          uuid references auth.mfa_factors on delete cascade,
  friendly_name      text not null default '',
  -- Base64url, as browsers send it.
  credential_id      text not null unique check (length(credential_id) <= 1400),
  public_key         bytea not null,
  counter            bigint not null default 0 check (counter >= 0),
  transports         text[] not null default '{}',
  aaguid             uuid,
  is_backup_eligible boolean not null default false,
  is_backed_up       boolean not null default false,
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now(),
  last_used_at       timestamptz
);
alter table auth.passkeys
  add constraint passkeys_friendly_name_max_length check (length(friendly_name) <= 200) not valid,
  add constraint passkeys_public_key_max_length check (octet_length(public_key) <= 4096) not valid;
create index on auth.passkeys (user_id);
create index on auth.passkeys (factor_id);
alter table auth.passkeys enable row level security;
comment on table auth.passkeys is 'The public keys of passkeys and security keys (WebAuthn).';
comment on column auth.passkeys.factor_id is 'The second factor that it is; null for a passkey that users sign in with.';
comment on column auth.passkeys.counter is 'Uses, as the passkey counts them; 0 if it does not.';
comment on column auth.passkeys.aaguid is 'The model of the authenticator, as far as it tells.';
comment on column auth.passkeys.is_backed_up is 'Whether it was stored in a cloud account at the last use.';

create function auth.add_passkey_challenge(purpose text, user_id bigint, challenge text, seconds integer) returns auth.mfa_challenges as $$
declare
  v_challenge auth.mfa_challenges;
begin
  insert into auth.mfa_challenges (purpose, user_id, challenge, expires_at)
    values (
      add_passkey_challenge.purpose, add_passkey_challenge.user_id, add_passkey_challenge.challenge,
      now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey_challenge is 'Starts to register a passkey of that user, or to sign in with one, before it is known whose.';

create function auth.take_passkey_challenge(purpose text, user_id bigint, id uuid) returns auth.mfa_challenges as $$
  delete from auth.mfa_challenges as challenge
  where challenge.id = take_passkey_challenge.id and challenge.purpose = take_passkey_challenge.purpose
    and challenge.user_id is not distinct from take_passkey_challenge.user_id
  returning challenge.*;
$$ language sql set search_path = '';
comment on function auth.take_passkey_challenge is 'Returns a challenge once, also an expired one; null if there is none, or it was used.';

-- A counter that does not increase means that the passkey was copied. Most passkeys of today have none: theirs is always 0.
create function auth.use_passkey(passkey_id uuid, counter bigint, is_backed_up boolean) returns boolean as $$
begin
  update auth.passkeys as passkey
    set counter = use_passkey.counter, is_backed_up = use_passkey.is_backed_up, last_used_at = now()
    where passkey.id = passkey_id
      and (passkey.counter < use_passkey.counter or (passkey.counter = 0 and use_passkey.counter = 0));
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_passkey is 'Records a use of the passkey. False: its counter has not increased, or it was removed.';

-- The columns of the passkey are those of the row; the rest is set here.
create function auth.add_passkey(user_id bigint, passkey jsonb, client_info auth.client_info, out outcome text, out added auth.passkeys) as $$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_passkey.user_id);
  v_row constant auth.passkeys := jsonb_populate_record(null::auth.passkeys, passkey);
begin
  outcome := case
    when v_account.user_id is null then 'no_account'
    when exists (select from auth.passkeys as other where other.credential_id = v_row.credential_id) then 'exists'
    when v_row.factor_id is null and (
      select count(*) from auth.passkeys as other where other.user_id = v_account.user_id and other.factor_id is null
    ) >= v_most then 'too_many'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.passkeys (
    user_id, factor_id, friendly_name, credential_id, public_key, counter, transports, aaguid, is_backup_eligible, is_backed_up
  ) values (
    v_account.user_id, v_row.factor_id, coalesce(v_row.friendly_name, ''), v_row.credential_id, v_row.public_key, v_row.counter,
    v_row.transports, v_row.aaguid, v_row.is_backup_eligible, v_row.is_backed_up
  )
  returning * into added;
  perform auth.log_event('passkey.added', v_account.user_id, client_info, jsonb_build_object('passkey', added.id));
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_passkey is 'Stores a passkey whose registration the service has verified: added; exists, too_many or no_account.';

create function auth.pass_passkey(user_id bigint, passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info) returns text as $$
declare
  v_account constant auth.users := auth.lock_account(pass_passkey.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.user_id is null then 'missing'
    when auth.is_disabled(v_account) then 'disabled'
    when not auth.use_passkey(passkey_id, counter, is_backed_up) then 'counter'
    else 'passed'
  end;
  if v_outcome = 'passed' then
    perform auth.log_event('passkey.signed_in', v_account.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  else
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_passkey is 'The result of a sign-in with a passkey whose signature the service has verified: passed, or why it is refused.';

create function auth.rename_passkey(user_id bigint, passkey_id uuid, friendly_name text) returns auth.passkeys as $$
  update auth.passkeys as passkey set friendly_name = rename_passkey.friendly_name, updated_at = now()
  where passkey.id = passkey_id and passkey.user_id = rename_passkey.user_id and passkey.factor_id is null
  returning passkey.*;
$$ language sql set search_path = '';
comment on function auth.rename_passkey is 'Names a passkey of that user; null if there is no such passkey.';

create function auth.remove_passkey(user_id bigint, passkey_id uuid, client_info auth.client_info) returns boolean as $$
begin
  perform auth.lock_account(remove_passkey.user_id);
  delete from auth.passkeys as passkey
    where passkey.id = passkey_id and passkey.user_id = remove_passkey.user_id and passkey.factor_id is null;
  if not found then
    return false;
  end if;
  perform auth.log_event('passkey.removed', remove_passkey.user_id, client_info, jsonb_build_object('passkey', passkey_id));
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.remove_passkey is 'Removes a passkey of that user. False: there is no such passkey.';
