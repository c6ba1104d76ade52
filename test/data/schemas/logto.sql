-- Logto: @logto/schemas 1.43.0 of npm, MPL-2.0 (licenses/MPL-2.0.txt).
-- Its tables/*.sql, in their order and each followed by _after_each.sql where it says so, and the table tenants of its models.
-- Left out: the role of _before_all.sql, and the grants of _after_all.sql.

-- tenants
/* init_order = 0 */
  create table tenants (
    id varchar(21) not null,
    db_user varchar(128),
    db_user_password varchar(128),
    name varchar(128) not null default 'My Project',
    tag varchar(64) not null default 'development',
    created_at timestamptz not null default(now()),
    is_suspended boolean not null default false,
    primary key (id),
    constraint tenants__db_user
      unique (db_user)
  );
  /* no_after_each */

-- _functions.sql
/* init_order = 0.5 */

/** A function to set the tenant_id column based on the current user. */
create function set_tenant_id() returns trigger as
$$ begin
  if new.tenant_id is not null then
    return new;
  end if;

  select tenants.id into new.tenant_id
    from tenants
    where tenants.db_user = current_user;

  return new;
end; $$ language plpgsql;

/** A function to set the `updated_at` column to the current time. */
create function set_updated_at() returns trigger as
$$ begin
  new.updated_at = now();
  return new;
end; $$ language plpgsql;

/* no_after_each */

-- account_centers.sql
create table account_centers (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  /** The whole feature can be disabled */
  enabled boolean not null default true,
  /** Control each fields */
  fields jsonb /* @use AccountCenterFieldControl */ not null default '{}'::jsonb,
  webauthn_related_origins jsonb /* @use WebauthnRelatedOrigins */ not null default '[]'::jsonb,
  /** URL for custom account deletion endpoint */
  delete_account_url varchar(2048),
  /** User-defined custom CSS for the account center */
  custom_css text,
  /** Ordered list of custom profile fields to show in the prebuilt account center */
  profile_fields jsonb /* @use AccountCenterProfileFields */,
  primary key (tenant_id, id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on account_centers
  for each row execute procedure set_tenant_id();

alter table account_centers enable row level security;

create policy account_centers_tenant_id on account_centers
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy account_centers_modification on account_centers
  using (true);

-- aggregated_daily_active_users.sql
/** This table is used to store aggregated data of daily active users for each tenant. A daily job summarizes data from the daily active users table and inserts it into this table, or removes expired data. Therefore, we should not directly manipulate this table, except for "read" operations. */
create table aggregated_daily_active_users (
  tenant_id varchar(21) not null,
  activity_date date not null,
  user_id varchar(21) not null,
  activity_count integer not null,
  primary key (tenant_id, activity_date, user_id)
);

-- Index for billing cycle range queries
create index aggregated_daily_active_users__tenant_date
  on aggregated_daily_active_users (tenant_id, activity_date);

-- Index for tenant-specific user activity queries
create index aggregated_daily_active_users__tenant_user_date
  on aggregated_daily_active_users (tenant_id, user_id, activity_date desc);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on aggregated_daily_active_users
  for each row execute procedure set_tenant_id();

alter table aggregated_daily_active_users enable row level security;

create policy aggregated_daily_active_users_tenant_id on aggregated_daily_active_users
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy aggregated_daily_active_users_modification on aggregated_daily_active_users
  using (true);

-- applications.sql
/* init_order = 1 */

create type application_type as enum ('Native', 'SPA', 'Traditional', 'MachineToMachine', 'Protected', 'SAML');

create table applications (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  name varchar(256) not null,
  /** @deprecated The internal client secret. Note it is only used for internal validation, and the actual secret should be stored in the `application_secrets` table. You should NOT use it unless you are sure what you are doing. */
  secret varchar(64) not null,
  description text,
  type application_type not null,
  oidc_client_metadata jsonb /* @use OidcClientMetadata */ not null,
  custom_client_metadata jsonb /* @use CustomClientMetadata */ not null default '{}'::jsonb,
  protected_app_metadata jsonb /* @use ProtectedAppMetadata */,
  custom_data jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  is_third_party boolean not null default false,
  app_level_access_control_enabled boolean not null default false,
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index applications__id
  on applications (tenant_id, id);

create index applications__is_third_party
  on applications (tenant_id, is_third_party);

create index applications__type
  on applications (tenant_id, type);

create unique index applications__protected_app_metadata_host
  on applications (
    (protected_app_metadata->>'host')
  );

create unique index applications__protected_app_metadata_custom_domain
  on applications (
    (protected_app_metadata->'customDomains'->0->>'domain')
  );

create function check_application_type(
  application_id varchar(21),
  variadic target_type application_type[]
) returns boolean as
$$ begin
  return (select type from applications where id = application_id) = any(target_type);
end; $$ language plpgsql set search_path = public;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on applications
  for each row execute procedure set_tenant_id();

alter table applications enable row level security;

create policy applications_tenant_id on applications
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy applications_modification on applications
  using (true);

-- captcha_providers.sql
create table captcha_providers (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(128) not null,
  config jsonb /* @use CaptchaConfig */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  updated_at timestamptz not null default(now()),
  primary key (id),
  unique (tenant_id)
);

create index captcha_providers__id
  on captcha_providers (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on captcha_providers
  for each row execute procedure set_tenant_id();

alter table captcha_providers enable row level security;

create policy captcha_providers_tenant_id on captcha_providers
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy captcha_providers_modification on captcha_providers
  using (true);

-- connectors.sql
/* init_order = 1 */

create table connectors (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(128) not null,
  sync_profile boolean not null default FALSE,
  /** Whether the token storage is enabled for this connector. Only applied for OAuth2/OIDC social connectors. */
  enable_token_storage boolean not null default FALSE,
  connector_id varchar(128) not null,
  config jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  metadata jsonb /* @use ConfigurableConnectorMetadata */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index connectors__id
  on connectors (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on connectors
  for each row execute procedure set_tenant_id();

alter table connectors enable row level security;

create policy connectors_tenant_id on connectors
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy connectors_modification on connectors
  using (true);

-- custom_phrases.sql
create table custom_phrases (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  language_tag varchar(16) not null,
  translation jsonb /* @use Translation */ not null,
  primary key (id),
  constraint custom_phrases__language_tag
    unique (tenant_id, language_tag)
);

create index custom_phrases__id
  on custom_phrases (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on custom_phrases
  for each row execute procedure set_tenant_id();

alter table custom_phrases enable row level security;

create policy custom_phrases_tenant_id on custom_phrases
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy custom_phrases_modification on custom_phrases
  using (true);

-- custom_profile_fields.sql
create table custom_profile_fields (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  name varchar(128) not null,
  type varchar(128) not null /* @use CustomProfileFieldType */,
  label varchar(128) not null default '',
  description varchar(256),
  required boolean not null default false,
  config jsonb /* @use CustomProfileFieldConfig */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  sie_order int2 not null default 0,
  primary key (id),
  constraint custom_profile_fields__name
    unique (tenant_id, name)
);

create or replace function custom_profile_fields__increment_sie_order() returns trigger as
$$ begin
  new.sie_order = (
    select coalesce(max(sie_order), 0)
    from custom_profile_fields
    where tenant_id = (
      select id from tenants where db_user = current_user
    )
  ) + 1;
  return new;
end; $$ language plpgsql;

create trigger custom_profile_fields__increment_sie_order before insert on custom_profile_fields
  for each row execute procedure custom_profile_fields__increment_sie_order();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on custom_profile_fields
  for each row execute procedure set_tenant_id();

alter table custom_profile_fields enable row level security;

create policy custom_profile_fields_tenant_id on custom_profile_fields
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy custom_profile_fields_modification on custom_profile_fields
  using (true);

-- daily_active_users.sql
create table daily_active_users (
  id varchar(21) not null,
  tenant_id varchar(21) not null,
  user_id varchar(21) not null,
  date timestamptz not null default (now()),
  primary key (id),
  constraint daily_active_users__user_id_date
    unique (user_id, date)
);

-- Optimized index for aggregation queries with better write performance
create index daily_active_users__tenant_date_user
  on daily_active_users (tenant_id, date, user_id);

-- BRIN index for time-series date range queries
-- Optimized for sequential data insertion and range scans (date >= ?)
create index daily_active_users__date_brin
  on daily_active_users using brin (date);

create index daily_active_users__date
  on daily_active_users (tenant_id, date);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on daily_active_users
  for each row execute procedure set_tenant_id();

alter table daily_active_users enable row level security;

create policy daily_active_users_tenant_id on daily_active_users
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy daily_active_users_modification on daily_active_users
  using (true);

-- daily_token_usage.sql
create table daily_token_usage (
  id varchar(21) not null,
  tenant_id varchar(21) not null,
  usage bigint not null default(0),
  user_token_usage bigint not null default(0),
  m2m_token_usage bigint not null default(0),
  date timestamptz not null,
  primary key (id)
);

create unique index daily_token_usage__date
  on daily_token_usage (tenant_id, date);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on daily_token_usage
  for each row execute procedure set_tenant_id();

alter table daily_token_usage enable row level security;

create policy daily_token_usage_tenant_id on daily_token_usage
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy daily_token_usage_modification on daily_token_usage
  using (true);

-- domains.sql
create table domains (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  domain varchar(256) not null,
  status varchar(32) /* @use DomainStatus */ not null default('PendingVerification'),
  error_message varchar(1024),
  dns_records jsonb /* @use DomainDnsRecords */ not null default '[]'::jsonb,
  verification_files jsonb /* @use DomainVerificationFiles */ not null default '[]'::jsonb,
  cloudflare_data jsonb /* @use CloudflareData */,
  updated_at timestamptz not null default(now()),
  created_at timestamptz not null default(now()),
  primary key (id),
  constraint domains__domain
    unique (tenant_id, domain)
);

create index domains__id on domains (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on domains
  for each row execute procedure set_tenant_id();

alter table domains enable row level security;

create policy domains_tenant_id on domains
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy domains_modification on domains
  using (true);

-- email_templates.sql
create table email_templates (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  language_tag varchar(16) not null,
  template_type varchar(64) /* @use TemplateType */ not null,
  details jsonb /* @use EmailTemplateDetails */ not null,
  created_at timestamptz not null default now(),
  primary key (tenant_id, id),
  constraint email_templates__tenant_id__language_tag__template_type
    unique (tenant_id, language_tag, template_type)
);

create index email_templates__tenant_id__language_tag
  on email_templates (tenant_id, language_tag);

create index email_templates__tenant_id__template_type
  on email_templates (tenant_id, template_type);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on email_templates
  for each row execute procedure set_tenant_id();

alter table email_templates enable row level security;

create policy email_templates_tenant_id on email_templates
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy email_templates_modification on email_templates
  using (true);

-- hooks.sql
create table hooks (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  name varchar(256) not null default '',
  event varchar(128) /* @use HookEvent */,
  events jsonb /* @use HookEvents */ not null default '[]'::jsonb,
  config jsonb /* @use HookConfig */ not null,
  signing_key varchar(64) not null default '',
  enabled boolean not null default true,
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index hooks__id on hooks (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on hooks
  for each row execute procedure set_tenant_id();

alter table hooks enable row level security;

create policy hooks_tenant_id on hooks
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy hooks_modification on hooks
  using (true);

-- logto_configs.sql
create table logto_configs (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  key varchar(256) not null,
  value jsonb /* @use Json */ not null default '{}'::jsonb,
  primary key (tenant_id, key)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on logto_configs
  for each row execute procedure set_tenant_id();

alter table logto_configs enable row level security;

create policy logto_configs_tenant_id on logto_configs
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy logto_configs_modification on logto_configs
  using (true);

-- oidc_model_instances.sql
/* init_order = 1 */

create table oidc_model_instances (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  model_name varchar(64) not null,
  id varchar(128) not null,
  payload jsonb /* @use OidcModelInstancePayload */ not null,
  expires_at timestamptz not null,
  consumed_at timestamptz,
  primary key (id),
  constraint oidc_model_instances__model_name_id
    unique (tenant_id, model_name, id)
);

create index oidc_model_instances__model_name_payload_user_code
  on oidc_model_instances (
    tenant_id,
    model_name,
    (payload->>'userCode')
  );

create index oidc_model_instances__model_name_payload_uid
  on oidc_model_instances (
    tenant_id,
    model_name,
    (payload->>'uid')
  );

create index oidc_model_instances__model_name_payload_grant_id_partial
  on oidc_model_instances (tenant_id, model_name, (payload->>'grantId'))
  where payload ? 'grantId';

create index oidc_model_instances__expires_at
  on oidc_model_instances (tenant_id, expires_at);

create index oidc_model_instances__session_payload_account_id_expires_at
  on oidc_model_instances (tenant_id, (payload->>'accountId'), expires_at)
  WHERE model_name = 'Session';

create index oidc_model_instances__grant_payload_account_id_expires_at
  on oidc_model_instances (tenant_id, (payload->>'accountId'), expires_at)
  WHERE model_name = 'Grant';

/* Partial on payload key existence so rows without accountId (e.g. client credentials tokens) stay out of the index. The parameter-free predicate stays provable under generic query plans, but matching queries must include the payload ? 'accountId' clause. */
create index oidc_model_instances__model_name_payload_account_id_partial
  on oidc_model_instances (tenant_id, model_name, (payload->>'accountId'))
  where payload ? 'accountId';

alter table oidc_model_instances set (
  autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_threshold = 2000
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on oidc_model_instances
  for each row execute procedure set_tenant_id();

alter table oidc_model_instances enable row level security;

create policy oidc_model_instances_tenant_id on oidc_model_instances
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy oidc_model_instances_modification on oidc_model_instances
  using (true);

-- organization_scopes.sql
/* init_order = 1 */

/** The scopes (permissions) defined by the organization template. */
create table organization_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the organization scope. */
  id varchar(21) not null,
  /** The organization scope's name, unique within the organization template. */
  name varchar(128) not null,
  /** A brief description of the organization scope. */
  description varchar(256),
  primary key (id),
  constraint organization_scopes__name
    unique (tenant_id, name)
);

create index organization_scopes__id
  on organization_scopes (tenant_id, id);

/** Supports tenant-aware foreign keys from tenant-owned organization scope relations. */
create unique index organization_scopes__tenant_id_id
  on organization_scopes (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_scopes
  for each row execute procedure set_tenant_id();

alter table organization_scopes enable row level security;

create policy organization_scopes_tenant_id on organization_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_scopes_modification on organization_scopes
  using (true);

-- organizations.sql
/* init_order = 1 */

/** Organizations defined by [RFC 0001](https://github.com/logto-io/rfcs/blob/HEAD/active/0001-organization.md). */
create table organizations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the organization. */
  id varchar(21) not null,
  /** The organization's name for display. */
  name varchar(128) not null,
  /** A brief description of the organization. */
  description varchar(256),
  /** Additional data associated with the organization. */
  custom_data jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  /** Whether multi-factor authentication configuration is required for the members of the organization. */
  is_mfa_required boolean not null default false,
  /** Whether trusted devices are allowed for members of the organization. */
  is_trusted_device_allowed boolean not null default true,
  /** The organization's branding color configuration. */
  color jsonb /* @use PartialColor */ not null default '{}'::jsonb,
  /** The organization's branding configuration. */
  branding jsonb /* @use Branding */ not null default '{}'::jsonb,
  /** The custom CSS of the organization. */
  custom_css text,
  /** When the organization was created. */
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index organizations__id
  on organizations (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organizations
  for each row execute procedure set_tenant_id();

alter table organizations enable row level security;

create policy organizations_tenant_id on organizations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organizations_modification on organizations
  using (true);

-- passcodes.sql
create table passcodes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  interaction_jti varchar(128),
  phone varchar(32),
  email varchar(128),
  type varchar(32) not null,
  code varchar(6) not null,
  consumed boolean not null default false,
  try_count int2 not null default 0,
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index passcodes__id
  on passcodes (tenant_id, id);

create index passcodes__interaction_jti_type
  on passcodes (tenant_id, interaction_jti, type);

create index passcodes__email_type
  on passcodes (tenant_id, email, type);

create index passcodes__phone_type
  on passcodes (tenant_id, phone, type);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on passcodes
  for each row execute procedure set_tenant_id();

alter table passcodes enable row level security;

create policy passcodes_tenant_id on passcodes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy passcodes_modification on passcodes
  using (true);

-- resources.sql
/* init_order = 1 */

create table resources (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  name text not null,
  indicator text not null, /* resource indicator also used as audience */
  is_default boolean not null default (false),
  access_token_ttl bigint not null default(3600), /* expiration value in seconds, default is 1h */
  primary key (id),
  constraint resources__indicator
    unique (tenant_id, indicator)
);

create index resources__id
  on resources (tenant_id, id);

create unique index resources__is_default_true
  on resources (tenant_id)
  where is_default = true;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on resources
  for each row execute procedure set_tenant_id();

alter table resources enable row level security;

create policy resources_tenant_id on resources
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy resources_modification on resources
  using (true);

-- roles.sql
/* init_order = 1 */

create type role_type as enum ('User', 'MachineToMachine');

create table roles (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  name varchar(128) not null,
  description varchar(128) not null,
  type role_type not null default 'User',
  /** If the role is the default role for a new user. Should be ignored for `MachineToMachine` roles. */
  is_default boolean not null default false,
  primary key (id),
  constraint roles__name
    unique (tenant_id, name)
);

create index roles__id
  on roles (tenant_id, id);

create index roles__type
  on roles (tenant_id, type);

create function public.check_role_type(role_id varchar(21), target_type role_type) returns boolean as
$$ begin
  return (select type from public.roles where id = role_id) = target_type;
end; $$ language plpgsql;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on roles
  for each row execute procedure set_tenant_id();

alter table roles enable row level security;

create policy roles_tenant_id on roles
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy roles_modification on roles
  using (true);

-- sentinel_activities.sql
create type sentinel_action_result as enum ('Success', 'Failed');

create type sentinel_decision as enum ('Undecided', 'Allowed', 'Blocked', 'Challenge');

create table sentinel_activities (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  /** The target that the action was performed on. */
  target_type varchar(32) /* @use SentinelActivityTargetType */ not null,
  /** The target hashed identifier. */
  target_hash varchar(64) not null,
  /** The action name that was performed. */
  action varchar(64) /* @use SentinelActivityAction */ not null,
  /** If the action was successful or not. */
  action_result sentinel_action_result not null,
  /** Additional payload data if any. */
  payload jsonb /* @use SentinelActivityPayload */ not null,
  /** The sentinel decision for the action. */
  decision sentinel_decision not null,
  /** The expiry date of the decision. For instant decisions, this is the date the activity was created. */
  decision_expires_at timestamptz not null default(now()),
  /** The time the activity was created. */
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index sentinel_activities__id
  on sentinel_activities (tenant_id, id);

create index sentinel_activities__target_type_target_hash
  on sentinel_activities (tenant_id, target_type, target_hash);

create index sentinel_activities__target_type_target_hash_action_action_result_decision
  on sentinel_activities (tenant_id, target_type, target_hash, action, action_result, decision);

/** Supports the cross-tenant retention prune of stale activity rows by age. */
create index sentinel_activities__created_at
  on sentinel_activities (created_at);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on sentinel_activities
  for each row execute procedure set_tenant_id();

alter table sentinel_activities enable row level security;

create policy sentinel_activities_tenant_id on sentinel_activities
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy sentinel_activities_modification on sentinel_activities
  using (true);

-- service_logs.sql
create table service_logs (
  id varchar(21) not null,
  tenant_id varchar(21) not null,
  type varchar(64) not null,
  payload jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  primary key (id)
);

create index service_logs__id
  on service_logs (id);

create index service_logs__tenant_id__type__created_at
  on service_logs (tenant_id, type, created_at);

/* Global oldest-first scan for the age-based retention prune (the composite index above leads with
   `tenant_id`, so it can't drive a tenant-agnostic `created_at` range scan). */
create index service_logs__created_at
  on service_logs (created_at);

/* Cloud email-logs read path: streams a tenant's sent + failed hosted-email rows in
   (created_at desc, id desc) keyset order (in the composite index above `type` sits between
   `tenant_id` and `created_at`, so a read spanning both email types cannot stream in time order
   and needs a full top-N sort) */
create index service_logs__email__tenant_id__created_at__id
  on service_logs (tenant_id, created_at desc, id desc)
  where type in ('sendEmail', 'sendEmailFailed');

/* Cloud email-logs recipient filter: case-insensitive exact recipient lookups in the same
   keyset order, without inspecting every email-log payload of the tenant */
create index service_logs__email__tenant_id__recipient__created_at__id
  on service_logs (tenant_id, lower(payload->'data'->>'to'), created_at desc, id desc)
  where type in ('sendEmail', 'sendEmailFailed');

/* no_after_each */

-- sign_in_experiences.sql
create type sign_in_mode as enum ('SignIn', 'Register', 'SignInAndRegister');
create type agree_to_terms_policy as enum ('Automatic', 'ManualRegistrationOnly', 'Manual');

create table sign_in_experiences (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  color jsonb /* @use Color */ not null,
  branding jsonb /* @use Branding */ not null,
  hide_logto_branding boolean not null default false,
  language_info jsonb /* @use LanguageInfo */ not null,
  terms_of_use_url varchar(2048),
  privacy_policy_url varchar(2048),
  /** The policy that determines how users agree to the terms of use and privacy policy. */
  agree_to_terms_policy agree_to_terms_policy not null default 'Automatic',
  sign_in jsonb /* @use SignIn */ not null,
  sign_up jsonb /* @use SignUp */ not null,
  social_sign_in jsonb /* @use SocialSignIn */ not null default '{}'::jsonb,
  social_sign_in_connector_targets jsonb /* @use ConnectorTargets */ not null default '[]'::jsonb,
  sign_in_mode sign_in_mode not null default 'SignInAndRegister',
  custom_css text,
  custom_content jsonb /* @use CustomContent */ not null default '{}'::jsonb,
  custom_ui_assets jsonb /* @use CustomUiAssets */,
  custom_ui_csp jsonb /* @use CustomUiCsp */ not null default '{}'::jsonb,
  password_policy jsonb /* @use PartialPasswordPolicy */ not null default '{}'::jsonb,
  mfa jsonb /* @use Mfa */ not null default '{}'::jsonb,
  adaptive_mfa jsonb /* @use AdaptiveMfa */ not null default '{}'::jsonb,
  trusted_device jsonb /* @use TrustedDevicePolicy */ not null default '{}'::jsonb,
  single_sign_on_enabled boolean not null default false,
  support_email text,
  support_website_url text,
  unknown_session_redirect_url text,
  captcha_policy jsonb /* @use CaptchaPolicy */ not null default '{}'::jsonb,
  sentinel_policy jsonb /* @use SentinelPolicy */ not null default '{}'::jsonb,
  email_blocklist_policy jsonb /* @use EmailBlocklistPolicy */ not null default '{}'::jsonb,
  verification_code_policy jsonb /* @use VerificationCodePolicy */ not null default '{}'::jsonb,
  forgot_password_methods jsonb /* @use ForgotPasswordMethods */ default '[]'::jsonb,
  passkey_sign_in jsonb /* @use PasskeySignIn */ not null default '{}'::jsonb,
  /** Nullable by design: null keeps legacy full-catalog behavior, and new rows default to [] to collect no custom profile fields. */
  sign_up_profile_fields jsonb /* @use SignUpProfileFields */ default '[]'::jsonb,
  password_expiration jsonb /* @use PasswordExpirationPolicy */ not null default '{}'::jsonb,
  username_policy jsonb /* @use UsernamePolicy */ not null default ('{
    "caseSensitive": true,
    "minLength": 1,
    "maxLength": 128,
    "allowedChars": {
      "lowercase": true,
      "uppercase": true,
      "numbers": true,
      "underscore": true
    }
  }'::jsonb),
  primary key (tenant_id, id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on sign_in_experiences
  for each row execute procedure set_tenant_id();

alter table sign_in_experiences enable row level security;

create policy sign_in_experiences_tenant_id on sign_in_experiences
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy sign_in_experiences_modification on sign_in_experiences
  using (true);

-- sso_connectors.sql
/* init_order = 1 */
create table sso_connectors (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the SSO connector. */
  id varchar(128) not null,
  /** The identifier of connector's SSO provider */
  provider_name varchar(128) not null,
  /** The name of the SSO provider for display. */
  connector_name varchar(128) not null,
  /** The connector configuration. Different schemas for different provide type */
  config jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  /** The SSO email domains. */
  domains jsonb /* @use SsoDomains */ not null default '[]'::jsonb,
  /** The SSO branding. */
  branding jsonb /* @use SsoBranding */ not null default '{}'::jsonb,
  /** Determines whether to synchronize the user's profile on each login. */
  sync_profile boolean not null default FALSE,
  /** Whether the token storage is enabled for this connector. Only applied for OAuth2/OIDC SSO connectors. */
  enable_token_storage boolean not null default FALSE,
  /** When the SSO connector was created. */
  created_at timestamptz not null default(now()),
  primary key (id),
  constraint sso_connectors__connector_name__unique
    unique (tenant_id, connector_name)
);

create index sso_connectors__id
  on sso_connectors (tenant_id, id);

create index sso_connectors__id__provider_name
  on sso_connectors (tenant_id, id, provider_name);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on sso_connectors
  for each row execute procedure set_tenant_id();

alter table sso_connectors enable row level security;

create policy sso_connectors_tenant_id on sso_connectors
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy sso_connectors_modification on sso_connectors
  using (true);

-- systems.sql
create table systems (
  key varchar(256) not null,
  value jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  primary key (key)
);

/* no_after_each */

-- users.sql
/* init_order = 1 */

create type users_password_encryption_method as enum ('Argon2i', 'Argon2id', 'Argon2d', 'SHA1', 'SHA256', 'MD5', 'Bcrypt', 'Legacy');

create table users (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(12) not null,
  username varchar(128),
  primary_email varchar(128),
  primary_phone varchar(128),
  password_encrypted varchar(256),
  password_encryption_method users_password_encryption_method,
  name varchar(128),
  /** The URL that points to the user's profile picture. Mapped to OpenID Connect's `picture` claim. */
  avatar varchar(2048),
  /** Additional OpenID Connect standard claims that are not included in user's properties. */
  profile jsonb /* @use UserProfile */ not null default '{}'::jsonb,
  application_id varchar(21),
  cimd_client_id varchar(2048),
  identities jsonb /* @use Identities */ not null default '{}'::jsonb,
  custom_data jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  logto_config jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  mfa_verifications jsonb /* @use MfaVerifications */ not null default '[]'::jsonb,
  is_suspended boolean not null default false,
  is_password_expired boolean not null default false,
  last_sign_in_at timestamptz,
  password_updated_at timestamptz,
  created_at timestamptz not null default (now()),
  updated_at timestamptz not null default (now()),
  primary key (id),
  constraint users__username
    unique (tenant_id, username),
  constraint users__primary_email
    unique (tenant_id, primary_email),
  constraint users__primary_phone
    unique (tenant_id, primary_phone)
);

/* Unique index on (tenant_id, id) required for foreign key constraint in organization_user_relations table. */
create unique index users__id
  on users (tenant_id, id);

create index users__name
  on users (tenant_id, name);

create index users_mfa_verifications_gin
  on users using gin (mfa_verifications jsonb_path_ops);

/* Supports case-insensitive username lookups and case-flip conflict detection. */
create index users__tenant_lower_username
  on users (tenant_id, lower(username))
  where username is not null;

create trigger set_updated_at
  before update on users
  for each row
  execute procedure set_updated_at();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on users
  for each row execute procedure set_tenant_id();

alter table users enable row level security;

create policy users_tenant_id on users
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy users_modification on users
  using (true);

-- verification_records.sql
create table verification_records (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  user_id varchar(21)
    references users (id) on update cascade on delete cascade,
  created_at timestamptz not null default(now()),
  expires_at timestamptz not null,
  /** Use JsonObject here to avoid complex typing, the type will be validated in verification classes. */
  data jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  primary key (id)
);

create index verification_records__id
  on verification_records (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on verification_records
  for each row execute procedure set_tenant_id();

alter table verification_records enable row level security;

create policy verification_records_tenant_id on verification_records
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy verification_records_modification on verification_records
  using (true);

-- verification_statuses.sql
create table verification_statuses (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  created_at timestamptz not null default(now()),
  verified_identifier varchar(255),
  primary key (id)
);

create index verification_statuses__id
  on verification_statuses (tenant_id, id);

create index verification_statuses__user_id
  on verification_statuses (tenant_id, user_id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on verification_statuses
  for each row execute procedure set_tenant_id();

alter table verification_statuses enable row level security;

create policy verification_statuses_tenant_id on verification_statuses
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy verification_statuses_modification on verification_statuses
  using (true);

-- organization_roles.sql
/* init_order = 1.1 */

/** The roles defined by the organization template. */
create table organization_roles (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the organization role. */
  id varchar(21) not null,
  /** The organization role's name, unique within the organization template. */
  name varchar(128) not null,
  /** A brief description of the organization role. */
  description varchar(256),
  /** The type of the organization role. Same as the `type` field in the `roles` table. */
  type role_type not null default 'User',
  primary key (id),
  constraint organization_roles__name
    unique (tenant_id, name)
);

create index organization_roles__id
  on organization_roles (tenant_id, id);

create index organization_roles__type
  on organization_roles (tenant_id, type);

create function check_organization_role_type(role_id varchar(21), target_type role_type) returns boolean as
$$ begin
  return (select type from organization_roles where id = role_id) = target_type;
end; $$ language plpgsql set search_path = public;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_roles
  for each row execute procedure set_tenant_id();

alter table organization_roles enable row level security;

create policy organization_roles_tenant_id on organization_roles
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_roles_modification on organization_roles
  using (true);

-- application_access_control_org_role_relations.sql
/* init_order = 2 */

/** The organization role allow relations for application-level access control. */
create table application_access_control_org_role_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  primary key (tenant_id, application_id, organization_id, organization_role_id),
  constraint application_access_control_org_role_relations__role_type
    check (check_organization_role_type(organization_role_id, 'User'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_access_control_org_role_relations
  for each row execute procedure set_tenant_id();

alter table application_access_control_org_role_relations enable row level security;

create policy application_access_control_org_role_relations_tenant_id on application_access_control_org_role_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_access_control_org_role_relations_modification on application_access_control_org_role_relations
  using (true);

-- application_access_control_organization_relations.sql
/* init_order = 2 */

/** The organization membership allow relations for application-level access control. */
create table application_access_control_organization_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  primary key (tenant_id, application_id, organization_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_access_control_organization_relations
  for each row execute procedure set_tenant_id();

alter table application_access_control_organization_relations enable row level security;

create policy application_access_control_organization_relations_tenant_id on application_access_control_organization_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_access_control_organization_relations_modification on application_access_control_organization_relations
  using (true);

-- application_access_control_user_relations.sql
/* init_order = 2 */

/** The direct user allow relations for application-level access control. */
create table application_access_control_user_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  primary key (tenant_id, application_id, user_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_access_control_user_relations
  for each row execute procedure set_tenant_id();

alter table application_access_control_user_relations enable row level security;

create policy application_access_control_user_relations_tenant_id on application_access_control_user_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_access_control_user_relations_modification on application_access_control_user_relations
  using (true);

-- application_access_control_user_role_relations.sql
/* init_order = 2 */

/** The user role allow relations for application-level access control. */
create table application_access_control_user_role_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  role_id varchar(21) not null
    references roles (id) on update cascade on delete cascade,
  primary key (tenant_id, application_id, role_id),
  constraint application_access_control_user_role_relations__role_type
    check (public.check_role_type(role_id, 'User'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_access_control_user_role_relations
  for each row execute procedure set_tenant_id();

alter table application_access_control_user_role_relations enable row level security;

create policy application_access_control_user_role_relations_tenant_id on application_access_control_user_role_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_access_control_user_role_relations_modification on application_access_control_user_role_relations
  using (true);

-- application_secrets.sql
/* init_order = 2 */

/** Application secrets for the `client_credentials` grant type and other confidential client use cases. Note that these secrets replace the `secret` column in the `applications` table, while the `secret` column is still used for the internal validation as `oidc-provider` does not support multiple secrets per client. */
create table application_secrets (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The name of the secret. Should be unique within the application. */
  name varchar(256) not null,
  value varchar(64) not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  primary key (tenant_id, application_id, name),
  constraint application_type
    check (check_application_type(application_id, 'MachineToMachine', 'Traditional', 'Protected'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_secrets
  for each row execute procedure set_tenant_id();

alter table application_secrets enable row level security;

create policy application_secrets_tenant_id on application_secrets
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_secrets_modification on application_secrets
  using (true);

-- application_sign_in_experiences.sql
/* init_order = 2 */

/** Application level sign-in experience configuration. */
create table application_sign_in_experiences (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  color jsonb /* @use PartialColor */ not null default '{}'::jsonb,
  branding jsonb /* @use Branding */ not null default '{}'::jsonb,
  custom_css text,
  terms_of_use_url varchar(2048),
  privacy_policy_url varchar(2048),
  display_name varchar(256),
  primary key (tenant_id, application_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_sign_in_experiences
  for each row execute procedure set_tenant_id();

alter table application_sign_in_experiences enable row level security;

create policy application_sign_in_experiences_tenant_id on application_sign_in_experiences
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_sign_in_experiences_modification on application_sign_in_experiences
  using (true);

-- application_user_consent_organization_scopes.sql
/* init_order = 2 */

/** The organization scopes (permissions) assigned to an application. */
create table application_user_consent_organization_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the application. */
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The globally unique identifier of the organization scope. */
  organization_scope_id varchar(21) not null
    references organization_scopes (id) on update cascade on delete cascade,
  primary key (application_id, organization_scope_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_user_consent_organization_scopes
  for each row execute procedure set_tenant_id();

alter table application_user_consent_organization_scopes enable row level security;

create policy application_user_consent_organization_scopes_tenant_id on application_user_consent_organization_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_user_consent_organization_scopes_modification on application_user_consent_organization_scopes
  using (true);

-- application_user_consent_user_scopes.sql
/* init_order = 2 */

/** The user scopes (permissions) assigned to an application */
create table application_user_consent_user_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the application. */
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The unique UserScope enum value @see (@logto/core-kit/open-id.js) for more details */
  user_scope varchar(64) not null,
  primary key (application_id, user_scope)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_user_consent_user_scopes
  for each row execute procedure set_tenant_id();

alter table application_user_consent_user_scopes enable row level security;

create policy application_user_consent_user_scopes_tenant_id on application_user_consent_user_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_user_consent_user_scopes_modification on application_user_consent_user_scopes
  using (true);

-- applications_roles.sql
/* init_order = 2 */

create table applications_roles (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  role_id varchar(21) not null
    references roles (id) on update cascade on delete cascade,
  primary key (id),
  constraint applications_roles__application_id_role_id
    unique (tenant_id, application_id, role_id),
  constraint applications_roles__role_type
    check (public.check_role_type(role_id, 'MachineToMachine'))
);

create index applications_roles__id
  on applications_roles (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on applications_roles
  for each row execute procedure set_tenant_id();

alter table applications_roles enable row level security;

create policy applications_roles_tenant_id on applications_roles
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy applications_roles_modification on applications_roles
  using (true);

-- cimd_grant_client_snapshots.sql
/* init_order = 2 */

/**
  The client identity a user approved at consent time for a client ID metadata document (CIMD)
  client, captured per Grant. CIMD clients are unregistered URL identities without an
  `applications` row, and an unvetted client can rewrite its hosted document at any time — so the
  grant list renders this snapshot instead of refetching the document.
*/
create table cimd_grant_client_snapshots (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the Grant row in `oidc_model_instances`. */
  grant_id varchar(128) not null,
  /** Fixed discriminator so the composite foreign key can target Grant rows in the polymorphic `oidc_model_instances` table. */
  grant_model_name varchar(64) not null default 'Grant',
  client_id varchar(2048) not null,
  name varchar(256),
  logo_uri varchar(2048),
  created_at timestamptz not null default(now()),
  primary key (tenant_id, grant_id),
  constraint cimd_grant_client_snapshots__grant_model_name
    check (grant_model_name = 'Grant'),
  /** Revoking the grant hard-deletes the Grant row, which erases the snapshot with it. */
  foreign key (tenant_id, grant_model_name, grant_id)
    references oidc_model_instances (tenant_id, model_name, id)
    on update cascade on delete cascade
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_grant_client_snapshots
  for each row execute procedure set_tenant_id();

alter table cimd_grant_client_snapshots enable row level security;

create policy cimd_grant_client_snapshots_tenant_id on cimd_grant_client_snapshots
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_grant_client_snapshots_modification on cimd_grant_client_snapshots
  using (true);

-- cimd_organization_scopes.sql
/* init_order = 2 */

/**
  The organization scopes (permissions) that client ID metadata document (CIMD) clients of the tenant can request.
  Rows are an allowlist: an empty table allows nothing (deny-all), and an unrestricted state is not expressible.
*/
create table cimd_organization_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the organization scope. */
  organization_scope_id varchar(21) not null,
  primary key (tenant_id, organization_scope_id),
  foreign key (tenant_id, organization_scope_id)
    references organization_scopes (tenant_id, id) on update cascade on delete cascade
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_organization_scopes
  for each row execute procedure set_tenant_id();

alter table cimd_organization_scopes enable row level security;

create policy cimd_organization_scopes_tenant_id on cimd_organization_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_organization_scopes_modification on cimd_organization_scopes
  using (true);

-- cimd_user_scopes.sql
/* init_order = 2 */

/**
  The user scopes (permissions) that client ID metadata document (CIMD) clients of the tenant can request.
  Rows are an allowlist: an empty table allows nothing (deny-all), and an unrestricted state is not expressible.
*/
create table cimd_user_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The unique UserScope enum value @see (@logto/core-kit/open-id.js) for more details */
  user_scope varchar(64) not null,
  primary key (tenant_id, user_scope)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_user_scopes
  for each row execute procedure set_tenant_id();

alter table cimd_user_scopes enable row level security;

create policy cimd_user_scopes_tenant_id on cimd_user_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_user_scopes_modification on cimd_user_scopes
  using (true);

-- idp_initiated_saml_sso_sessions.sql
/* init_order = 2 */
create table idp_initiated_saml_sso_sessions (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the assertion record. */
  id varchar(21) not null,
  /** The identifier of the SAML SSO connector. */
  connector_id varchar(128) not null
    references sso_connectors (id) on update cascade on delete cascade,
  /** The SAML assertion. */
  assertion_content jsonb /* @use SsoSamlAssertionContent */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  /** The expiration time of the assertion. */
  expires_at timestamptz not null,
  primary key (tenant_id, id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on idp_initiated_saml_sso_sessions
  for each row execute procedure set_tenant_id();

alter table idp_initiated_saml_sso_sessions enable row level security;

create policy idp_initiated_saml_sso_sessions_tenant_id on idp_initiated_saml_sso_sessions
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy idp_initiated_saml_sso_sessions_modification on idp_initiated_saml_sso_sessions
  using (true);

-- logs.sql
/* init_order = 2 */

create table logs (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  key varchar(128) not null,
  payload jsonb /* @use LogContextPayload */ not null default '{}'::jsonb,
  created_at timestamptz not null default (now()),
  primary key (id)
);

create index logs__key
  on logs (tenant_id, key);

create index logs__user_id
  on logs (tenant_id, (payload->>'userId'));

create index logs__application_id
  on logs (tenant_id, (payload->>'applicationId'));

create index logs__hook_id
  on logs (tenant_id, (payload->>'hookId'));

create index logs__created_at_id
  on logs (tenant_id, created_at, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on logs
  for each row execute procedure set_tenant_id();

alter table logs enable row level security;

create policy logs_tenant_id on logs
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy logs_modification on logs
  using (true);

-- oidc_session_extensions.sql
/* init_order = 2 */

create table oidc_session_extensions (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  session_uid varchar(128) not null,
  account_id varchar(12) not null
    references users (id) on update cascade on delete cascade,
  last_submission jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  client_id varchar(21) null,
  cimd_client_id varchar(2048) null,
  created_at timestamptz not null default(now()),
  updated_at timestamptz not null default(now()),
  primary key (tenant_id, session_uid)
);

/* Leads with account_id instead of tenant_id so the cascades from the users table can use it (users.id is globally unique, so a tenant_id prefix adds no selectivity). */
create index oidc_session_extensions__account_id
  on oidc_session_extensions (account_id);

create trigger set_updated_at
  before update on oidc_session_extensions
  for each row
  execute procedure set_updated_at();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on oidc_session_extensions
  for each row execute procedure set_tenant_id();

alter table oidc_session_extensions enable row level security;

create policy oidc_session_extensions_tenant_id on oidc_session_extensions
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy oidc_session_extensions_modification on oidc_session_extensions
  using (true);

-- one_time_tokens.sql
/* init_order = 2 */

create table one_time_tokens (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  email varchar(128) not null,
  token varchar(256) not null,
  context jsonb /* @use OneTimeTokenContext */ not null default '{}'::jsonb,
  status varchar(64) /* @use OneTimeTokenStatus */ not null default 'active',
  created_at timestamptz not null default(now()),
  expires_at timestamptz not null,
  primary key (id)
);

create index one_time_token__email_status on one_time_tokens (tenant_id, email, status);

create unique index one_time_token__token on one_time_tokens (tenant_id, token);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on one_time_tokens
  for each row execute procedure set_tenant_id();

alter table one_time_tokens enable row level security;

create policy one_time_tokens_tenant_id on one_time_tokens
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy one_time_tokens_modification on one_time_tokens
  using (true);

-- organization_application_relations.sql
/* init_order = 2 */

/** The relations between organizations and applications. It indicates membership of applications in organizations. For now only machine-to-machine applications are supported. */
create table organization_application_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_id, application_id),
  constraint application_type
    check (check_application_type(application_id, 'MachineToMachine'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_application_relations
  for each row execute procedure set_tenant_id();

alter table organization_application_relations enable row level security;

create policy organization_application_relations_tenant_id on organization_application_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_application_relations_modification on organization_application_relations
  using (true);

-- organization_jit_email_domains.sql
/* init_order = 2 */

/** The email domains that will automatically assign users into an organization when they sign up or are added through the Management API. */
create table organization_jit_email_domains (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the organization. */
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  /** The email domain that will be automatically provisioned. */
  email_domain varchar(128) not null,
  primary key (tenant_id, organization_id, email_domain)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_jit_email_domains
  for each row execute procedure set_tenant_id();

alter table organization_jit_email_domains enable row level security;

create policy organization_jit_email_domains_tenant_id on organization_jit_email_domains
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_jit_email_domains_modification on organization_jit_email_domains
  using (true);

-- organization_jit_roles.sql
/* init_order = 2 */

/** The organization roles that will be automatically provisioned to users when they join an organization through JIT. */
create table organization_jit_roles (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the organization. */
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  /** The organization role ID that will be automatically provisioned. */
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_id, organization_role_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_jit_roles
  for each row execute procedure set_tenant_id();

alter table organization_jit_roles enable row level security;

create policy organization_jit_roles_tenant_id on organization_jit_roles
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_jit_roles_modification on organization_jit_roles
  using (true);

-- organization_jit_sso_connectors.sql
/* init_order = 2 */

/** The enterprise SSO connectors that will automatically assign users into an organization when they are authenticated via the SSO connector for the first time. */
create table organization_jit_sso_connectors (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the organization. */
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  sso_connector_id varchar(128) not null
    references sso_connectors (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_id, sso_connector_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_jit_sso_connectors
  for each row execute procedure set_tenant_id();

alter table organization_jit_sso_connectors enable row level security;

create policy organization_jit_sso_connectors_tenant_id on organization_jit_sso_connectors
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_jit_sso_connectors_modification on organization_jit_sso_connectors
  using (true);

-- organization_role_scope_relations.sql
/* init_order = 2 */

/** The relations between organization roles and organization scopes. It indicates which organization scopes are available to which organization roles. */
create table organization_role_scope_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  organization_scope_id varchar(21) not null
    references organization_scopes (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_role_id, organization_scope_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_role_scope_relations
  for each row execute procedure set_tenant_id();

alter table organization_role_scope_relations enable row level security;

create policy organization_role_scope_relations_tenant_id on organization_role_scope_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_role_scope_relations_modification on organization_role_scope_relations
  using (true);

-- organization_user_relations.sql
/* init_order = 2 */

/** The relations between organizations and users. It indicates membership of users in organizations. */
create table organization_user_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_id, user_id),
  constraint organization_user_relations__user_id__fk
    foreign key (tenant_id, user_id)
      references users (tenant_id, id) on update cascade on delete cascade
);

create index organization_user_relations__tenant_id_user_id
  on organization_user_relations (tenant_id, user_id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_user_relations
  for each row execute procedure set_tenant_id();

alter table organization_user_relations enable row level security;

create policy organization_user_relations_tenant_id on organization_user_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_user_relations_modification on organization_user_relations
  using (true);

-- personal_access_tokens.sql
/* init_order = 2 */

create table personal_access_tokens (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  /** The name of the secret. Should be unique within the user. */
  name varchar(256) not null,
  value varchar(64) not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  primary key (tenant_id, user_id, name)
);

create index personal_access_token__value on personal_access_tokens (tenant_id, value);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on personal_access_tokens
  for each row execute procedure set_tenant_id();

alter table personal_access_tokens enable row level security;

create policy personal_access_tokens_tenant_id on personal_access_tokens
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy personal_access_tokens_modification on personal_access_tokens
  using (true);

-- saml_application_configs.sql
/* init_order = 2 */

/** The SAML application config and SAML-type application have a one-to-one correspondence: 1. a SAML-type application can only have one SAML application config. (CANNOT use "semicolon" in comments, since it indicates the end of query.) 2. a SAML application config can only configure one SAML-type application. */
create table saml_application_configs (
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  attribute_mapping jsonb /* @use SamlAttributeMapping */ not null default '{}'::jsonb,
  entity_id varchar(128),
  acs_url jsonb /* @use SamlAcsUrl */,
  encryption jsonb /* @use SamlEncryption */,
  name_id_format varchar(128) /* @use NameIdFormat */ not null,
  primary key (tenant_id, application_id),
  constraint saml_application_configs__application_type
    check (check_application_type(application_id, 'SAML'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on saml_application_configs
  for each row execute procedure set_tenant_id();

alter table saml_application_configs enable row level security;

create policy saml_application_configs_tenant_id on saml_application_configs
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy saml_application_configs_modification on saml_application_configs
  using (true);

-- saml_application_secrets.sql
/* init_order = 2 */

create table saml_application_secrets (
  id varchar(21) not null,
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  private_key text not null,
  certificate text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  active boolean not null,
  primary key (tenant_id, application_id, id),
  constraint saml_application_secrets__application_type
    check (check_application_type(application_id, 'SAML'))
);

-- Only one active secret per application
create unique index saml_application_secrets__unique_active_secret
  on saml_application_secrets (tenant_id, application_id, active)
  where active;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on saml_application_secrets
  for each row execute procedure set_tenant_id();

alter table saml_application_secrets enable row level security;

create policy saml_application_secrets_tenant_id on saml_application_secrets
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy saml_application_secrets_modification on saml_application_secrets
  using (true);

-- saml_application_sessions.sql
/* init_order = 2 */

create table saml_application_sessions (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the session. */
  id varchar(32) not null,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The identifier of the SAML SSO auth request ID, SAML request ID is pretty long. */
  saml_request_id varchar(128) not null,
  /** The identifier of the OIDC auth request state. */
  oidc_state varchar(32),
  /** The relay state of the SAML auth request. */
  relay_state varchar(512),
  /** The raw request of the SAML auth request. */
  raw_auth_request text not null,
  created_at timestamptz not null default(now()),
  expires_at timestamptz not null,
  primary key (tenant_id, id),
  constraint saml_application_sessions__application_type
    check (check_application_type(application_id, 'SAML'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on saml_application_sessions
  for each row execute procedure set_tenant_id();

alter table saml_application_sessions enable row level security;

create policy saml_application_sessions_tenant_id on saml_application_sessions
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy saml_application_sessions_modification on saml_application_sessions
  using (true);

-- saml_sso_connector_signing_keys.sql
/* init_order = 2 */

create table saml_sso_connector_signing_keys (
  id varchar(21) not null,
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  sso_connector_id varchar(128) not null
    references sso_connectors (id) on update cascade on delete cascade,
  /** The SP private key (plaintext PEM) used to sign the SAML AuthnRequest. Tenant-isolated by RLS and never returned by the API. */
  private_key text not null,
  /** The PEM-encoded self-signed SP certificate matching the private key. Public and safe to expose. */
  certificate text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  active boolean not null,
  primary key (tenant_id, sso_connector_id, id)
);

create unique index saml_sso_connector_signing_keys__unique_active
  on saml_sso_connector_signing_keys (tenant_id, sso_connector_id, active)
  where active;
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on saml_sso_connector_signing_keys
  for each row execute procedure set_tenant_id();

alter table saml_sso_connector_signing_keys enable row level security;

create policy saml_sso_connector_signing_keys_tenant_id on saml_sso_connector_signing_keys
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy saml_sso_connector_signing_keys_modification on saml_sso_connector_signing_keys
  using (true);

-- scopes.sql
/* init_order = 2 */

create table scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  resource_id varchar(21) not null
    references resources (id) on update cascade on delete cascade,
  name varchar(256) not null,
  description text,
  created_at timestamptz not null default(now()),
  primary key (id),
  constraint scopes__resource_id_name
    unique (tenant_id, resource_id, name)
);

create index scopes__id
  on scopes (tenant_id, id);

/** Supports tenant-aware foreign keys from tenant-owned scope relations. */
create unique index scopes__tenant_id_id
  on scopes (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on scopes
  for each row execute procedure set_tenant_id();

alter table scopes enable row level security;

create policy scopes_tenant_id on scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy scopes_modification on scopes
  using (true);

-- secrets.sql
/* init_order = 2 */
create table secrets (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null primary key,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  type varchar(256) /* @use SecretType */ not null,
  /** Encrypted data encryption key (DEK) for the secret. */
  encrypted_dek bytea /* @use BufferLike */ not null,
  /** Initialization vector for the secret encryption. */
  iv bytea /* @use BufferLike */ not null,
  /** Authentication tag for the secret encryption. */
  auth_tag bytea /* @use BufferLike */ not null,
  /** The encrypted secret data. e.g. { access_token, refresh_token } */
  ciphertext bytea /* @use BufferLike */ not null,
  /** The metadata associated with the secret. */
  metadata jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  created_at timestamptz not null default(now()),
  updated_at timestamptz not null default(now())
);

create trigger set_updated_at
  before update on secrets
  for each row
  execute procedure set_updated_at();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on secrets
  for each row execute procedure set_tenant_id();

alter table secrets enable row level security;

create policy secrets_tenant_id on secrets
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy secrets_modification on secrets
  using (true);

-- sso_connector_idp_initiated_auth_configs.sql
/** init_order = 2 */
create table sso_connector_idp_initiated_auth_configs (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the SSO connector. */
  connector_id varchar(128) not null
    references sso_connectors (id) on update cascade on delete cascade,
  /** The default Logto application id. */
  default_application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** OIDC sign-in redirect URI. */
  redirect_uri text,
  /** Additional OIDC auth parameters. */
  auth_parameters jsonb /* @use IdpInitiatedAuthParams */ not null default '{}'::jsonb,
  /** Whether to auto-trigger the auth flow on an IdP-initiated auth request. */
  auto_send_authorization_request boolean not null default false,
  /** The client side callback URI for handling IdP-initiated auth request. */
  client_idp_initiated_auth_callback_uri text,
  created_at timestamptz not null default(now()),
  primary key (tenant_id, connector_id),
  /** Insure the application type is Traditional or SPA. */
  constraint application_type
    check (check_application_type(default_application_id, 'Traditional', 'SPA', 'SAML'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on sso_connector_idp_initiated_auth_configs
  for each row execute procedure set_tenant_id();

alter table sso_connector_idp_initiated_auth_configs enable row level security;

create policy sso_connector_idp_initiated_auth_configs_tenant_id on sso_connector_idp_initiated_auth_configs
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy sso_connector_idp_initiated_auth_configs_modification on sso_connector_idp_initiated_auth_configs
  using (true);

-- trusted_devices.sql
/* init_order = 2 */

/** A revocable server-side credential that can fulfill sign-in MFA for a user. */
create table trusted_devices (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  user_id varchar(12) not null
    references users (id) on update cascade on delete cascade,
  secret_hash bytea /* @use BufferLike */ not null,
  user_agent text,
  ip text,
  country varchar(16),
  city text,
  created_at timestamptz not null default(now()),
  last_used_at timestamptz not null default(now()),
  expires_at timestamptz not null,
  primary key (id)
);

create index trusted_devices__tenant_user_expires_at
  on trusted_devices (tenant_id, user_id, expires_at);

create index trusted_devices__tenant_expires_at
  on trusted_devices (tenant_id, expires_at);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on trusted_devices
  for each row execute procedure set_tenant_id();

alter table trusted_devices enable row level security;

create policy trusted_devices_tenant_id on trusted_devices
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy trusted_devices_modification on trusted_devices
  using (true);

-- user_geo_locations.sql
/* init_order = 2 */

/** The last known geo coordinates per user for geo-velocity checks. */
create table user_geo_locations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  user_id varchar(12) not null
    references users (id) on update cascade on delete cascade,
  latitude numeric(9,6),
  longitude numeric(9,6),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, user_id),
  check ((latitude is null) = (longitude is null))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on user_geo_locations
  for each row execute procedure set_tenant_id();

alter table user_geo_locations enable row level security;

create policy user_geo_locations_tenant_id on user_geo_locations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy user_geo_locations_modification on user_geo_locations
  using (true);

-- user_sign_in_countries.sql
/* init_order = 2 */

/** Tracks per-user sign-in countries for adaptive MFA rules. */
create table user_sign_in_countries (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  user_id varchar(12) not null
    references users (id) on update cascade on delete cascade,
  /** ISO 3166-1 alpha-2 country code (2 chars), stored up to 16 chars for robustness. */
  country varchar(16) not null,
  last_sign_in_at timestamptz not null default(now()),
  primary key (tenant_id, user_id, country)
);

create index user_sign_in_countries__tenant_user_last_sign_in_at
  on user_sign_in_countries (tenant_id, user_id, last_sign_in_at desc);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on user_sign_in_countries
  for each row execute procedure set_tenant_id();

alter table user_sign_in_countries enable row level security;

create policy user_sign_in_countries_tenant_id on user_sign_in_countries
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy user_sign_in_countries_modification on user_sign_in_countries
  using (true);

-- user_sso_identities.sql
/* init_order = 2 */

create table user_sso_identities (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  user_id varchar(12) not null references users (id) on update cascade on delete cascade,
  /** Unique provider identifier. Issuer of the OIDC connectors, entityId of the SAML providers */
  issuer varchar(256) not null,
  /** Provider user identity id*/
  identity_id varchar(128) not null,
  detail jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  /** Known issue: created_at uses timestamp instead of timestamptz */
  created_at timestamp not null default(now()),
  updated_at timestamptz not null default(now()),
  sso_connector_id
    varchar(128) not null
    references sso_connectors (id) on update cascade on delete cascade,
  primary key (id),
  constraint user_sso_identities__issuer__identity_id
    unique (tenant_id, issuer, identity_id)
);


create trigger set_updated_at
  before update on user_sso_identities
  for each row
  execute procedure set_updated_at();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on user_sso_identities
  for each row execute procedure set_tenant_id();

alter table user_sso_identities enable row level security;

create policy user_sso_identities_tenant_id on user_sso_identities
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy user_sso_identities_modification on user_sso_identities
  using (true);

-- users_roles.sql
/* init_order = 2 */

create table users_roles (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  role_id varchar(21) not null
    references roles (id) on update cascade on delete cascade,
  primary key (id),
  constraint users_roles__user_id_role_id
    unique (tenant_id, user_id, role_id),
  constraint users_roles__role_type
    check (public.check_role_type(role_id, 'User'))
);

create index users_roles__id
  on users_roles (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on users_roles
  for each row execute procedure set_tenant_id();

alter table users_roles enable row level security;

create policy users_roles_tenant_id on users_roles
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy users_roles_modification on users_roles
  using (true);

-- application_user_consent_organization_resource_scopes.sql
/* init_order = 3 */

/**
  The organization resource scopes (permissions) assigned to an application's consent request.
  This is different from the application_user_consent_resource_scopes table, scopes in this table
  is granted by the organization roles.
*/
create table application_user_consent_organization_resource_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the application. */
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The globally unique identifier of the resource scope. */
  scope_id varchar(21) not null
    references scopes (id) on update cascade on delete cascade,
  primary key (application_id, scope_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_user_consent_organization_resource_scopes
  for each row execute procedure set_tenant_id();

alter table application_user_consent_organization_resource_scopes enable row level security;

create policy application_user_consent_organization_resource_scopes_tenant_id on application_user_consent_organization_resource_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_user_consent_organization_resource_scopes_modification on application_user_consent_organization_resource_scopes
  using (true);

-- application_user_consent_organizations.sql
/* init_order = 3 */

/** The relations between applications, users and organizations. A relation means that a user has consented to an application to access data in an organization. */
create table application_user_consent_organizations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  organization_id varchar(21) not null,
  user_id varchar(21) not null,
  primary key (tenant_id, application_id, organization_id, user_id),
  /** User's consent to an application should be synchronized with the user's membership in the organization. */
  foreign key (tenant_id, organization_id, user_id)
    references organization_user_relations (tenant_id, organization_id, user_id)
    on update cascade on delete cascade
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_user_consent_organizations
  for each row execute procedure set_tenant_id();

alter table application_user_consent_organizations enable row level security;

create policy application_user_consent_organizations_tenant_id on application_user_consent_organizations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_user_consent_organizations_modification on application_user_consent_organizations
  using (true);

-- application_user_consent_resource_scopes.sql
/* init_order = 3 */

/** The resource scopes (permissions) assigned to an application's consent request. */
create table application_user_consent_resource_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the application. */
  application_id varchar(21) not null
    references applications (id) on update cascade on delete cascade,
  /** The globally unique identifier of the resource scope. */
  scope_id varchar(21) not null
    references scopes (id) on update cascade on delete cascade,
  primary key (application_id, scope_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on application_user_consent_resource_scopes
  for each row execute procedure set_tenant_id();

alter table application_user_consent_resource_scopes enable row level security;

create policy application_user_consent_resource_scopes_tenant_id on application_user_consent_resource_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy application_user_consent_resource_scopes_modification on application_user_consent_resource_scopes
  using (true);

-- cimd_grant_organizations.sql
/* init_order = 3 */

/**
  The organization authorized on a single OIDC Grant for a client ID metadata document (CIMD) client.
  CIMD clients are unregistered URL identities with no deletion lifecycle and transferable ownership,
  so organization access follows the single authorization instead of a long-lived cross-grant
  relation: rows cascade away with the Grant row and with the user's organization membership.
*/
create table cimd_grant_organizations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the Grant row in `oidc_model_instances`. */
  grant_id varchar(128) not null,
  /** Fixed discriminator so the composite foreign key can target Grant rows in the polymorphic `oidc_model_instances` table. */
  grant_model_name varchar(64) not null default 'Grant',
  organization_id varchar(21) not null,
  /** The user the grant was issued to and the membership FK's target. Must match the Grant payload's `accountId` (unreachable by FK) — the consent write enforces the pairing. */
  user_id varchar(21) not null,
  primary key (tenant_id, grant_id),
  constraint cimd_grant_organizations__grant_model_name
    check (grant_model_name = 'Grant'),
  /** Revoking the grant hard-deletes the Grant row, which erases the organization authorization with it. */
  foreign key (tenant_id, grant_model_name, grant_id)
    references oidc_model_instances (tenant_id, model_name, id)
    on update cascade on delete cascade,
  /** Leaving the organization revokes the authorization. */
  foreign key (tenant_id, organization_id, user_id)
    references organization_user_relations (tenant_id, organization_id, user_id)
    on update cascade on delete cascade
);

/**
  Backs the membership FK's cascade lookup: rows live as long as the Grant row (not the grant's
  validity), so membership deletions would otherwise scan the tenant's whole row set per deleted
  membership, amplified by member count on organization deletion.
*/
create index cimd_grant_organizations__organization_id_user_id
  on cimd_grant_organizations (tenant_id, organization_id, user_id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_grant_organizations
  for each row execute procedure set_tenant_id();

alter table cimd_grant_organizations enable row level security;

create policy cimd_grant_organizations_tenant_id on cimd_grant_organizations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_grant_organizations_modification on cimd_grant_organizations
  using (true);

-- cimd_organization_resource_scopes.sql
/* init_order = 3 */

/**
  The organization API resource scopes (permissions) that client ID metadata document (CIMD) clients of
  the tenant can request. The scopes are granted to users through organization roles.
  Rows are an allowlist: an empty table allows nothing (deny-all), and an unrestricted state is not expressible.
*/
create table cimd_organization_resource_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the API resource scope. */
  scope_id varchar(21) not null,
  primary key (tenant_id, scope_id),
  foreign key (tenant_id, scope_id)
    references scopes (tenant_id, id) on update cascade on delete cascade
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_organization_resource_scopes
  for each row execute procedure set_tenant_id();

alter table cimd_organization_resource_scopes enable row level security;

create policy cimd_organization_resource_scopes_tenant_id on cimd_organization_resource_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_organization_resource_scopes_modification on cimd_organization_resource_scopes
  using (true);

-- cimd_resource_scopes.sql
/* init_order = 3 */

/**
  The API resource scopes (permissions) that client ID metadata document (CIMD) clients of the tenant can request.
  Rows are an allowlist: an empty table allows nothing (deny-all), and an unrestricted state is not expressible.
*/
create table cimd_resource_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The globally unique identifier of the API resource scope. */
  scope_id varchar(21) not null,
  primary key (tenant_id, scope_id),
  foreign key (tenant_id, scope_id)
    references scopes (tenant_id, id) on update cascade on delete cascade
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on cimd_resource_scopes
  for each row execute procedure set_tenant_id();

alter table cimd_resource_scopes enable row level security;

create policy cimd_resource_scopes_tenant_id on cimd_resource_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy cimd_resource_scopes_modification on cimd_resource_scopes
  using (true);

-- organization_invitations.sql
/* init_order = 3 */

create type organization_invitation_status as enum ('Pending', 'Accepted', 'Expired', 'Revoked');

/** The invitation entry defined in RFC 0003. It stores the invitation information for a user to join an organization. */
create table organization_invitations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The unique identifier of the invitation. */
  id varchar(21) not null,
  /** The user ID who sent the invitation. */
  inviter_id varchar(21)
    references users (id) on update cascade on delete cascade,
  /** The email address or other identifier of the invitee. */
  invitee varchar(256) not null,
  /** The user ID of who accepted the invitation. */
  accepted_user_id varchar(21)
    references users (id) on update cascade on delete cascade,
  /** The ID of the organization to which the invitee is invited. */
  organization_id varchar(21) not null
    references organizations (id) on update cascade on delete cascade,
  /** The status of the invitation. */
  status organization_invitation_status not null,
  /** The time when the invitation was created. */
  created_at timestamptz not null default (now()),
  /** The time when the invitation status was last updated. */
  updated_at timestamptz not null default (now()),
  /** The time when the invitation expires. */
  expires_at timestamptz not null,
  primary key (id)
);

-- Ensure there is only one pending invitation for a given invitee and organization.
create unique index organization_invitations__invitee_organization_id
  on organization_invitations (tenant_id, invitee, organization_id)
  where status = 'Pending';
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_invitations
  for each row execute procedure set_tenant_id();

alter table organization_invitations enable row level security;

create policy organization_invitations_tenant_id on organization_invitations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_invitations_modification on organization_invitations
  using (true);

-- organization_role_application_relations.sql
/* init_order = 3 */

/** The relations between organizations, organization roles, and applications. A relation means that an application has a role in an organization. */
create table organization_role_application_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_id varchar(21) not null,
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  application_id varchar(21) not null,
  primary key (tenant_id, organization_id, organization_role_id, application_id),
  /** Application's roles in an organization should be synchronized with the application's membership in the organization. */
  foreign key (tenant_id, organization_id, application_id)
    references organization_application_relations (tenant_id, organization_id, application_id)
    on update cascade on delete cascade,
  constraint organization_role_application_relations__role_type
    check (check_organization_role_type(organization_role_id, 'MachineToMachine'))
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_role_application_relations
  for each row execute procedure set_tenant_id();

alter table organization_role_application_relations enable row level security;

create policy organization_role_application_relations_tenant_id on organization_role_application_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_role_application_relations_modification on organization_role_application_relations
  using (true);

-- organization_role_resource_scope_relations.sql
/* init_order = 3 */

/** The relations between organization roles and resource scopes (normal scopes). It indicates which resource scopes are available to which organization roles. */
create table organization_role_resource_scope_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  scope_id varchar(21) not null
    references scopes (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_role_id, scope_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_role_resource_scope_relations
  for each row execute procedure set_tenant_id();

alter table organization_role_resource_scope_relations enable row level security;

create policy organization_role_resource_scope_relations_tenant_id on organization_role_resource_scope_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_role_resource_scope_relations_modification on organization_role_resource_scope_relations
  using (true);

-- organization_role_user_relations.sql
/* init_order = 3 */

/** The relations between organizations, organization roles, and users. A relation means that a user has a role in an organization. */
create table organization_role_user_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  organization_id varchar(21) not null,
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  user_id varchar(21) not null,
  primary key (tenant_id, organization_id, organization_role_id, user_id),
  /** User's roles in an organization should be synchronized with the user's membership in the organization. */
  foreign key (tenant_id, organization_id, user_id)
    references organization_user_relations (tenant_id, organization_id, user_id)
    on update cascade on delete cascade,
  constraint organization_role_user_relations__role_type
    check (check_organization_role_type(organization_role_id, 'User'))
);

create index organization_role_user_relations__tenant_id_org_id_user_id
  on organization_role_user_relations (tenant_id, organization_id, user_id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_role_user_relations
  for each row execute procedure set_tenant_id();

alter table organization_role_user_relations enable row level security;

create policy organization_role_user_relations_tenant_id on organization_role_user_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_role_user_relations_modification on organization_role_user_relations
  using (true);

-- secret_enterprise_sso_connector_relations.sql
/* init_order = 3 */

create table secret_enterprise_sso_connector_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  secret_id varchar(21) not null
    references secrets (id) on update cascade on delete cascade,
  /** SSO connector ID foreign reference. Only present for secrets that store SSO connector tokens. Note: avoid directly cascading deletes here, need to delete the secrets first.*/
  sso_connector_id varchar(128) not null
    references sso_connectors (id) on update cascade,
  /** User SSO connector issuer. Only present for secrets that store SSO connector tokens. */
  issuer varchar(256) not null,
  /** User SSO identity ID. Only present for secrets that store SSO identity tokens. */
  identity_id varchar(128) not null,
  primary key (tenant_id, secret_id),
  /** Ensures that each SSO identity is associated with only one secret. */
  foreign key (tenant_id, issuer, identity_id)
    references user_sso_identities (tenant_id, issuer, identity_id) on update cascade
);

/** Trigger function to delete secrets when the SSO connector is deleted. */
create function delete_secrets_on_sso_connector_delete()
returns trigger as $$
begin
  delete from secrets
  where id in (
    select secret_id from secret_enterprise_sso_connector_relations
    where tenant_id = old.tenant_id and sso_connector_id = old.id
  );
  return old;
end;
$$ language plpgsql;

create trigger delete_secrets_before_sso_connector_delete
  before delete on sso_connectors
  for each row
  execute procedure delete_secrets_on_sso_connector_delete();


/** Trigger function to delete secret when the SSO identity is deleted. */
create function delete_secret_on_sso_identity_delete()
returns trigger as $$
begin
  delete from secrets
  where id in (
    select secret_id from secret_enterprise_sso_connector_relations
    where tenant_id = old.tenant_id
    and issuer = old.issuer
    and identity_id = old.identity_id
  )
  -- we also need to ensure that the secret is associated with the correct user
  and user_id = old.user_id;
  return old;
end;
$$ language plpgsql;

create trigger delete_secret_before_sso_identity_delete
  before delete on user_sso_identities
  for each row
  execute procedure delete_secret_on_sso_identity_delete();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on secret_enterprise_sso_connector_relations
  for each row execute procedure set_tenant_id();

alter table secret_enterprise_sso_connector_relations enable row level security;

create policy secret_enterprise_sso_connector_relations_tenant_id on secret_enterprise_sso_connector_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy secret_enterprise_sso_connector_relations_modification on secret_enterprise_sso_connector_relations
  using (true);

-- secret_social_connector_relations.sql
/* init_order = 3 */

create table secret_social_connector_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  secret_id varchar(21) not null
    references secrets (id) on update cascade on delete cascade,
  /** Social connector ID foreign reference. Only present for secrets that store social connector tokens. Note: avoid directly cascading deletes here, need to delete the secrets first.*/
  connector_id varchar(128) not null
    references connectors (id) on update cascade,
  /** The target of the social connector. e.g. 'github', 'google', etc. */
  target varchar(256) not null,
  /** User social identity ID foreign reference. Only present for secrets that store social identity tokens. */
  identity_id varchar(128) not null,
  primary key (tenant_id, secret_id),
  /** Ensures that each social identity is associated with only one secret. */
  constraint secret_social_connector_relations__target__identity_id
    unique (tenant_id, target, identity_id)
);

/** Trigger function to delete secrets when the social connector is deleted. */
create function delete_secrets_on_social_connector_delete()
returns trigger as $$
begin
  delete from secrets
  where id in (
    select secret_id from secret_social_connector_relations
    where tenant_id = old.tenant_id and connector_id = old.id
  );
  return old;
end;
$$ language plpgsql;

create trigger delete_secrets_before_social_connector_delete
  before delete on connectors
  for each row
  execute procedure delete_secrets_on_social_connector_delete();


/** Trigger function to delete associated secrets when social identities are deleted. */
create function delete_secrets_on_social_identity_delete()
returns trigger as $$
declare
  identity_target text;
  old_identity jsonb;
  new_identity jsonb;
begin
  -- Loop over old identities to detect deletions or modifications
  for identity_target in select jsonb_object_keys(old.identities)
  loop
    old_identity := old.identities -> identity_target;
    new_identity := new.identities -> identity_target;

    -- If the identity was deleted or modified, delete the associated secret
    if new_identity is null or (new_identity->>'userId') is distinct from (old_identity->>'userId') then
      -- Identity was removed or changed, delete the corresponding secrets
      delete from secrets
      using secret_social_connector_relations
      where secrets.id = secret_social_connector_relations.secret_id
      -- Ensure we are deleting the correct social identity
      and secret_social_connector_relations.target = identity_target
      and secret_social_connector_relations.identity_id = old_identity->>'userId'
      -- Ensure we delete the correct user's secret
      and secrets.user_id = old.id;
    end if;
  end loop;

  return new;
end;
$$ language plpgsql;

create trigger delete_secrets_before_social_identity_delete
  before update of identities on users
  for each row
  execute procedure delete_secrets_on_social_identity_delete();
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on secret_social_connector_relations
  for each row execute procedure set_tenant_id();

alter table secret_social_connector_relations enable row level security;

create policy secret_social_connector_relations_tenant_id on secret_social_connector_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy secret_social_connector_relations_modification on secret_social_connector_relations
  using (true);

-- organization_invitation_role_relations.sql
/* init_order = 4 */

/** The organization roles that will be assigned to a user when they accept an invitation. */
create table organization_invitation_role_relations (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  /** The ID of the invitation. */
  organization_invitation_id varchar(21) not null
    references organization_invitations (id) on update cascade on delete cascade,
  /** The ID of the organization role. */
  organization_role_id varchar(21) not null
    references organization_roles (id) on update cascade on delete cascade,
  primary key (tenant_id, organization_invitation_id, organization_role_id)
);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on organization_invitation_role_relations
  for each row execute procedure set_tenant_id();

alter table organization_invitation_role_relations enable row level security;

create policy organization_invitation_role_relations_tenant_id on organization_invitation_role_relations
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy organization_invitation_role_relations_modification on organization_invitation_role_relations
  using (true);

-- roles_scopes.sql
create table roles_scopes (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(21) not null,
  role_id varchar(21) not null
    references roles (id) on update cascade on delete cascade,
  scope_id varchar(21) not null
    references scopes (id) on update cascade on delete cascade,
  primary key (id),
  constraint roles_scopes__role_id_scope_id
    unique (tenant_id, role_id, scope_id)
);

create index roles_scopes__id
  on roles_scopes (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on roles_scopes
  for each row execute procedure set_tenant_id();

alter table roles_scopes enable row level security;

create policy roles_scopes_tenant_id on roles_scopes
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy roles_scopes_modification on roles_scopes
  using (true);

-- subject_tokens.sql
create table subject_tokens (
  tenant_id varchar(21) not null
    references tenants (id) on update cascade on delete cascade,
  id varchar(25) not null,
  context jsonb /* @use JsonObject */ not null default '{}'::jsonb,
  expires_at timestamptz not null,
  consumed_at timestamptz,
  user_id varchar(21) not null
    references users (id) on update cascade on delete cascade,
  created_at timestamptz not null default(now()),
  /* It is intented to not reference to user or application table, it can be userId or applicationId, for audit only */
  creator_id varchar(32) not null,
  primary key (id)
);

create index subject_token__id on subject_tokens (tenant_id, id);
/* This SQL will run after each query files except lifecycle scripts and files that explicitly exclude `after_each`. */

create trigger set_tenant_id before insert on subject_tokens
  for each row execute procedure set_tenant_id();

alter table subject_tokens enable row level security;

create policy subject_tokens_tenant_id on subject_tokens
  as restrictive
  using (tenant_id = (select id from tenants where db_user = current_user));

create policy subject_tokens_modification on subject_tokens
  using (true);

-- _after_all.sql, without grants
alter table tenants enable row level security;

create policy tenants_tenant_id on tenants
  using (db_user = current_user);
