--! Previous: sha1:dcc094fa1044c515df810f29f7ac4da3d4db259e
--! Hash: sha1:dac0444a25cfae7ca600509020c58ce28078231b
--! Message: accounts-and-mailboxes

--! split: 1-current.sql
-- The new chapter goes here, one subject per file: 0010-tags.sql, 0020-likes.sql. Rename or delete this file then.
-- See db/README.md.

--! split: 0010-accounts.sql
-- A long name made tokens that no server takes.
--! Included auth/claims_of.sql
-- Of a name as much as people read: it has no bound, and a token travels in a header, which has one.
create or replace function auth.claims_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_build_object(
    'sub', users.id::text,
    'name', left(users.name, 200),
    'role', held.role,
    'permissions', (
      select coalesce(jsonb_agg(granted.permission order by granted.permission), '[]')
      from (
        select user_permissions.permission from auth.user_permissions where user_permissions.user_id = users.id
        union
        -- An admin may do what everybody who is signed in may: permissions are inherited as Postgres's own privileges are.
        select role_permissions.permission
        from auth.role_permissions
        join pg_roles as granted_to on granted_to.rolname = role_permissions.role
        join pg_roles as own on own.rolname = held.role
        where pg_has_role(own.oid, granted_to.oid, 'usage')
      ) as granted
    )
  )
  from public.users
  cross join lateral (
    select coalesce((
      select user_roles.role from auth.user_roles join auth.roles on roles.name = user_roles.role
      where user_roles.user_id = users.id and roles.assignable
    ), 'authenticated') as role
  ) as held
  where users.id = claims_of.user_id;
end;

comment on function auth.claims_of is 'What a credential of this user says: sub, name, role and permissions.';
--! EndIncluded auth/claims_of.sql

-- Whoever made an account with somebody else's address kept it by a provider that they had linked, or were just linking,
-- though that one set a password by mail. And what only Postgres takes for the same address is not the same mailbox.
--! Included auth/set_password.sql
-- Links to set another one go with the password that was forgotten; so does what is still on its way: who left to link a
-- provider, who has come back from one and owes a code, and codes for tokens.
create or replace function auth.set_password(user_id bigint, new_hash text) returns void as $$
begin
  update auth.credentials set password_hash = new_hash, password_changed_at = now()
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
--! Included auth/reset_password.sql
create or replace function auth.reset_password(token_hash bytea, new_hash text, sender auth.sender) returns bigint as $$
declare
  v_token record;
  v_account auth.credentials;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  v_account := auth.hold_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  -- Until now nobody had shown to read this mail: whoever has linked a provider before may be somebody else.
  if v_account.verified_email is null then
    update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
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
--! Included auth/use_federation_code.sql
-- Spent by whoever shows it: one that came without the right verifier has been seen by somebody else. The account is held
-- first, as by whoever sets its password: that ends the code, too.
create or replace function auth.use_federation_code(
  code_hash bytea, code_challenge text, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_account auth.credentials;
  v_code auth.federation_codes;
begin
  v_account := auth.hold_account((
    select codes.user_id from auth.federation_codes as codes where codes.code_hash = use_federation_code.code_hash
  ));
  delete from auth.federation_codes as code
    where code.code_hash = use_federation_code.code_hash
    returning * into v_code;
  if v_code.user_id is null or v_code.expires_at < now()
    or v_code.code_challenge is distinct from use_federation_code.code_challenge
  then
    perform auth.log_event('federation.refused', v_code.user_id, sender, '{"reason":"code"}');
    outcome := 'wrong';
  elsif v_account.disabled_at is not null then
    perform auth.log_event('login.refused', v_code.user_id, sender, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_federation_code is 'Whose tokens a code is exchanged for. The account is held.';
--! EndIncluded auth/use_federation_code.sql
--! Included auth/federated_user.sql
-- An identity is found by issuer and subject. By e-mail address only where both the provider and we have verified it:
-- else whoever enters somebody's address there, or here before them, would share the account.
create or replace function auth.federated_user(
  provider auth.providers, subject text, claims jsonb, sender auth.sender, out outcome text, out user_id bigint
) as $$
declare
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
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
    -- Somebody has since shown to read the mail of an address that nobody vouched for then: it is theirs alone.
    outcome := case when v_identity.is_vouched or v_account.password_changed_at <= v_identity.created_at then 'found'
      else 'conflict' end;
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
    v_user := auth.register(
      coalesce(nullif(btrim(claims ->> 'name'), ''), split_part(v_email, '@', 1)), v_email, null, null, null, sender
    );
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
drop function auth.pass_federation(text, text, jsonb, bigint, auth.sender);
drop function auth.link_identity(bigint, auth.providers, text, auth.sender);
--! Included auth/link_identity.sql
create or replace function auth.link_identity(
  user_id bigint, provider auth.providers, subject text, left_at timestamptz, sender auth.sender
) returns text as $$
declare
  v_account constant auth.credentials := auth.hold_account(link_identity.user_id);
begin
  if v_account.user_id is null or v_account.disabled_at is not null then
    return 'disabled';
  end if;
  -- By who was signed in with the password before, perhaps.
  if v_account.password_changed_at > link_identity.left_at then
    return 'ended';
  end if;
  insert into auth.identities as known (issuer, subject, user_id, is_vouched)
    values (provider.issuer, link_identity.subject, v_account.user_id, true)
    on conflict on constraint identities_pkey do update set is_vouched = true where known.user_id = EXCLUDED.user_id;
  if not found then
    return 'taken';
  end if;
  perform auth.log_event('identity.linked', v_account.user_id, sender, jsonb_build_object('provider', provider.name));
  return 'linked';
end;
$$ language plpgsql set search_path = '';
comment on function auth.link_identity is
  'Lets who is signed in sign in through the provider too: linked, taken when it is another user''s identity, ended when another password was set since they left for it.';
--! EndIncluded auth/link_identity.sql
--! Included auth/pass_federation.sql
-- An outcome is a value, not an exception: that a message was shown is to be remembered though its bearer is refused.
create or replace function auth.pass_federation(
  provider text, subject text, claims jsonb, linking bigint, left_at timestamptz, sender auth.sender,
  out outcome text, out user_id bigint
) as $$
declare
  v_provider auth.providers;
begin
  select * into v_provider from auth.providers where providers.name = pass_federation.provider and enabled for key share;
  if not found then
    outcome := 'gone';
    return;
  end if;

  if claims ? 'message_id' and not auth.take_message(
    v_provider.issuer, claims ->> 'message_id', (claims ->> 'message_expires_at')::timestamptz
  ) then
    outcome := 'replayed';
    return;
  end if;

  if linking is not null then
    outcome := auth.link_identity(linking, v_provider, subject, left_at, sender);
    user_id := linking;
    return;
  end if;

  select * into outcome, user_id from auth.federated_user(v_provider, subject, claims, sender);
  if user_id is null or outcome = 'conflict' then
    return;
  end if;
  if exists (
    select from auth.credentials where credentials.user_id = pass_federation.user_id and disabled_at is not null
  ) then
    outcome := 'disabled';
    return;
  end if;
  update auth.identities set last_used_at = now()
    where identities.issuer = v_provider.issuer and identities.subject = pass_federation.subject;
  outcome := case
    when v_provider.trusts_factor and coalesce((claims ->> 'second_factor')::boolean, false) then 'passed'
    when exists (
      select from auth.mfa_factors where mfa_factors.user_id = pass_federation.user_id and state = 'enabled'
    ) then 'code_missing'
    else 'passed'
  end;
  if outcome = 'passed' then
    perform auth.log_event(
      'federation.signed_in', pass_federation.user_id, sender, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.pass_federation is
  'What becomes of somebody whom a provider has vouched for: passed, linked, code_missing; or why not.';
--! EndIncluded auth/pass_federation.sql
comment on column auth.identities.is_vouched is
  'Whether the provider vouched for the address, or the user was signed in when it was linked. Undone when the first to show that they read that mail set a password by it.';
