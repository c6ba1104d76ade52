--! Previous: sha1:7af3a1a46b8ec5b0bba7a19d808ae4daa6c4a3f0
--! Hash: sha1:0f5c49ef022d71f8aade7df2dd7ef23c7356c002

-- What is shown of an account, and what administrators do.
create function auth.account_of(user_id bigint) returns table (
  name text, email text, username text, role text, is_verified boolean, has_password boolean, factor_enabled_at timestamptz, backup_codes integer
) as $$
begin
  return query
    select profile.name, profile.email, account.username, auth.claims_of(account.user_id) ->> 'role',
      coalesce(lower(account.verified_email) = lower(profile.email), false), account.password_hash is not null,
      (
        select min(factor.enabled_at) from auth.mfa_factors as factor
        where factor.user_id = account.user_id and factor.factor_type = 'totp'
      ),
      (select count(*)::integer from auth.mfa_backup_codes as codes where codes.user_id = account.user_id and codes.used_at is null)
    from auth.users as account
    cross join auth.profile_of(account.user_id) as profile
    where account.user_id = account_of.user_id;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_of is 'What a user sees of the own account.';

create function auth.providers_of(user_id bigint) returns jsonb
language sql stable
begin atomic
  select coalesce(jsonb_agg(way.name order by way.since, way.name), '[]')
  from (
    select 'email' as name, account.created_at as since from auth.users as account
    where account.user_id = providers_of.user_id and auth.own_email(account) is not null
      and (account.password_hash is not null or not exists (select from auth.identities where identities.user_id = account.user_id))
    union all
    select 'phone', account.phone_confirmed_at from auth.users as account
    where account.user_id = providers_of.user_id and account.phone_confirmed_at is not null
    union all
    select providers.name, min(identities.created_at)
    from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = providers_of.user_id
    group by providers.name
  ) as way;
end;
comment on function auth.providers_of is 'How the user can sign in, the first one first: email, phone, and names of identity providers.';

-- sub is of the type that auth.uid() has in this database; the claims of an access token of /auth/v1 beside those of every token. Policies
-- trust the address and the number: they are empty until they are proved.
create function auth.session_claims(user_id bigint, session_id uuid) returns jsonb as $$
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

-- An account with an address of its own has an identity of provider email, besides those of identity providers. Its id is derived from
-- the account's, so that it stays the same.
create function auth.user_identities(account auth.users) returns jsonb
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'identity_id', identity.identity_id,
    'id', identity.subject,
    'user_id', account.id,
    'identity_data', jsonb_build_object(
      'sub', identity.subject, 'email', coalesce(auth.own_email(account), ''), 'email_verified', identity.is_verified,
      'phone_verified', account.phone_confirmed_at is not null
    ),
    'provider', identity.provider,
    'last_sign_in_at', identity.last_sign_in_at,
    'created_at', identity.created_at,
    'updated_at', coalesce(identity.last_sign_in_at, identity.created_at),
    'email', coalesce(auth.own_email(account), '')
  ) order by identity.created_at, identity.provider), '[]')
  from (
    select md5('email ' || account.id)::uuid as identity_id, account.id::text as subject, 'email' as provider,
      account.email_confirmed_at is not null as is_verified, account.last_sign_in_at, account.created_at
    where auth.own_email(account) is not null
      and (account.password_hash is not null or not exists (
        select from auth.identities as linked where linked.user_id = account.user_id
      ))
    union all
    select md5('phone ' || account.id)::uuid, account.id::text, 'phone', false, account.last_sign_in_at, account.created_at
    where account.phone_confirmed_at is not null
    union all
    select md5(linked.issuer || ' ' || linked.subject)::uuid, linked.subject, providers.name,
      linked.is_vouched, linked.last_used_at, linked.created_at
    from auth.identities as linked
    join auth.providers on providers.issuer = linked.issuer
    where linked.user_id = account.user_id
  ) as identity;
$$ language sql stable set search_path = '';
comment on function auth.user_identities is 'How the user can sign in, as clients of Supabase Auth read it.';

-- Absent values are left out, except in metadata.
create function auth.user_json(user_id bigint) returns jsonb
language sql stable
begin atomic
  select jsonb_strip_nulls(jsonb_build_object(
    'id', account.id,
    'aud', 'authenticated',
    'role', coalesce((select user_roles.role from auth.user_roles where user_roles.user_id = account.user_id), 'authenticated'),
    'email', coalesce(auth.own_email(account), ''),
    'email_confirmed_at', account.email_confirmed_at,
    'new_email', auth.pending_email(account.user_id),
    'email_change_sent_at', sent.email_change,
    'confirmation_sent_at', sent.confirmation,
    'recovery_sent_at', sent.recovery,
    'phone', coalesce(account.phone, ''),
    'phone_confirmed_at', account.phone_confirmed_at,
    'confirmed_at', least(account.email_confirmed_at, account.phone_confirmed_at),
    'invited_at', account.invited_at,
    'last_sign_in_at', account.last_sign_in_at,
    'created_at', account.created_at,
    'updated_at', account.updated_at,
    'banned_until', account.banned_until,
    'deleted_at', account.deleted_at,
    'is_anonymous', account.is_anonymous,
    'is_sso_user', nullif(account.is_sso_user, false)
  )) || jsonb_build_object(
    'app_metadata', account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object(
      'provider', auth.providers_of(account.user_id) -> 0, 'providers', auth.providers_of(account.user_id)
    )),
    'user_metadata', account.raw_user_meta_data,
    'identities', auth.user_identities(account),
    'factors', auth.user_factors(account)
  )
  from auth.users as account
  cross join lateral (
    select max(token.created_at) filter (where token.purpose in ('email_change_new', 'email_change_current')) as email_change,
      max(token.created_at) filter (where token.purpose in ('signup', 'verify')) as confirmation,
      max(token.created_at) filter (where token.purpose in ('recovery', 'reset')) as recovery
    from auth.mail_tokens as token where token.user_id = account.user_id
  ) as sent
  where account.user_id = user_json.user_id;
end;
comment on function auth.user_json is 'The user as clients of Supabase Auth read it; null without such an account.';

-- At /auth/v1/admin and elsewhere.

-- The metadata is what the administrator gives: a name that is not part of it is kept only where users have a table of their own. Each row of
-- users has an address, also that of an account with a phone number only.
create function auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info) returns bigint as $$
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

create function auth.invite_account(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(invite_account.user_id);
  update auth.users as account set invited_at = clock_timestamp() where account.user_id = invite_account.user_id;
  perform auth.log_event('account.invited', invite_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.invite_account is 'Records that an administrator invites the user.';

-- For administrators, who vouch for addresses: an address that replaces a confirmed one is confirmed.
create function auth.apply_account_changes(account_before auth.users, changes jsonb, client_info auth.client_info) returns void as $$
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
comment on function auth.apply_account_changes is 'Changes what an administrator gives: role, address, number, metadata, ban. The caller has locked the account.';

create function auth.change_account(user_id bigint, changes jsonb, password_hash text, client_info auth.client_info) returns boolean as $$
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
comment on function auth.change_account is 'Changes an account as an administrator, who gives the first proof of an address or number by confirming it. False: there is none.';

create function auth.disable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(disable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set disabled_at = coalesce(disabled_at, now())
    where account.user_id = disable_account.user_id;
  perform auth.end_sign_ins(disable_account.user_id);
  perform auth.log_event('account.disabled', disable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.disable_account is 'Ends all sign-ins of the account and refuses new ones until it is enabled. False: no such account.';

create function auth.enable_account(user_id bigint, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(enable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set disabled_at = null, banned_until = null where account.user_id = enable_account.user_id;
  perform auth.log_event('account.enabled', enable_account.user_id, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.enable_account is 'Allows the user to sign in again. False: no such account.';

create function auth.ban_account(user_id bigint, until timestamptz, client_info auth.client_info) returns boolean as $$
begin
  if (auth.lock_account(ban_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set banned_until = ban_account.until where account.user_id = ban_account.user_id;
  if until > now() then
    perform auth.end_sign_ins(ban_account.user_id);
  end if;
  perform auth.log_event(
    case when until > now() then 'account.banned' else 'account.unbanned' end, ban_account.user_id, client_info,
    jsonb_strip_nulls(jsonb_build_object('until', until))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.ban_account is 'Ends all sign-ins of the account and refuses new ones until then; null ends a ban. False: no such account.';

-- A deletion that keeps the row removes what names the person, and every way to sign in.
create function auth.delete_account(user_id bigint, keeps_row boolean, client_info auth.client_info) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(delete_account.user_id);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if keeps_row and v_account.deleted_at is not null then
    return true;
  end if;
  perform auth.log_event(
    'account.deletion_requested', v_account.user_id, client_info, jsonb_build_object('keeps_row', keeps_row)
  );
  if not keeps_row then
    perform auth.delete_user(v_account.user_id);
    return true;
  end if;
  perform auth.set_password(v_account.user_id, null);
  perform auth.set_email(v_account.user_id, 'deleted-' || v_account.id || '@deleted.invalid');
  perform auth.rename_user(v_account.user_id, 'Deleted user');
  update auth.users as account set
      username = account.email, verified_email = null, phone = null, phone_confirmed_at = null,
      raw_user_meta_data = '{}', raw_app_meta_data = '{}', deleted_at = clock_timestamp()
    where account.user_id = v_account.user_id;
  delete from auth.token_sessions as session where session.user_id = v_account.user_id;
  delete from auth.refresh_tokens as token where token.user_id = v_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = v_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = v_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = v_account.user_id;
  delete from auth.identities as identity where identity.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = v_account.user_id and key.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_account is 'Deletes an account as an administrator. False: there is none.';

-- Accounts of another service, with their ids and password hashes.

-- A row of Supabase's auth.users. Its id stays; an account that exists already stays as it is.
create function auth.import_account(account jsonb, client_info auth.client_info) returns text as $$
declare
  v_email constant text := nullif(account ->> 'email', '');
  v_metadata constant jsonb := coalesce(nullif(account -> 'raw_user_meta_data', 'null'), '{}');
  v_name constant text := left(coalesce(
    nullif(btrim(v_metadata ->> 'name'), ''), nullif(btrim(v_metadata ->> 'full_name'), ''), split_part(v_email, '@', 1)
  ), 200);
  v_user record;
begin
  if v_email is null or account ->> 'deleted_at' is not null then
    return 'skipped';
  elsif auth.find_user(v_email) is not null
    or exists (select from auth.users where users.id = (account ->> 'id')::uuid)
  then
    return 'known';
  end if;
  v_user := auth.insert_user(v_name, v_email, null);
  insert into auth.users (
    user_id, id, username, email, password_hash, verified_email, raw_user_meta_data, raw_app_meta_data,
    phone, phone_confirmed_at, created_at, last_sign_in_at, invited_at, banned_until, is_sso_user
  ) values (
    v_user.user_id, (account ->> 'id')::uuid, v_email, v_email, nullif(account ->> 'encrypted_password', ''),
    case when account ->> 'email_confirmed_at' is not null then v_email end,
    v_metadata, coalesce(nullif(account -> 'raw_app_meta_data', 'null'), '{}') - '{provider,providers}'::text[],
    nullif(account ->> 'phone', ''), (account ->> 'phone_confirmed_at')::timestamptz,
    coalesce((account ->> 'created_at')::timestamptz, now()), (account ->> 'last_sign_in_at')::timestamptz,
    (account ->> 'invited_at')::timestamptz, (account ->> 'banned_until')::timestamptz,
    coalesce((account ->> 'is_sso_user')::boolean, false)
  );
  perform auth.log_event('account.created', v_user.user_id, client_info, '{"imported": true}');
  return 'imported';
exception when sqlstate 'WRONG' or sqlstate 'TAKEN' or unique_violation or check_violation then
  return 'refused';
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_account is 'Creates an account from a row of another service: imported, known, skipped (deleted, or without an address) or refused.';

-- A row of Supabase's auth.identities, whose provider_id is the subject at the provider.
create function auth.import_identity(identity jsonb) returns text as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = identity ->> 'provider');
  v_user_id constant bigint := (select user_id from auth.users where users.id = (identity ->> 'user_id')::uuid);
begin
  if identity ->> 'provider' in ('email', 'phone') or v_user_id is null then
    return 'skipped';
  elsif v_issuer is null then
    return 'no_provider';
  end if;
  insert into auth.identities (issuer, subject, user_id, is_vouched)
    values (v_issuer, coalesce(identity ->> 'provider_id', identity -> 'identity_data' ->> 'sub'), v_user_id, true)
    on conflict on constraint identities_pkey do nothing;
  return case when found then 'imported' else 'known' end;
end;
$$ language plpgsql set search_path = '';
comment on function auth.import_identity is 'Links an account to the subject at a provider of that name: imported, known, skipped, or no_provider.';

-- The function of CLAIMS_HOOK.

-- Postgres refuses to change the role or the session's user within a function that has its owner's rights, so the hook keeps those of
-- supabase_auth_admin, whatever it calls. It could alter this function, which belongs to its role, so each call finds out whether it still holds.
create function auth.call_claims_hook(hook text, event jsonb) returns jsonb as $$
declare
  v_result jsonb;
begin
  if current_user <> 'supabase_auth_admin' then
    raise exception 'auth.call_claims_hook does not run as supabase_auth_admin'
      using hint = 'Run as a superuser: alter function auth.call_claims_hook owner to supabase_auth_admin';
  end if;
  begin
    perform set_config('role', 'none', true);
    raise exception 'auth.call_claims_hook does not keep the role of the hook'
      using hint = 'Run: alter function auth.call_claims_hook security definer reset role';
  exception when insufficient_privilege then
    null;
  end;

  execute format('select %s($1)', hook) using event into v_result;

  -- What is left to the commit would run with the rights of the service.
  set constraints all immediate;
  if exists (select from pg_cursors where is_holdable) then
    raise exception 'The function of CLAIMS_HOOK leaves a cursor open';
  end if;
  if exists (
    select from pg_trigger join pg_class on pg_class.oid = tgrelid where tgdeferrable and relnamespace = pg_my_temp_schema()
  ) then
    raise exception 'The function of CLAIMS_HOOK leaves a deferrable trigger on a temporary table';
  end if;
  return v_result;
end;
$$ language plpgsql security definer set search_path = '';
revoke execute on function auth.call_claims_hook from public;
comment on function auth.call_claims_hook is 'Calls the function of CLAIMS_HOOK as supabase_auth_admin, so that it cannot act as another role.';

-- Only a role that may create functions in the schema can own one there.
do $$
declare
  v_may_create constant boolean := has_schema_privilege('supabase_auth_admin', 'auth', 'create');
  v_login constant text := current_user;
begin
  grant usage on schema auth to supabase_auth_admin;
  if not v_may_create then
    grant create on schema auth to supabase_auth_admin;
  end if;
  alter function auth.call_claims_hook owner to supabase_auth_admin;
  if not v_may_create then
    revoke create on schema auth from supabase_auth_admin;
  end if;
  set local role supabase_auth_admin;
  execute format('grant execute on function auth.call_claims_hook to %I', v_login);
  reset role;
exception when insufficient_privilege then
  raise warning 'auth.call_claims_hook does not belong to supabase_auth_admin, which CLAIMS_HOOK requires'
    using hint = 'As a superuser, run once: alter function auth.call_claims_hook owner to supabase_auth_admin';
end $$;

-- Queries that administrators keep for one another in Studio. Only the owner reads and writes them, for /admin/v1/queries.
create table content_service.shared_queries (
  name     text constraint shared_queries_pkey primary key constraint shared_queries_name_length check (length(name) between 1 and 200),
  text     text not null constraint shared_queries_text_length check (length(text) between 1 and 100000),
  saved_by text,
  saved_at timestamptz not null default now()
);
alter table content_service.shared_queries enable row level security;
comment on table content_service.shared_queries is 'SQL that administrators share in Studio.';
comment on column content_service.shared_queries.name is 'What administrators call it.';
comment on column content_service.shared_queries.text is 'The SQL.';
comment on column content_service.shared_queries.saved_by is 'The id of the administrator who saved it last; null where nobody signs in.';
comment on column content_service.shared_queries.saved_at is 'When it was saved last.';
