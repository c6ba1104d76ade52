--! Previous: sha1:731e436d07311f5ca448b9636a7f7c93632f36e7
--! Hash: sha1:9330b7f85dc0062705c928e60b17fdb0653ee37f
--! Message: auth-rules

--! split: 1-current.sql
-- The new chapter goes here, one subject per file: 0010-tags.sql, 0020-likes.sql. Rename or delete this file then.
-- See db/README.md.

--! split: 0020-auth-rules.sql
-- Who had an account before the reader of its mail could keep a way in by linking a provider, once the reader had confirmed
-- the address without having asked for that mail. And who is called by a provider what nobody can read may sign up all the same.
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject. By e-mail address only where both the provider and we have verified it:
-- else whoever enters somebody's address there, or here before them, would share the account.
create or replace function auth.federated_user(
  provider auth.providers, subject text, claims jsonb, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
  v_local_part constant text := split_part(v_email, '@', 1);
  v_is_vouched constant boolean := provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false);
  v_identity auth.identities;
  v_account auth.credentials;
  v_user public.users;
begin
  -- Two who come for the first time at once are one.
  perform pg_advisory_xact_lock(hashtextextended(provider.issuer || ' ' || subject, 0));
  select * into v_identity from auth.identities
    where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
  if found then
    v_account := auth.hold_account(v_identity.user_id);
    -- Again, as whoever held the account before has left it.
    select * into v_identity from auth.identities
      where identities.issuer = provider.issuer and identities.subject = federated_user.subject;
    user_id := v_account.user_id;
    -- Somebody has since set a password by mail: the account is theirs alone, and so is what the provider says is of that address.
    outcome := case
      when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at
        or v_is_vouched and lower(v_email collate "C") = lower(v_account.verified_email collate "C")
      then 'found'
      else 'conflict'
    end;
    return;
  end if;

  select * into v_user from public.users where lower(users.email) = lower(v_email) for key share;
  if found then
    v_account := auth.hold_account(v_user.id);
    -- To mail servers letters are the same in any case within ASCII alone: the sign for kelvin is no k.
    if not v_is_vouched or lower(v_email collate "C") <> lower(v_user.email collate "C")
      or v_account.user_id is not null
        and lower(v_account.verified_email collate "C") is distinct from lower(v_user.email collate "C")
    then
      outcome := 'conflict';
      return;
    end if;
    -- A user whom somebody has entered, and who could not sign in until now.
    insert into auth.credentials (user_id, username, verified_email) values (v_user.id, v_user.email, v_user.email)
      on conflict on constraint credentials_pkey do nothing;
    outcome := 'linked';
  elsif not provider.sign_ups then
    outcome := 'closed';
    return;
  elsif v_email is null then
    outcome := 'nameless';
    return;
  else
    begin
      v_user := auth.register(coalesce(btrim(claims ->> 'name'), v_local_part), v_email, null, null, null, sender);
    exception when sqlstate 'WRONG' then
      -- A name that nobody could read. If it is the address, that is said now.
      v_user := auth.register(v_local_part, v_email, null, null, null, sender);
    end;
    update auth.credentials set verified_email = v_user.email where credentials.user_id = v_user.id and v_is_vouched;
    outcome := 'registered';
  end if;
  user_id := v_user.id;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (provider.issuer, federated_user.subject, v_user.id, v_is_vouched);
  perform auth.log_event('identity.linked', v_user.id, sender, jsonb_build_object('provider', provider.name));
end;
$$ language plpgsql set search_path = '';
comment on function auth.federated_user is
  'Whose account that is: found, linked or registered; or why it is nobody''s: conflict, closed, nameless. The account is held.';
--! EndIncluded auth/federated_user.sql
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
  -- Whoever has linked a provider before may be somebody else: who made the account with this address, before anybody had
  -- shown to read its mail, or who knew the password that is replaced.
  update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
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
--! Included auth/set_password.sql
-- Links to set another one go with the password that was forgotten; so does what is still on its way: who left to link a
-- provider, who has come back from one and owes a code, and codes for tokens. Its time is later than whatever was linked
-- before the account was held.
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
  'Sets the password and ends whatever the user is signed in by. The account is held.';
--! EndIncluded auth/set_password.sql
comment on column auth.identities.is_vouched is
  'Whether the provider vouched for the address, or the user was signed in when it was linked. Undone when a password is set by mail.';

-- Who was an administrator stayed one by a key.
--! Included auth/tg_user_roles__end_tokens.sql
create or replace function auth.tg_user_roles__end_tokens() returns trigger as $$
declare
  v_key_id bigint;
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
    -- A key in it would be a way to keep the role.
    for v_key_id in
      update auth.api_keys set revoked_at = now()
        where owner_id = OLD.user_id and role = OLD.role and revoked_at is null
        returning id
    loop
      perform auth.log_event('api_key.revoked', OLD.user_id, null, jsonb_build_object('api_key', v_key_id));
    end loop;
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_user_roles__end_tokens is
  'After a change, by whomever: ends the tokens that name the role the user had, and the user''s keys in it.';
--! EndIncluded auth/tg_user_roles__end_tokens.sql
-- Nor by one that is made while the role is lost: whoever acts is asked again, with the account held.
--! Included auth/create_api_key.sql
create or replace function auth.create_api_key(
  key_hash bytea, prefix text, role text, owner_id bigint, name text, expires_at timestamptz, sender auth.sender
) returns bigint as $$
declare
  v_id bigint;
begin
  -- The lower id first, whoever it is: two who went different ways would wait for each other.
  perform auth.hold_account(held.id)
    from (select distinct unnest(array[create_api_key.owner_id, (sender).actor]) as id order by id) as held;
  -- A token outlives the role that it names by some seconds. Who has it by the word of another issuer is believed.
  if exists (
    select from auth.credentials left join auth.user_roles using (user_id)
    where credentials.user_id = (sender).actor
      and (credentials.disabled_at is not null
        or credentials.tokens_valid_from > now() - interval '1 minute' and user_roles.role is distinct from 'admin')
  ) then
    raise exception 'Only an administrator may do this' using errcode = 'NOPER';
  elsif not exists (select from auth.roles where roles.name = create_api_key.role) then
    raise exception 'There is no role of that name for keys' using errcode = 'WRONG', detail = 'role';
  elsif owner_id is not null and not exists (select from public.users where users.id = owner_id) then
    raise exception 'There is no user of that id' using errcode = 'NTFND', detail = 'owner';
  elsif create_api_key.expires_at <= now() then
    raise exception 'A key expires in the future' using errcode = 'WRONG', detail = 'expires';
  end if;
  insert into auth.api_keys (key_hash, prefix, role, owner_id, name, expires_at)
    values (
      create_api_key.key_hash, create_api_key.prefix, create_api_key.role, create_api_key.owner_id,
      create_api_key.name, create_api_key.expires_at
    )
    returning id into v_id;
  perform auth.log_event('api_key.created', owner_id, sender, jsonb_build_object('api_key', v_id, 'role', role));
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_api_key is
  'Stores a key of a program, in any role, for an administrator or whoever runs the service.';
--! EndIncluded auth/create_api_key.sql
-- The keys of those who have lost it until now. Others in that role were given to who never had it, on purpose.
with ended as (
  update auth.api_keys set revoked_at = now()
  where role = 'admin' and revoked_at is null
    and not exists (select from auth.user_roles where user_roles.user_id = owner_id and user_roles.role = 'admin')
    and exists (
      select from auth.audit_log
      where audit_log.user_id = owner_id and event = 'role.assigned' and details ->> 'role' = 'admin'
    )
  returning id, owner_id
)
select auth.log_event('api_key.revoked', owner_id, null, jsonb_build_object('api_key', id)) from ended;
