-- Tables of Supabase Auth that seeds and functions of projects ask, and that have no rows here.
create table auth.instances (
  id              uuid primary key,
  uuid            uuid,
  raw_base_config text,
  created_at      timestamptz,
  updated_at      timestamptz
);
create table auth.sso_providers (
  id          uuid primary key,
  resource_id text,
  created_at  timestamptz,
  updated_at  timestamptz,
  disabled    boolean
);
create table auth.sso_domains (
  id              uuid primary key,
  sso_provider_id uuid not null references auth.sso_providers (id) on delete cascade,
  domain          text not null check (domain <> ''),
  created_at      timestamptz,
  updated_at      timestamptz
);
create table auth.saml_providers (
  id                uuid primary key,
  sso_provider_id   uuid not null references auth.sso_providers (id) on delete cascade,
  entity_id         text not null unique check (entity_id <> ''),
  metadata_xml      text not null check (metadata_xml <> ''),
  metadata_url      text check (metadata_url <> ''),
  attribute_mapping jsonb,
  created_at        timestamptz,
  updated_at        timestamptz,
  name_id_format    text
);
create table auth.saml_relay_states (
  id              uuid primary key,
  sso_provider_id uuid not null references auth.sso_providers (id) on delete cascade,
  request_id      text not null check (request_id <> ''),
  for_email       text,
  redirect_to     text,
  created_at      timestamptz,
  updated_at      timestamptz,
  flow_state_id   uuid
);
comment on table auth.sso_providers is '@anonymize empty';
comment on table auth.sso_domains is '@anonymize empty';
comment on table auth.saml_providers is '@anonymize empty';
comment on table auth.saml_relay_states is '@anonymize empty';
create unique index sso_domains_domain_idx on auth.sso_domains (lower(domain));
create index sso_domains_sso_provider_id_idx on auth.sso_domains (sso_provider_id);
create index saml_providers_sso_provider_id_idx on auth.saml_providers (sso_provider_id);
create index saml_relay_states_sso_provider_id_idx on auth.saml_relay_states (sso_provider_id);
alter table auth.instances enable row level security;
alter table auth.sso_providers enable row level security;
alter table auth.sso_domains enable row level security;
alter table auth.saml_providers enable row level security;
alter table auth.saml_relay_states enable row level security;
create policy all_rows on auth.sso_providers to postgres, supabase_auth_admin using (true);
create policy all_rows on auth.sso_domains to postgres, supabase_auth_admin using (true);
create policy all_rows on auth.saml_providers to postgres, supabase_auth_admin using (true);
grant select on auth.instances, auth.sso_providers, auth.sso_domains, auth.saml_providers, auth.saml_relay_states to postgres, supabase_auth_admin, dashboard_user;
