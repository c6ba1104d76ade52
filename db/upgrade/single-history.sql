-- From the single history of migrations that there was before 22 November 2026 (commit 5c10d4c, and later ones up to 62 migrations) to the
-- histories of commit 6bd84e18, from where platform-000055.sql goes on. Only tables, types, policies, triggers and rows: the functions and
-- comments of the present histories follow. A function here is one that a trigger or an update needs before that.
--! from single/000057 sha1:8ad4c27451777c238e44d337c36f39bb32beda91

--! migration single/000058 sha1:bc4f0ea9a26a18ac8538658e7d58bc875d1d9e11
alter table public.users add constraint users_name_max_length check (length(name) <= 200) not valid;
alter table public.articles
  add constraint articles_title_max_length check (length(title) <= 300) not valid,
  add constraint articles_content_max_length
    check (octet_length(content) <= 1000000 or length(content) <= 1000000) not valid,
  add constraint articles_summary_max_length check (length(summary) <= 2000) not valid,
  add constraint articles_tags_max_count check (cardinality(tags) <= 100) not valid,
  add constraint articles_tags_max_length check (array_to_string(tags, e'\n') !~ '[^\n]{101}') not valid;
alter table public.article_translations add constraint article_translations_title_max_length
  check (length(title) <= 300) not valid;
alter table public.comments add constraint comments_content_max_length check (length(content) <= 10000) not valid;
alter table auth.credentials
  add constraint credentials_username_max_length check (length(username) <= 254) not valid,
  add constraint credentials_verified_email_max_length check (length(verified_email) <= 254) not valid;
alter table auth.mail_tokens add constraint mail_tokens_email_max_length check (length(email) <= 254) not valid;
alter table auth.sessions add constraint sessions_user_agent_max_length check (length(user_agent) <= 500) not valid;
alter table auth.audit_log add constraint audit_log_request_id_max_length check (length(request_id) <= 128) not valid;
alter table auth.login_throttle add constraint login_throttle_key_max_length check (length(key) <= 600) not valid;
alter table auth.federation_states
  add constraint federation_states_redirect_to_max_length check (length(redirect_to) <= 4096) not valid,
  add constraint federation_states_code_challenge_max_length check (length(code_challenge) <= 128) not valid;
alter table auth.identities add constraint identities_subject_max_length check (octet_length(subject) <= 1024) not valid;

--! migration single/000059 sha1:95d89837febfa5287c1b98f9c698397e33ab7613
alter table public.users drop constraint users_email_format, add constraint users_email_format check (
  length(email) <= 254
  and email ~ '^(?=.{1,64}@)[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+)*@([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$'
) not valid;

--! migration single/000060 sha1:905c0cb934619c86a6ac3e7d0a534e8ee56db465

--! migration single/000061 sha1:1e5c1c4e7ea8765475b375c2f4cabd40f9998004
do $$
begin
  if to_regprocedure('private.users_are_open(text)') is not null then
    alter function private.users_are_open(text) set schema auth;
  end if;
end $$;

--! migration single/000062 sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4

--! then
-- The type and its parameters were renamed.
drop function auth.add_account, auth.add_provider, auth.assign_role, auth.begin_login, auth.begin_reset, auth.begin_verification,
  auth.change_password, auth.close_session, auth.create_api_key, auth.disable_account, auth.disable_factor, auth.enable_account,
  auth.enable_factor, auth.enable_provider, auth.end_federation_sessions, auth.enroll_factor, auth.ensure_administrator, auth.fail_login,
  auth.federated_user, auth.hold_account, auth.hold_federation, auth.keep_federation_session, auth.link_identity, auth.living_sessions,
  auth.log_event, auth.open_session, auth.open_tokens, auth.pass_federated_factor, auth.pass_federation, auth.pass_login, auth.register,
  auth.remove_provider, auth.renew_backup_codes, auth.reset_password, auth.revoke_api_key, auth.revoke_refresh_tokens,
  auth.rotate_refresh_token, auth.seal_answer, auth.take_attempt, auth.take_message, auth.use_factor, auth.use_federation_code,
  auth.verify_email, private.claim_answer, private.hold_task, private.keep_answer, private.tend_tasks;
alter type auth.sender rename to client_info;

alter table auth.refresh_tokens
  add column signed_in_at timestamptz,
  add column address inet,
  add column user_agent text;
alter table auth.refresh_tokens
  add constraint refresh_tokens_user_agent_max_length check (length(user_agent) <= 500) not valid;
drop function auth.add_refresh_token(bigint, bytea, uuid, integer);
alter table auth.mail_tokens drop constraint mail_tokens_purpose_check;
alter table auth.mail_tokens
  add constraint mail_tokens_purpose_check check (purpose in ('reset', 'verify', 'change'));

drop policy select_all on public.articles;
create policy select_published on public.articles for select using (status = 'PUBLISHED');
create policy select_own on public.articles for select to authenticated using (author_id = (select auth.uid()));
drop policy select_all on public.article_translations;
create policy select_of_article on public.article_translations for select
  using (exists (select from public.articles where articles.id = article_id));
drop policy select_all on public.comments;
create policy select_of_article on public.comments for select
  using (exists (select from public.articles where articles.id = article_id));
drop policy insert_own on public.comments;
create policy insert_own on public.comments for insert to authenticated with check (
  author_id = (select auth.uid()) and exists (select from public.articles where articles.id = article_id)
);
drop policy select_all on public.users;
create policy select_signed_in on public.users for select to authenticated using (true);
create policy select_authors on public.users for select to anon using (
  exists (select from public.articles where articles.author_id = users.id)
  or exists (select from public.comments where comments.author_id = users.id)
  or created_at = now()
);
revoke select on public.users from anon;
grant select (id, name, age, avatar, created_at, updated_at) on public.users to anon;

alter table auth.credentials rename to users;
do $$
declare
  v_name text;
begin
  for v_name in
    select conname from pg_constraint where conrelid = 'auth.users'::regclass and conname like 'credentials\_%'
  loop
    execute format('alter table auth.users rename constraint %I to %I', v_name, regexp_replace(v_name, '^credentials', 'users'));
  end loop;
end $$;
alter index auth.credentials_username_any_case_key rename to users_username_any_case_key;
alter table auth.users
  alter column user_id add generated by default as identity,
  add column id uuid not null default gen_random_uuid() constraint users_id_key unique,
  add column email text constraint users_email_max_length check (length(email) <= 254),
  add column phone text constraint users_phone_key unique constraint users_phone_max_length check (length(phone) <= 32),
  add column email_confirmed_at timestamptz,
  add column phone_confirmed_at timestamptz,
  add column last_sign_in_at timestamptz,
  add column invited_at timestamptz,
  add column banned_until timestamptz,
  add column deleted_at timestamptz,
  add column updated_at timestamptz not null default now(),
  add column raw_user_meta_data jsonb not null default '{}'
    constraint users_raw_user_meta_data_check check (jsonb_typeof(raw_user_meta_data) = 'object'),
  add column raw_app_meta_data jsonb not null default '{}'
    constraint users_raw_app_meta_data_check check (jsonb_typeof(raw_app_meta_data) = 'object'),
  add column is_anonymous boolean not null default false,
  add column is_sso_user boolean not null default false;
create unique index users_email_any_case_key on auth.users (lower(email));
alter function auth.tg_credentials__remember_deletion() rename to tg_users__remember_deletion;
create table auth.token_sessions (
  id           uuid primary key,
  user_id      bigint not null constraint token_sessions_user_id_fkey references auth.users on delete cascade,
  created_at   timestamptz not null default now(),
  refreshed_at timestamptz not null default now(),
  aal          smallint not null default 1 check (aal between 1 and 3),
  amr          jsonb not null default '[]' check (jsonb_typeof(amr) = 'array'),
  address      inet,
  user_agent   text constraint token_sessions_user_agent_max_length check (length(user_agent) <= 500),
  tag          text constraint token_sessions_tag_max_length check (length(tag) <= 200)
);
create index on auth.token_sessions (user_id);
create index on auth.token_sessions (refreshed_at);
alter table auth.token_sessions enable row level security;
delete from auth.refresh_tokens as token where not exists (select from auth.users where users.user_id = token.user_id);
insert into auth.token_sessions (id, user_id, created_at, refreshed_at, address, user_agent)
  select distinct on (token.family_id) token.family_id, token.user_id,
    min(coalesce(token.signed_in_at, token.issued_at)) over family, max(token.issued_at) over family, token.address, token.user_agent
  from auth.refresh_tokens as token
  window family as (partition by token.family_id)
  order by token.family_id, token.issued_at desc;
alter table auth.refresh_tokens
  add constraint refresh_tokens_family_id_fkey foreign key (family_id) references auth.token_sessions on delete cascade;
create or replace function auth.tg_users__follow_changes() returns trigger as $$
begin
  if NEW.email_confirmed_at is not null and (TG_OP = 'INSERT' or OLD.email_confirmed_at is null) then
    NEW.verified_email := NEW.email;
  end if;
  NEW.email_confirmed_at := case
    when lower(NEW.verified_email) = lower(NEW.email) then coalesce(NEW.email_confirmed_at, clock_timestamp())
  end;
  NEW.updated_at := clock_timestamp();
  return NEW;
end;
$$ language plpgsql set search_path = '';
create trigger _100_follow_changes before insert or update on auth.users
  for each row execute function auth.tg_users__follow_changes();

create table auth.flow_states (
  id               uuid primary key default gen_random_uuid(),
  code_hash        bytea constraint flow_states_code_hash_key unique check (octet_length(code_hash) = 32),
  challenge        text not null check (challenge ~ '^[A-Za-z0-9._~-]{43,128}$'),
  challenge_method text not null check (challenge_method in ('s256', 'plain')),
  method           text not null constraint flow_states_method_max_length check (length(method) <= 50),
  user_id          bigint constraint flow_states_user_id_fkey references auth.users on delete cascade,
  sealed           bytea,
  created_at       timestamptz not null default now(),
  expires_at       timestamptz not null check (expires_at > created_at)
);
create index on auth.flow_states (user_id);
create index on auth.flow_states (expires_at);
alter table auth.flow_states enable row level security;
alter table auth.mail_tokens
  drop constraint mail_tokens_purpose_check,
  add constraint mail_tokens_purpose_check check (purpose in (
    'reset', 'verify', 'change',
    'signup', 'invite', 'magiclink', 'recovery', 'email_change_current', 'email_change_new', 'reauthentication', 'sms', 'phone_change'
  )),
  add column code_hash bytea check (octet_length(code_hash) = 32),
  add column attempts smallint not null default 0,
  add column new_email text constraint mail_tokens_new_email_max_length check (length(new_email) <= 254),
  add column flow_id uuid constraint mail_tokens_flow_id_fkey references auth.flow_states on delete set null,
  add column is_pkce boolean not null default false,
  add column used_at timestamptz;
create index on auth.mail_tokens (lower(email)) where purpose in ('email_change_new', 'phone_change');
create index on auth.mail_tokens (flow_id);

alter table auth.mfa_backup_codes drop constraint if exists mfa_backup_codes_user_id_fkey;
alter table auth.mfa_factors drop constraint if exists mfa_factors_pkey;
alter table auth.mfa_factors
  add column id uuid not null default gen_random_uuid(),
  add column factor_type text not null default 'totp',
  add column friendly_name text not null default '',
  add column updated_at timestamptz not null default now(),
  add column last_challenged_at timestamptz;
alter table auth.mfa_factors
  alter column factor_type drop default,
  alter column secret drop not null;
alter table auth.mfa_factors
  add constraint mfa_factors_pkey primary key (id),
  add constraint mfa_factors_factor_type_check check (factor_type in ('totp', 'webauthn')),
  add constraint mfa_factors_friendly_name_max_length check (length(friendly_name) <= 200) not valid,
  add constraint mfa_factors_secret check ((factor_type = 'totp') = (secret is not null));
create index mfa_factors_of_user on auth.mfa_factors (user_id);
create unique index mfa_factors_user_friendly_name_unique
  on auth.mfa_factors (user_id, friendly_name) where friendly_name <> '';
alter table auth.mfa_backup_codes
  add constraint mfa_backup_codes_user_id_fkey foreign key (user_id) references auth.users on delete cascade;
create table auth.mfa_challenges (
  id         uuid primary key default gen_random_uuid(),
  purpose    text not null check (purpose in ('factor', 'passkey_registration', 'passkey_sign_in')),
  factor_id  uuid references auth.mfa_factors on delete cascade,
  user_id    bigint references auth.users on delete cascade,
  -- Base64url; what a security key or passkey signs.
  challenge  text check (length(challenge) <= 200),
  address    inet,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint mfa_challenges_purpose check (
    (purpose = 'factor') = (factor_id is not null) and (purpose = 'passkey_sign_in') = (user_id is null)
  )
);
create index on auth.mfa_challenges (expires_at);
create index on auth.mfa_challenges (factor_id);
create index on auth.mfa_challenges (user_id);
alter table auth.mfa_challenges enable row level security;
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
alter table auth.token_sessions
  add column factor_id uuid,
  add column requires_factor boolean not null default false;
alter table auth.token_sessions
  add constraint token_sessions_factor_id_fkey foreign key (factor_id) references auth.mfa_factors on delete set null;
create index token_sessions_of_factor on auth.token_sessions (factor_id);

do $$
begin
  if not exists (select from pg_roles where rolname = 'supabase_auth_admin') then
    create role supabase_auth_admin nologin;
  end if;
  if not pg_has_role(
    current_user, 'supabase_auth_admin', case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end
  ) then
    execute format('grant supabase_auth_admin to %I', current_user);
  end if;
exception when insufficient_privilege then
  raise warning '% cannot act as supabase_auth_admin, which CLAIMS_HOOK requires', current_user
    using hint = format('As a superuser, run once: grant supabase_auth_admin to %I', current_user);
end $$;

alter table auth.token_sessions add column kept_at timestamptz;
drop function auth.end_sign_ins(bigint);
drop function auth.set_password(bigint, text);

create index users_newest_first on auth.users (created_at desc, user_id desc);

alter table auth.federation_states
  drop constraint federation_states_mode_check,
  add constraint federation_states_mode_check check (mode in ('session', 'token', 'code', 'fragment'));

create or replace function auth.tg_accounts__copy_email() returns trigger as $$
begin
  select users.email into NEW.email from public.users where users.id = NEW.user_id;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
create trigger _050_copy_email before insert on auth.users
  for each row execute function auth.tg_accounts__copy_email();
update auth.users as account set email = users.email from public.users where users.id = account.user_id;

do $$
declare
  v_table text;
  v_column text;
begin
  foreach v_table in array
    '{user_roles,user_permissions,sessions,refresh_tokens,mfa_factors,api_keys,mail_tokens,identities,federation_states,federation_logins,federation_codes}'::text[]
  loop
    v_column := case v_table when 'api_keys' then 'owner_id' else 'user_id' end;
    -- With a table of users, the rows belong to that: a user without an account has some of them, too.
    if not exists (
      select from pg_constraint
      where conrelid = format('auth.%I', v_table)::regclass and contype = 'f' and conname = v_table || '_' || v_column || '_fkey'
    ) then
      execute format(
        'alter table auth.%I add constraint %I foreign key (%I) references auth.users on delete cascade',
        v_table, v_table || '_' || v_column || '_fkey', v_column
      );
    end if;
  end loop;
end $$;

alter table private.tasks add function text;
alter table private.tasks add arguments jsonb not null default '{}';
alter table private.tasks add run_at timestamptz not null default now();
alter table private.tasks add key text;
alter table private.tasks add time_limit interval;
create unique index tasks_waiting_key on private.tasks (owner, key) where status = 'queued';
drop function private.begin_task(uuid);

create index tasks_failed on private.tasks (finished_at) where status = 'failed';

create table api.webhooks (
  id               uuid primary key default gen_random_uuid(),
  name             text not null constraint webhooks_name_key unique
                   constraint webhooks_name_length check (length(name) between 1 and 100),
  table_name       text not null,
  events           text[] not null default '{INSERT,UPDATE,DELETE}'
                   constraint webhooks_events_known check (events <@ '{INSERT,UPDATE,DELETE}' and events <> '{}'),
  "where"          text constraint webhooks_where_length check (length("where") between 1 and 5000),
  url              text not null
                   constraint webhooks_url_form check (url ~ '^https?://[^\s/?#@]+([/?][^\s#]*)?$' and length(url) <= 2000),
  secret           text not null
                   default 'whsec_' || encode(decode(replace(gen_random_uuid() || '' || gen_random_uuid(), '-', ''), 'hex'), 'base64')
                   constraint webhooks_secret_form check (secret ~ '^whsec_[A-Za-z0-9+/]{32,128}={0,2}( whsec_[A-Za-z0-9+/]{32,128}={0,2})?$'),
  role             text not null default current_user,
  claims           jsonb not null default '{}' constraint webhooks_claims_object check (jsonb_typeof(claims) = 'object'),
  is_enabled       boolean not null default true,
  max_attempts     integer not null default 20 constraint webhooks_max_attempts_range check (max_attempts between 1 and 100),
  timeout          interval not null default '10 seconds'
                   constraint webhooks_timeout_range check (timeout between '1 second' and '60 seconds'),
  disabled_because text
);
alter table api.webhooks enable row level security;
create table private.webhook_deliveries (
  id          bigint generated always as identity primary key,
  delivery_id uuid not null default gen_random_uuid(),
  webhook_id  uuid not null,
  type        text not null,
  old         json,
  new         json,
  key         text not null,
  moved_to    text,
  recorded_at timestamptz not null default clock_timestamp(),
  state       text not null default 'pending',
  attempts    integer not null default 0,
  due_at      timestamptz,
  last_error  text
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0,
  autovacuum_analyze_threshold = 50000);
create index webhook_deliveries_pending on private.webhook_deliveries (webhook_id, id) where state = 'pending';
create index webhook_deliveries_dead on private.webhook_deliveries (webhook_id, recorded_at) where state = 'dead';
create index webhook_deliveries_delayed on private.webhook_deliveries (webhook_id) where due_at is not null;
create index webhook_deliveries_moved on private.webhook_deliveries (webhook_id) where moved_to is not null;
alter table private.webhook_deliveries enable row level security;
create table private.webhook_leases (
  webhook_id uuid primary key,
  holder     uuid not null,
  expires_at timestamptz not null
);
alter table private.webhook_leases enable row level security;
create function private.tg_webhooks__check() returns trigger language plpgsql as 'begin return null; end';
create function private.tg_webhooks__capture() returns trigger language plpgsql as 'begin return null; end';
create trigger _100_check before insert or update on api.webhooks for each row execute function private.tg_webhooks__check();
create trigger _900_capture after insert or update or delete on api.webhooks
  for each row execute function private.tg_webhooks__capture();

alter table auth.mail_tokens
  drop constraint mail_tokens_purpose_check,
  add constraint mail_tokens_purpose_check check (purpose in (
    'reset', 'verify', 'change', 'signup', 'invite', 'magiclink', 'recovery', 'email_change_current', 'email_change_new',
    'reauthentication', 'sms', 'sms_signup', 'phone_change'
  ));

create table api.schedules (
  name        text constraint schedules_pkey primary key constraint schedules_name_length check (length(name) between 1 and 100),
  cron        text not null constraint schedules_cron_max_length check (length(cron) <= 200),
  time_zone   text not null default 'UTC',
  function    text not null,
  arguments   jsonb not null default '{}' constraint schedules_arguments_object check (jsonb_typeof(arguments) = 'object'),
  role        text not null,
  claims      jsonb not null default '{}' constraint schedules_claims_object check (jsonb_typeof(claims) = 'object'),
  is_enabled  boolean not null default true,
  time_limit  interval constraint schedules_time_limit_range check (time_limit between '1 second' and '1 day'),
  catch_up    boolean not null default false,
  changed_at  timestamptz not null default now(),
  next_run_at timestamptz
);
create index on api.schedules (role);
alter table api.schedules enable row level security;
create policy members_all on api.schedules
  using (pg_has_role(to_regrole(quote_ident(role)), 'member')) with check (pg_has_role(to_regrole(quote_ident(role)), 'member'));
create table api.schedule_runs (
  schedule    text not null constraint schedule_runs_schedule_fkey
                references api.schedules on update cascade on delete cascade,
  planned_at  timestamptz not null,
  status      text not null constraint schedule_runs_status_known
                check (status in ('queued', 'running', 'done', 'failed', 'skipped', 'missed')),
  task        uuid,
  started_at  timestamptz,
  finished_at timestamptz,
  error       jsonb,
  constraint schedule_runs_pkey primary key (schedule, planned_at)
);
create unique index schedule_runs_task on api.schedule_runs (task) where task is not null;
create index on api.schedule_runs (planned_at);
create index schedule_runs_unfinished on api.schedule_runs (schedule) where status in ('queued', 'running');
create index schedule_runs_done on api.schedule_runs (schedule, planned_at) where status = 'done';
alter table api.schedule_runs enable row level security;
create policy members_select on api.schedule_runs for select
  using (exists (select from api.schedules where schedules.name = schedule_runs.schedule));
create table private.schedule_clock (
  is_only   boolean primary key default true check (is_only),
  processed timestamptz not null default date_trunc('minute', now())
);
insert into private.schedule_clock default values;
alter table private.schedule_clock enable row level security;
create function private.tg__check_schedule_role() returns trigger language plpgsql as 'begin return null; end';
create function private.tg__check_schedule() returns trigger language plpgsql as 'begin return null; end';
create trigger _100_check_role before insert or update of role, function, arguments, claims, cron, time_zone, is_enabled
  on api.schedules for each row execute function private.tg__check_schedule_role();
create trigger _200_check before insert or update of role, function, arguments, cron, time_zone, is_enabled
  on api.schedules for each row execute function private.tg__check_schedule();
create function private.tg__follow_schedule_run() returns trigger language plpgsql as 'begin return null; end';
create trigger _500_follow_run after update of status on private.tasks
  for each row when (NEW.function is not null) execute function private.tg__follow_schedule_run();
create trigger _500_end_run after delete on private.tasks
  for each row when (OLD.function is not null and OLD.finished_at is null) execute function private.tg__follow_schedule_run();

alter table private.webhook_leases
  alter column holder drop not null,
  add column delivered_at timestamptz;
