-- The tables of Supabase Auth, as views in a schema of their own: schema auth has tables of these names with the columns of the service.
-- The import of a project writes supabase_auth where its migrations name them. Callers see their own rows, everybody else all.
create schema supabase_auth;
grant usage on schema supabase_auth to anon, authenticated, service_role, postgres, supabase_auth_admin, dashboard_user, supabase_read_only_user;
comment on schema supabase_auth is 'Identities, sessions and factors with the columns of Supabase Auth.';

-- The types of Supabase's columns, which dumps of policies name.
create type auth.aal_level as enum ('aal1', 'aal2', 'aal3');
create type auth.factor_type as enum ('totp', 'webauthn', 'phone');
create type auth.factor_status as enum ('unverified', 'verified');

create function supabase_auth.shows(user_id uuid) returns boolean language sql stable as $$
  select current_user not in ('anon', 'authenticated') or user_id = auth.uid();
$$;
comment on function supabase_auth.shows is 'Whether the current role sees what belongs to the user.';

-- What projects write: identities of addresses, and of providers. Those of a provider that is set up here are linked to the account.
create table supabase_auth.identity_rows (
  id              uuid constraint content_service_identity_rows_pkey primary key default gen_random_uuid(),
  provider_id     text not null,
  user_id         uuid not null constraint content_service_identity_rows_user_id_fkey references auth.users (id) on delete cascade,
  identity_data   jsonb not null default '{}',
  provider        text not null,
  last_sign_in_at timestamptz,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  constraint content_service_identity_rows_provider_id_provider_key unique (provider_id, provider)
);
create index content_service_identity_rows_user_id_idx on supabase_auth.identity_rows (user_id);
alter table supabase_auth.identity_rows enable row level security;
comment on table supabase_auth.identity_rows is e'@sample with user_id\n@anonymize empty\nIdentities that projects write.';

create function supabase_auth.tg_identity_rows__link() returns trigger language plpgsql security definer set search_path = '' as $$
declare
  v_issuer text := (select providers.issuer from auth.providers where providers.name = coalesce(NEW.provider, OLD.provider));
begin
  if TG_OP <> 'INSERT' then
    delete from auth.identities as linked where linked.issuer = v_issuer and linked.subject = OLD.provider_id;
  end if;
  if TG_OP <> 'DELETE' then
    insert into auth.identities (issuer, subject, user_id, created_at, last_used_at)
      select v_issuer, NEW.provider_id, users.user_id, NEW.created_at, NEW.last_sign_in_at from auth.users
      where users.id = NEW.user_id and v_issuer is not null
      on conflict do nothing;
  end if;
  return null;
end;
$$;
create trigger content_service_link after insert or update or delete on supabase_auth.identity_rows
  for each row execute function supabase_auth.tg_identity_rows__link();
-- Also in seeds that switch triggers off.
alter table supabase_auth.identity_rows enable always trigger content_service_link;
create function supabase_auth.tg_identity_rows__complete() returns trigger language plpgsql set search_path = '' as $$
begin
  NEW.identity_data := coalesce(NEW.identity_data, '{}');
  NEW.provider_id := coalesce(NEW.provider_id, NEW.identity_data ->> 'sub', NEW.id::text);
  return NEW;
end;
$$;
create trigger content_service_complete before insert or update on supabase_auth.identity_rows
  for each row execute function supabase_auth.tg_identity_rows__complete();
alter table supabase_auth.identity_rows enable always trigger content_service_complete;

create view supabase_auth.identities with (security_barrier = true) as
  with identity as (
    select provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at, id from supabase_auth.identity_rows
    union all
    select users.id::text, users.id, jsonb_build_object('sub', users.id, 'email', users.email, 'email_verified', users.email_confirmed_at is not null, 'phone_verified', false),
      'email', users.last_sign_in_at, users.created_at, users.updated_at, users.id
    from auth.users
    where users.email is not null and not users.is_anonymous and users.email !~ '@(phone|anonymous)\.invalid$' and users.password_hash is not null
      and not exists (select from supabase_auth.identity_rows as row where row.user_id = users.id and row.provider = 'email')
    union all
    select users.id::text, users.id, jsonb_build_object('sub', users.id, 'phone', users.phone, 'phone_verified', users.phone_confirmed_at is not null),
      'phone', users.last_sign_in_at, users.created_at, users.updated_at, md5(users.id || ' phone')::uuid
    from auth.users
    where users.phone is not null
      and not exists (select from supabase_auth.identity_rows as row where row.user_id = users.id and row.provider = 'phone')
    union all
    select linked.subject, users.id, jsonb_build_object('sub', linked.subject, 'email', users.email, 'iss', linked.issuer), providers.name,
      linked.last_used_at, linked.created_at, coalesce(linked.last_used_at, linked.created_at), md5(linked.issuer || ' ' || linked.subject)::uuid
    from auth.identities as linked join auth.providers using (issuer) join auth.users using (user_id)
    where not exists (
      select from supabase_auth.identity_rows as row where row.provider = providers.name and row.provider_id = linked.subject
    )
  )
  select *, lower(identity_data ->> 'email') as email from identity where supabase_auth.shows(user_id);
comment on view supabase_auth.identities is 'How users sign in: their address or number, and accounts of providers.';

create function supabase_auth.tg_identities__write() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if TG_OP <> 'INSERT' then
    delete from supabase_auth.identity_rows as row where row.id = OLD.id;
    delete from auth.identities as linked using auth.providers
      where providers.issuer = linked.issuer and providers.name = OLD.provider and linked.subject = OLD.provider_id;
  end if;
  if TG_OP <> 'DELETE' then
    insert into supabase_auth.identity_rows (id, provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
      values (
        coalesce(NEW.id, gen_random_uuid()), NEW.provider_id, NEW.user_id, NEW.identity_data, NEW.provider, NEW.last_sign_in_at,
        coalesce(NEW.created_at, now()), coalesce(NEW.updated_at, now())
      );
    return NEW;
  end if;
  return OLD;
end;
$$;
create trigger content_service_write instead of insert or update or delete on supabase_auth.identities
  for each row execute function supabase_auth.tg_identities__write();

create view supabase_auth.sessions with (security_barrier = true) as
  select session.id, users.id as user_id, session.created_at, session.refreshed_at as updated_at, session.factor_id,
    ('aal' || session.aal)::auth.aal_level as aal, null::timestamptz as not_after, session.refreshed_at at time zone 'UTC' as refreshed_at,
    session.user_agent, session.address as ip, session.tag
  from auth.token_sessions as session join auth.users using (user_id) where supabase_auth.shows(users.id);
comment on view supabase_auth.sessions is 'Sign-ins by tokens.';

-- A session that is set to have ended is deleted; one cannot be given an end in the future.
create function supabase_auth.tg_sessions__write() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if TG_OP = 'DELETE' or NEW.not_after <= now() then
    delete from auth.token_sessions where id = OLD.id;
    return case when TG_OP = 'DELETE' then OLD else NEW end;
  end if;
  if NEW.not_after is not null then
    raise exception 'A session cannot be set to end later' using errcode = 'feature_not_supported', hint = 'Delete it when it is to end.';
  end if;
  update auth.token_sessions set address = NEW.ip, user_agent = left(NEW.user_agent, 500), tag = left(NEW.tag, 200) where id = OLD.id;
  return NEW;
end;
$$;
create trigger content_service_write instead of update or delete on supabase_auth.sessions for each row execute function supabase_auth.tg_sessions__write();

create view supabase_auth.refresh_tokens with (security_barrier = true) as
  select users.instance_id, ('x' || encode(substring(token.token_hash for 7), 'hex'))::bit(60)::bigint as id, null::text as token, users.id::text as user_id,
    token.revoked_at is not null or token.rotated_at is not null as revoked, token.issued_at as created_at,
    coalesce(token.revoked_at, token.rotated_at, token.issued_at) as updated_at, null::text as parent, token.family_id as session_id
  from auth.refresh_tokens as token join auth.users using (user_id) where supabase_auth.shows(users.id);
comment on view supabase_auth.refresh_tokens is 'Refresh tokens without their texts, of which only hashes are kept.';

-- A session ends with its refresh token.
create function supabase_auth.tg_refresh_tokens__write() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if TG_OP = 'DELETE' then
    delete from auth.token_sessions where id = OLD.session_id;
    return OLD;
  end if;
  if NEW.revoked and not OLD.revoked then
    delete from auth.token_sessions where id = OLD.session_id;
  end if;
  return NEW;
end;
$$;
create trigger content_service_write instead of update or delete on supabase_auth.refresh_tokens for each row execute function supabase_auth.tg_refresh_tokens__write();

create view supabase_auth.mfa_factors with (security_barrier = true) as
  select factor.id, users.id as user_id, factor.friendly_name, factor.factor_type::text::auth.factor_type,
    (case factor.state when 'enabled' then 'verified' else 'unverified' end)::auth.factor_status as status, factor.created_at, factor.updated_at,
    null::text as secret, null::text as phone, factor.last_challenged_at, null::jsonb as web_authn_credential, null::uuid as web_authn_aaguid
  from auth.mfa_factors as factor join auth.users using (user_id) where supabase_auth.shows(users.id);
comment on view supabase_auth.mfa_factors is 'Second factors, without their secrets.';

create function supabase_auth.tg_mfa_factors__delete() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  delete from auth.mfa_factors where id = OLD.id;
  return OLD;
end;
$$;
create trigger content_service_write instead of delete on supabase_auth.mfa_factors for each row execute function supabase_auth.tg_mfa_factors__delete();

create view supabase_auth.mfa_challenges with (security_barrier = true) as
  select challenge.id, challenge.factor_id, challenge.created_at, null::timestamptz as verified_at, challenge.address as ip_address,
    null::text as otp_code, null::jsonb as web_authn_session_data
  from auth.mfa_challenges as challenge join auth.mfa_factors as factor on factor.id = challenge.factor_id
    join auth.users on users.user_id = factor.user_id
  where supabase_auth.shows(users.id);
create view supabase_auth.mfa_amr_claims with (security_barrier = true) as
  select session.id as session_id, to_timestamp((claim ->> 'timestamp')::double precision) as created_at,
    to_timestamp((claim ->> 'timestamp')::double precision) as updated_at, claim ->> 'method' as authentication_method,
    md5(session.id || (claim ->> 'method'))::uuid as id
  from auth.token_sessions as session join auth.users using (user_id), jsonb_array_elements(session.amr) as claim
  where supabase_auth.shows(users.id);
create view supabase_auth.one_time_tokens with (security_barrier = true) as
  select md5(encode(token.token_hash, 'hex'))::uuid as id, users.id as user_id,
    case token.purpose when 'reset' then 'recovery' when 'verify' then 'confirmation' when 'signup' then 'confirmation' when 'invite' then 'confirmation'
      when 'magiclink' then 'recovery' when 'reauthentication' then 'reauthentication' when 'phone_change' then 'phone_change'
      when 'email_change_current' then 'email_change_token_current' when 'email_change_new' then 'email_change_token_new' else token.purpose end as token_type,
    encode(token.token_hash, 'hex') as token_hash, token.email as relates_to, token.created_at at time zone 'UTC' as created_at,
    token.created_at at time zone 'UTC' as updated_at
  from auth.mail_tokens as token join auth.users using (user_id)
  where token.used_at is null and current_user not in ('anon', 'authenticated');
create view supabase_auth.audit_log_entries with (security_barrier = true) as
  select users.instance_id, ('00000000-0000-4000-8000-' || lpad(to_hex(entry.id), 12, '0'))::uuid as id,
    json_build_object('action', entry.event, 'actor_id', users.id, 'actor_username', users.email, 'log_type', split_part(entry.event, '.', 1), 'traits', entry.details) as payload,
    entry.at as created_at, coalesce(host(entry.address), '') as ip_address
  from auth.audit_log as entry left join auth.users using (user_id)
  where current_user not in ('anon', 'authenticated');
create view supabase_auth.flow_state with (security_barrier = true) as
  select flow.id, users.id as user_id, null::text as auth_code, flow.challenge_method as code_challenge_method, flow.challenge as code_challenge,
    flow.method as provider_type, flow.method as authentication_method, flow.created_at, flow.created_at as updated_at
  from auth.flow_states as flow left join auth.users using (user_id) where current_user not in ('anon', 'authenticated');

-- What projects delete, such as with an account or when it is old, and the entries that they log.
create function supabase_auth.tg_views__write() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  case TG_TABLE_NAME
    when 'mfa_challenges' then delete from auth.mfa_challenges as challenge where challenge.id = OLD.id;
    when 'flow_state' then delete from auth.flow_states as flow where flow.id = OLD.id;
    when 'one_time_tokens' then delete from auth.mail_tokens as token where token.token_hash = decode(OLD.token_hash, 'hex');
    when 'mfa_amr_claims' then
      update auth.token_sessions as session set amr = array_to_json(array(
        select claim from jsonb_array_elements(session.amr) as claim where claim ->> 'method' is distinct from OLD.authentication_method
      ))::jsonb where session.id = OLD.session_id;
    when 'audit_log_entries' then
      if TG_OP = 'INSERT' then
        insert into auth.audit_log (event, user_id, address, details, at)
          values (
            coalesce(NEW.payload ->> 'action', 'logged'),
            (select users.user_id from auth.users where users.id::text = NEW.payload ->> 'actor_id'),
            case when NEW.ip_address ~ '^(\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:.]+)$' then NEW.ip_address::inet end,
            coalesce(NEW.payload -> 'traits', NEW.payload, '{}')::jsonb, coalesce(NEW.created_at, now())
          );
        return NEW;
      end if;
      delete from auth.audit_log as entry where entry.id = ('x' || right(OLD.id::text, 12))::bit(48)::bigint;
  end case;
  return OLD;
end;
$$;
create trigger content_service_write instead of delete on supabase_auth.mfa_challenges for each row execute function supabase_auth.tg_views__write();
create trigger content_service_write instead of delete on supabase_auth.flow_state for each row execute function supabase_auth.tg_views__write();
create trigger content_service_write instead of delete on supabase_auth.one_time_tokens for each row execute function supabase_auth.tg_views__write();
create trigger content_service_write instead of delete on supabase_auth.mfa_amr_claims for each row execute function supabase_auth.tg_views__write();
create trigger content_service_write instead of insert or delete on supabase_auth.audit_log_entries for each row execute function supabase_auth.tg_views__write();

grant select on supabase_auth.identities, supabase_auth.sessions, supabase_auth.mfa_factors, supabase_auth.mfa_amr_claims to authenticated;
grant select on all tables in schema supabase_auth to postgres, supabase_auth_admin, dashboard_user, supabase_read_only_user, service_role;
grant insert, update, delete on supabase_auth.identities to postgres, supabase_auth_admin;
grant delete on all tables in schema supabase_auth to postgres, supabase_auth_admin;
grant update on supabase_auth.sessions, supabase_auth.refresh_tokens to postgres, supabase_auth_admin;
grant insert on supabase_auth.audit_log_entries to postgres, supabase_auth_admin;
revoke all on supabase_auth.identity_rows from service_role, postgres, supabase_auth_admin, dashboard_user, supabase_read_only_user;
