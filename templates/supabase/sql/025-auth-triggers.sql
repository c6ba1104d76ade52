-- Sessions, identities, second factors and entries of the audit log as tables, which follow those of the service: a view has no triggers after a row. The import
-- of a project writes these tables where its triggers name those of schema auth. Nothing else reads them.
create table supabase_auth.session_mirror (
  id           uuid constraint content_service_session_mirror_pkey primary key,
  user_id      uuid not null,
  created_at   timestamptz,
  updated_at   timestamptz,
  factor_id    uuid,
  aal          auth.aal_level,
  not_after    timestamptz,
  refreshed_at timestamp,
  user_agent   text,
  ip           inet,
  tag          text
);
create table supabase_auth.identity_mirror (
  provider_id     text not null,
  user_id         uuid not null,
  identity_data   jsonb not null,
  provider        text not null,
  last_sign_in_at timestamptz,
  created_at      timestamptz,
  updated_at      timestamptz,
  id              uuid constraint content_service_identity_mirror_pkey primary key,
  email           text generated always as (lower(identity_data ->> 'email')) stored
);
create index content_service_identity_mirror_user_id_idx on supabase_auth.identity_mirror (user_id);
comment on table supabase_auth.session_mirror is '@anonymize empty';
comment on table supabase_auth.identity_mirror is '@anonymize empty';
alter table supabase_auth.session_mirror enable row level security;
alter table supabase_auth.identity_mirror enable row level security;
revoke all on supabase_auth.session_mirror, supabase_auth.identity_mirror from anon, authenticated, service_role;

-- What a trigger before the row changes, such as an address that is not to be kept, is changed in the session too.
create function supabase_auth.tg_token_sessions__mirror() returns trigger language plpgsql security definer set search_path = '' as $$
declare
  v_row supabase_auth.session_mirror;
begin
  if TG_OP = 'DELETE' then
    delete from supabase_auth.session_mirror as row where row.id = OLD.id;
    return null;
  end if;
  if TG_OP = 'INSERT' then
    insert into supabase_auth.session_mirror select session.* from supabase_auth.sessions as session where session.id = NEW.id returning * into v_row;
  else
    update supabase_auth.session_mirror as row set
      updated_at = NEW.refreshed_at, refreshed_at = NEW.refreshed_at at time zone 'UTC', factor_id = NEW.factor_id,
      aal = ('aal' || NEW.aal)::auth.aal_level, user_agent = NEW.user_agent, ip = NEW.address, tag = NEW.tag
      where row.id = NEW.id
      returning * into v_row;
  end if;
  if found and pg_trigger_depth() = 1 and (v_row.ip, v_row.user_agent, v_row.tag) is distinct from (NEW.address, NEW.user_agent, NEW.tag) then
    update auth.token_sessions set address = v_row.ip, user_agent = left(v_row.user_agent, 500), tag = left(v_row.tag, 200) where id = NEW.id;
  end if;
  return null;
end;
$$;
create trigger content_service_mirror after insert or update or delete on auth.token_sessions
  for each row execute function supabase_auth.tg_token_sessions__mirror();
alter table auth.token_sessions enable always trigger content_service_mirror;

create table supabase_auth.mfa_factor_mirror (
  id                   uuid constraint content_service_mfa_factor_mirror_pkey primary key,
  user_id              uuid not null,
  friendly_name        text,
  factor_type          auth.factor_type not null,
  status               auth.factor_status not null,
  created_at           timestamptz not null,
  updated_at           timestamptz not null,
  secret               text,
  phone                text,
  last_challenged_at   timestamptz,
  web_authn_credential jsonb,
  web_authn_aaguid     uuid
);
comment on table supabase_auth.mfa_factor_mirror is '@anonymize empty';
alter table supabase_auth.mfa_factor_mirror enable row level security;
revoke all on supabase_auth.mfa_factor_mirror from anon, authenticated, service_role;
create function supabase_auth.tg_mfa_factors__mirror() returns trigger language plpgsql security definer set search_path = '' as $$
begin
  if TG_OP = 'DELETE' then
    delete from supabase_auth.mfa_factor_mirror as row where row.id = OLD.id;
  elsif TG_OP = 'INSERT' then
    insert into supabase_auth.mfa_factor_mirror select factor.* from supabase_auth.mfa_factors as factor where factor.id = NEW.id;
  else
    update supabase_auth.mfa_factor_mirror as row set
      friendly_name = NEW.friendly_name, updated_at = NEW.updated_at, last_challenged_at = NEW.last_challenged_at,
      status = (case NEW.state when 'enabled' then 'verified' else 'unverified' end)::auth.factor_status
      where row.id = NEW.id;
  end if;
  return null;
end;
$$;
create trigger content_service_mirror after insert or update or delete on auth.mfa_factors
  for each row execute function supabase_auth.tg_mfa_factors__mirror();
alter table auth.mfa_factors enable always trigger content_service_mirror;

create function supabase_auth.mirror_identities(account uuid) returns void language plpgsql security definer set search_path = '' as $$
begin
  delete from supabase_auth.identity_mirror as row where row.user_id = account
    and not exists (select from supabase_auth.identities as identity where identity.user_id = account and identity.id = row.id);
  insert into supabase_auth.identity_mirror (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at, id)
    select provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at, id from supabase_auth.identities as identity
    where identity.user_id = account and not exists (select from supabase_auth.identity_mirror as row where row.id = identity.id);
  update supabase_auth.identity_mirror as row set identity_data = identity.identity_data, updated_at = identity.updated_at
    from supabase_auth.identities as identity
    where identity.user_id = account and row.id = identity.id and identity.updated_at is distinct from row.updated_at;
end;
$$;
revoke execute on function supabase_auth.mirror_identities from public;
create function supabase_auth.tg_identities__mirror() returns trigger language plpgsql security definer set search_path = '' as $$
declare
  v_row jsonb := case when TG_OP = 'DELETE' then to_jsonb(OLD) else to_jsonb(NEW) end;
begin
  -- In the service's table of identities, accounts are numbers.
  perform supabase_auth.mirror_identities(
    case TG_TABLE_NAME
      when 'users' then (v_row ->> 'id')::uuid
      when 'identity_rows' then (v_row ->> 'user_id')::uuid
      else (select users.id from auth.users where users.user_id = (v_row ->> 'user_id')::bigint)
    end
  );
  return null;
end;
$$;
-- After the triggers of the project, which create the profile that its triggers on identities change.
create trigger zz_content_service_mirror after insert or delete or update of email, email_confirmed_at, phone, phone_confirmed_at, password_hash on auth.users
  for each row execute function supabase_auth.tg_identities__mirror();
create trigger zz_content_service_mirror after insert or update or delete on auth.identities
  for each row execute function supabase_auth.tg_identities__mirror();
create trigger zz_content_service_mirror after insert or update or delete on supabase_auth.identity_rows
  for each row execute function supabase_auth.tg_identities__mirror();
alter table auth.users enable always trigger zz_content_service_mirror;
alter table auth.identities enable always trigger zz_content_service_mirror;
alter table supabase_auth.identity_rows enable always trigger zz_content_service_mirror;

-- Entries are here only while the triggers of a project run.
create table supabase_auth.audit_log_mirror (
  instance_id uuid,
  id          uuid constraint content_service_audit_log_mirror_pkey primary key,
  payload     json,
  created_at  timestamptz,
  ip_address  text not null default ''
);
comment on table supabase_auth.audit_log_mirror is '@anonymize empty';
alter table supabase_auth.audit_log_mirror enable row level security;
revoke all on supabase_auth.audit_log_mirror from anon, authenticated, service_role;
create function supabase_auth.tg_audit_log__mirror() returns trigger language plpgsql security definer set search_path = '' as $$
declare
  v_id uuid := '00000000-0000-4000-8000-' || lpad(to_hex(NEW.id), 12, '0');
begin
  if exists (select from pg_trigger where tgrelid = 'supabase_auth.audit_log_mirror'::regclass) then
    -- By its time too, which has an index.
    insert into supabase_auth.audit_log_mirror
      select entry.* from supabase_auth.audit_log_entries as entry where entry.created_at = NEW.at and entry.id = v_id;
    delete from supabase_auth.audit_log_mirror as entry where entry.id = v_id;
  end if;
  return null;
end;
$$;
create trigger content_service_mirror after insert on auth.audit_log for each row execute function supabase_auth.tg_audit_log__mirror();
