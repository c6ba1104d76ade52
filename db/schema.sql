-- The schema as it is, to read and to compare. Made by: npm run migrate -- dump

-- schema api
create schema api;
grant usage on schema api to anon, authenticated, service_role;
comment on schema api is 'Versions of the conventional interface, and helpers for its responses.';

-- schema auth
create schema auth;
grant usage on schema auth to anon, authenticated, service_role, supabase_auth_admin;
comment on schema auth is 'Helpers for policies about the caller, and closed tables about credentials.';

-- schema content_service
create schema content_service;
grant usage on schema content_service to authenticator;
comment on schema content_service is 'Internal functions of triggers, policies and indexes, and tables of the service itself.';

-- schema extensions
create schema extensions;
grant usage on schema extensions to anon, authenticated, service_role;
comment on schema extensions is 'Extensions, apart from the tables that are served.';

-- schema public
create schema public;
grant usage on schema public to anon, authenticated, service_role;
comment on schema public is 'standard public schema';

-- schema realtime
create schema realtime;
grant usage on schema realtime to anon, authenticated, authenticator, service_role;
comment on schema realtime is 'Channels: policies of private ones, and broadcasts from SQL.';

-- schema storage
create schema storage;
grant usage on schema storage to anon, authenticated, service_role;
comment on schema storage is 'Files: buckets, objects and helpers for their policies.';

-- extension pg_trgm
create extension pg_trgm with schema extensions;

-- default privileges
alter default privileges in schema extensions grant execute on functions to public;
alter default privileges revoke execute on functions from public;

-- type auth.client_info
create type auth.client_info as (
  address inet,
  user_agent text,
  request_id text,
  actor bigint
);
comment on type auth.client_info is 'The client of a request, for the audit log and throttling, and the acting user if it is not the affected one.';

-- type public.article_status
create type public.article_status as enum ('DRAFT', 'PUBLISHED', 'ARCHIVED');
comment on type public.article_status is 'Where an article stands: DRAFT being written, PUBLISHED finished, ARCHIVED kept for the record.';

-- type public.field_error
create type public.field_error as (
  field text,
  message text
);
comment on column public.field_error.field is '@notNull
The name of the field.';
comment on column public.field_error.message is '@notNull
What to do about it.';
comment on type public.field_error is 'One field of the input and what is wrong with it.';

-- type public.mutation_result
create type public.mutation_result as (
  success boolean,
  message text,
  article public.articles,
  errors public.field_error[]
);
comment on column public.mutation_result.article is 'The article, when it was done.';
comment on column public.mutation_result.errors is '@notNullItems
The faults of the input, when it was not.';
comment on column public.mutation_result.message is 'What happened, in a sentence.';
comment on column public.mutation_result.success is '@notNull
Whether it was done.';
comment on type public.mutation_result is 'How a mutation went, for a caller who wants faults as data.';

-- sequence content_service.event_number
create sequence content_service.event_number as bigint start with 1 increment by 1 minvalue 1 maxvalue 9223372036854775807 cache 1;
comment on sequence content_service.event_number is 'Numbers the events that are sent on channel graphql.';

-- sequence content_service.events_awaited_until
create sequence content_service.events_awaited_until as bigint start with 1 increment by 1 minvalue 1 maxvalue 9223372036854775807 cache 1;
comment on sequence content_service.events_awaited_until is 'Until when events are emitted, in seconds since 1970.';

-- table api.schedule_runs
create table api.schedule_runs (
  schedule text not null,
  planned_at timestamp with time zone not null,
  status text not null,
  task uuid,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  error jsonb,
  constraint content_service_schedule_runs_pkey PRIMARY KEY (schedule, planned_at),
  constraint content_service_schedule_runs_status_known CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text, 'skipped'::text, 'missed'::text]))),
  constraint content_service_schedule_runs_schedule_fkey FOREIGN KEY (schedule) REFERENCES api.schedules(name) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX content_service_schedule_runs_done ON api.schedule_runs USING btree (schedule, planned_at) WHERE (status = 'done'::text);
CREATE INDEX content_service_schedule_runs_planned_at_idx ON api.schedule_runs USING btree (planned_at);
CREATE UNIQUE INDEX content_service_schedule_runs_task ON api.schedule_runs USING btree (task) WHERE (task IS NOT NULL);
CREATE UNIQUE INDEX content_service_schedule_runs_unfinished ON api.schedule_runs USING btree (schedule) WHERE (status = ANY (ARRAY['queued'::text, 'running'::text]));
alter table api.schedule_runs enable row level security;
create policy members_select on api.schedule_runs for select to public using ((EXISTS ( SELECT
   FROM api.schedules
  WHERE (schedules.name = schedule_runs.schedule))));
comment on column api.schedule_runs.error is 'Why it failed.';
comment on column api.schedule_runs.finished_at is 'When it was done or had failed.';
comment on column api.schedule_runs.planned_at is 'The time of the schedule that this run is for.';
comment on column api.schedule_runs.schedule is 'The schedule.';
comment on column api.schedule_runs.started_at is 'When the latest attempt began.';
comment on column api.schedule_runs.status is 'queued, running, done, failed; skipped: the previous run was unfinished; missed: no gateway ran at that time.';
comment on column api.schedule_runs.task is 'The task that calls the function.';
comment on constraint content_service_schedule_runs_pkey on api.schedule_runs is 'This time of the schedule was run already.';
comment on constraint content_service_schedule_runs_schedule_fkey on api.schedule_runs is 'The schedule must exist.';
comment on constraint content_service_schedule_runs_status_known on api.schedule_runs is 'Unknown status.';
comment on table api.schedule_runs is '@sample none
@anonymize empty
The runs of the last seven days, and at least the last hundred of each schedule.';

-- table api.schedules
create table api.schedules (
  name text not null,
  cron text not null,
  time_zone text default 'UTC'::text not null,
  function text not null,
  arguments jsonb default '{}'::jsonb not null,
  role text not null,
  claims jsonb default '{}'::jsonb not null,
  is_enabled boolean default true not null,
  time_limit interval,
  catch_up boolean default false not null,
  changed_at timestamp with time zone default now() not null,
  next_run_at timestamp with time zone,
  constraint content_service_schedules_pkey PRIMARY KEY (name),
  constraint content_service_schedules_arguments_object CHECK ((jsonb_typeof(arguments) = 'object'::text)),
  constraint content_service_schedules_claims_object CHECK ((jsonb_typeof(claims) = 'object'::text)),
  constraint content_service_schedules_cron_max_length CHECK ((length(cron) <= 200)),
  constraint content_service_schedules_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint content_service_schedules_time_limit_range CHECK (((time_limit >= '00:00:01'::interval) AND (time_limit <= '1 day'::interval)))
);
CREATE INDEX content_service_schedules_role_idx ON api.schedules USING btree (role);
CREATE TRIGGER _100_content_service_check_role BEFORE INSERT OR UPDATE OF role, function, arguments, claims, cron, time_zone, is_enabled ON api.schedules FOR EACH ROW EXECUTE FUNCTION content_service.tg__check_schedule_role();
CREATE TRIGGER _200_content_service_check BEFORE INSERT OR UPDATE OF role, function, arguments, cron, time_zone, is_enabled ON api.schedules FOR EACH ROW EXECUTE FUNCTION content_service.tg__check_schedule();
alter table api.schedules enable row level security;
create policy members_all on api.schedules for all to public using (pg_has_role((to_regrole(quote_ident(role)))::oid, 'member'::text)) with check (pg_has_role((to_regrole(quote_ident(role)))::oid, 'member'::text));
comment on column api.schedules.arguments is 'The named arguments of the function, as an object.';
comment on column api.schedules.catch_up is 'Whether the last one of the runs that were missed while no gateway ran is made up for, however long ago it was.';
comment on column api.schedules.changed_at is 'When its times were last changed. Earlier times are not run.';
comment on column api.schedules.claims is 'The claims that policies see, such as {"sub": "…"}.';
comment on column api.schedules.cron is 'Minute, hour, day, month and weekday, such as 30 3 * * *; or @hourly, @daily, @weekly, @monthly, @yearly.';
comment on column api.schedules.function is 'The function to call, with its schema.';
comment on column api.schedules.is_enabled is 'Whether the schedule runs.';
comment on column api.schedules.name is 'Identifies the schedule in its history, the log and the metrics.';
comment on column api.schedules.next_run_at is 'The first time that was not processed yet. Set by the service, within a minute after a change; null if there is none.';
comment on column api.schedules.role is 'The role that the function runs as. Who writes the schedule must be a member of it.';
comment on column api.schedules.time_limit is 'How long a run may take, within TASK_TIMEOUT_SECONDS; null for that limit.';
comment on column api.schedules.time_zone is 'The time zone of the cron text, such as Europe/Berlin.';
comment on constraint content_service_schedules_arguments_object on api.schedules is 'Arguments are an object, such as {"days": 30}.';
comment on constraint content_service_schedules_claims_object on api.schedules is 'Claims are an object, such as {"sub": "…"}.';
comment on constraint content_service_schedules_cron_max_length on api.schedules is 'A cron text has at most 200 characters.';
comment on constraint content_service_schedules_name_length on api.schedules is 'A name has 1 to 100 characters.';
comment on constraint content_service_schedules_pkey on api.schedules is 'There is a schedule with this name already.';
comment on constraint content_service_schedules_time_limit_range on api.schedules is 'A time limit is between one second and one day.';
comment on table api.schedules is '@sample all
@anonymize empty
Functions that run at certain times, once over all gateways.';

-- table api.versions
create table api.versions (
  number integer not null,
  status text not null,
  sunset timestamp with time zone,
  successor integer,
  migration_guide text,
  constraint content_service_versions_pkey PRIMARY KEY (number),
  constraint content_service_versions_check CHECK ((successor > number)),
  constraint content_service_versions_number_check CHECK ((number > 0)),
  constraint content_service_versions_status_check CHECK ((status = ANY (ARRAY['current'::text, 'supported'::text, 'deprecated'::text, 'retired'::text]))),
  constraint content_service_versions_successor_fkey FOREIGN KEY (successor) REFERENCES api.versions(number)
);
CREATE INDEX content_service_versions_successor_idx ON api.versions USING btree (successor);
CREATE UNIQUE INDEX content_service_versions_one_current ON api.versions USING btree (status) WHERE (status = 'current'::text);
alter table api.versions enable row level security;
create policy select_all on api.versions for select to public using (true);
grant select on api.versions to anon, authenticated, service_role;
comment on column api.versions.migration_guide is 'The address of a page that says how to move.';
comment on column api.versions.number is 'The N of /api/vN.';
comment on column api.versions.status is 'current: recommended. supported: older, still corrected. deprecated: going away. retired: answers 410.';
comment on column api.versions.successor is 'The version to move to.';
comment on column api.versions.sunset is 'When it is, or was, retired; null when that is not decided.';
comment on table api.versions is '@sample all
The versions of the conventional interface and how long each is served.';

-- table api.webhooks
create table api.webhooks (
  id uuid default gen_random_uuid() not null,
  name text not null,
  table_name text not null,
  events text[] default '{INSERT,UPDATE,DELETE}'::text[] not null,
  "where" text,
  url text not null,
  secret text default ('whsec_'::text || encode(decode(replace(((gen_random_uuid() || ''::text) || gen_random_uuid()), '-'::text, ''::text), 'hex'::text), 'base64'::text)) not null,
  role text default CURRENT_USER not null,
  claims jsonb default '{}'::jsonb not null,
  is_enabled boolean default true not null,
  max_attempts integer default 20 not null,
  timeout interval default '00:00:10'::interval not null,
  disabled_because text,
  constraint content_service_webhooks_pkey PRIMARY KEY (id),
  constraint content_service_webhooks_name_key UNIQUE (name),
  constraint content_service_webhooks_claims_object CHECK ((jsonb_typeof(claims) = 'object'::text)),
  constraint content_service_webhooks_events_known CHECK (((events <@ '{INSERT,UPDATE,DELETE}'::text[]) AND (events <> '{}'::text[]))),
  constraint content_service_webhooks_max_attempts_range CHECK (((max_attempts >= 1) AND (max_attempts <= 100))),
  constraint content_service_webhooks_name_length CHECK (((length(name) >= 1) AND (length(name) <= 100))),
  constraint content_service_webhooks_secret_form CHECK ((secret ~ '^whsec_[A-Za-z0-9+/]{32,128}={0,2}( whsec_[A-Za-z0-9+/]{32,128}={0,2})?$'::text)),
  constraint content_service_webhooks_timeout_range CHECK (((timeout >= '00:00:01'::interval) AND (timeout <= '00:01:00'::interval))),
  constraint content_service_webhooks_url_form CHECK (((url ~ '^https?://[^\s/?#@]+([/?][^\s#]*)?$'::text) AND (length(url) <= 2000))),
  constraint content_service_webhooks_where_length CHECK (((length("where") >= 1) AND (length("where") <= 5000)))
);
CREATE TRIGGER _100_content_service_check BEFORE INSERT OR UPDATE ON api.webhooks FOR EACH ROW EXECUTE FUNCTION content_service.tg_webhooks__check();
CREATE TRIGGER _900_content_service_capture AFTER INSERT OR DELETE OR UPDATE ON api.webhooks FOR EACH ROW EXECUTE FUNCTION content_service.tg_webhooks__capture();
alter table api.webhooks enable row level security;
comment on column api.webhooks."where" is 'Which rows are sent, as in a query string: status=eq.paid&total=gt.100. The new row of an update decides; null for all rows.';
comment on column api.webhooks.claims is 'The claims that policies see, besides role.';
comment on column api.webhooks.disabled_because is 'Why the service has stopped sending. Changes are recorded as long as it is enabled. Any update of the row lets it go on.';
comment on column api.webhooks.events is 'INSERT, UPDATE and DELETE, or some of them.';
comment on column api.webhooks.id is 'Names its triggers and its deliveries.';
comment on column api.webhooks.is_enabled is 'Whether changes are recorded and sent.';
comment on column api.webhooks.max_attempts is 'After so many attempts a delivery is dead, until it is replayed.';
comment on column api.webhooks.name is 'What operators call it.';
comment on column api.webhooks.role is 'The role whose policies and privileges decide which rows and columns are sent.';
comment on column api.webhooks.secret is 'Signs the requests; two, separated by a space, while it is rotated.';
comment on column api.webhooks.table_name is 'The table whose changes are sent, with its schema.';
comment on column api.webhooks.timeout is 'How long the receiver may take.';
comment on column api.webhooks.url is 'Where requests are sent.';
comment on table api.webhooks is '@sample all
@anonymize empty
Where changes of rows are sent to.';

-- table auth.account_settings
create table auth.account_settings (
  is_only boolean default true not null,
  sign_ups boolean not null,
  constraint content_service_account_settings_pkey PRIMARY KEY (is_only),
  constraint content_service_account_settings_is_only CHECK (is_only)
);
alter table auth.account_settings enable row level security;
comment on table auth.account_settings is '@sample all
Settings of the service that rules of the database need, as of its last start.';

-- table auth.api_keys
create table auth.api_keys (
  id bigint generated always as identity not null,
  key_hash bytea not null,
  prefix text not null,
  role text not null,
  owner_id bigint,
  name text default ''::text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  constraint content_service_api_keys_pkey PRIMARY KEY (id),
  constraint content_service_api_keys_key_hash_key UNIQUE (key_hash),
  constraint content_service_api_keys_check CHECK ((expires_at > created_at)),
  constraint content_service_api_keys_key_hash_check CHECK ((octet_length(key_hash) = 32)),
  constraint content_service_api_keys_prefix_check CHECK (((length(prefix) >= 4) AND (length(prefix) <= 12))),
  constraint content_service_api_keys_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES public.users(id) ON DELETE CASCADE,
  constraint content_service_api_keys_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE
);
CREATE INDEX content_service_api_keys_owner_id_idx ON auth.api_keys USING btree (owner_id);
CREATE INDEX content_service_api_keys_role_idx ON auth.api_keys USING btree (role);
alter table auth.api_keys enable row level security;
comment on column auth.api_keys.expires_at is 'When it expires; null if never.';
comment on column auth.api_keys.owner_id is 'The user for whom it acts; null for none.';
comment on column auth.api_keys.prefix is 'The key''s first characters, to tell keys apart in a list.';
comment on table auth.api_keys is '@sample with owner_id
@anonymize empty
Keys of programs, as SHA-256 only.';

-- table auth.audit_log
create table auth.audit_log (
  id bigint generated always as identity not null,
  at timestamp with time zone default now() not null,
  event text not null,
  user_id bigint,
  address inet,
  request_id text,
  details jsonb default '{}'::jsonb not null,
  constraint content_service_audit_log_pkey PRIMARY KEY (id),
  constraint content_service_audit_log_request_id_max_length CHECK ((length(request_id) <= 128)) NOT VALID
);
CREATE INDEX content_service_audit_log_at_idx ON auth.audit_log USING brin (at);
CREATE INDEX content_service_audit_log_sign_ins ON auth.audit_log USING btree (user_id, at) WHERE (event = ANY (ARRAY['session.created'::text, 'refresh_token.created'::text]));
CREATE INDEX content_service_audit_log_user_id_at_idx ON auth.audit_log USING btree (user_id, at);
alter table auth.audit_log enable row level security;
comment on column auth.audit_log.details is 'More about the event; never a secret.';
comment on column auth.audit_log.event is 'The event as noun.verb: session.created, password.changed.';
comment on table auth.audit_log is '@sample none
@anonymize empty
Sign-ins, failures, and changes of passwords, factors and keys.';

-- table auth.deleted_accounts
create table auth.deleted_accounts (
  user_id bigint not null,
  deleted_at timestamp with time zone default now() not null,
  constraint content_service_deleted_accounts_pkey PRIMARY KEY (user_id)
);
CREATE INDEX content_service_deleted_accounts_deleted_at_idx ON auth.deleted_accounts USING btree (deleted_at);
alter table auth.deleted_accounts enable row level security;
comment on table auth.deleted_accounts is '@sample none
@anonymize empty
Deleted accounts, kept for a day: longer than the tokens that still name them.';

-- table auth.email_templates
create table auth.email_templates (
  name text not null,
  subject text not null,
  html text,
  text text,
  saved_by bigint,
  saved_at timestamp with time zone default now() not null,
  constraint content_service_email_templates_pkey PRIMARY KEY (name),
  constraint content_service_email_templates_body_check CHECK ((num_nonnulls(html, text) > 0)),
  constraint content_service_email_templates_html_max_length CHECK ((length(html) <= 30000)),
  constraint content_service_email_templates_name_check CHECK ((name = ANY (ARRAY['confirmation'::text, 'invite'::text, 'invitation'::text, 'magic_link'::text, 'recovery'::text, 'email_change'::text, 'reauthentication'::text]))),
  constraint content_service_email_templates_subject_length CHECK (((length(subject) >= 1) AND (length(subject) <= 500))),
  constraint content_service_email_templates_text_max_length CHECK ((length(text) <= 30000))
);
alter table auth.email_templates enable row level security;
comment on column auth.email_templates.html is 'The e-mail in HTML; null if it is sent as text alone.';
comment on column auth.email_templates.name is 'The e-mail, by the name of its template at Supabase.';
comment on column auth.email_templates.saved_at is 'When it was saved last.';
comment on column auth.email_templates.saved_by is 'The administrator who saved it; null where nobody signs in.';
comment on column auth.email_templates.subject is 'The subject, with variables such as {{ .Email }}.';
comment on column auth.email_templates.text is 'The e-mail as text; null if it is made from the HTML.';
comment on table auth.email_templates is '@sample all
@anonymize empty
E-mails that administrators have written in place of the default ones.';

-- table auth.federation_codes
create table auth.federation_codes (
  code_hash bytea not null,
  user_id bigint not null,
  code_challenge text,
  expires_at timestamp with time zone not null,
  constraint content_service_federation_codes_pkey PRIMARY KEY (code_hash),
  constraint content_service_federation_codes_code_hash_check CHECK ((octet_length(code_hash) = 32)),
  constraint content_service_federation_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_federation_codes_expires_at_idx ON auth.federation_codes USING btree (expires_at);
CREATE INDEX content_service_federation_codes_user_id_idx ON auth.federation_codes USING btree (user_id);
alter table auth.federation_codes enable row level security;
comment on table auth.federation_codes is '@sample none
@anonymize empty
Codes that a program exchanges for its first pair of tokens, once and within a minute.';

-- table auth.federation_logins
create table auth.federation_logins (
  browser_hash bytea not null,
  provider text not null,
  user_id bigint not null,
  mode text not null,
  redirect_to text,
  code_challenge text,
  sign_out_hint text,
  expires_at timestamp with time zone not null,
  constraint content_service_federation_logins_pkey PRIMARY KEY (browser_hash),
  constraint content_service_federation_logins_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
  constraint content_service_federation_logins_mode_check CHECK ((mode = ANY (ARRAY['session'::text, 'token'::text]))),
  constraint content_service_federation_logins_provider_fkey FOREIGN KEY (provider) REFERENCES auth.providers(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_federation_logins_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_federation_logins_expires_at_idx ON auth.federation_logins USING btree (expires_at);
CREATE INDEX content_service_federation_logins_provider_idx ON auth.federation_logins USING btree (provider);
CREATE INDEX content_service_federation_logins_user_id_idx ON auth.federation_logins USING btree (user_id);
alter table auth.federation_logins enable row level security;
comment on column auth.federation_logins.sign_out_hint is 'Encrypted with the browser''s cookie.';
comment on table auth.federation_logins is '@sample none
@anonymize empty
Users who returned from a provider and still have to enter a code of the authenticator app.';

-- table auth.federation_replays
create table auth.federation_replays (
  issuer text not null,
  message_id text not null,
  expires_at timestamp with time zone not null,
  constraint content_service_federation_replays_pkey PRIMARY KEY (issuer, message_id),
  constraint content_service_federation_replays_issuer_fkey FOREIGN KEY (issuer) REFERENCES auth.providers(issuer) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX content_service_federation_replays_expires_at_idx ON auth.federation_replays USING btree (expires_at);
alter table auth.federation_replays enable row level security;
comment on table auth.federation_replays is '@sample none
@anonymize empty
Assertions that were accepted, kept until they expire: each is accepted once.';

-- table auth.federation_sessions
create table auth.federation_sessions (
  session_hash bytea not null,
  provider text not null,
  subject text not null,
  session_index text,
  sign_out_hint text,
  constraint content_service_federation_sessions_pkey PRIMARY KEY (session_hash),
  constraint content_service_federation_sessions_provider_fkey FOREIGN KEY (provider) REFERENCES auth.providers(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_federation_sessions_session_hash_fkey FOREIGN KEY (session_hash) REFERENCES auth.sessions(id_hash) ON DELETE CASCADE
);
CREATE INDEX content_service_federation_sessions_provider_subject_idx ON auth.federation_sessions USING btree (provider, subject);
alter table auth.federation_sessions enable row level security;
comment on column auth.federation_sessions.sign_out_hint is 'Sent to the provider at logout; encrypted with the session''s id, which only the browser has.';
comment on column auth.federation_sessions.subject is 'The subject that the provider names in a logout request.';
comment on table auth.federation_sessions is '@sample none
@anonymize empty
The provider through which a session was opened, so that both can be ended together.';

-- table auth.federation_states
create table auth.federation_states (
  state_hash bytea not null,
  provider text not null,
  nonce text,
  code_verifier text,
  request_id text,
  redirect_to text,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  purpose text not null,
  browser_hash bytea not null,
  mode text not null,
  code_challenge text,
  user_id bigint,
  constraint content_service_federation_states_pkey PRIMARY KEY (state_hash),
  constraint content_service_federation_states_browser_hash_check CHECK ((octet_length(browser_hash) = 32)),
  constraint content_service_federation_states_code_challenge_max_length CHECK ((length(code_challenge) <= 128)) NOT VALID,
  constraint content_service_federation_states_mode_check CHECK ((mode = ANY (ARRAY['session'::text, 'token'::text, 'code'::text, 'fragment'::text]))),
  constraint content_service_federation_states_purpose_check CHECK ((purpose = ANY (ARRAY['sign-in'::text, 'sign-out'::text]))),
  constraint content_service_federation_states_redirect_to_max_length CHECK ((length(redirect_to) <= 4096)) NOT VALID,
  constraint content_service_federation_states_state_hash_check CHECK ((octet_length(state_hash) = 32)),
  constraint content_service_federation_states_provider_fkey FOREIGN KEY (provider) REFERENCES auth.providers(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_federation_states_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_federation_states_expires_at_idx ON auth.federation_states USING btree (expires_at);
CREATE INDEX content_service_federation_states_provider_idx ON auth.federation_states USING btree (provider);
CREATE INDEX content_service_federation_states_user_id_idx ON auth.federation_states USING btree (user_id);
alter table auth.federation_states enable row level security;
comment on column auth.federation_states.browser_hash is 'SHA-256 of the browser''s cookie: no other browser may return.';
comment on column auth.federation_states.code_challenge is 'The PKCE challenge (RFC 7636) of the program that requested tokens.';
comment on column auth.federation_states.code_verifier is 'PKCE, RFC 7636.';
comment on column auth.federation_states.mode is 'What is opened: a session, or a pair of tokens; for clients of Supabase Auth by a code (PKCE), or in the fragment of the redirect.';
comment on column auth.federation_states.request_id is 'The id of a SAML request, which the response must name.';
comment on column auth.federation_states.user_id is 'The user who is signed in already and links an identity.';
comment on table auth.federation_states is '@sample none
@anonymize empty
Sign-ins in progress: inserted when the browser is sent to the provider, deleted when it returns.';

-- table auth.flow_states
create table auth.flow_states (
  id uuid default gen_random_uuid() not null,
  code_hash bytea,
  challenge text not null,
  challenge_method text not null,
  method text not null,
  user_id bigint,
  sealed bytea,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint content_service_flow_states_pkey PRIMARY KEY (id),
  constraint content_service_flow_states_code_hash_key UNIQUE (code_hash),
  constraint content_service_flow_states_challenge_check CHECK ((challenge ~ '^[A-Za-z0-9._~-]{43,128}$'::text)),
  constraint content_service_flow_states_challenge_method_check CHECK ((challenge_method = ANY (ARRAY['s256'::text, 'plain'::text]))),
  constraint content_service_flow_states_check CHECK ((expires_at > created_at)),
  constraint content_service_flow_states_code_hash_check CHECK ((octet_length(code_hash) = 32)),
  constraint content_service_flow_states_method_max_length CHECK ((length(method) <= 50)),
  constraint content_service_flow_states_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_flow_states_expires_at_idx ON auth.flow_states USING btree (expires_at);
CREATE INDEX content_service_flow_states_user_id_idx ON auth.flow_states USING btree (user_id);
alter table auth.flow_states enable row level security;
comment on column auth.flow_states.challenge is 'What the client proves to know the verifier of.';
comment on column auth.flow_states.code_hash is 'SHA-256 of the code; null until the user has signed in.';
comment on column auth.flow_states.method is 'How the user signs in, for the claim amr.';
comment on column auth.flow_states.sealed is 'What the exchange returns besides the tokens, encrypted with a key that only the bearer of the code can derive.';
comment on table auth.flow_states is '@sample none
@anonymize empty
Sign-ins that end with a code, which only the client that began them can exchange for tokens (PKCE, RFC 7636).';

-- table auth.identities
create table auth.identities (
  issuer text not null,
  subject text not null,
  user_id bigint not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  is_vouched boolean default false not null,
  constraint content_service_identities_pkey PRIMARY KEY (issuer, subject),
  constraint content_service_identities_subject_max_length CHECK ((octet_length(subject) <= 1024)) NOT VALID,
  constraint content_service_identities_issuer_fkey FOREIGN KEY (issuer) REFERENCES auth.providers(issuer) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_identities_user_id_idx ON auth.identities USING btree (user_id);
alter table auth.identities enable row level security;
comment on column auth.identities.is_vouched is 'Whether the provider verified the address, or the user was signed in when it was linked. Reset when a password is set by mail.';
comment on table auth.identities is '@sample with user_id
@anonymize empty
Maps a subject of an issuer to a user.';

-- table auth.login_throttle
create table auth.login_throttle (
  scope text not null,
  key text not null,
  failures integer default 1 not null,
  window_started_at timestamp with time zone default now() not null,
  pending integer default 0 not null,
  constraint content_service_login_throttle_pkey PRIMARY KEY (scope, key),
  constraint content_service_login_throttle_counts CHECK (((failures >= pending) AND (pending >= 0))),
  constraint content_service_login_throttle_key_max_length CHECK ((length(key) <= 600)) NOT VALID,
  constraint content_service_login_throttle_scope_check CHECK ((scope = ANY (ARRAY['pair'::text, 'address'::text, 'site'::text, 'user'::text]))) NOT VALID
);
CREATE INDEX content_service_login_throttle_window_started_at_idx ON auth.login_throttle USING btree (window_started_at);
alter table auth.login_throttle enable row level security;
comment on column auth.login_throttle.failures is 'Attempts that failed, and those in progress.';
comment on column auth.login_throttle.key is 'User name and address, address, site (IPv6 /48), or user name; names in lower case.';
comment on column auth.login_throttle.pending is 'Attempts in progress.';
comment on column auth.login_throttle.window_started_at is 'When the first of them was made; they count for 15 minutes.';
comment on table auth.login_throttle is '@sample none
@anonymize empty
Failed sign-ins of the current window.';

-- table auth.mail_tokens
create table auth.mail_tokens (
  token_hash bytea not null,
  purpose text not null,
  user_id bigint not null,
  email text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  code_hash bytea,
  attempts smallint default 0 not null,
  new_email text,
  flow_id uuid,
  is_pkce boolean default false not null,
  used_at timestamp with time zone,
  password_hash text,
  user_name text,
  user_metadata jsonb,
  role text,
  inviter_id bigint,
  constraint content_service_mail_tokens_pkey PRIMARY KEY (token_hash),
  constraint content_service_mail_tokens_check CHECK ((expires_at > created_at)),
  constraint content_service_mail_tokens_code_hash_check CHECK ((octet_length(code_hash) = 32)),
  constraint content_service_mail_tokens_email_max_length CHECK ((length(email) <= 254)) NOT VALID,
  constraint content_service_mail_tokens_new_email_max_length CHECK ((length(new_email) <= 254)),
  constraint content_service_mail_tokens_password_hash_check CHECK ((password_hash ~~ '$%'::text)),
  constraint content_service_mail_tokens_purpose_check CHECK ((purpose = ANY (ARRAY['reset'::text, 'verify'::text, 'change'::text, 'signup'::text, 'invite'::text, 'invitation'::text, 'magiclink'::text, 'recovery'::text, 'email_change_current'::text, 'email_change_new'::text, 'reauthentication'::text, 'sms'::text, 'sms_signup'::text, 'phone_change'::text]))),
  constraint content_service_mail_tokens_role_check CHECK (((role IS NOT NULL) = (purpose = 'invitation'::text))),
  constraint content_service_mail_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint content_service_mail_tokens_user_metadata_max_length CHECK ((octet_length((user_metadata)::text) <= 8192)),
  constraint content_service_mail_tokens_user_name_max_length CHECK ((length(user_name) <= 200)),
  constraint content_service_mail_tokens_flow_id_fkey FOREIGN KEY (flow_id) REFERENCES auth.flow_states(id) ON DELETE SET NULL,
  constraint content_service_mail_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_mail_tokens_expires_at_idx ON auth.mail_tokens USING btree (expires_at);
CREATE INDEX content_service_mail_tokens_flow_id_idx ON auth.mail_tokens USING btree (flow_id);
CREATE INDEX content_service_mail_tokens_lower_idx ON auth.mail_tokens USING btree (lower(email)) WHERE (purpose = ANY (ARRAY['email_change_new'::text, 'phone_change'::text]));
CREATE INDEX content_service_mail_tokens_user_id_purpose_idx ON auth.mail_tokens USING btree (user_id, purpose);
alter table auth.mail_tokens enable row level security;
comment on column auth.mail_tokens.attempts is 'How many wrong codes were tried; after five the code is invalid, the link is not.';
comment on column auth.mail_tokens.code_hash is 'The code of the same mail: an HMAC whose key the database does not have, because six digits could be guessed from a hash. Null without a code.';
comment on column auth.mail_tokens.email is 'Where it was sent: an e-mail address, or a phone number. Unless the purpose is a change, the token is invalid when this is no longer the user''s.';
comment on column auth.mail_tokens.inviter_id is 'The administrator who has invited the user, whose right to do so is asked again when the invitation is accepted; null if it was none with an account.';
comment on column auth.mail_tokens.is_pkce is 'Whether the link leads to a code for tokens; without flow_id that sign-in has expired.';
comment on column auth.mail_tokens.new_email is 'The address, or the phone number, that the user changes to.';
comment on column auth.mail_tokens.password_hash is 'The password of the sign-up that this mail proves: the account has it afterwards.';
comment on column auth.mail_tokens.role is 'The role that the user gets by accepting the invitation.';
comment on column auth.mail_tokens.used_at is 'When one side of a change of address was confirmed, which waits for the other.';
comment on column auth.mail_tokens.user_metadata is 'The metadata that this sign-up gives.';
comment on column auth.mail_tokens.user_name is 'The name that this sign-up gives.';
comment on table auth.mail_tokens is '@sample none
@anonymize empty
Links and codes sent by mail, as hashes only: to sign in, to set a password, or to verify or change the address. Each works once.';

-- table auth.mfa_backup_codes
create table auth.mfa_backup_codes (
  user_id bigint not null,
  code_hash text not null,
  created_at timestamp with time zone default now() not null,
  used_at timestamp with time zone,
  constraint content_service_mfa_backup_codes_pkey PRIMARY KEY (user_id, code_hash),
  constraint content_service_mfa_backup_codes_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
alter table auth.mfa_backup_codes enable row level security;
comment on column auth.mfa_backup_codes.code_hash is 'A PHC string. The codes of a user share its salt, so that one hash finds the code among them.';
comment on table auth.mfa_backup_codes is '@sample with user_id
@anonymize empty
Codes for users who lost the app. Each works once.';

-- table auth.mfa_challenges
create table auth.mfa_challenges (
  id uuid default gen_random_uuid() not null,
  purpose text not null,
  factor_id uuid,
  user_id bigint,
  challenge text,
  address inet,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint content_service_mfa_challenges_pkey PRIMARY KEY (id),
  constraint content_service_mfa_challenges_challenge_check CHECK ((length(challenge) <= 200)),
  constraint content_service_mfa_challenges_purpose CHECK ((((purpose = 'factor'::text) = (factor_id IS NOT NULL)) AND ((purpose = 'passkey_sign_in'::text) = (user_id IS NULL)))),
  constraint content_service_mfa_challenges_purpose_check CHECK ((purpose = ANY (ARRAY['factor'::text, 'passkey_registration'::text, 'passkey_sign_in'::text]))),
  constraint content_service_mfa_challenges_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES auth.mfa_factors(id) ON DELETE CASCADE,
  constraint content_service_mfa_challenges_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_mfa_challenges_expires_at_idx ON auth.mfa_challenges USING btree (expires_at);
CREATE INDEX content_service_mfa_challenges_factor_id_idx ON auth.mfa_challenges USING btree (factor_id);
CREATE INDEX content_service_mfa_challenges_user_id_idx ON auth.mfa_challenges USING btree (user_id);
alter table auth.mfa_challenges enable row level security;
comment on column auth.mfa_challenges.challenge is 'Null for an authenticator app.';
comment on column auth.mfa_challenges.user_id is 'Null for a sign-in with a passkey: nobody is known yet.';
comment on table auth.mfa_challenges is '@sample none
@anonymize empty
What a client has been asked to prove: a second factor, or a passkey at its registration or at a sign-in. Each is used once.';

-- table auth.mfa_factors
create table auth.mfa_factors (
  user_id bigint not null,
  state text default 'pending'::text not null,
  secret text,
  last_used_step bigint,
  created_at timestamp with time zone default now() not null,
  enabled_at timestamp with time zone,
  id uuid default gen_random_uuid() not null,
  factor_type text not null,
  friendly_name text default ''::text not null,
  updated_at timestamp with time zone default now() not null,
  last_challenged_at timestamp with time zone,
  constraint content_service_mfa_factors_pkey PRIMARY KEY (id),
  constraint content_service_mfa_factors_enabled CHECK (((state = 'enabled'::text) = (enabled_at IS NOT NULL))),
  constraint content_service_mfa_factors_factor_type_check CHECK ((factor_type = ANY (ARRAY['totp'::text, 'webauthn'::text]))),
  constraint content_service_mfa_factors_friendly_name_max_length CHECK ((length(friendly_name) <= 200)) NOT VALID,
  constraint content_service_mfa_factors_secret CHECK (((factor_type = 'totp'::text) = (secret IS NOT NULL))),
  constraint content_service_mfa_factors_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'enabled'::text]))),
  constraint content_service_mfa_factors_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_mfa_factors_of_user ON auth.mfa_factors USING btree (user_id);
CREATE UNIQUE INDEX content_service_mfa_factors_user_friendly_name_unique ON auth.mfa_factors USING btree (user_id, friendly_name) WHERE (friendly_name <> ''::text);
alter table auth.mfa_factors enable row level security;
comment on column auth.mfa_factors.friendly_name is 'The user''s name for it; empty if it has none.';
comment on column auth.mfa_factors.secret is 'The TOTP secret in base32. It cannot be a hash: codes are computed from it. The key of a security key is in auth.passkeys.';
comment on column auth.mfa_factors.state is 'pending until it was verified for the first time; then enabled.';
comment on index auth.content_service_mfa_factors_user_friendly_name_unique is 'A factor with this name already exists.';
comment on table auth.mfa_factors is '@sample with user_id
@anonymize empty
The second factors of users: authenticator apps (TOTP) and security keys (WebAuthn).';

-- table auth.oauth_authorizations
create table auth.oauth_authorizations (
  id uuid default gen_random_uuid() not null,
  client_id text not null,
  redirect_uri text not null,
  scopes text[] not null,
  resource text not null,
  challenge text not null,
  state text,
  nonce text,
  asks_always boolean default false not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  user_id bigint,
  code_hash bytea,
  signed_in_at timestamp with time zone,
  session_id uuid,
  used_at timestamp with time zone,
  network inet default '0.0.0.0'::inet not null,
  constraint content_service_oauth_authorizations_pkey PRIMARY KEY (id),
  constraint content_service_oauth_authorizations_code_hash_key UNIQUE (code_hash),
  constraint content_service_oauth_authorizations_challenge_check CHECK ((challenge ~ '^[A-Za-z0-9_-]{43}$'::text)),
  constraint content_service_oauth_authorizations_check CHECK ((expires_at > created_at)),
  constraint content_service_oauth_authorizations_code_hash_check CHECK ((octet_length(code_hash) = 32)),
  constraint content_service_oauth_authorizations_nonce_length CHECK ((length(nonce) <= 1000)),
  constraint content_service_oauth_authorizations_redirect_uri_length CHECK ((length(redirect_uri) <= 2000)),
  constraint content_service_oauth_authorizations_resource_length CHECK ((length(resource) <= 2000)),
  constraint content_service_oauth_authorizations_scopes_number CHECK (((cardinality(scopes) >= 1) AND (cardinality(scopes) <= 100))),
  constraint content_service_oauth_authorizations_state_length CHECK ((length(state) <= 4000)),
  constraint content_service_oauth_authorizations_client_id_fkey FOREIGN KEY (client_id) REFERENCES auth.oauth_clients(id) ON DELETE CASCADE,
  constraint content_service_oauth_authorizations_session_id_fkey FOREIGN KEY (session_id) REFERENCES auth.token_sessions(id) ON DELETE SET NULL,
  constraint content_service_oauth_authorizations_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_oauth_authorizations_client_id_idx ON auth.oauth_authorizations USING btree (client_id);
CREATE INDEX content_service_oauth_authorizations_expires_at_idx ON auth.oauth_authorizations USING btree (expires_at);
CREATE INDEX content_service_oauth_authorizations_session_id_idx ON auth.oauth_authorizations USING btree (session_id);
CREATE INDEX content_service_oauth_authorizations_unopened ON auth.oauth_authorizations USING btree (client_id, network, created_at) WHERE (user_id IS NULL);
CREATE INDEX content_service_oauth_authorizations_unopened_of_network ON auth.oauth_authorizations USING btree (network, created_at) WHERE (user_id IS NULL);
CREATE INDEX content_service_oauth_authorizations_user_id_idx ON auth.oauth_authorizations USING btree (user_id);
alter table auth.oauth_authorizations enable row level security;
comment on column auth.oauth_authorizations.asks_always is 'Whether the user is asked even if the same was granted before.';
comment on column auth.oauth_authorizations.challenge is 'SHA-256 of what only the application knows (PKCE, RFC 7636).';
comment on column auth.oauth_authorizations.code_hash is 'SHA-256 of the code; null until the user has approved.';
comment on column auth.oauth_authorizations.network is 'The network that has begun it: an IPv4 address, or an IPv6 address''s /64; 0.0.0.0 if it is not known.';
comment on column auth.oauth_authorizations.session_id is 'The sign-in by tokens that the code was exchanged for.';
comment on column auth.oauth_authorizations.signed_in_at is 'When the user who approved had signed in.';
comment on column auth.oauth_authorizations.used_at is 'When the code was exchanged; another use of it ends that sign-in.';
comment on column auth.oauth_authorizations.user_id is 'The first user who has opened it: nobody else may decide.';
comment on table auth.oauth_authorizations is '@sample none
@anonymize empty
Requests of applications for access, for some minutes.';

-- table auth.oauth_clients
create table auth.oauth_clients (
  id text not null,
  name text not null,
  uri text,
  logo_uri text,
  redirect_uris text[] not null,
  grant_types text[] not null,
  scope text,
  auth_method text not null,
  secret_hash bytea,
  registration text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  fresh_until timestamp with time zone,
  constraint content_service_oauth_clients_pkey PRIMARY KEY (id),
  constraint content_service_oauth_clients_auth_method_check CHECK ((auth_method = ANY (ARRAY['none'::text, 'client_secret_basic'::text, 'client_secret_post'::text]))),
  constraint content_service_oauth_clients_document CHECK (((fresh_until IS NULL) = (registration <> 'document'::text))),
  constraint content_service_oauth_clients_grant_types_known CHECK ((grant_types <@ ARRAY['authorization_code'::text, 'refresh_token'::text])),
  constraint content_service_oauth_clients_id_length CHECK (((length(id) >= 1) AND (length(id) <= 2000))),
  constraint content_service_oauth_clients_logo_uri_length CHECK ((length(logo_uri) <= 2000)),
  constraint content_service_oauth_clients_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint content_service_oauth_clients_redirect_uris_length CHECK ((length(array_to_string(redirect_uris, ' '::text)) <= 20000)),
  constraint content_service_oauth_clients_redirect_uris_number CHECK (((cardinality(redirect_uris) >= 1) AND (cardinality(redirect_uris) <= 20))),
  constraint content_service_oauth_clients_registration_check CHECK ((registration = ANY (ARRAY['manual'::text, 'dynamic'::text, 'document'::text]))),
  constraint content_service_oauth_clients_scope_length CHECK ((length(scope) <= 2000)),
  constraint content_service_oauth_clients_secret CHECK (((secret_hash IS NULL) = (auth_method = 'none'::text))),
  constraint content_service_oauth_clients_secret_hash_check CHECK ((octet_length(secret_hash) = 32)),
  constraint content_service_oauth_clients_uri_length CHECK ((length(uri) <= 2000))
);
CREATE INDEX content_service_oauth_clients_newest_first ON auth.oauth_clients USING btree (created_at DESC, id);
CREATE INDEX content_service_oauth_clients_registered ON auth.oauth_clients USING btree (created_at) WHERE (registration <> 'manual'::text);
alter table auth.oauth_clients enable row level security;
comment on column auth.oauth_clients.fresh_until is 'Until when the document need not be read again.';
comment on column auth.oauth_clients.id is 'The client_id: a uuid, or the address of the document that describes the application.';
comment on column auth.oauth_clients.registration is 'Who registered it: an administrator, the application itself, or its document.';
comment on column auth.oauth_clients.scope is 'The scopes that it may ask for, separated by spaces; null: all.';
comment on column auth.oauth_clients.secret_hash is 'SHA-256 of the secret; null for an application that cannot keep one.';
comment on table auth.oauth_clients is '@sample all
@anonymize empty
Applications that may ask users for access.';

-- table auth.oauth_grants
create table auth.oauth_grants (
  id uuid default gen_random_uuid() not null,
  user_id bigint not null,
  client_id text not null,
  scopes text[] not null,
  resource text not null,
  granted_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  constraint content_service_oauth_grants_pkey PRIMARY KEY (id),
  constraint content_service_oauth_grants_user_id_client_id_key UNIQUE (user_id, client_id),
  constraint content_service_oauth_grants_check CHECK ((expires_at > granted_at)),
  constraint content_service_oauth_grants_resource_length CHECK ((length(resource) <= 2000)),
  constraint content_service_oauth_grants_scopes_number CHECK (((cardinality(scopes) >= 1) AND (cardinality(scopes) <= 100))),
  constraint content_service_oauth_grants_client_id_fkey FOREIGN KEY (client_id) REFERENCES auth.oauth_clients(id) ON DELETE CASCADE,
  constraint content_service_oauth_grants_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_oauth_grants_client_id_idx ON auth.oauth_grants USING btree (client_id);
CREATE INDEX content_service_oauth_grants_expires_at_idx ON auth.oauth_grants USING btree (expires_at);
alter table auth.oauth_grants enable row level security;
comment on column auth.oauth_grants.expires_at is 'When the application has to ask again.';
comment on column auth.oauth_grants.resource is 'The address of the resource (RFC 8707) that the latest consent is about.';
comment on table auth.oauth_grants is '@sample with user_id
@anonymize empty
What users have granted to applications: the latest consent of each user and application.';

-- table auth.oauth_sessions
create table auth.oauth_sessions (
  session_id uuid not null,
  grant_id uuid not null,
  scopes text[] not null,
  resource text not null,
  expires_at timestamp with time zone,
  constraint content_service_oauth_sessions_pkey PRIMARY KEY (session_id),
  constraint content_service_oauth_sessions_grant_id_fkey FOREIGN KEY (grant_id) REFERENCES auth.oauth_grants(id) ON DELETE CASCADE,
  constraint content_service_oauth_sessions_session_id_fkey FOREIGN KEY (session_id) REFERENCES auth.token_sessions(id) ON DELETE CASCADE
);
CREATE INDEX content_service_oauth_sessions_grant_id_idx ON auth.oauth_sessions USING btree (grant_id);
alter table auth.oauth_sessions enable row level security;
comment on column auth.oauth_sessions.expires_at is 'When the consent ends that the sign-in began with.';
comment on column auth.oauth_sessions.session_id is 'The sign-in by tokens, whose refresh tokens are the application''s.';
comment on table auth.oauth_sessions is '@sample none
@anonymize empty
Sign-ins by tokens that applications hold, with what their tokens allow.';

-- table auth.passkeys
create table auth.passkeys (
  id uuid default gen_random_uuid() not null,
  user_id bigint not null,
  factor_id uuid,
  friendly_name text default ''::text not null,
  credential_id text not null,
  public_key bytea not null,
  counter bigint default 0 not null,
  transports text[] default '{}'::text[] not null,
  aaguid uuid,
  is_backup_eligible boolean default false not null,
  is_backed_up boolean default false not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone,
  constraint content_service_passkeys_pkey PRIMARY KEY (id),
  constraint content_service_passkeys_credential_id_key UNIQUE (credential_id),
  constraint content_service_passkeys_counter_check CHECK ((counter >= 0)),
  constraint content_service_passkeys_credential_id_check CHECK ((length(credential_id) <= 1400)),
  constraint content_service_passkeys_friendly_name_max_length CHECK ((length(friendly_name) <= 200)) NOT VALID,
  constraint content_service_passkeys_public_key_max_length CHECK ((octet_length(public_key) <= 4096)) NOT VALID,
  constraint content_service_passkeys_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES auth.mfa_factors(id) ON DELETE CASCADE,
  constraint content_service_passkeys_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_passkeys_factor_id_idx ON auth.passkeys USING btree (factor_id);
CREATE INDEX content_service_passkeys_user_id_idx ON auth.passkeys USING btree (user_id);
alter table auth.passkeys enable row level security;
comment on column auth.passkeys.aaguid is 'The model of the authenticator, as far as it tells.';
comment on column auth.passkeys.counter is 'Uses, as the passkey counts them; 0 if it does not.';
comment on column auth.passkeys.factor_id is 'The second factor that it is; null for a passkey that users sign in with.';
comment on column auth.passkeys.is_backed_up is 'Whether it was stored in a cloud account at the last use.';
comment on table auth.passkeys is '@sample with user_id
@anonymize empty
The public keys of passkeys and security keys (WebAuthn).';

-- table auth.permissions
create table auth.permissions (
  name text not null,
  description text not null,
  constraint content_service_permissions_pkey PRIMARY KEY (name),
  constraint content_service_permissions_name_check CHECK ((name ~ '^[a-z][a-z0-9_.:-]*$'::text))
);
alter table auth.permissions enable row level security;
comment on table auth.permissions is '@sample all
Words for the claim permissions, such as articles:review.';

-- table auth.providers
create table auth.providers (
  name text not null,
  kind text not null,
  issuer text not null,
  client_id text,
  client_secret text,
  settings jsonb default '{}'::jsonb not null,
  enabled boolean default true not null,
  created_at timestamp with time zone default now() not null,
  title text,
  sign_ups boolean default true not null,
  trusts_email boolean default false not null,
  trusts_factor boolean default false not null,
  constraint content_service_providers_pkey PRIMARY KEY (name),
  constraint content_service_providers_issuer_key UNIQUE (issuer),
  constraint content_service_providers_client CHECK (((kind = 'saml'::text) OR (client_id IS NOT NULL))),
  constraint content_service_providers_kind_check CHECK ((kind = ANY (ARRAY['oidc'::text, 'oauth2'::text, 'saml'::text]))),
  constraint content_service_providers_name_check CHECK ((name ~ '^[a-z][a-z0-9-]*$'::text)),
  constraint content_service_providers_settings CHECK (
CASE kind
    WHEN 'oauth2'::text THEN (settings ?& '{authorization_endpoint,token_endpoint,userinfo_endpoint}'::text[])
    WHEN 'saml'::text THEN ((settings ? 'entry_point'::text) AND (jsonb_typeof((settings -> 'certificates'::text)) = 'array'::text))
    ELSE true
END),
  constraint content_service_providers_settings_check CHECK ((jsonb_typeof(settings) = 'object'::text)),
  constraint content_service_providers_title_check CHECK ((btrim(title) <> ''::text))
);
alter table auth.providers enable row level security;
comment on column auth.providers.client_id is 'This service''s identifier at the provider. SAML: the entity id; without one the address of the metadata.';
comment on column auth.providers.client_secret is 'Encrypted by the service (sealed:…), or in plain text when written in SQL. SAML: the private key that signs requests.';
comment on column auth.providers.issuer is 'The provider''s identifier, compared exactly with the one in its responses.';
comment on column auth.providers.settings is 'oidc: scope, private_network. oauth2: authorization_endpoint, token_endpoint, userinfo_endpoint, scope, claims, private_network. saml: entry_point, logout_url, certificates, certificate, name_id_format, claims. claims says where subject, email, email_verified and name are found.';
comment on column auth.providers.sign_ups is 'Whether a user without an account gets one.';
comment on column auth.providers.title is 'The label of the sign-in button; without one the name.';
comment on column auth.providers.trusts_email is 'Whether every e-mail address from this provider counts as verified.';
comment on column auth.providers.trusts_factor is 'Whether a second factor at the provider is accepted instead of a code of this service.';
comment on constraint content_service_providers_settings on auth.providers is 'An oauth2 provider has its three endpoints in settings, a saml provider its entry_point and its certificates.';
comment on table auth.providers is '@sample all
@anonymize empty
Identity providers that users may sign in through.';

-- table auth.refresh_tokens
create table auth.refresh_tokens (
  token_hash bytea not null,
  family_id uuid not null,
  user_id bigint not null,
  issued_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone not null,
  rotated_at timestamp with time zone,
  revoked_at timestamp with time zone,
  idempotency_key_hash bytea,
  sealed_answer bytea,
  sealed_until timestamp with time zone,
  signed_in_at timestamp with time zone,
  address inet,
  user_agent text,
  constraint content_service_refresh_tokens_pkey PRIMARY KEY (token_hash),
  constraint content_service_refresh_tokens_check CHECK ((expires_at > issued_at)),
  constraint content_service_refresh_tokens_idempotency_key_hash_check CHECK ((octet_length(idempotency_key_hash) = 32)),
  constraint content_service_refresh_tokens_retry CHECK (((num_nulls(idempotency_key_hash, sealed_answer, sealed_until) = ANY (ARRAY[0, 3])) AND ((sealed_answer IS NULL) OR (rotated_at IS NOT NULL)))),
  constraint content_service_refresh_tokens_token_hash_check CHECK ((octet_length(token_hash) = 32)),
  constraint content_service_refresh_tokens_user_agent_max_length CHECK ((length(user_agent) <= 500)) NOT VALID,
  constraint content_service_refresh_tokens_family_id_fkey FOREIGN KEY (family_id) REFERENCES auth.token_sessions(id) ON DELETE CASCADE,
  constraint content_service_refresh_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_refresh_tokens_expires_at_idx ON auth.refresh_tokens USING btree (expires_at);
CREATE INDEX content_service_refresh_tokens_family_id_idx ON auth.refresh_tokens USING btree (family_id);
CREATE INDEX content_service_refresh_tokens_user_id_idx ON auth.refresh_tokens USING btree (user_id);
alter table auth.refresh_tokens enable row level security;
comment on column auth.refresh_tokens.revoked_at is 'When it was ended by logout, or with its family.';
comment on column auth.refresh_tokens.rotated_at is 'When it was exchanged for its successor; since then it is spent.';
comment on column auth.refresh_tokens.sealed_answer is 'The pair it was exchanged for, encrypted with a key that only the bearer of this token can derive.';
comment on column auth.refresh_tokens.sealed_until is 'Until when the same Idempotency-Key receives the same pair.';
comment on column auth.refresh_tokens.signed_in_at is 'When its family was started; null if it was stored by an earlier version.';
comment on table auth.refresh_tokens is '@sample none
@anonymize empty
Refresh tokens, as SHA-256 only, kept until they expire so that a reused one is recognised.';

-- table auth.role_permissions
create table auth.role_permissions (
  role text not null,
  permission text not null,
  constraint content_service_role_permissions_pkey PRIMARY KEY (role, permission),
  constraint content_service_role_permissions_permission_fkey FOREIGN KEY (permission) REFERENCES auth.permissions(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_role_permissions_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX content_service_role_permissions_permission_idx ON auth.role_permissions USING btree (permission);
alter table auth.role_permissions enable row level security;
comment on table auth.role_permissions is '@sample all
Permissions of all users in a role.';

-- table auth.roles
create table auth.roles (
  name text not null,
  description text not null,
  assignable boolean default false not null,
  constraint content_service_roles_pkey PRIMARY KEY (name)
);
alter table auth.roles enable row level security;
comment on table auth.roles is '@sample all
The database roles that an API key may act in and, where assignable, a user.';

-- table auth.sessions
create table auth.sessions (
  id_hash bytea not null,
  user_id bigint not null,
  created_at timestamp with time zone default now() not null,
  last_used_at timestamp with time zone default now() not null,
  idle_expires_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  address inet,
  user_agent text,
  constraint content_service_sessions_pkey PRIMARY KEY (id_hash),
  constraint content_service_sessions_user_id_key UNIQUE (user_id),
  constraint content_service_sessions_check CHECK ((expires_at > created_at)),
  constraint content_service_sessions_id_hash_check CHECK ((octet_length(id_hash) = 32)),
  constraint content_service_sessions_user_agent_max_length CHECK ((length(user_agent) <= 500)) NOT VALID,
  constraint content_service_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_sessions_least_idx ON auth.sessions USING btree (LEAST(idle_expires_at, expires_at));
alter table auth.sessions enable row level security;
comment on column auth.sessions.created_at is 'When the user signed in.';
comment on column auth.sessions.expires_at is 'When it ends, even if it is in use.';
comment on column auth.sessions.idle_expires_at is 'When it ends without requests; each request moves it.';
comment on table auth.sessions is '@sample none
@anonymize empty
Sign-ins of browsers, by cookie.';

-- table auth.token_sessions
create table auth.token_sessions (
  id uuid not null,
  user_id bigint not null,
  created_at timestamp with time zone default now() not null,
  refreshed_at timestamp with time zone default now() not null,
  aal smallint default 1 not null,
  amr jsonb default '[]'::jsonb not null,
  address inet,
  user_agent text,
  tag text,
  factor_id uuid,
  requires_factor boolean default false not null,
  kept_at timestamp with time zone,
  constraint content_service_token_sessions_pkey PRIMARY KEY (id),
  constraint content_service_token_sessions_aal_check CHECK (((aal >= 1) AND (aal <= 3))),
  constraint content_service_token_sessions_amr_check CHECK ((jsonb_typeof(amr) = 'array'::text)),
  constraint content_service_token_sessions_tag_max_length CHECK ((length(tag) <= 200)),
  constraint content_service_token_sessions_user_agent_max_length CHECK ((length(user_agent) <= 500)),
  constraint content_service_token_sessions_factor_id_fkey FOREIGN KEY (factor_id) REFERENCES auth.mfa_factors(id) ON DELETE SET NULL,
  constraint content_service_token_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES auth.users(user_id) ON DELETE CASCADE
);
CREATE INDEX content_service_token_sessions_of_factor ON auth.token_sessions USING btree (factor_id);
CREATE INDEX content_service_token_sessions_refreshed_at_idx ON auth.token_sessions USING btree (refreshed_at);
CREATE INDEX content_service_token_sessions_user_id_idx ON auth.token_sessions USING btree (user_id);
alter table auth.token_sessions enable row level security;
comment on column auth.token_sessions.aal is 'The authenticator assurance level: 2 after a second factor.';
comment on column auth.token_sessions.amr is 'How the user signed in: [{"method": "password", "timestamp": 1700000000}], the latest first.';
comment on column auth.token_sessions.factor_id is 'The second factor that was proved.';
comment on column auth.token_sessions.id is 'The claim session_id, and the family_id of the refresh tokens.';
comment on column auth.token_sessions.kept_at is 'The end of all access tokens of the user (tokens_valid_from) that this sign-in was exempted from; null if there was none.';
comment on column auth.token_sessions.requires_factor is 'The account requires a second factor that this sign-in has not proved yet: until then, its tokens act at /auth/v1 only.';
comment on table auth.token_sessions is '@sample none
@anonymize empty
Sign-ins by tokens: one row per family of refresh tokens.';

-- table auth.user_permissions
create table auth.user_permissions (
  user_id bigint not null,
  permission text not null,
  granted_at timestamp with time zone default now() not null,
  constraint content_service_user_permissions_pkey PRIMARY KEY (user_id, permission),
  constraint content_service_user_permissions_permission_fkey FOREIGN KEY (permission) REFERENCES auth.permissions(name) ON UPDATE CASCADE ON DELETE CASCADE,
  constraint content_service_user_permissions_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_user_permissions_permission_idx ON auth.user_permissions USING btree (permission);
alter table auth.user_permissions enable row level security;
comment on table auth.user_permissions is '@sample with user_id
Permissions of one user besides those of the role.';

-- table auth.user_roles
create table auth.user_roles (
  user_id bigint not null,
  role text not null,
  granted_at timestamp with time zone default now() not null,
  constraint content_service_user_roles_pkey PRIMARY KEY (user_id),
  constraint content_service_user_roles_role_fkey FOREIGN KEY (role) REFERENCES auth.roles(name) ON UPDATE CASCADE,
  constraint content_service_user_roles_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_user_roles_role_idx ON auth.user_roles USING btree (role);
CREATE TRIGGER _100_content_service_end_tokens AFTER INSERT OR DELETE OR UPDATE ON auth.user_roles FOR EACH ROW EXECUTE FUNCTION auth.tg_user_roles__end_tokens();
alter table auth.user_roles enable row level security;
comment on table auth.user_roles is '@sample with user_id
Users in another role than authenticated. One each: a token names one role.';

-- table auth.users
create table auth.users (
  user_id bigint generated by default as identity not null,
  username text not null,
  password_hash text,
  password_changed_at timestamp with time zone default now() not null,
  disabled_at timestamp with time zone,
  created_at timestamp with time zone default now() not null,
  tokens_valid_from timestamp with time zone default date_trunc('second'::text, now()) not null,
  verified_email text,
  id uuid default gen_random_uuid() not null,
  email text,
  phone text,
  email_confirmed_at timestamp with time zone,
  phone_confirmed_at timestamp with time zone,
  last_sign_in_at timestamp with time zone,
  invited_at timestamp with time zone,
  banned_until timestamp with time zone,
  deleted_at timestamp with time zone,
  updated_at timestamp with time zone default now() not null,
  raw_user_meta_data jsonb default '{}'::jsonb not null,
  raw_app_meta_data jsonb default '{}'::jsonb not null,
  is_anonymous boolean default false not null,
  is_sso_user boolean default false not null,
  has_several_sign_ups boolean,
  is_self_registered boolean,
  constraint content_service_users_pkey PRIMARY KEY (user_id),
  constraint content_service_users_id_key UNIQUE (id),
  constraint content_service_users_phone_key UNIQUE (phone),
  constraint content_service_users_email_max_length CHECK ((length(email) <= 254)),
  constraint content_service_users_password_hash_check CHECK ((password_hash ~~ '$%'::text)),
  constraint content_service_users_phone_max_length CHECK ((length(phone) <= 32)),
  constraint content_service_users_raw_app_meta_data_check CHECK ((jsonb_typeof(raw_app_meta_data) = 'object'::text)),
  constraint content_service_users_raw_user_meta_data_check CHECK ((jsonb_typeof(raw_user_meta_data) = 'object'::text)),
  constraint content_service_users_username_check CHECK ((btrim(username) <> ''::text)),
  constraint content_service_users_username_format CHECK (((username ~~ '%@%'::text) OR (username ~ '^[^\s:[:cntrl:]]{1,254}$'::text))),
  constraint content_service_users_username_max_length CHECK ((length(username) <= 254)) NOT VALID,
  constraint content_service_users_verified_email_max_length CHECK ((length(verified_email) <= 254)) NOT VALID,
  constraint content_service_users_user_id_fkey FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX content_service_users_newest_first ON auth.users USING btree (created_at DESC, user_id DESC);
CREATE UNIQUE INDEX content_service_users_email_any_case_key ON auth.users USING btree (lower(email));
CREATE UNIQUE INDEX content_service_users_username_any_case_key ON auth.users USING btree (lower(username));
CREATE TRIGGER _050_copy_email BEFORE INSERT ON auth.users FOR EACH ROW EXECUTE FUNCTION auth.tg_accounts__copy_email();
CREATE TRIGGER _100_content_service_follow_changes BEFORE INSERT OR UPDATE ON auth.users FOR EACH ROW EXECUTE FUNCTION auth.tg_users__follow_changes();
CREATE TRIGGER _100_content_service_remember_deletion AFTER DELETE ON auth.users FOR EACH ROW EXECUTE FUNCTION auth.tg_users__remember_deletion();
CREATE TRIGGER _200_content_service_end_oauth_codes AFTER UPDATE OF tokens_valid_from ON auth.users FOR EACH ROW WHEN ((old.tokens_valid_from IS DISTINCT FROM new.tokens_valid_from)) EXECUTE FUNCTION auth.tg_users__end_oauth_codes();
alter table auth.users enable row level security;
comment on column auth.users.banned_until is 'Until when the account is disabled.';
comment on column auth.users.deleted_at is 'When the account was deleted with its row kept.';
comment on column auth.users.disabled_at is 'When the account was disabled; null if it is enabled.';
comment on column auth.users.email is '@anonymize email
The e-mail address; with a table public.users a copy of the address there.';
comment on column auth.users.email_confirmed_at is 'When verified_email became the current address; null if it is another one.';
comment on column auth.users.has_several_sign_ups is 'Whether several sign-ups gave a password for the address or number, before its proof.';
comment on column auth.users.id is 'The id for clients written for Supabase.';
comment on column auth.users.is_anonymous is 'Whether the user signed in without an address, password or provider.';
comment on column auth.users.is_self_registered is 'Whether the account was made by whoever asked for it, not by an administrator. Null: unknown, of an earlier version.';
comment on column auth.users.is_sso_user is 'Whether the account belongs to the provider of an organisation.';
comment on column auth.users.password_changed_at is 'Sessions and refresh tokens from before this moment have ended.';
comment on column auth.users.password_hash is '@anonymize null';
comment on column auth.users.phone is '@anonymize null';
comment on column auth.users.raw_app_meta_data is '@anonymize fixed {}
What only the service and administrators may change.';
comment on column auth.users.raw_user_meta_data is '@anonymize fixed {}
What the user, or the application for the user, has stored.';
comment on column auth.users.tokens_valid_from is 'Access tokens issued before this moment have ended. In whole seconds, like the iat of a token.';
comment on column auth.users.user_id is 'The key here; with a table public.users its id.';
comment on column auth.users.username is '@anonymize email
The e-mail address unless another name, without @, was chosen; unique whatever its case.';
comment on column auth.users.verified_email is '@anonymize email
The address whose mail the user has proved to read; the user is verified while it is the current address.';
comment on constraint content_service_users_username_format on auth.users is 'A user name has 1 to 254 characters, and neither spaces, nor colons, nor an @ unless it is the e-mail address.';
comment on constraint content_service_users_username_max_length on auth.users is 'Give a user name of at most 254 characters.';
comment on index auth.content_service_users_username_any_case_key is 'This user name is already taken.';
comment on table auth.users is '@sample with user_id
Accounts. A user without a row cannot sign in.';

-- table content_service.bounds
create table content_service.bounds (
  name text not null,
  bound bigint not null,
  used bigint default 0 not null,
  used_at timestamp with time zone default '-infinity'::timestamp with time zone not null,
  constraint content_service_bounds_pkey PRIMARY KEY (name),
  constraint content_service_bounds_bound_check CHECK ((bound >= 0))
);
alter table content_service.bounds enable row level security;
comment on column content_service.bounds.bound is 'The number of rows or bytes.';
comment on column content_service.bounds.name is 'What is bounded.';
comment on column content_service.bounds.used is 'How much there was when it was last counted; 0 where each request counts.';
comment on column content_service.bounds.used_at is 'When it was last counted.';
comment on table content_service.bounds is '@sample all
How much callers may make the tables of the service grow. Change a number by an update; it applies at once.';

-- table content_service.bucket_usage
create table content_service.bucket_usage (
  bucket_id text not null,
  owner_id text not null,
  bytes bigint not null,
  constraint content_service_bucket_usage_pkey PRIMARY KEY (bucket_id, owner_id),
  constraint content_service_bucket_usage_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES storage.buckets(id) ON UPDATE CASCADE ON DELETE CASCADE
);
alter table content_service.bucket_usage enable row level security;
comment on column content_service.bucket_usage.bytes is 'The bytes of the contents.';
comment on column content_service.bucket_usage.owner_id is 'The owner; empty for objects without one.';
comment on table content_service.bucket_usage is '@sample all
@anonymize empty
What the objects of each owner take, in buckets that are bounded.';

-- table content_service.files
create table content_service.files (
  hash text not null,
  bytes bigint not null,
  stored_at timestamp with time zone default now() not null,
  released_at timestamp with time zone,
  constraint content_service_files_pkey PRIMARY KEY (hash),
  constraint content_service_files_bytes_check CHECK ((bytes >= 0)),
  constraint content_service_files_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE INDEX content_service_files_released_at_idx ON content_service.files USING btree (released_at) WHERE (released_at IS NOT NULL);
alter table content_service.files enable row level security;
comment on column content_service.files.bytes is 'The size of the content.';
comment on column content_service.files.hash is 'The SHA-256 of the content, and its name in the file store.';
comment on column content_service.files.released_at is 'When the last object that named it may have gone; null while one names it.';
comment on column content_service.files.stored_at is 'When it was stored first.';
comment on table content_service.files is '@sample none
@anonymize empty
The contents of objects, in the file store.';

-- table content_service.kept_answer_counts
create table content_service.kept_answer_counts (
  caller_key text not null,
  keys bigint not null,
  bytes bigint not null,
  number bigint not null,
  counted_at timestamp with time zone not null,
  constraint content_service_kept_answer_counts_pkey PRIMARY KEY (caller_key)
);
alter table content_service.kept_answer_counts enable row level security;
comment on column content_service.kept_answer_counts.bytes is 'The size of the responses.';
comment on column content_service.kept_answer_counts.caller_key is 'The user, API key or address that shares a quota.';
comment on column content_service.kept_answer_counts.counted_at is 'When they were counted.';
comment on column content_service.kept_answer_counts.keys is 'The number of responses.';
comment on column content_service.kept_answer_counts.number is 'The number of the last response that was counted.';
comment on table content_service.kept_answer_counts is '@sample none
@anonymize empty
How many responses were kept for callers with many of them, when they were last counted.';

-- table content_service.kept_answers
create table content_service.kept_answers (
  id bytea not null,
  sealed_answer bytea not null,
  expires_at timestamp with time zone not null,
  caller_key text default ''::text not null,
  bytes bigint default 0 not null,
  number bigint generated always as identity not null,
  constraint content_service_kept_answers_pkey PRIMARY KEY (id),
  constraint content_service_kept_answers_id_check CHECK ((octet_length(id) = 32))
);
CREATE INDEX content_service_kept_answers_expires_at_idx ON content_service.kept_answers USING btree (expires_at);
CREATE INDEX content_service_kept_answers_of_caller ON content_service.kept_answers USING btree (caller_key text_pattern_ops, number) INCLUDE (bytes);
alter table only content_service.kept_answers alter column sealed_answer set storage external;
alter table content_service.kept_answers enable row level security;
comment on column content_service.kept_answers.bytes is 'The size of the response.';
comment on column content_service.kept_answers.caller_key is 'The user, API key or address that shares a quota.';
comment on column content_service.kept_answers.id is 'Derived from the key and from the caller.';
comment on column content_service.kept_answers.number is 'The order in which they were stored.';
comment on column content_service.kept_answers.sealed_answer is 'The response and a digest of its request, encrypted with a secret that only the sender of the key can derive.';
comment on table content_service.kept_answers is '@sample none
@anonymize empty
Responses that are repeated for the same Idempotency-Key until they expire.';

-- table content_service.rate_limits
create unlogged table content_service.rate_limits (
  key text not null,
  points integer not null,
  expire bigint,
  constraint content_service_rate_limits_pkey PRIMARY KEY (key)
);
CREATE INDEX content_service_rate_limits_expire_idx ON content_service.rate_limits USING btree (expire);
alter table content_service.rate_limits enable row level security;
comment on column content_service.rate_limits.expire is 'When the window ends, in milliseconds since 1970.';
comment on column content_service.rate_limits.key is 'What is limited, and the user, key or address that is counted.';
comment on column content_service.rate_limits.points is 'The count.';
comment on table content_service.rate_limits is '@sample none
@anonymize empty
Requests of each caller in the current window.';

-- table content_service.recorded_request_counts
create unlogged table content_service.recorded_request_counts (
  request_id bytea not null,
  period timestamp with time zone not null,
  requests bigint not null,
  constraint content_service_recorded_request_counts_pkey PRIMARY KEY (request_id, period),
  constraint content_service_recorded_request_counts_request_id_fkey FOREIGN KEY (request_id) REFERENCES content_service.recorded_requests(id) ON DELETE CASCADE
);
alter table content_service.recorded_request_counts enable row level security;
comment on column content_service.recorded_request_counts.period is 'The start of the five minutes.';
comment on column content_service.recorded_request_counts.request_id is 'The shape.';
comment on column content_service.recorded_request_counts.requests is 'The number of requests of all gateways.';
comment on table content_service.recorded_request_counts is '@sample none
@anonymize empty
How many requests of a shape there were in each five minutes.';

-- table content_service.recorded_requests
create unlogged table content_service.recorded_requests (
  id bytea not null,
  shape jsonb not null,
  seen_at timestamp with time zone default now() not null,
  constraint content_service_recorded_requests_pkey PRIMARY KEY (id),
  constraint content_service_recorded_requests_id_check CHECK ((octet_length(id) = 32))
);
CREATE INDEX content_service_recorded_requests_seen_at_idx ON content_service.recorded_requests USING btree (seen_at);
alter table content_service.recorded_requests enable row level security;
comment on column content_service.recorded_requests.id is 'A digest of the shape.';
comment on column content_service.recorded_requests.seen_at is 'When the shape was last reported.';
comment on column content_service.recorded_requests.shape is 'The interface, the role and the names in the request, as the service describes them; or the interface and others: all requests that have no row.';
comment on table content_service.recorded_requests is '@sample none
@anonymize empty
Shapes of the requests of the last hour: names of tables, columns and functions, without values.';

-- table content_service.schedule_clock
create table content_service.schedule_clock (
  is_only boolean default true not null,
  processed timestamp with time zone default date_trunc('minute'::text, now()) not null,
  constraint content_service_schedule_clock_pkey PRIMARY KEY (is_only),
  constraint content_service_schedule_clock_is_only_check CHECK (is_only)
);
alter table content_service.schedule_clock enable row level security;
comment on column content_service.schedule_clock.is_only is 'There is one row.';
comment on column content_service.schedule_clock.processed is 'The last minute that was processed.';
comment on table content_service.schedule_clock is '@sample all
How far the schedules are processed.';

-- table content_service.shared_queries
create table content_service.shared_queries (
  name text not null,
  text text not null,
  saved_by text,
  saved_at timestamp with time zone default now() not null,
  constraint content_service_shared_queries_pkey PRIMARY KEY (name),
  constraint content_service_shared_queries_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint content_service_shared_queries_text_length CHECK (((length(text) >= 1) AND (length(text) <= 100000)))
);
alter table content_service.shared_queries enable row level security;
comment on column content_service.shared_queries.name is 'What administrators call it.';
comment on column content_service.shared_queries.saved_at is 'When it was saved last.';
comment on column content_service.shared_queries.saved_by is 'The id of the administrator who saved it last; null where nobody signs in.';
comment on column content_service.shared_queries.text is 'The SQL.';
comment on table content_service.shared_queries is '@sample all
@anonymize empty
SQL that administrators share in Studio.';

-- table content_service.table_views
create table content_service.table_views (
  schema_name text not null,
  table_name text not null,
  name text not null,
  query text not null,
  columns text[],
  saved_by bigint,
  saved_at timestamp with time zone default now() not null,
  constraint content_service_table_views_pkey PRIMARY KEY (schema_name, table_name, name),
  constraint content_service_table_views_columns_max_number CHECK ((cardinality(columns) <= 1600)),
  constraint content_service_table_views_name_length CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint content_service_table_views_query_max_length CHECK ((length(query) <= 10000)),
  constraint content_service_table_views_schema_name_max_length CHECK ((length(schema_name) <= 63)),
  constraint content_service_table_views_table_name_max_length CHECK ((length(table_name) <= 63))
);
alter table content_service.table_views enable row level security;
comment on column content_service.table_views.columns is 'The shown columns in order; null for all.';
comment on column content_service.table_views.name is 'What administrators call it.';
comment on column content_service.table_views.query is 'Filters and order, as in a request of the table interface.';
comment on column content_service.table_views.saved_at is 'When it was saved last.';
comment on column content_service.table_views.saved_by is 'The administrator who saved it; null where nobody signs in.';
comment on column content_service.table_views.schema_name is 'The schema of the table.';
comment on column content_service.table_views.table_name is 'The table.';
comment on table content_service.table_views is '@sample all
@anonymize empty
Views of tables that administrators share in Studio.';

-- table content_service.task_lanes
create table content_service.task_lanes (
  name text not null,
  turn bigint default 0 not null,
  constraint content_service_task_lanes_pkey PRIMARY KEY (name),
  constraint content_service_task_lanes_name_check CHECK ((name = ANY (ARRAY['system'::text, 'caller'::text, 'anonymous'::text])))
);
alter table content_service.task_lanes enable row level security;
comment on column content_service.task_lanes.name is 'system: schedules and api.enqueue_as; caller; anonymous: callers without an account, and anonymous accounts.';
comment on column content_service.task_lanes.turn is 'The turn of the task that began last.';
comment on table content_service.task_lanes is '@sample all
Tasks that take turns: those of the service, of callers, and of anonymous callers.';

-- table content_service.tasks
create table content_service.tasks (
  id uuid default gen_random_uuid() not null,
  owner text not null,
  work text not null,
  status text default 'queued'::text not null,
  caller jsonb not null,
  request jsonb not null,
  body bytea not null,
  result json,
  error jsonb,
  created_at timestamp with time zone default now() not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  expires_at timestamp with time zone,
  function text,
  arguments jsonb default '{}'::jsonb not null,
  run_at timestamp with time zone default now() not null,
  key text,
  time_limit interval,
  lane text default 'caller'::text not null,
  caller_key text default ''::text not null,
  turn bigint,
  attempts integer default 0 not null,
  bytes bigint default 0 not null,
  constraint content_service_tasks_pkey PRIMARY KEY (id),
  constraint content_service_tasks_lane_check CHECK ((lane = ANY (ARRAY['system'::text, 'caller'::text, 'anonymous'::text]))),
  constraint content_service_tasks_status_check CHECK ((status = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text])))
);
CREATE INDEX content_service_tasks_by_turn ON content_service.tasks USING btree (lane, turn, run_at) WHERE (status = 'queued'::text);
CREATE INDEX content_service_tasks_expires_at_idx ON content_service.tasks USING btree (expires_at);
CREATE INDEX content_service_tasks_failed ON content_service.tasks USING btree (finished_at) WHERE (status = 'failed'::text);
CREATE INDEX content_service_tasks_of_caller ON content_service.tasks USING btree (caller_key) INCLUDE (bytes);
CREATE INDEX content_service_tasks_of_caller_by_turn ON content_service.tasks USING btree (lane, caller_key, turn) WHERE ((status = 'queued'::text) AND (turn IS NOT NULL));
CREATE INDEX content_service_tasks_owner_idx ON content_service.tasks USING btree (owner) WHERE (finished_at IS NULL);
CREATE INDEX content_service_tasks_running ON content_service.tasks USING btree (lane, caller_key) WHERE (status = 'running'::text);
CREATE INDEX content_service_tasks_work_finished_at_idx ON content_service.tasks USING btree (work, finished_at);
CREATE UNIQUE INDEX content_service_tasks_waiting_key ON content_service.tasks USING btree (owner, key) WHERE ((status = 'queued'::text) AND (attempts = 0));
CREATE TRIGGER _500_content_service_end_run AFTER DELETE ON content_service.tasks FOR EACH ROW WHEN (((old.function IS NOT NULL) AND (old.finished_at IS NULL))) EXECUTE FUNCTION content_service.tg__follow_schedule_run();
CREATE TRIGGER _500_content_service_follow_run AFTER UPDATE OF status ON content_service.tasks FOR EACH ROW WHEN ((new.function IS NOT NULL)) EXECUTE FUNCTION content_service.tg__follow_schedule_run();
alter table content_service.tasks enable row level security;
comment on column content_service.tasks.arguments is 'The arguments of the function by their names.';
comment on column content_service.tasks.attempts is 'How often it was begun.';
comment on column content_service.tasks.body is 'The request''s body.';
comment on column content_service.tasks.bytes is 'The approximate size of the request or of the result.';
comment on column content_service.tasks.caller is 'Role and claims in which it runs.';
comment on column content_service.tasks.caller_key is 'The user, API key, address or schedule; tasks with the same value share bounds and take one turn.';
comment on column content_service.tasks.created_at is 'When the request was received.';
comment on column content_service.tasks.error is 'The error response; null unless it failed.';
comment on column content_service.tasks.expires_at is 'When it is deleted.';
comment on column content_service.tasks.finished_at is 'When it was done or had failed.';
comment on column content_service.tasks.function is 'Name and parameter types of the function; null for a request.';
comment on column content_service.tasks.id is 'Sent to the client. For callers without an identity it is the only key to the task.';
comment on column content_service.tasks.key is 'Of the tasks of an owner with the same key at most one waits.';
comment on column content_service.tasks.lane is 'Which tasks it takes turns with.';
comment on column content_service.tasks.owner is 'The user whose task it is, or the role where there is no user.';
comment on column content_service.tasks.request is 'The request without its credentials; empty for a function call.';
comment on column content_service.tasks.result is 'The response; null until it is done.';
comment on column content_service.tasks.run_at is 'When it is due.';
comment on column content_service.tasks.started_at is 'When the latest attempt began.';
comment on column content_service.tasks.status is 'queued, running, done or failed.';
comment on column content_service.tasks.time_limit is 'How long it may run; null for the limit of the service.';
comment on column content_service.tasks.turn is 'The place among the tasks of its lane; null until it is due.';
comment on column content_service.tasks.work is 'Method and address, or the function; tasks with the same value take about the same time.';
comment on table content_service.tasks is '@sample none
@anonymize empty
Requests and function calls to be run later, kept until a day after they are finished.';

-- table content_service.unfinished_uploads
create table content_service.unfinished_uploads (
  id uuid not null,
  caller text not null,
  quota_key text not null,
  bucket_id text not null,
  name text not null,
  about jsonb default '{}'::jsonb not null,
  bytes bigint default 0 not null,
  started_at timestamp with time zone default now() not null,
  owner_id text default ''::text not null,
  constraint content_service_unfinished_uploads_pkey PRIMARY KEY (id),
  constraint content_service_unfinished_uploads_bytes_check CHECK ((bytes >= 0)),
  constraint content_service_unfinished_uploads_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES storage.buckets(id) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX content_service_unfinished_uploads_by_age ON content_service.unfinished_uploads USING btree (started_at);
CREATE INDEX content_service_unfinished_uploads_by_name ON content_service.unfinished_uploads USING btree (bucket_id, name COLLATE "C", id);
CREATE INDEX content_service_unfinished_uploads_by_quota ON content_service.unfinished_uploads USING btree (quota_key);
alter table content_service.unfinished_uploads enable row level security;
comment on column content_service.unfinished_uploads.about is 'The metadata of the object.';
comment on column content_service.unfinished_uploads.bytes is 'The size of its parts, or the size that it will have.';
comment on column content_service.unfinished_uploads.caller is 'Who has begun it by S3, and alone goes on with it; empty for an upload by TUS.';
comment on column content_service.unfinished_uploads.owner_id is 'The owner of the object; empty for an object without one.';
comment on column content_service.unfinished_uploads.quota_key is 'Whose uploads are counted together.';
comment on table content_service.unfinished_uploads is 'Uploads in parts by S3 and TUS, until they are finished or a day has passed.';

-- table content_service.upload_parts
create table content_service.upload_parts (
  upload_id uuid not null,
  number integer not null,
  content text not null,
  bytes bigint not null,
  stored_at timestamp with time zone default now() not null,
  constraint content_service_upload_parts_pkey PRIMARY KEY (upload_id, number),
  constraint content_service_upload_parts_bytes_check CHECK ((bytes >= 0)),
  constraint content_service_upload_parts_number_check CHECK (((number >= 1) AND (number <= 10000))),
  constraint content_service_upload_parts_content_fkey FOREIGN KEY (content) REFERENCES content_service.files(hash),
  constraint content_service_upload_parts_upload_id_fkey FOREIGN KEY (upload_id) REFERENCES content_service.unfinished_uploads(id) ON DELETE CASCADE
);
CREATE INDEX content_service_upload_parts_by_content ON content_service.upload_parts USING btree (content);
CREATE TRIGGER _900_content_service_release_deleted AFTER DELETE ON content_service.upload_parts FOR EACH ROW EXECUTE FUNCTION content_service.tg_objects__release_content();
CREATE TRIGGER _900_content_service_release_replaced AFTER UPDATE OF content ON content_service.upload_parts FOR EACH ROW WHEN ((old.content IS DISTINCT FROM new.content)) EXECUTE FUNCTION content_service.tg_objects__release_content();
alter table content_service.upload_parts enable row level security;
comment on column content_service.upload_parts.bytes is 'Its size.';
comment on column content_service.upload_parts.content is 'The content of the part.';
comment on column content_service.upload_parts.number is 'The place among the parts.';
comment on table content_service.upload_parts is '@sample none
@anonymize empty
The parts of an upload by S3.';

-- table content_service.webhook_deliveries
create table content_service.webhook_deliveries (
  id bigint generated always as identity not null,
  delivery_id uuid default gen_random_uuid() not null,
  webhook_id uuid not null,
  type text not null,
  old json,
  new json,
  key text not null,
  moved_to text,
  recorded_at timestamp with time zone default clock_timestamp() not null,
  state text default 'pending'::text not null,
  attempts integer default 0 not null,
  due_at timestamp with time zone,
  last_error text,
  constraint content_service_webhook_deliveries_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000, autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=50000);
CREATE INDEX content_service_webhook_deliveries_dead ON content_service.webhook_deliveries USING btree (webhook_id, recorded_at) WHERE (state = 'dead'::text);
CREATE INDEX content_service_webhook_deliveries_delayed ON content_service.webhook_deliveries USING btree (webhook_id) WHERE (due_at IS NOT NULL);
CREATE INDEX content_service_webhook_deliveries_moved ON content_service.webhook_deliveries USING btree (webhook_id) WHERE (moved_to IS NOT NULL);
CREATE INDEX content_service_webhook_deliveries_pending ON content_service.webhook_deliveries USING btree (webhook_id, id) WHERE (state = 'pending'::text);
alter table content_service.webhook_deliveries enable row level security;
comment on column content_service.webhook_deliveries.attempts is 'How often it was sent.';
comment on column content_service.webhook_deliveries.delivery_id is 'The same in all attempts: webhook-id.';
comment on column content_service.webhook_deliveries.due_at is 'When it is sent again after a failure.';
comment on column content_service.webhook_deliveries.id is 'The order of the changes of one row.';
comment on column content_service.webhook_deliveries.key is 'The primary key before the change. Changes with the same key are sent in their order.';
comment on column content_service.webhook_deliveries.last_error is 'Why the last attempt failed.';
comment on column content_service.webhook_deliveries.moved_to is 'The primary key after the change, if it has changed.';
comment on column content_service.webhook_deliveries.new is 'The row after the change.';
comment on column content_service.webhook_deliveries.old is 'The row before the change.';
comment on column content_service.webhook_deliveries.recorded_at is 'When the change was made.';
comment on column content_service.webhook_deliveries.state is 'pending or dead.';
comment on column content_service.webhook_deliveries.type is 'INSERT, UPDATE or DELETE.';
comment on column content_service.webhook_deliveries.webhook_id is 'The webhook.';
comment on table content_service.webhook_deliveries is '@sample none
@anonymize empty
Changes that have not been delivered yet, and those that could not be.';

-- table content_service.webhook_leases
create table content_service.webhook_leases (
  webhook_id uuid not null,
  holder uuid,
  expires_at timestamp with time zone not null,
  delivered_at timestamp with time zone,
  constraint content_service_webhook_leases_pkey PRIMARY KEY (webhook_id)
);
alter table content_service.webhook_leases enable row level security;
comment on column content_service.webhook_leases.delivered_at is 'When a change was last delivered, to within five seconds.';
comment on column content_service.webhook_leases.expires_at is 'When another process may take over.';
comment on column content_service.webhook_leases.holder is 'The process; null if it has released the webhook.';
comment on column content_service.webhook_leases.webhook_id is 'The webhook.';
comment on table content_service.webhook_leases is '@sample none
@anonymize empty
Which process sends for a webhook, and when it last delivered.';

-- table public.article_translations
create table public.article_translations (
  article_id bigint not null,
  language text not null,
  title text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint article_translations_pkey PRIMARY KEY (article_id, language),
  constraint article_translations_language_format CHECK ((language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,10}$'::text)),
  constraint article_translations_title_length CHECK ((length(title) >= 5)),
  constraint article_translations_title_max_length CHECK ((length(title) <= 300)) NOT VALID,
  constraint article_translations_article_id_fkey FOREIGN KEY (article_id) REFERENCES public.articles(id) ON DELETE CASCADE
);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.article_translations FOR EACH ROW EXECUTE FUNCTION content_service.tg__timestamps();
alter table public.article_translations enable row level security;
alter table public.article_translations replica identity full;
create policy admin_all on public.article_translations for all to admin using (true) with check (true);
create policy select_of_article on public.article_translations for select to public using ((EXISTS ( SELECT
   FROM public.articles
  WHERE (articles.id = article_translations.article_id))));
create policy write_own on public.article_translations for all to authenticated using ((EXISTS ( SELECT
   FROM public.articles
  WHERE ((articles.id = article_translations.article_id) AND (articles.author_id = ( SELECT auth.uid() AS uid))))));
grant delete, insert (article_id, language, title), select, update (title) on public.article_translations to authenticated;
grant delete, insert, select, update on public.article_translations to service_role;
grant select on public.article_translations to anon;
comment on column public.article_translations.article_id is 'The article.';
comment on column public.article_translations.created_at is 'When it was created.';
comment on column public.article_translations.language is 'A language tag such as de or pt-BR.';
comment on column public.article_translations.title is 'The title in that language, 5 to 300 characters.';
comment on column public.article_translations.updated_at is 'When it was last changed; null when it never was.';
comment on constraint article_translations_article_id_fkey on public.article_translations is '@notNull
The article must exist.';
comment on constraint article_translations_language_format on public.article_translations is 'Give a language tag such as de or pt-BR.';
comment on constraint article_translations_pkey on public.article_translations is 'This article has a title in that language already; change that one.';
comment on constraint article_translations_title_length on public.article_translations is 'Give a title of at least 5 characters.';
comment on constraint article_translations_title_max_length on public.article_translations is 'Give a title of at most 300 characters.';
comment on table public.article_translations is '@behavior -manyRelation:resource:list
The title of an article in another language.';

-- table public.articles
create table public.articles (
  id bigint generated by default as identity not null,
  title text not null,
  content text not null,
  summary text,
  status public.article_status default 'DRAFT'::public.article_status not null,
  author_id bigint default auth.uid() not null,
  tags text[] default '{}'::text[] not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint articles_pkey PRIMARY KEY (id),
  constraint articles_content_max_length CHECK (((octet_length(content) <= 1000000) OR (length(content) <= 1000000))) NOT VALID,
  constraint articles_summary_max_length CHECK ((length(summary) <= 2000)) NOT VALID,
  constraint articles_tags_length CHECK ((octet_length(array_to_string(tags, ''::text)) <= 2000)),
  constraint articles_tags_max_count CHECK ((cardinality(tags) <= 100)) NOT VALID,
  constraint articles_tags_max_length CHECK ((array_to_string(tags, '
'::text) !~ '[^\n]{101}'::text)) NOT VALID,
  constraint articles_tags_plain CHECK (
CASE
    WHEN (COALESCE(array_ndims(tags), 1) = 1) THEN (array_position(tags, NULL::text) IS NULL)
    ELSE false
END),
  constraint articles_title_length CHECK ((length(title) >= 5)),
  constraint articles_title_max_length CHECK ((length(title) <= 300)) NOT VALID,
  constraint articles_author_id_fkey FOREIGN KEY (author_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX articles_document ON public.articles USING gin (content_service.article_document(title, tags, content));
CREATE INDEX articles_newest ON public.articles USING btree (created_at DESC, id DESC);
CREATE INDEX articles_newest_of_author ON public.articles USING btree (author_id, created_at DESC, id DESC);
CREATE INDEX articles_newest_of_status ON public.articles USING btree (status, created_at DESC, id DESC);
CREATE INDEX articles_tags ON public.articles USING gin (tags);
CREATE INDEX articles_text ON public.articles USING gin (content_service.article_text(title, tags, content) extensions.gin_trgm_ops);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.articles FOR EACH ROW EXECUTE FUNCTION content_service.tg__timestamps();
CREATE TRIGGER _500_event AFTER INSERT OR UPDATE ON public.articles FOR EACH ROW EXECUTE FUNCTION content_service.tg__event();
alter table public.articles enable row level security;
alter table public.articles replica identity full;
create policy admin_all on public.articles for all to admin using (true) with check (true);
create policy delete_own on public.articles for delete to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
create policy insert_own on public.articles for insert to authenticated with check ((author_id = ( SELECT auth.uid() AS uid)));
create policy select_own on public.articles for select to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
create policy select_published on public.articles for select to public using ((status = 'PUBLISHED'::public.article_status));
create policy update_own on public.articles for update to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
grant delete, insert (content, status, summary, tags, title), select, update (content, status, summary, tags, title) on public.articles to authenticated;
grant delete, insert, select, update on public.articles to service_role;
grant select on public.articles to anon;
comment on column public.articles.author_id is '@behavior -attribute:select
The user who wrote it.';
comment on column public.articles.content is 'The text itself, at most 1,000,000 characters.';
comment on column public.articles.created_at is 'When it was created.';
comment on column public.articles.id is 'Assigned by the service, increasing.';
comment on column public.articles.status is '@filterable
Where the article stands.';
comment on column public.articles.summary is 'The author''s own summary, at most 2,000 characters; null when there is none.';
comment on column public.articles.tags is '@notNullItems
Words to find it by: at most 100, of at most 100 characters each, 2,000 bytes in all.';
comment on column public.articles.title is '5 to 300 characters.';
comment on column public.articles.updated_at is 'When it was last changed; null when it never was.';
comment on constraint articles_author_id_fkey on public.articles is '@notNull
The author must be a user who exists.';
comment on constraint articles_content_max_length on public.articles is 'Write at most 1,000,000 characters of content.';
comment on constraint articles_summary_max_length on public.articles is 'Give a summary of at most 2,000 characters, or none.';
comment on constraint articles_tags_length on public.articles is 'Use fewer or shorter tags: 2,000 bytes in all.';
comment on constraint articles_tags_max_count on public.articles is 'Give at most 100 tags.';
comment on constraint articles_tags_max_length on public.articles is 'Give tags of at most 100 characters each.';
comment on constraint articles_tags_plain on public.articles is 'Give tags as one list of words, none of them null.';
comment on constraint articles_title_length on public.articles is 'Give a title of at least 5 characters.';
comment on constraint articles_title_max_length on public.articles is 'Give a title of at most 300 characters.';
comment on table public.articles is '@order created_at desc
@behavior -list:offset
@subscription onArticleCreated on:insert notNull
@subscription onArticleUpdated on:update by:id?
A text of one author.';

-- table public.comments
create table public.comments (
  id bigint generated by default as identity not null,
  article_id bigint not null,
  author_id bigint default auth.uid() not null,
  content text not null,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone,
  constraint comments_pkey PRIMARY KEY (id),
  constraint comments_content_max_length CHECK ((length(content) <= 10000)) NOT VALID,
  constraint comments_content_present CHECK ((content ~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]'::text)) NOT VALID,
  constraint comments_article_id_fkey FOREIGN KEY (article_id) REFERENCES public.articles(id) ON DELETE CASCADE,
  constraint comments_author_id_fkey FOREIGN KEY (author_id) REFERENCES public.users(id) ON DELETE CASCADE
);
CREATE INDEX comments_of_article ON public.comments USING btree (article_id, id);
CREATE INDEX comments_of_author ON public.comments USING btree (author_id);
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.comments FOR EACH ROW EXECUTE FUNCTION content_service.tg__timestamps();
CREATE TRIGGER _500_event AFTER INSERT ON public.comments FOR EACH ROW EXECUTE FUNCTION content_service.tg__event('article_id');
alter table public.comments enable row level security;
alter table public.comments replica identity full;
create policy admin_all on public.comments for all to admin using (true) with check (true);
create policy delete_own on public.comments for delete to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
create policy insert_own on public.comments for insert to authenticated with check (((author_id = ( SELECT auth.uid() AS uid)) AND (EXISTS ( SELECT
   FROM public.articles
  WHERE (articles.id = comments.article_id)))));
create policy select_of_article on public.comments for select to public using ((EXISTS ( SELECT
   FROM public.articles
  WHERE (articles.id = comments.article_id))));
create policy update_own on public.comments for update to authenticated using ((author_id = ( SELECT auth.uid() AS uid)));
grant delete, insert (article_id, content), select, update (content) on public.comments to authenticated;
grant delete, insert, select, update on public.comments to service_role;
grant select on public.comments to anon;
comment on column public.comments.article_id is '@behavior -attribute:select
The article it is about.';
comment on column public.comments.author_id is '@behavior -attribute:select
The user who wrote it.';
comment on column public.comments.content is 'The text itself; not empty, at most 10,000 characters.';
comment on column public.comments.created_at is 'When it was written.';
comment on column public.comments.id is 'Assigned by the service, increasing.';
comment on column public.comments.updated_at is '@behavior -attribute:select
When it was last changed; null when it never was.';
comment on constraint comments_article_id_fkey on public.comments is '@notNull
The article must exist.';
comment on constraint comments_author_id_fkey on public.comments is '@notNull
@behavior -manyRelation:resource:list
The author must be a user who exists.';
comment on constraint comments_content_max_length on public.comments is 'Write a comment of at most 10,000 characters.';
comment on constraint comments_content_present on public.comments is 'Write something: a comment may not be empty.';
comment on table public.comments is '@behavior -query:*:* -list:offset -resource:update -resource:delete
@subscription onCommentAdded on:insert by:article_id notNull
What a user says about an article.';

-- table public.users
create table public.users (
  id bigint generated by default as identity not null,
  name text not null,
  email text not null,
  age integer,
  avatar text,
  created_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint users_pkey PRIMARY KEY (id),
  constraint users_email_key UNIQUE (email),
  constraint users_age_range CHECK (((age >= 0) AND (age <= 150))),
  constraint users_avatar_format CHECK (((avatar ~* '^https?://'::text) AND (length(avatar) <= 2000))),
  constraint users_email_format CHECK (((length(email) <= 254) AND (email ~ '^(?=.{1,64}@)[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+(\.[a-zA-Z0-9!#$%&''*+/=?^_`{|}~-]+)*@([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$'::text))) NOT VALID,
  constraint users_name_max_length CHECK ((length(name) <= 200)) NOT VALID,
  constraint users_name_present CHECK ((name ~ '[^\u0001-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f-\u1160\u1680\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0]'::text)) NOT VALID
);
CREATE UNIQUE INDEX users_email_any_case_key ON public.users USING btree (lower(email));
CREATE TRIGGER _050_guard_address BEFORE UPDATE OF email ON public.users FOR EACH ROW WHEN (((old.email IS DISTINCT FROM new.email) AND row_security_active('public.users'::text) AND (NOT auth.is_admin()))) EXECUTE FUNCTION auth.tg_users__guard_address();
CREATE TRIGGER _100_timestamps BEFORE UPDATE ON public.users FOR EACH ROW EXECUTE FUNCTION content_service.tg__timestamps();
CREATE TRIGGER _200_rename_account AFTER UPDATE OF email ON public.users FOR EACH ROW WHEN (((old.email IS DISTINCT FROM new.email) AND (NOT row_security_active('public.users'::text)))) EXECUTE FUNCTION auth.tg_users__rename_account();
CREATE TRIGGER _200_rename_account_by_request AFTER UPDATE OF email ON public.users FOR EACH ROW WHEN (((old.email IS DISTINCT FROM new.email) AND row_security_active('public.users'::text))) EXECUTE FUNCTION auth.tg_users__rename_account('request');
alter table public.users enable row level security;
alter table public.users replica identity full;
create policy admin_all on public.users for all to admin using (true) with check (true);
create policy delete_open on public.users for delete to anon, authenticated using (( SELECT auth.users_are_open('delete'::text) AS users_are_open));
create policy delete_self on public.users for delete to authenticated using ((id = ( SELECT auth.uid() AS uid)));
create policy insert_open on public.users for insert to anon, authenticated with check (( SELECT auth.users_are_open('insert'::text) AS users_are_open));
create policy select_authors on public.users for select to anon using (((EXISTS ( SELECT
   FROM public.articles
  WHERE (articles.author_id = users.id))) OR (EXISTS ( SELECT
   FROM public.comments
  WHERE (comments.author_id = users.id))) OR (created_at = now())));
create policy select_signed_in on public.users for select to authenticated using (true);
create policy update_open on public.users for update to anon, authenticated using (( SELECT auth.users_are_open('update'::text) AS users_are_open));
create policy update_self on public.users for update to authenticated using ((id = ( SELECT auth.uid() AS uid)));
grant delete, insert (age, avatar, email, name), select (age, avatar, created_at, id, name, updated_at), update (age, avatar, email, name) on public.users to anon, authenticated;
grant delete, insert, select, update on public.users to service_role;
grant select on public.users to admin;
comment on column public.users.age is '@anonymize null
In years; null when not told.';
comment on column public.users.avatar is '@since 2
@anonymize null
The address of a picture.';
comment on column public.users.created_at is 'When the user was added.';
comment on column public.users.email is '@personal users_own_email
@anonymize email
Unique among users, whatever its case.';
comment on column public.users.id is 'Assigned by the service, increasing.';
comment on column public.users.name is '@anonymize name
The name others see, at most 200 characters.';
comment on column public.users.updated_at is 'When the user was last changed; at first, when it was added.';
comment on constraint users_age_range on public.users is 'Give an age between 0 and 150, or none.';
comment on constraint users_avatar_format on public.users is 'Give the http or https address of a picture, or none.';
comment on constraint users_email_format on public.users is 'Give an e-mail address such as name@example.org.';
comment on constraint users_email_key on public.users is 'This e-mail address is already registered.';
comment on constraint users_name_max_length on public.users is 'Give a name of at most 200 characters.';
comment on constraint users_name_present on public.users is 'Give a name.';
comment on index public.users_email_any_case_key is 'This e-mail address is already registered.';
comment on table public.users is '@root user
@list
@signUp
@behavior -resource:update -resource:delete
A person who writes articles and comments.';

-- table realtime.messages
create table realtime.messages (
  id uuid default gen_random_uuid() not null,
  topic text not null,
  extension text not null,
  event text,
  payload jsonb,
  private boolean default false not null,
  inserted_at timestamp with time zone default now() not null,
  updated_at timestamp with time zone default now() not null,
  constraint content_service_messages_pkey PRIMARY KEY (id),
  constraint content_service_messages_extension CHECK ((extension = ANY (ARRAY['broadcast'::text, 'presence'::text])))
);
alter table realtime.messages enable row level security;
create policy insert_nobody on realtime.messages for insert to public with check (false);
create policy insert_trial on realtime.messages for insert to authenticator with check (true);
create policy select_nobody on realtime.messages for select to public using (false);
grant insert (extension, id, private, topic) on realtime.messages to authenticator;
grant insert, select on realtime.messages to anon, authenticated, service_role;
comment on column realtime.messages.event is 'The event''s name.';
comment on column realtime.messages.extension is 'broadcast or presence.';
comment on column realtime.messages.id is 'The message.';
comment on column realtime.messages.inserted_at is 'When it was sent.';
comment on column realtime.messages.payload is 'The contents.';
comment on column realtime.messages.private is 'Whether the channel is private.';
comment on column realtime.messages.topic is 'The name of the channel.';
comment on column realtime.messages.updated_at is 'When it was last changed.';
comment on constraint content_service_messages_extension on realtime.messages is 'The extension is broadcast or presence.';
comment on constraint content_service_messages_pkey on realtime.messages is 'A message with this id exists.';
comment on table realtime.messages is '@sample none
@anonymize empty
Its policies decide who may receive and send in private channels. It holds no rows.';

-- table storage.buckets
create table storage.buckets (
  id text not null,
  name text not null,
  owner uuid,
  public boolean default false,
  avif_autodetection boolean default false,
  file_size_limit bigint,
  allowed_mime_types text[],
  owner_id text,
  created_at timestamp with time zone default now(),
  updated_at timestamp with time zone default now(),
  type text default 'STANDARD'::text not null,
  max_bytes bigint,
  max_bytes_of_owner bigint,
  constraint content_service_buckets_pkey PRIMARY KEY (id),
  constraint content_service_buckets_name_key UNIQUE (name),
  constraint content_service_bucket_name_is_valid CHECK (((id ~ '^[\w!\-.*''() &$@=;:+,?]{1,100}$'::text) AND (name = id))) NOT VALID,
  constraint content_service_buckets_max_bytes_check CHECK ((max_bytes >= 0)),
  constraint content_service_buckets_max_bytes_of_owner_check CHECK ((max_bytes_of_owner >= 0))
);
CREATE TRIGGER _900_content_service_count_usage AFTER UPDATE OF max_bytes, max_bytes_of_owner ON storage.buckets FOR EACH ROW WHEN (((old.max_bytes IS DISTINCT FROM new.max_bytes) OR (old.max_bytes_of_owner IS DISTINCT FROM new.max_bytes_of_owner))) EXECUTE FUNCTION content_service.tg_buckets__count_usage();
alter table storage.buckets enable row level security;
alter table storage.buckets replica identity full;
create policy admin_all on storage.buckets for all to admin using (true) with check (true);
grant delete, insert, maintain, references, select, trigger, truncate, update on storage.buckets to anon, authenticated, service_role;
comment on column storage.buckets.allowed_mime_types is 'The accepted content types, such as image/* or image/png; null accepts all.';
comment on column storage.buckets.avif_autodetection is 'Not used.';
comment on column storage.buckets.created_at is 'When it was created.';
comment on column storage.buckets.file_size_limit is 'The largest object in bytes; null is the limit of the deployment.';
comment on column storage.buckets.id is 'The name of the bucket in addresses.';
comment on column storage.buckets.max_bytes is 'What all objects together may take, in bytes; null is without bound.';
comment on column storage.buckets.max_bytes_of_owner is 'What the objects of one owner may take, in bytes; null is without bound.';
comment on column storage.buckets.name is 'The same as the id.';
comment on column storage.buckets.owner is 'The user who made it, if users are numbered by uuid.';
comment on column storage.buckets.owner_id is 'The user who made it.';
comment on column storage.buckets.public is 'Whether everybody may download its objects by their address.';
comment on column storage.buckets.type is 'Always STANDARD.';
comment on column storage.buckets.updated_at is 'When it was changed last.';
comment on constraint content_service_bucket_name_is_valid on storage.buckets is 'A bucket is named by 1 to 100 letters, digits and !-_.*''() &$@=;:+,? and its id and name are equal.';
comment on constraint content_service_buckets_max_bytes_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on constraint content_service_buckets_max_bytes_of_owner_check on storage.buckets is 'The bound is a number of bytes from 0.';
comment on constraint content_service_buckets_name_key on storage.buckets is 'A bucket has this name already: choose another.';
comment on constraint content_service_buckets_pkey on storage.buckets is 'A bucket has this id already: choose another.';
comment on table storage.buckets is '@sample all
Buckets: folders with a limit of size and of types, public or not.';

-- table storage.objects
create table storage.objects (
  id uuid default gen_random_uuid() not null,
  bucket_id text,
  name text,
  owner uuid,
  owner_id text,
  metadata jsonb,
  user_metadata jsonb,
  version text,
  path_tokens text[] generated always as (string_to_array(name, '/'::text)) stored,
  created_at timestamp with time zone default now(),
  updated_at timestamp with time zone default now(),
  last_accessed_at timestamp with time zone default now(),
  content text,
  constraint content_service_objects_pkey PRIMARY KEY (id),
  constraint content_service_object_name_is_valid CHECK (((name <> ''::text) AND (octet_length(name) <= 1024) AND (name !~ '[\x01-\x1f\x7f]'::text) AND (name !~ '(^|/)\.{1,2}(/|$)'::text) AND (name !~ '^/'::text))) NOT VALID,
  constraint content_service_objects_bucket_id_fkey FOREIGN KEY (bucket_id) REFERENCES storage.buckets(id),
  constraint content_service_objects_content_fkey FOREIGN KEY (content) REFERENCES content_service.files(hash)
);
CREATE INDEX content_service_objects_by_content ON storage.objects USING btree (content);
CREATE INDEX content_service_objects_by_name ON storage.objects USING btree (bucket_id, name COLLATE "C");
CREATE UNIQUE INDEX content_service_bucketid_objname ON storage.objects USING btree (bucket_id, name);
CREATE TRIGGER _800_content_service_check_owner BEFORE UPDATE OF owner, owner_id ON storage.objects FOR EACH ROW WHEN (((old.owner_id IS DISTINCT FROM new.owner_id) OR (old.owner IS DISTINCT FROM new.owner))) EXECUTE FUNCTION content_service.tg_objects__check_owner();
CREATE TRIGGER _900_content_service_count_added AFTER INSERT ON storage.objects REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION content_service.tg_objects__count_usage();
CREATE TRIGGER _900_content_service_count_changed AFTER UPDATE ON storage.objects REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION content_service.tg_objects__count_usage();
CREATE TRIGGER _900_content_service_count_removed AFTER DELETE ON storage.objects REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION content_service.tg_objects__count_usage();
CREATE TRIGGER _900_content_service_keep_content BEFORE INSERT OR UPDATE ON storage.objects FOR EACH ROW EXECUTE FUNCTION content_service.tg_objects__keep_content();
CREATE TRIGGER _900_content_service_release_deleted AFTER DELETE ON storage.objects FOR EACH ROW WHEN ((old.content IS NOT NULL)) EXECUTE FUNCTION content_service.tg_objects__release_content();
CREATE TRIGGER _900_content_service_release_replaced AFTER UPDATE OF content ON storage.objects FOR EACH ROW WHEN (((old.content IS NOT NULL) AND (old.content IS DISTINCT FROM new.content))) EXECUTE FUNCTION content_service.tg_objects__release_content();
alter table storage.objects enable row level security;
alter table storage.objects replica identity full;
create policy admin_all on storage.objects for all to admin using (true) with check (true);
grant delete, insert, maintain, references, select, trigger, truncate, update on storage.objects to anon, authenticated, service_role;
comment on column storage.objects.bucket_id is 'The bucket.';
comment on column storage.objects.content is 'The digest of the content; set by the service alone. Null: a row without a file.';
comment on column storage.objects.created_at is 'When it was uploaded first.';
comment on column storage.objects.id is 'The id.';
comment on column storage.objects.last_accessed_at is 'Not used.';
comment on column storage.objects.metadata is 'Size, type, ETag and cache control, as the service has found them.';
comment on column storage.objects.name is 'The path within the bucket.';
comment on column storage.objects.owner is 'The user who uploaded it, if users are numbered by uuid.';
comment on column storage.objects.owner_id is 'The user who uploaded it.';
comment on column storage.objects.path_tokens is 'The folders and the name.';
comment on column storage.objects.updated_at is 'When it was changed last.';
comment on column storage.objects.user_metadata is 'What the uploader says about it.';
comment on column storage.objects.version is 'Changes with each upload.';
comment on constraint content_service_object_name_is_valid on storage.objects is 'A name has 1 to 1024 bytes, no control characters, no segment . or .. and no slash at its beginning.';
comment on constraint content_service_objects_bucket_id_fkey on storage.objects is 'The bucket does not exist, or has objects: create it, or empty it.';
comment on constraint content_service_objects_content_fkey on storage.objects is 'The content is not stored: upload it.';
comment on constraint content_service_objects_pkey on storage.objects is 'An object has this id already: let the database choose it.';
comment on index storage.content_service_bucketid_objname is 'The bucket has an object of this name already: replace it, or choose another name.';
comment on table storage.objects is '@anonymize empty
Objects: who may do what with a file is decided by the policies of this table.';

-- function api.cancel_task(uuid)
CREATE OR REPLACE FUNCTION api.cancel_task(id uuid)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_is_cancelled boolean;
begin
  delete from content_service.tasks as task
    where task.id = cancel_task.id and task.status = 'queued' and content_service.sees_task(task.owner);
  v_is_cancelled := found;
  if v_is_cancelled then
    perform graphile_worker.remove_job(cancel_task.id::text);
  end if;
  return v_is_cancelled;
end;
$function$;
grant execute on function api.cancel_task(uuid) to authenticated, service_role;
comment on function api.cancel_task(uuid) is 'Cancels a task of the caller''s that waits; false if it has begun or does not exist.';

-- function api.discard_webhook_deliveries(text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION api.discard_webhook_deliveries(webhook text, since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_count bigint;
begin
  delete from content_service.webhook_deliveries
    where webhook_id = (select id from api.webhooks where name = webhook) and state = 'dead'
      and recorded_at between since and until;
  get diagnostics v_count = row_count;
  return v_count;
end;
$function$;
comment on function api.discard_webhook_deliveries(text,timestamp with time zone,timestamp with time zone) is 'Deletes the dead deliveries of a webhook, by when their changes were made. Returns how many there were.';

-- function api.enqueue(text,jsonb,timestamp with time zone,text)
CREATE OR REPLACE FUNCTION api.enqueue(function text, arguments jsonb DEFAULT '{}'::jsonb, run_at timestamp with time zone DEFAULT now(), key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_role text := auth.role();
  v_claims jsonb := auth.jwt();
  v_owner text := content_service.task_owner(v_role, v_claims);
begin
  -- Callers without a user share an owner, so one would replace the tasks of the others.
  if key is not null and v_owner not like 'user %'
    and not exists (select from pg_roles where rolname = v_role and rolbypassrls)
  then
    raise exception 'A key needs a caller with a user' using errcode = 'WRONG', detail = 'key',
      hint = 'Callers whose claims have no "sub" share their role, and would replace each other''s tasks.';
  end if;
  perform content_service.check_task_bounds(content_service.task_lane(v_role, v_claims), v_owner, v_role);
  return content_service.queue_call(v_role, v_claims, function, arguments, run_at, key);
end;
$function$;
grant execute on function api.enqueue(text,jsonb,timestamp with time zone,text) to authenticated, service_role;
comment on function api.enqueue(text,jsonb,timestamp with time zone,text) is 'Queues a call of a function, which runs once, after the transaction has committed, with the role and the claims of who queues it. Returns the id of the task.';

-- function api.enqueue_as(text,text,jsonb,timestamp with time zone,text,jsonb)
CREATE OR REPLACE FUNCTION api.enqueue_as(role text, function text, arguments jsonb DEFAULT '{}'::jsonb, run_at timestamp with time zone DEFAULT now(), key text DEFAULT NULL::text, claims jsonb DEFAULT NULL::jsonb)
 RETURNS uuid
 LANGUAGE sql
BEGIN ATOMIC
 SELECT content_service.queue_call(role, claims, function, arguments, run_at, key, lane => 'system'::text) AS queue_call;
END;
comment on function api.enqueue_as(text,text,jsonb,timestamp with time zone,text,jsonb) is 'Queues a call of a function as a role of the owner''s choice. For triggers with the rights of the owner, and for the owner.';

-- function api.field_error(regclass,text)
CREATE OR REPLACE FUNCTION api.field_error(broken_table regclass, broken_constraint text)
 RETURNS public.field_error
 LANGUAGE sql
 STABLE PARALLEL SAFE
 SET search_path TO ''
AS $function$
  select row(attribute.attname, coalesce(obj_description(rule.oid, 'pg_constraint'), rule.conname || ' is violated'))
  from pg_constraint as rule
  left join pg_attribute as attribute on attribute.attrelid = rule.conrelid and attribute.attnum = rule.conkey[1]
  where rule.conrelid = broken_table and rule.conname = broken_constraint;
$function$;
grant execute on function api.field_error(regclass,text) to anon, authenticated, service_role;
comment on function api.field_error(regclass,text) is 'A violated constraint as its field and the comment on it.';

-- function api.list_tasks()
CREATE OR REPLACE FUNCTION api.list_tasks()
 RETURNS TABLE(id uuid, work text, status text, key text, run_at timestamp with time zone, created_at timestamp with time zone)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select task.id, task.work, task.status, task.key, task.run_at, task.created_at
  from content_service.tasks as task
  where task.finished_at is null and (
    (select auth.is_admin()) or task.owner = (select content_service.task_owner(auth.role(), auth.jwt())) and (
      task.owner like 'user %' or (select rolbypassrls from pg_roles where rolname = auth.role())
    )
  )
  order by task.run_at, task.id;
$function$;
grant execute on function api.list_tasks() to authenticated, service_role;
comment on function api.list_tasks() is 'The tasks of the calling user that wait or run, those that are due first.';

-- function api.matching_articles(text)
CREATE OR REPLACE FUNCTION api.matching_articles(keyword text)
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
 SELECT article.id
    FROM public.articles article
   WHERE ((btrim(matching_articles.keyword) <> ''::text) AND (article.id IN ( SELECT found.id
            FROM content_service.articles_containing(matching_articles.keyword) found(id))));
END;
grant execute on function api.matching_articles(text) to anon, authenticated, service_role;
comment on function api.matching_articles(text) is 'The ids of the articles with the keyword that the caller may read.';

-- function api.read_task(uuid)
CREATE OR REPLACE FUNCTION api.read_task(id uuid)
 RETURNS TABLE(work text, status text, progress integer, result json, error jsonb, run_at timestamp with time zone, created_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select task.work, state.status, state.progress, state.result, state.error,
    task.run_at, state.created_at, state.started_at, state.finished_at
  from content_service.tasks as task
  cross join content_service.read_task(task.id, task.owner) as state
  where task.id = read_task.id and content_service.sees_task(task.owner);
$function$;
grant execute on function api.read_task(uuid) to authenticated, service_role;
comment on function api.read_task(uuid) is 'The state and the result of a task of the caller''s; no row for a task of others.';

-- function api.related_articles(bigint,text[],integer)
CREATE OR REPLACE FUNCTION api.related_articles(article_id bigint, tags text[], "limit" integer)
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 5
BEGIN ATOMIC
 SELECT other.id
    FROM public.articles other
   WHERE ((other.id IN ( SELECT found.id
            FROM content_service.articles_sharing(related_articles.tags) found(id))) AND (other.id <> related_articles.article_id))
   ORDER BY (cardinality(ARRAY( SELECT unnest(other.tags) AS unnest
         INTERSECT
          SELECT unnest(related_articles.tags) AS unnest))) DESC, other.created_at DESC, other.id DESC
  LIMIT COALESCE(related_articles."limit", 5);
END;
grant execute on function api.related_articles(bigint,text[],integer) to anon, authenticated, service_role;
comment on function api.related_articles(bigint,text[],integer) is 'The ids of other articles with one of the tags, those with the most tags in common first.';

-- function api.replay_webhook_deliveries(text,timestamp with time zone,timestamp with time zone)
CREATE OR REPLACE FUNCTION api.replay_webhook_deliveries(webhook text, since timestamp with time zone DEFAULT '-infinity'::timestamp with time zone, until timestamp with time zone DEFAULT 'infinity'::timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_webhook uuid := (select id from api.webhooks where name = webhook);
  v_count bigint;
begin
  if v_webhook is null then
    raise exception 'There is no webhook %', webhook using errcode = 'NTFND';
  end if;
  update content_service.webhook_deliveries set state = 'pending', attempts = 0, due_at = null
    where webhook_id = v_webhook and state = 'dead' and recorded_at between since and until;
  get diagnostics v_count = row_count;
  notify webhooks;
  return v_count;
end;
$function$;
comment on function api.replay_webhook_deliveries(text,timestamp with time zone,timestamp with time zone) is 'Sends the dead deliveries of a webhook again, by when their changes were made. Returns how many there are.';

-- function api.report_progress(integer)
CREATE OR REPLACE FUNCTION api.report_progress(percent integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_task text := nullif(current_setting('request.task', true), '');
begin
  if v_task is not null then
    perform pg_advisory_xact_lock_shared(hashtext(v_task), least(greatest(percent, 0), 100));
  end if;
end;
$function$;
grant execute on function api.report_progress(integer) to anon, authenticated, service_role;
comment on function api.report_progress(integer) is 'Reports the progress of a function called with Prefer: respond-async; has no effect elsewhere.';

-- function api.run_schedule(text)
CREATE OR REPLACE FUNCTION api.run_schedule(name text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not exists (select from api.schedules where schedules.name = run_schedule.name) then
    raise exception 'There is no schedule %', name using errcode = 'NTFND', detail = 'name';
  end if;
  return content_service.start_schedule_run(name, clock_timestamp());
end;
$function$;
comment on function api.run_schedule(text) is 'Runs a schedule now, also a disabled one, unless its previous run is unfinished. Returns the status of the run. For the owner.';

-- function api.search_articles(text)
CREATE OR REPLACE FUNCTION api.search_articles(keyword text)
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 20
BEGIN ATOMIC
 SELECT candidate.id
    FROM ( SELECT article.id,
             article.title,
             article.tags,
             article.content,
             article.created_at
            FROM public.articles article
           WHERE (article.id IN ( SELECT found.id
                    FROM api.matching_articles(search_articles.keyword) found(id)))
           ORDER BY (article.title ~~* content_service.containing(search_articles.keyword)) DESC, article.created_at DESC, article.id DESC
          LIMIT 1000) candidate
   ORDER BY (((((candidate.title ~~* content_service.containing(search_articles.keyword)))::integer)::double precision + extensions.word_similarity("left"(search_articles.keyword, 200), "left"(candidate.title, 200))) + ts_rank(content_service.article_document(candidate.title, candidate.tags, candidate.content), plainto_tsquery('simple'::regconfig, "left"(search_articles.keyword, 1000)))) DESC, candidate.created_at DESC, candidate.id DESC;
END;
grant execute on function api.search_articles(text) to anon, authenticated, service_role;
comment on function api.search_articles(text) is 'The ids of the articles with the keyword that the caller may read, the best match first.';

-- function api.translated_title(bigint,text)
CREATE OR REPLACE FUNCTION api.translated_title(article_id bigint, language text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT translation.title
    FROM public.article_translations translation
   WHERE ((translation.article_id = translated_title.article_id) AND (translation.language = translated_title.language));
END;
grant execute on function api.translated_title(bigint,text) to anon, authenticated, service_role;
comment on function api.translated_title(bigint,text) is 'The title in that language; null without a translation.';

-- function auth.accept_invitation(bytea,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.accept_invitation(token_hash bytea, password_hash text, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  select token.user_id into v_account.user_id from auth.mail_tokens as token where token.token_hash = accept_invitation.token_hash;
  v_account := auth.lock_account(v_account.user_id);
  if not exists (select from auth.find_invitation(accept_invitation.token_hash)) then
    return null;
  end if;
  select * into v_token from auth.mail_tokens as token where token.token_hash = accept_invitation.token_hash;
  perform auth.confirm_mail_code(v_token, v_account, client_info);
  perform auth.set_password(v_token.user_id, accept_invitation.password_hash);
  if v_token.role <> 'authenticated' then
    perform auth.assign_role(
      v_token.user_id, v_token.role,
      row (client_info.address, client_info.user_agent, client_info.request_id, v_token.inviter_id)::auth.client_info
    );
  end if;
  perform auth.log_event('invitation.accepted', v_token.user_id, client_info, jsonb_build_object('role', v_token.role));
  return v_token.user_id;
end;
$function$;
comment on function auth.accept_invitation(bytea,text,auth.client_info) is 'Spends the link, which proves the address, ends all that the account had before, and sets password and role. Null: the link is invalid.';

-- function auth.accepts_sign_ups()
CREATE OR REPLACE FUNCTION auth.accepts_sign_ups()
 RETURNS boolean
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select coalesce((select settings.sign_ups from auth.account_settings as settings), true);
$function$;
grant execute on function auth.accepts_sign_ups() to anon, authenticated, service_role;
comment on function auth.accepts_sign_ups() is 'Whether others than administrators may create users (AUTH_SIGN_UPS).';

-- function auth.account_faults(text,text,integer,text)
CREATE OR REPLACE FUNCTION auth.account_faults(name text, email text, age integer, username text)
 RETURNS SETOF public.field_error
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_row constant jsonb := jsonb_build_object('name', name, 'email', email, 'age', age);
  v_rule record;
  v_is_broken boolean;
begin
  for v_rule in
    select rule.conname, pg_get_expr(rule.conbin, rule.conrelid) as condition
    from pg_constraint as rule
    where rule.conrelid = 'public.users'::regclass and rule.contype = 'c'
    order by rule.conkey, rule.conname
  loop
    execute format('select (%s) is false from jsonb_populate_record(null::public.users, $1)', v_rule.condition)
      into v_is_broken using v_row;
    if v_is_broken then
      return next api.field_error('public.users', v_rule.conname);
    end if;
  end loop;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$function$;
comment on function auth.account_faults(text,text,integer,text) is 'Everything that prevents such a user from being registered, except values that are taken.';

-- function auth.account_of(bigint)
CREATE OR REPLACE FUNCTION auth.account_of(user_id bigint)
 RETURNS TABLE(name text, email text, username text, role text, is_verified boolean, has_password boolean, factor_enabled_at timestamp with time zone, backup_codes integer)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.account_of(bigint) is 'What a user sees of the own account.';

-- function auth.account_states(bigint[])
CREATE OR REPLACE FUNCTION auth.account_states(user_ids bigint[])
 RETURNS TABLE(user_id bigint, state text, tokens_valid_from bigint)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT account.user_id,
         CASE
             WHEN (account.deleted_at IS NOT NULL) THEN 'deleted'::text
             WHEN auth.is_disabled(account.*) THEN 'disabled'::text
             ELSE 'active'::text
         END AS "case",
     (EXTRACT(epoch FROM account.tokens_valid_from))::bigint AS "extract"
    FROM auth.users account
   WHERE (account.user_id = ANY (account_states.user_ids))
 UNION ALL
  SELECT deleted_accounts.user_id,
     'deleted'::text,
     NULL::bigint
    FROM auth.deleted_accounts
   WHERE ((deleted_accounts.user_id = ANY (account_states.user_ids)) AND (NOT (EXISTS ( SELECT
            FROM auth.users account
           WHERE (account.user_id = deleted_accounts.user_id)))));
END;
comment on function auth.account_states(bigint[]) is 'Which of these accounts are active, disabled or deleted.';

-- function auth.add_account(text,text,text,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_account(name text, email text, role text, password_hash text, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user_id bigint := auth.find_user(add_account.email);
begin
  if v_user_id is null then
    v_user_id := auth.register(name, email, null, null, password_hash, client_info) ->> 'id';
  else
    begin
      insert into auth.users (user_id, username, password_hash)
        values (v_user_id, add_account.email, add_account.password_hash);
    exception when unique_violation then
      raise exception 'This e-mail address already has an account' using errcode = 'TAKEN', detail = 'email';
    end;
    perform auth.log_event('account.created', v_user_id, client_info);
  end if;
  update auth.users as account set verified_email = add_account.email where user_id = v_user_id;
  if role <> 'authenticated' then
    perform auth.assign_role(v_user_id, role, client_info);
  end if;
  return v_user_id;
end;
$function$;
comment on function auth.add_account(text,text,text,text,auth.client_info) is 'Creates a user who can sign in, in that role and with a verified address.';

-- function auth.add_factor(bigint,text,text,text,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_factor(user_id bigint, factor_type text, friendly_name text, secret text, session_id uuid, client_info auth.client_info, OUT outcome text, OUT factor auth.mfa_factors)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_most constant integer := 10;
  v_account constant auth.users := auth.lock_account(add_factor.user_id);
begin
  if v_account.user_id is null then
    outcome := 'no_account';
    return;
  end if;
  delete from auth.mfa_factors as abandoned
    where abandoned.user_id = v_account.user_id and abandoned.state = 'pending'
      and greatest(abandoned.created_at, abandoned.last_challenged_at) < now() - interval '5 minutes';
  outcome := case
    when exists (
      select from auth.mfa_factors as other
      where other.user_id = v_account.user_id and other.friendly_name = add_factor.friendly_name
    ) then 'name_taken'
    when (select count(*) from auth.mfa_factors as other where other.user_id = v_account.user_id) >= v_most then 'too_many'
    when auth.has_factor(v_account.user_id) and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
    else 'added'
  end;
  if outcome <> 'added' then
    return;
  end if;
  insert into auth.mfa_factors as added (user_id, factor_type, friendly_name, secret)
    values (v_account.user_id, add_factor.factor_type, add_factor.friendly_name, add_factor.secret)
    returning * into factor;
  perform auth.log_event(
    'factor.enrolled', v_account.user_id, client_info,
    jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$function$;
comment on function auth.add_factor(bigint,text,text,text,uuid,auth.client_info) is 'Adds a pending factor: added; or name_taken, too_many, level when the sign-in must prove a second factor first, no_account.';

-- function auth.add_factor_challenge(bigint,uuid,text,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_factor_challenge(user_id bigint, factor_id uuid, challenge text, seconds integer, client_info auth.client_info)
 RETURNS auth.mfa_challenges
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_challenge auth.mfa_challenges;
begin
  update auth.mfa_factors as factor set last_challenged_at = now()
    where factor.id = factor_id and factor.user_id = add_factor_challenge.user_id;
  if not found then
    return null;
  end if;
  insert into auth.mfa_challenges (purpose, factor_id, user_id, challenge, address, expires_at)
    values (
      'factor', add_factor_challenge.factor_id, add_factor_challenge.user_id, add_factor_challenge.challenge,
      client_info.address, now() + make_interval(secs => seconds)
    )
    returning * into v_challenge;
  perform auth.delete_expired_challenges();
  return v_challenge;
end;
$function$;
comment on function auth.add_factor_challenge(bigint,uuid,text,integer,auth.client_info) is 'Starts to verify a factor of that user; null if there is no such factor.';

-- function auth.add_federation_code(bytea,bigint,text,integer)
CREATE OR REPLACE FUNCTION auth.add_federation_code(code_hash bytea, user_id bigint, code_challenge text, seconds integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.federation_codes as expired where expired.code_hash in (
    select codes.code_hash from auth.federation_codes as codes where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  insert into auth.federation_codes (code_hash, user_id, code_challenge, expires_at)
    values (
      add_federation_code.code_hash, add_federation_code.user_id, add_federation_code.code_challenge,
      now() + make_interval(secs => seconds)
    );
end;
$function$;
comment on function auth.add_federation_code(bytea,bigint,text,integer) is 'Stores a code that its bearer exchanges for a pair of tokens.';

-- function auth.add_flow_state(text,text,text,bigint,integer)
CREATE OR REPLACE FUNCTION auth.add_flow_state(challenge text, challenge_method text, method text, user_id bigint, seconds integer)
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_id uuid;
begin
  insert into auth.flow_states (challenge, challenge_method, method, user_id, expires_at)
    values (
      add_flow_state.challenge, add_flow_state.challenge_method, add_flow_state.method, add_flow_state.user_id,
      now() + make_interval(secs => seconds)
    ) returning id into v_id;
  delete from auth.flow_states as expired where expired.id in (
    select flow_states.id from auth.flow_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return v_id;
end;
$function$;
comment on function auth.add_flow_state(text,text,text,bigint,integer) is 'Begins a sign-in that ends with a code for tokens.';

-- function auth.add_mail_code(bytea,bytea,text,bigint,text,text,uuid,integer,jsonb)
CREATE OR REPLACE FUNCTION auth.add_mail_code(token_hash bytea, code_hash bytea, purpose text, user_id bigint, email text, new_email text, flow_id uuid, seconds integer, sign_up jsonb DEFAULT NULL::jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_sign_up jsonb := add_mail_code.sign_up;
begin
  if v_sign_up is null and purpose in ('signup', 'sms_signup', 'email_change_new', 'email_change_current') then
    v_sign_up := auth.pending_sign_up(add_mail_code.user_id, add_mail_code.purpose);
  end if;
  perform auth.replace_mail_tokens(add_mail_code.user_id, add_mail_code.purpose, v_sign_up ->> 'password_hash');
  insert into auth.mail_tokens (
    token_hash, code_hash, purpose, user_id, email, new_email, flow_id, is_pkce, expires_at, password_hash, user_name, user_metadata
  ) values (
    add_mail_code.token_hash, add_mail_code.code_hash, add_mail_code.purpose, add_mail_code.user_id, add_mail_code.email,
    add_mail_code.new_email, add_mail_code.flow_id, add_mail_code.flow_id is not null, now() + make_interval(secs => seconds),
    v_sign_up ->> 'password_hash', v_sign_up ->> 'name', nullif(v_sign_up -> 'metadata', 'null')
  );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$function$;
comment on function auth.add_mail_code(bytea,bytea,text,bigint,text,text,uuid,integer,jsonb) is 'Stores the link and the code of a mail, and the sign-up that they prove: {name, password_hash, metadata}. The caller has locked the account.';

-- function auth.add_mail_token(bytea,text,bigint,text,integer,jsonb)
CREATE OR REPLACE FUNCTION auth.add_mail_token(token_hash bytea, purpose text, user_id bigint, email text, seconds integer, sign_up jsonb DEFAULT NULL::jsonb)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if exists (
    select from auth.mail_tokens as sent
    where sent.user_id = add_mail_token.user_id and sent.purpose = add_mail_token.purpose
      and sent.created_at > now() - interval '1 minute'
  ) then
    return null;
  end if;
  perform auth.replace_mail_tokens(add_mail_token.user_id, add_mail_token.purpose, sign_up ->> 'password_hash');
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at, password_hash, user_name, user_metadata)
    values (
      add_mail_token.token_hash, add_mail_token.purpose, add_mail_token.user_id, add_mail_token.email,
      now() + make_interval(secs => seconds), sign_up ->> 'password_hash', sign_up ->> 'name', nullif(sign_up -> 'metadata', 'null')
    );
  delete from auth.mail_tokens as expired where expired.token_hash in (
    select mail_tokens.token_hash from auth.mail_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return email;
end;
$function$;
comment on function auth.add_mail_token(bytea,text,bigint,text,integer,jsonb) is 'The address to send the token to, which proves the sign-up {name, password_hash, metadata}; null when one was sent within the last minute.';

-- function auth.add_passkey(bigint,jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_passkey(user_id bigint, passkey jsonb, client_info auth.client_info, OUT outcome text, OUT added auth.passkeys)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.add_passkey(bigint,jsonb,auth.client_info) is 'Stores a passkey whose registration the service has verified: added; exists, too_many or no_account.';

-- function auth.add_passkey_challenge(text,bigint,text,integer)
CREATE OR REPLACE FUNCTION auth.add_passkey_challenge(purpose text, user_id bigint, challenge text, seconds integer)
 RETURNS auth.mfa_challenges
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.add_passkey_challenge(text,bigint,text,integer) is 'Starts to register a passkey of that user, or to sign in with one, before it is known whose.';

-- function auth.add_provider(jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_provider(provider jsonb, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  insert into auth.providers (
    name, kind, issuer, client_id, client_secret, title, sign_ups, trusts_email, trusts_factor, settings
  )
    select given.name, given.kind, given.issuer, given.client_id, given.client_secret, given.title,
      coalesce(given.sign_ups, true), coalesce(given.trusts_email, false), coalesce(given.trusts_factor, false),
      coalesce(given.settings, '{}')
    from jsonb_populate_record(null::auth.providers, add_provider.provider) as given;
  perform auth.log_event('provider.added', null, client_info, jsonb_build_object('provider', provider ->> 'name'));
exception
  when unique_violation then
    raise exception 'There is a provider of that name, or of that issuer, already' using errcode = 'TAKEN', detail = 'name';
  when check_violation or not_null_violation then
    raise exception 'This is no provider of that kind: %', sqlerrm
      using errcode = 'WRONG', detail = 'settings', hint = 'See docs/federation.md for what each kind wants.';
end;
$function$;
comment on function auth.add_provider(jsonb,auth.client_info) is 'Adds an identity provider from the columns of its row.';

-- function auth.add_refresh_token(bigint,bytea,uuid,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.add_refresh_token(user_id bigint, token_hash bytea, family_id uuid, seconds integer, client_info auth.client_info)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.token_sessions as session set
      refreshed_at = clock_timestamp(), address = client_info.address, user_agent = client_info.user_agent
    where session.id = add_refresh_token.family_id;
  insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at, signed_in_at, address, user_agent)
    values (
      add_refresh_token.token_hash, add_refresh_token.family_id, add_refresh_token.user_id,
      clock_timestamp(), clock_timestamp() + make_interval(secs => seconds),
      (select session.created_at from auth.token_sessions as session where session.id = add_refresh_token.family_id),
      client_info.address, client_info.user_agent
    );
  delete from auth.refresh_tokens as expired where expired.token_hash in (
    select refresh_tokens.token_hash from auth.refresh_tokens where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  delete from auth.token_sessions as ended where ended.id in (
    select session.id from auth.token_sessions as session
    where session.refreshed_at < now() - make_interval(secs => seconds)
      and not exists (select from auth.refresh_tokens as token where token.family_id = session.id)
    order by session.refreshed_at limit 10 for update skip locked
  );
  return auth.session_claims(add_refresh_token.user_id, add_refresh_token.family_id);
end;
$function$;
comment on function auth.add_refresh_token(bigint,bytea,uuid,integer,auth.client_info) is 'Stores a refresh token and returns the claims of the access token. The caller has locked the account.';

-- function auth.add_session_method(bigint,uuid,text,smallint)
CREATE OR REPLACE FUNCTION auth.add_session_method(user_id bigint, session_id uuid, method text, aal smallint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.token_sessions as session set
      aal = greatest(session.aal, add_session_method.aal),
      amr = auth.amr_entry(method, clock_timestamp()) || (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' <> add_session_method.method
      )
    where session.id = add_session_method.session_id and session.user_id = add_session_method.user_id;
  return found;
end;
$function$;
comment on function auth.add_session_method(bigint,uuid,text,smallint) is 'Adds how the user proved to be that user, such as totp, to a sign-in by tokens, and raises its level. The caller has locked the account.';

-- function auth.amr_entry(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION auth.amr_entry(method text, at timestamp with time zone)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
RETURN jsonb_build_object('method', method, 'timestamp', (floor(EXTRACT(epoch FROM at)))::bigint);
comment on function auth.amr_entry(text,timestamp with time zone) is 'An entry of the claim amr: how the user signed in, and when.';

-- function auth.apply_account_changes(auth.users,jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.apply_account_changes(account_before auth.users, changes jsonb, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.apply_account_changes(auth.users,jsonb,auth.client_info) is 'Changes what an administrator gives: role, address, number, metadata, ban. The caller has locked the account.';

-- function auth.apply_email_change(auth.users,auth.mail_tokens,auth.client_info)
CREATE OR REPLACE FUNCTION auth.apply_email_change(account auth.users, proof auth.mail_tokens, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if account.verified_email is null and account.phone_confirmed_at is null then
    perform auth.claim_account(account.user_id, proof, client_info);
  end if;
  perform auth.set_confirmed_email(account.user_id, proof.new_email, client_info);
end;
$function$;
comment on function auth.apply_email_change(auth.users,auth.mail_tokens,auth.client_info) is 'Changes the address to one that was proved. The caller has locked the account.';

-- function auth.approve_oauth_authorization(uuid,bigint,timestamp with time zone,bytea,integer,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.approve_oauth_authorization(id uuid, user_id bigint, signed_in_at timestamp with time zone, code_hash bytea, seconds integer, grant_days integer, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(approve_oauth_authorization.user_id);
  v_request auth.oauth_authorizations;
  v_now constant timestamptz := clock_timestamp();
begin
  if v_account.user_id is null or auth.is_disabled(v_account) or v_account.is_anonymous then
    return false;
  end if;
  update auth.oauth_authorizations as approved set
      code_hash = approve_oauth_authorization.code_hash, signed_in_at = approve_oauth_authorization.signed_in_at,
      expires_at = v_now + make_interval(secs => seconds)
    where approved.id = approve_oauth_authorization.id and approved.user_id = approve_oauth_authorization.user_id
      and approved.code_hash is null and approved.expires_at > v_now
    returning * into v_request;
  if not found then
    return false;
  end if;
  delete from auth.oauth_grants as ended where ended.user_id = v_account.user_id and ended.expires_at < v_now;
  insert into auth.oauth_grants as granted (user_id, client_id, scopes, resource, granted_at, expires_at)
    values (
      v_account.user_id, v_request.client_id, v_request.scopes, v_request.resource, v_now, v_now + make_interval(days => grant_days)
    )
    on conflict on constraint content_service_oauth_grants_user_id_client_id_key do update set
      scopes = excluded.scopes, resource = excluded.resource, granted_at = excluded.granted_at, expires_at = excluded.expires_at;
  if (select count(*) from auth.oauth_grants as granted where granted.user_id = v_account.user_id) > content_service.bound('grants of a user') then
    raise exception 'Too many applications have access to your account' using errcode = 'TOMNY',
      hint = 'Withdraw the access of those that you no longer use.';
  end if;
  perform auth.log_event('oauth.granted', v_account.user_id, client_info, jsonb_build_object(
    'client', v_request.client_id, 'scopes', to_jsonb(v_request.scopes), 'resource', v_request.resource
  ));
  return true;
end;
$function$;
comment on function auth.approve_oauth_authorization(uuid,bigint,timestamp with time zone,bytea,integer,integer,auth.client_info) is 'Grants what the application has requested, and stores the code for it. False: there is no such request of this user, or the account may not grant.';

-- function auth.assign_role(bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.assign_role(user_id bigint, role text, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(assign_role.user_id);
  if not exists (select from auth.roles where roles.name = assign_role.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if assign_role.role = 'authenticated' then
    delete from auth.user_roles where user_roles.user_id = assign_role.user_id;
  else
    insert into auth.user_roles (user_id, role) values (assign_role.user_id, assign_role.role)
      on conflict on constraint content_service_user_roles_pkey do update set role = excluded.role, granted_at = now();
  end if;
  perform auth.log_event('role.assigned', assign_role.user_id, client_info, jsonb_build_object('role', assign_role.role));
end;
$function$;
comment on function auth.assign_role(bigint,text,auth.client_info) is 'Assigns a role. Access tokens with another role end within seconds; a refresh issues new ones.';

-- function auth.ban_account(bigint,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.ban_account(user_id bigint, until timestamp with time zone, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.ban_account(bigint,timestamp with time zone,auth.client_info) is 'Ends all sign-ins of the account and refuses new ones until then; null ends a ban. False: no such account.';

-- function auth.begin_email_change(bigint,text,bytea,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_email_change(user_id bigint, email text, token_hash bytea, seconds integer, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(begin_email_change.user_id);
  v_current text;
  v_message text;
begin
  select profile.email into v_current from auth.profile_of(v_account.user_id) as profile;
  select fault.message into v_message
    from auth.account_faults(null, begin_email_change.email, null, null) as fault where fault.field = 'email' limit 1;
  if v_message is not null then
    raise exception '%', v_message using errcode = 'WRONG', detail = 'email';
  elsif v_current = begin_email_change.email then
    raise exception 'This is your e-mail address already' using errcode = 'WRONG', detail = 'email';
  elsif auth.find_user(begin_email_change.email) <> begin_email_change.user_id then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  elsif auth.add_mail_token(
    token_hash, 'change', v_account.user_id, begin_email_change.email, seconds,
    jsonb_build_object('password_hash', v_account.password_hash)
  ) is null then
    raise exception 'An e-mail was sent within the last minute' using errcode = 'TOMNY', hint = 'Try again in a minute.';
  end if;
  perform auth.log_event('email.change_requested', v_account.user_id, client_info);
  return v_current;
end;
$function$;
comment on function auth.begin_email_change(bigint,text,bytea,integer,auth.client_info) is 'Stores a token to confirm the new address with; returns the current address, for a notice. The user has confirmed the password.';

-- function auth.begin_federation(bytea,bytea,jsonb,integer)
CREATE OR REPLACE FUNCTION auth.begin_federation(state_hash bytea, browser_hash bytea, state jsonb, seconds integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  insert into auth.federation_states (
    state_hash, browser_hash, provider, purpose, mode, redirect_to, code_challenge, user_id,
    nonce, code_verifier, request_id, expires_at
  )
    select begin_federation.state_hash, begin_federation.browser_hash, given.provider, given.purpose, given.mode,
      given.redirect_to, given.code_challenge, given.user_id, given.nonce, given.code_verifier, given.request_id,
      now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_states, begin_federation.state) as given;
  delete from auth.federation_states as expired where expired.state_hash in (
    select federation_states.state_hash from auth.federation_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
end;
$function$;
comment on function auth.begin_federation(bytea,bytea,jsonb,integer) is 'Stores the state of a browser that is redirected to a provider.';

-- function auth.begin_invitation(bytea,bigint,text,integer,jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_invitation(token_hash bytea, user_id bigint, role text, seconds integer, sign_up jsonb, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_address text;
begin
  if not exists (select from auth.roles where roles.name = begin_invitation.role and assignable) then
    raise exception 'There is no role of that name for users' using errcode = 'WRONG', detail = 'role';
  end if;
  if not auth.may_invite(client_info.actor) then
    raise exception 'Only administrators may invite users' using errcode = '42501';
  end if;
  perform auth.invite_account(begin_invitation.user_id, client_info);
  select profile.email into v_address from auth.profile_of(begin_invitation.user_id) as profile;
  perform auth.replace_mail_tokens(begin_invitation.user_id, 'invitation', null);
  insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at, user_name, user_metadata, role, inviter_id)
    values (
      begin_invitation.token_hash, 'invitation', begin_invitation.user_id, v_address, now() + make_interval(secs => seconds),
      sign_up ->> 'name', nullif(sign_up -> 'metadata', 'null'), begin_invitation.role, client_info.actor
    );
  return v_address;
end;
$function$;
comment on function auth.begin_invitation(bytea,bigint,text,integer,jsonb,auth.client_info) is 'Stores the link of an invitation, in place of an earlier one, and returns the address to send it to. The caller has locked the account.';

-- function auth.begin_login(text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_login(name text, client_info auth.client_info, OUT wait integer, OUT counted_name text, OUT user_id bigint, OUT password_hash text, OUT has_factor boolean, OUT factor_secrets text[], OUT backup_code_hash text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.find_account(name);
begin
  counted_name := coalesce(v_account.username, name);
  wait := auth.count_attempt(
    counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
  if wait = 0 then
    user_id := v_account.user_id;
    password_hash := v_account.password_hash;
    has_factor := auth.has_factor(v_account.user_id);
    select coalesce(array_agg(secret order by enabled_at), '{}') into factor_secrets
      from auth.mfa_factors as factor
      where factor.user_id = v_account.user_id and factor.state = 'enabled' and factor.factor_type = 'totp';
    select code_hash into backup_code_hash
      from auth.mfa_backup_codes where mfa_backup_codes.user_id = v_account.user_id and used_at is null limit 1;
  end if;
end;
$function$;
comment on function auth.begin_login(text,auth.client_info) is 'Takes an attempt and returns what the user has to prove. One backup code is enough: all have its salt.';

-- function auth.begin_oauth_authorization(jsonb,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_oauth_authorization(authorization_request jsonb, seconds integer, client_info auth.client_info DEFAULT NULL::auth.client_info)
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_new constant auth.oauth_authorizations := jsonb_populate_record(null::auth.oauth_authorizations, authorization_request);
  v_network constant inet := coalesce(auth.network_of(client_info.address), '0.0.0.0');
  v_id uuid;
begin
  perform auth.trim_oauth_authorizations(v_new.client_id, v_network);
  insert into auth.oauth_authorizations (client_id, redirect_uri, scopes, resource, challenge, state, nonce, asks_always, network, expires_at)
    values (
      v_new.client_id, v_new.redirect_uri, v_new.scopes, v_new.resource, v_new.challenge, v_new.state, v_new.nonce,
      coalesce(v_new.asks_always, false), v_network, now() + make_interval(secs => seconds)
    ) returning id into v_id;
  return v_id;
end;
$function$;
comment on function auth.begin_oauth_authorization(jsonb,integer,auth.client_info) is 'Stores the request of an application for access, until the user has decided.';

-- function auth.begin_reset(text,bytea,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_reset(email text, token_hash bytea, seconds integer, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user_id constant bigint := auth.find_user(begin_reset.email);
  v_account auth.users;
  v_current text;
  v_address text;
begin
  v_account := auth.lock_account(v_user_id);
  select profile.email into v_current from auth.profile_of(v_user_id) as profile;
  if v_current is null or auth.is_disabled(v_account) then
    return null;
  end if;
  v_address := auth.add_mail_token(
    token_hash, 'reset', v_user_id, coalesce(v_account.verified_email, v_current), seconds
  );
  if v_address is not null then
    perform auth.log_event('password.reset_requested', v_user_id, client_info);
  end if;
  return v_address;
end;
$function$;
comment on function auth.begin_reset(text,bytea,integer,auth.client_info) is 'The address to send a password-reset token to; null when there is none.';

-- function auth.begin_sign_up(text,jsonb,bytea,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_sign_up(email text, sign_up jsonb, token_hash bytea, seconds integer, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_recipient record;
begin
  v_recipient := auth.code_recipient(begin_sign_up.email);
  if v_recipient.state <> 'unconfirmed' then
    return null;
  end if;
  return auth.add_mail_token(
    begin_sign_up.token_hash, 'verify', v_recipient.user_id, v_recipient.address, begin_sign_up.seconds, begin_sign_up.sign_up
  );
end;
$function$;
comment on function auth.begin_sign_up(text,jsonb,bytea,integer,auth.client_info) is 'The address to send a verification token to; null when the address is proved, or a token was sent within the last minute.';

-- function auth.begin_verification(bigint,bytea,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.begin_verification(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(begin_verification.user_id);
  v_email text;
begin
  select profile.email into v_email from auth.profile_of(v_account.user_id) as profile;
  if v_email is null or lower(v_account.verified_email) = lower(v_email) then
    return null;
  end if;
  return auth.add_mail_token(
    token_hash, 'verify', v_account.user_id, v_email, seconds, jsonb_build_object('password_hash', v_account.password_hash)
  );
end;
$function$;
comment on function auth.begin_verification(bigint,bytea,integer,auth.client_info) is 'The address to send a verification token to; null when it is verified, or a token was sent within the last minute.';

-- function auth.call_claims_hook(text,jsonb)
CREATE OR REPLACE FUNCTION auth.call_claims_hook(hook text, event jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
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
$function$;
grant execute on function auth.call_claims_hook(text,jsonb) to postgres;
comment on function auth.call_claims_hook(text,jsonb) is 'Calls the function of CLAIMS_HOOK as supabase_auth_admin, so that it cannot act as another role.';

-- function auth.cancel_email_change(bigint)
CREATE OR REPLACE FUNCTION auth.cancel_email_change(user_id bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  delete from auth.mail_tokens as token
  where token.user_id = cancel_email_change.user_id and token.purpose in ('email_change_current', 'email_change_new');
$function$;
comment on function auth.cancel_email_change(bigint) is 'Ends a change of address that is in progress.';

-- function auth.change_account(bigint,jsonb,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.change_account(user_id bigint, changes jsonb, password_hash text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.change_account(bigint,jsonb,text,auth.client_info) is 'Changes an account as an administrator, who gives the first proof of an address or number by confirming it. False: there is none.';

-- function auth.change_email(bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.change_email(token_hash bytea, client_info auth.client_info, OUT user_id bigint, OUT previous_email text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_token auth.mail_tokens;
  v_account auth.users;
begin
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = change_email.token_hash and token.purpose = 'change' and token.expires_at > now();
  v_account := auth.lock_address(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = v_token.token_hash;
  if not found or v_account.user_id is null or auth.is_disabled(v_account) then
    return;
  end if;
  select profile.email into previous_email from auth.profile_of(v_account.user_id) as profile;
  v_token.new_email := v_token.email;
  perform auth.apply_email_change(v_account, v_token, client_info);
  user_id := v_account.user_id;
end;
$function$;
comment on function auth.change_email(bytea,auth.client_info) is 'Spends the token and changes the address, which is verified by that. Null: the token is invalid.';

-- function auth.change_password(bigint,text,auth.client_info,uuid)
CREATE OR REPLACE FUNCTION auth.change_password(user_id bigint, new_hash text, client_info auth.client_info, kept_session uuid DEFAULT NULL::uuid)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.set_password(change_password.user_id, new_hash, kept_session);
  perform auth.log_event('password.changed', change_password.user_id, client_info);
end;
$function$;
comment on function auth.change_password(bigint,text,auth.client_info,uuid) is 'Sets the password of a user who may do that in this transaction, and ends the user''s other sign-ins.';

-- function auth.claim_account(bigint,auth.mail_tokens,auth.client_info)
CREATE OR REPLACE FUNCTION auth.claim_account(user_id bigint, proof auth.mail_tokens, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.claim_profile(claim_account.user_id, proof);
  update auth.users as account set
      password_hash = proof.password_hash, password_changed_at = clock_timestamp(),
      phone = case when proof.purpose in ('sms', 'sms_signup') then account.phone end,
      phone_confirmed_at = case when proof.purpose in ('sms', 'sms_signup') then account.phone_confirmed_at end
    where account.user_id = claim_account.user_id;
  perform auth.end_sign_ins(claim_account.user_id);
  delete from auth.identities as identity where identity.user_id = claim_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = claim_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = claim_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = claim_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = claim_account.user_id and key.revoked_at is null;
  delete from auth.mail_tokens as token where token.user_id = claim_account.user_id;
  delete from auth.flow_states as flow where flow.user_id = claim_account.user_id and flow.id is distinct from proof.flow_id;
  delete from auth.federation_states as state where state.user_id = claim_account.user_id;
  delete from auth.federation_logins as login where login.user_id = claim_account.user_id;
  delete from auth.federation_codes as code where code.user_id = claim_account.user_id;
  perform auth.log_event('account.claimed', claim_account.user_id, client_info);
end;
$function$;
comment on function auth.claim_account(bigint,auth.mail_tokens,auth.client_info) is 'Ends all that an account had before the first proof of its address or number. The caller has locked the account.';

-- function auth.claim_profile(bigint,auth.mail_tokens)
CREATE OR REPLACE FUNCTION auth.claim_profile(user_id bigint, proof auth.mail_tokens)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(claim_profile.user_id);
  v_is_of_account constant boolean := coalesce(
    proof.purpose in ('email_change_new', 'email_change_current') or proof.password_hash = v_account.password_hash, false
  );
  v_metadata jsonb := auth.merge_metadata('{}', proof.user_metadata);
  v_given_name constant text := nullif(btrim(coalesce(proof.user_name, v_metadata ->> 'name')), '');
  v_usual_name constant text := coalesce(nullif(split_part(auth.own_email(v_account), '@', 1), ''), 'User');
begin
  if v_is_of_account or v_account.is_self_registered is not true and proof.user_name is null then
    return;
  end if;
  -- Metadata of a sign-up for an address that had an account already was not checked then.
  if octet_length(v_metadata::text) > 8192 then
    v_metadata := '{}';
  end if;
  update auth.users as account set raw_user_meta_data = v_metadata where account.user_id = claim_profile.user_id;
  begin
    perform auth.rename_user(claim_profile.user_id, left(coalesce(v_given_name, v_usual_name), 200));
  exception when sqlstate 'WRONG' then
    perform auth.rename_user(claim_profile.user_id, left(v_usual_name, 200));
  end;
  -- Metadata that a sign-up gives stays as it was given, without the name.
  update auth.users as account set raw_user_meta_data = v_metadata
    where account.user_id = claim_profile.user_id and proof.user_metadata is not null;
end;
$function$;
comment on function auth.claim_profile(bigint,auth.mail_tokens) is 'Gives the account the name and metadata of the sign-up whose proof it is. The caller has locked the account.';

-- function auth.claims_of(bigint)
CREATE OR REPLACE FUNCTION auth.claims_of(user_id bigint)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (jsonb_build_object('sub',
         CASE
             WHEN subject.is_uuid THEN (account.id)::text
             ELSE (claims_of.user_id)::text
         END, 'name', "left"(profile.name, 200), 'role', held.role, 'permissions', ( SELECT COALESCE(jsonb_agg(granted.permission ORDER BY granted.permission), '[]'::jsonb) AS "coalesce"
            FROM ( SELECT user_permissions.permission
                    FROM auth.user_permissions
                   WHERE (user_permissions.user_id = claims_of.user_id)
                 UNION
                  SELECT role_permissions.permission
                    FROM ((auth.role_permissions
                      JOIN pg_roles granted_to ON ((granted_to.rolname = role_permissions.role)))
                      JOIN pg_roles own ON ((own.rolname = held.role)))
                   WHERE pg_has_role(own.oid, granted_to.oid, 'usage'::text)) granted)) ||
         CASE
             WHEN subject.is_uuid THEN jsonb_build_object('user_id', (claims_of.user_id)::text)
             ELSE '{}'::jsonb
         END)
    FROM (((auth.profile_of(claims_of.user_id) profile(name, email)
      CROSS JOIN ( SELECT auth.has_uuid_subjects() AS is_uuid) subject)
      LEFT JOIN auth.users account ON ((account.user_id = claims_of.user_id)))
      CROSS JOIN LATERAL ( SELECT COALESCE(( SELECT user_roles.role
                    FROM (auth.user_roles
                      JOIN auth.roles ON ((roles.name = user_roles.role)))
                   WHERE ((user_roles.user_id = claims_of.user_id) AND roles.assignable)), 'authenticated'::text) AS role) held);
END;
comment on function auth.claims_of(bigint) is 'The claims of a credential of this user: sub, name, role and permissions.';

-- function auth.close_session(bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.close_session(id_hash bytea, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user_id bigint;
begin
  delete from auth.sessions where sessions.id_hash = close_session.id_hash returning user_id into v_user_id;
  if found then
    perform auth.log_event('session.closed', v_user_id, client_info);
  end if;
end;
$function$;
comment on function auth.close_session(bytea,auth.client_info) is 'Signs the browser out.';

-- function auth.code_recipient(text)
CREATE OR REPLACE FUNCTION auth.code_recipient(email text, OUT user_id bigint, OUT address text, OUT state text, OUT metadata jsonb, OUT new_email text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
begin
  user_id := auth.find_user(code_recipient.email);
  v_account := auth.lock_account(user_id);
  if v_account.user_id is null and user_id is not null then
    insert into auth.users (user_id, username, email) values (user_id, code_recipient.email, code_recipient.email) on conflict do nothing;
    v_account := auth.lock_account(user_id);
  end if;
  user_id := v_account.user_id;
  address := coalesce(v_account.verified_email, v_account.email);
  metadata := v_account.raw_user_meta_data;
  new_email := auth.pending_email(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    when v_account.email_confirmed_at is null then 'unconfirmed'
    else 'confirmed'
  end;
end;
$function$;
comment on function auth.code_recipient(text) is 'The account with that address, which is locked, and is made for a user without one: absent, disabled, unconfirmed or confirmed.';

-- function auth.confirm_mail_code(auth.mail_tokens,auth.users,auth.client_info)
CREATE OR REPLACE FUNCTION auth.confirm_mail_code(token auth.mail_tokens, account auth.users, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if token.purpose in ('email_change_current', 'email_change_new') then
    update auth.mail_tokens as side set used_at = clock_timestamp(), code_hash = null where side.token_hash = token.token_hash;
    if exists (
      select from auth.mail_tokens as side
      where side.user_id = account.user_id and side.purpose in ('email_change_current', 'email_change_new')
        and side.used_at is null and side.expires_at > now()
    ) then
      return 'half';
    end if;
    perform auth.apply_email_change(account, token, client_info);
    return 'passed';
  end if;
  delete from auth.mail_tokens as spent where spent.token_hash = token.token_hash;
  if token.purpose in ('sms', 'sms_signup') then
    if account.phone_confirmed_at is null and account.verified_email is null then
      perform auth.claim_account(account.user_id, token, client_info);
    end if;
    update auth.users as confirmed set phone_confirmed_at = coalesce(confirmed.phone_confirmed_at, clock_timestamp())
      where confirmed.user_id = account.user_id;
    return 'passed';
  end if;
  if lower(account.verified_email) is distinct from lower(token.email) then
    perform auth.claim_account(account.user_id, token, client_info);
    perform auth.log_event('email.verified', account.user_id, client_info);
  end if;
  update auth.users as confirmed set verified_email = token.email where confirmed.user_id = account.user_id;
  return 'passed';
end;
$function$;
comment on function auth.confirm_mail_code(auth.mail_tokens,auth.users,auth.client_info) is 'Spends a valid link or code: passed, or half if a change of address waits for the other side. The caller has locked the account.';

-- function auth.confirm_password(text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.confirm_password(counted_name text, user_id bigint, password_hash text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(confirm_password.user_id);
begin
  if v_account.password_hash is distinct from confirm_password.password_hash or auth.is_disabled(v_account) then
    perform auth.fail_login(counted_name, v_account.user_id, 'password', client_info);
    return false;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'passed');
  return true;
end;
$function$;
comment on function auth.confirm_password(text,bigint,text,auth.client_info) is 'Whether a password that was compared with this hash is still the one of the account, which is locked until the end of the transaction.';

-- function auth.continue_tokens(bigint,uuid,bytea,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.continue_tokens(user_id bigint, session_id uuid, token_hash bytea, seconds integer, client_info auth.client_info)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.refresh_tokens as token set rotated_at = clock_timestamp()
    where token.user_id = continue_tokens.user_id and token.family_id = session_id
      and token.rotated_at is null and token.revoked_at is null;
  if not found then
    return null;
  end if;
  perform auth.log_event('refresh_token.created', continue_tokens.user_id, client_info);
  return auth.add_refresh_token(
    continue_tokens.user_id, continue_tokens.token_hash, session_id, continue_tokens.seconds, client_info
  );
end;
$function$;
comment on function auth.continue_tokens(bigint,uuid,bytea,integer,auth.client_info) is 'Replaces the refresh token of a sign-in and returns the claims of its next access token; null if it has ended. The caller has locked the account.';

-- function auth.count_attempt(text,inet,boolean)
CREATE OR REPLACE FUNCTION auth.count_attempt(name text, address inet, is_known_network boolean DEFAULT false)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_window constant interval := '15 minutes';
  v_now constant timestamptz := clock_timestamp();
  v_wait integer;
begin
  -- From here on each counter is locked, whether or not it existed.
  insert into auth.login_throttle as counter (scope, key, failures, window_started_at)
    select scope, key, 0, v_now from auth.login_counters(name, address)
    on conflict on constraint content_service_login_throttle_pkey do update set
      failures = case when counter.window_started_at > v_now - v_window then counter.failures else 0 end,
      pending = case when counter.window_started_at > v_now - v_window then counter.pending else 0 end,
      window_started_at =
        case when counter.window_started_at > v_now - v_window then counter.window_started_at else v_now end;

  -- Attempts in progress may succeed: where they alone fill the counter, retrying soon is worthwhile.
  select max(case
    when counter.failures - counter.pending < counters.most then 1
    else greatest(1, ceil(extract(epoch from counter.window_started_at + v_window - v_now))::integer)
  end) into v_wait
    from auth.login_throttle as counter join auth.login_counters(name, address) as counters using (scope, key)
    where counter.failures >= counters.most and not (counters.scope = 'user' and is_known_network);

  if v_wait is null then
    update auth.login_throttle as counter set failures = failures + 1, pending = pending + 1
      from auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key;
  else
    delete from auth.login_throttle as counter using auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key and counter.failures = 0;
  end if;
  delete from auth.login_throttle where (scope, key) in (
    select scope, key from auth.login_throttle where window_started_at < v_now - v_window
    order by window_started_at limit 10 for update skip locked
  );
  return coalesce(v_wait, 0);
end;
$function$;
comment on function auth.count_attempt(text,inet,boolean) is 'Counts an attempt before it is made; returns 0, or the seconds until the next one is allowed.';

-- function auth.create_account(jsonb,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.create_account(jsonb,text,auth.client_info) is 'Creates an account as an administrator, and returns its key.';

-- function auth.create_api_key(bytea,text,text,bigint,text,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.create_api_key(key_hash bytea, prefix text, role text, owner_id bigint, name text, expires_at timestamp with time zone, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_id bigint;
begin
  -- Locks the lower id first: otherwise two transactions could deadlock.
  perform auth.lock_account(held.id)
    from (select distinct unnest(array[create_api_key.owner_id, (client_info).actor]) as id order by id) as held;
  -- An access token outlives a change of roles by some seconds. A role from another issuer's token is trusted.
  if exists (
    select from auth.users as account left join auth.user_roles using (user_id)
    where account.user_id = (client_info).actor
      and (auth.is_disabled(account)
        or account.tokens_valid_from > now() - interval '1 minute' and user_roles.role is distinct from 'admin')
  ) then
    raise exception 'Only an administrator may do this' using errcode = 'NOPER';
  elsif not exists (select from auth.roles where roles.name = create_api_key.role) then
    raise exception 'There is no role of that name for keys' using errcode = 'WRONG', detail = 'role';
  elsif owner_id is not null and not exists (select from auth.profile_of(owner_id)) then
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
  perform auth.log_event('api_key.created', owner_id, client_info, jsonb_build_object('api_key', v_id, 'role', role));
  return v_id;
end;
$function$;
comment on function auth.create_api_key(bytea,text,text,bigint,text,timestamp with time zone,auth.client_info) is 'Stores an API key in any role; for an administrator or an operator.';

-- function auth.create_own_api_key(bytea,text,bigint,text,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.create_own_api_key(key_hash bytea, prefix text, user_id bigint, name text, expires_at timestamp with time zone, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_max constant integer := 50;
begin
  -- No role can be assigned between reading it and the insert.
  perform auth.lock_account(create_own_api_key.user_id);
  if (
    select count(*) from auth.api_keys
    where api_keys.owner_id = create_own_api_key.user_id and api_keys.revoked_at is null
      and (api_keys.expires_at is null or api_keys.expires_at > now())
  ) >= v_max then
    raise exception 'You have % keys already', v_max using errcode = 'WRONG', detail = 'name', hint = 'Revoke keys that you no longer use.';
  elsif length(create_own_api_key.name) > 200 then
    raise exception 'A name has at most 200 characters' using errcode = 'WRONG', detail = 'name';
  end if;
  return auth.create_api_key(
    create_own_api_key.key_hash, create_own_api_key.prefix, auth.claims_of(create_own_api_key.user_id) ->> 'role',
    create_own_api_key.user_id, create_own_api_key.name, create_own_api_key.expires_at, client_info
  );
end;
$function$;
comment on function auth.create_own_api_key(bytea,text,bigint,text,timestamp with time zone,auth.client_info) is 'Stores an API key of a user, in the role that the user has. The user has confirmed the password.';

-- function auth.delete_account(bigint,boolean,auth.client_info)
CREATE OR REPLACE FUNCTION auth.delete_account(user_id bigint, keeps_row boolean, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.delete_account(bigint,boolean,auth.client_info) is 'Deletes an account as an administrator. False: there is none.';

-- function auth.delete_email_template(text,bigint)
CREATE OR REPLACE FUNCTION auth.delete_email_template(name text, administrator bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not auth.may_invite(administrator) then
    raise exception 'Only administrators may change e-mails' using errcode = '42501';
  end if;
  delete from auth.email_templates as template where template.name = delete_email_template.name;
  return found;
end;
$function$;
comment on function auth.delete_email_template(text,bigint) is 'Deletes the e-mail, so that the default one is sent again; false if there is none.';

-- function auth.delete_expired_challenges()
CREATE OR REPLACE FUNCTION auth.delete_expired_challenges()
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  delete from auth.mfa_challenges where id in (
    select id from auth.mfa_challenges where expires_at < now() - interval '10 minutes'
    order by expires_at limit 10 for update skip locked
  );
$function$;
comment on function auth.delete_expired_challenges() is 'Deletes a few challenges that have expired.';

-- function auth.delete_factor(auth.mfa_factors,auth.client_info)
CREATE OR REPLACE FUNCTION auth.delete_factor(factor auth.mfa_factors, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.token_sessions as session set
      aal = 1, factor_id = null,
      amr = (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' not in ('totp', 'mfa/webauthn')
      )
    where session.factor_id = factor.id;
  delete from auth.mfa_factors as deleted where deleted.id = factor.id;
  if not auth.has_factor(factor.user_id) then
    delete from auth.mfa_backup_codes as code where code.user_id = factor.user_id;
    update auth.token_sessions as session set requires_factor = false
      where session.user_id = factor.user_id and session.requires_factor;
  end if;
  perform auth.log_event(
    'factor.disabled', factor.user_id, client_info, jsonb_build_object('factor', factor.id, 'type', factor.factor_type)
  );
end;
$function$;
comment on function auth.delete_factor(auth.mfa_factors,auth.client_info) is 'Deletes a factor. The caller has locked the account.';

-- function auth.delete_factor_of(bigint,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.delete_factor_of(user_id bigint, factor_id uuid, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(delete_factor_of.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = delete_factor_of.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return false;
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return true;
end;
$function$;
comment on function auth.delete_factor_of(bigint,uuid,auth.client_info) is 'Deletes a factor of that user as an administrator. False: the user has no such factor.';

-- function auth.delete_user(bigint)
CREATE OR REPLACE FUNCTION auth.delete_user(user_id bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  delete from public.users where users.id = delete_user.user_id;
$function$;
comment on function auth.delete_user(bigint) is 'Deletes the user and the account.';

-- function auth.deny_oauth_authorization(uuid,bigint)
CREATE OR REPLACE FUNCTION auth.deny_oauth_authorization(id uuid, user_id bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.oauth_authorizations as denied
    where denied.id = deny_oauth_authorization.id and denied.user_id = deny_oauth_authorization.user_id and denied.code_hash is null;
  return found;
end;
$function$;
comment on function auth.deny_oauth_authorization(uuid,bigint) is 'Ends a request for access. False: there is no such request of this user.';

-- function auth.disable_account(bigint,auth.client_info)
CREATE OR REPLACE FUNCTION auth.disable_account(user_id bigint, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.disable_account(bigint,auth.client_info) is 'Ends all sign-ins of the account and refuses new ones until it is enabled. False: no such account.';

-- function auth.disable_factor(text,bigint,text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.disable_factor(counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_outcome text;
begin
  perform auth.lock_account(disable_factor.user_id);
  v_outcome := auth.use_factor(disable_factor.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, disable_factor.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.delete_factor(factor, client_info) from auth.mfa_factors as factor
      where factor.user_id = disable_factor.user_id and factor.factor_type = 'totp';
  end if;
  return v_outcome;
end;
$function$;
comment on function auth.disable_factor(text,bigint,text,bigint,text,auth.client_info) is 'enabled -> not enrolled, for each authenticator app, given a valid code; returns the result of use_factor.';

-- function auth.enable_account(bigint,auth.client_info)
CREATE OR REPLACE FUNCTION auth.enable_account(user_id bigint, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if (auth.lock_account(enable_account.user_id)).user_id is null then
    return false;
  end if;
  update auth.users as account set disabled_at = null, banned_until = null where account.user_id = enable_account.user_id;
  perform auth.log_event('account.enabled', enable_account.user_id, client_info);
  return true;
end;
$function$;
comment on function auth.enable_account(bigint,auth.client_info) is 'Allows the user to sign in again. False: no such account.';

-- function auth.enable_factor(bigint,text,bigint,text[],auth.client_info,uuid,bytea)
CREATE OR REPLACE FUNCTION auth.enable_factor(user_id bigint, secret text, step bigint, backup_code_hashes text[], client_info auth.client_info, session_id uuid DEFAULT NULL::uuid, browser bytea DEFAULT NULL::bytea)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(enable_factor.user_id);
  v_is_first constant boolean := not auth.has_factor(v_account.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.user_id = v_account.user_id and factor.secret = enable_factor.secret and factor.state = 'pending';
  if not found then
    return false;
  elsif not v_is_first and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return null;
  end if;
  update auth.mfa_factors as factor
    set state = 'enabled', enabled_at = now(), updated_at = now(), last_used_step = step
    where factor.id = v_factor.id;
  perform auth.raise_session(v_account.user_id, session_id, v_factor);
  if v_is_first then
    perform auth.end_sign_ins_without_factor(v_account.user_id, session_id, browser);
  end if;
  perform auth.replace_backup_codes(v_account.user_id, backup_code_hashes);
  perform auth.log_event('factor.enabled', v_account.user_id, client_info);
  return true;
end;
$function$;
comment on function auth.enable_factor(bigint,text,bigint,text[],auth.client_info,uuid,bytea) is 'pending -> enabled, given a valid code of that secret, for a sign-in by tokens or of a browser, which goes on. False: no such secret is pending. Null: the sign-in must prove another factor first.';

-- function auth.enable_provider(text,boolean,auth.client_info)
CREATE OR REPLACE FUNCTION auth.enable_provider(name text, enabled boolean, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.providers set enabled = enable_provider.enabled where providers.name = enable_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    case when enable_provider.enabled then 'provider.enabled' else 'provider.disabled' end, null, client_info,
    jsonb_build_object('provider', enable_provider.name)
  );
  return true;
end;
$function$;
comment on function auth.enable_provider(text,boolean,auth.client_info) is 'Enables or disables sign-in through a provider; users who are signed in stay so. False: no such provider.';

-- function auth.end_access_tokens(bigint)
CREATE OR REPLACE FUNCTION auth.end_access_tokens(user_id bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update auth.users as account
  set tokens_valid_from = greatest(date_trunc('second', clock_timestamp()), tokens_valid_from) + interval '1 second'
  where account.user_id = end_access_tokens.user_id;
$function$;
comment on function auth.end_access_tokens(bigint) is 'Ends all access tokens of the user; new ones can be issued at once.';

-- function auth.end_attempt(text,inet,text)
CREATE OR REPLACE FUNCTION auth.end_attempt(name text, address inet, outcome text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_counter record;
begin
  for v_counter in select * from auth.login_counters(name, address) loop
    update auth.login_throttle set
      pending = greatest(pending - 1, 0),
      failures = case
        when outcome = 'failed' then failures
        -- A success clears the failures of this user at this address, except attempts in progress.
        when outcome = 'passed' and scope = 'pair' then greatest(pending - 1, 0)
        else greatest(failures - 1, 0)
      end
      where scope = v_counter.scope and key = v_counter.key;
    delete from auth.login_throttle where scope = v_counter.scope and key = v_counter.key and failures = 0;
  end loop;
end;
$function$;
comment on function auth.end_attempt(text,inet,text) is 'Records that an attempt passed, failed, or was abandoned.';

-- function auth.end_federation(bytea,bytea,text,text)
CREATE OR REPLACE FUNCTION auth.end_federation(state_hash bytea, browser_hash bytea, provider text, purpose text)
 RETURNS SETOF auth.federation_states
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  return query
    delete from auth.federation_states as state
      where state.state_hash = end_federation.state_hash
        and (state.browser_hash = end_federation.browser_hash or state.mode in ('code', 'fragment'))
        and state.provider = end_federation.provider and state.purpose = end_federation.purpose
        and state.expires_at > now()
      returning state.*;
end;
$function$;
comment on function auth.end_federation(bytea,bytea,text,text) is 'Deletes and returns the state of a browser that comes back from a provider. No row for a second use.';

-- function auth.end_federation_sessions(text,text,text,text,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.end_federation_sessions(provider text, subject text, session_index text, message_id text, message_expires_at timestamp with time zone, client_info auth.client_info)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_issuer constant text := (select issuer from auth.providers where name = end_federation_sessions.provider);
  v_user_id bigint;
  v_ended integer := 0;
begin
  if not auth.use_message(v_issuer, message_id, message_expires_at) then
    return null;
  end if;
  for v_user_id in
    delete from auth.sessions as session using auth.federation_sessions as federated
      where federated.session_hash = session.id_hash and federated.provider = end_federation_sessions.provider
        and federated.subject = end_federation_sessions.subject
        and coalesce(federated.session_index = end_federation_sessions.session_index, true)
      returning session.user_id
  loop
    v_ended := v_ended + 1;
    perform auth.log_event('session.closed', v_user_id, client_info, jsonb_build_object('provider', provider));
  end loop;
  return v_ended;
end;
$function$;
comment on function auth.end_federation_sessions(text,text,text,text,timestamp with time zone,auth.client_info) is 'Ends the sessions that a provider asks to end, and returns their number. Null: a replayed message.';

-- function auth.end_oauth_sessions(uuid[])
CREATE OR REPLACE FUNCTION auth.end_oauth_sessions(session_ids uuid[])
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update auth.refresh_tokens as token set revoked_at = now()
  where token.family_id = any (session_ids) and token.revoked_at is null;
$function$;
comment on function auth.end_oauth_sessions(uuid[]) is 'Ends sign-ins that applications hold, and their access tokens within seconds.';

-- function auth.end_other_sign_ins(bigint,bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.end_other_sign_ins(user_id bigint, id_hash bytea, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.revoke_refresh_tokens(end_other_sign_ins.user_id, client_info);
  perform auth.end_access_tokens(end_other_sign_ins.user_id);
  delete from auth.sessions
    where sessions.user_id = end_other_sign_ins.user_id and sessions.id_hash <> end_other_sign_ins.id_hash;
end;
$function$;
comment on function auth.end_other_sign_ins(bigint,bytea,auth.client_info) is 'Ends all sign-ins of the user except this session.';

-- function auth.end_sign_ins(bigint,uuid,bytea)
CREATE OR REPLACE FUNCTION auth.end_sign_ins(user_id bigint, kept_session uuid DEFAULT NULL::uuid, kept_browser bytea DEFAULT NULL::bytea)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.end_access_tokens(end_sign_ins.user_id);
  delete from auth.sessions where sessions.user_id = end_sign_ins.user_id and sessions.id_hash is distinct from kept_browser;
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_sign_ins.user_id and token.revoked_at is null and token.family_id is distinct from kept_session;
  update auth.token_sessions as session set kept_at = account.tokens_valid_from
    from auth.users as account
    where session.id = kept_session and session.user_id = end_sign_ins.user_id and account.user_id = session.user_id;
end;
$function$;
comment on function auth.end_sign_ins(bigint,uuid,bytea) is 'Ends all sign-ins of the user, except one by tokens, and one of a browser. The caller has locked the account.';

-- function auth.end_sign_ins_without_factor(bigint,uuid,bytea)
CREATE OR REPLACE FUNCTION auth.end_sign_ins_without_factor(user_id bigint, kept_session uuid, kept_browser bytea)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.token_sessions as session set requires_factor = true
    where session.user_id = end_sign_ins_without_factor.user_id and session.aal < 2 and session.id is distinct from kept_session;
  delete from auth.flow_states as flow where flow.user_id = end_sign_ins_without_factor.user_id;
  delete from auth.federation_states as state where state.user_id = end_sign_ins_without_factor.user_id;
  delete from auth.federation_codes as code where code.user_id = end_sign_ins_without_factor.user_id;
  -- It would open a session. That of an address that nobody has proved stays: its proof ends this factor.
  delete from auth.mail_tokens as token using auth.users as account
    where token.user_id = end_sign_ins_without_factor.user_id and token.purpose = 'invitation'
      and account.user_id = token.user_id and account.verified_email is not null;
  perform auth.end_sign_ins(end_sign_ins_without_factor.user_id, kept_session, kept_browser);
end;
$function$;
comment on function auth.end_sign_ins_without_factor(bigint,uuid,bytea) is 'Ends all sign-ins of before the first second factor, except the one that verified it. The caller has locked the account.';

-- function auth.end_token_family(bigint,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.end_token_family(user_id bigint, family_id uuid, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(end_token_family.user_id);
  update auth.refresh_tokens as token set revoked_at = now()
    where token.user_id = end_token_family.user_id and token.family_id = end_token_family.family_id
      and token.revoked_at is null;
  if not found then
    return false;
  end if;
  perform auth.end_access_tokens(end_token_family.user_id);
  perform auth.log_event('refresh_token.revoked', end_token_family.user_id, client_info);
  return true;
end;
$function$;
comment on function auth.end_token_family(bigint,uuid,auth.client_info) is 'Ends one sign-in by tokens of that user. False: the user has no such sign-in.';

-- function auth.ended_token_sessions(uuid[])
CREATE OR REPLACE FUNCTION auth.ended_token_sessions(session_ids uuid[])
 RETURNS SETOF uuid
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT DISTINCT token.family_id
    FROM auth.refresh_tokens token
   WHERE ((token.family_id = ANY (ended_token_sessions.session_ids)) AND (token.revoked_at IS NOT NULL));
END;
comment on function auth.ended_token_sessions(uuid[]) is 'Those of these sign-ins by tokens that were ended.';

-- function auth.enroll_factor(bigint,text,auth.client_info,uuid)
CREATE OR REPLACE FUNCTION auth.enroll_factor(user_id bigint, secret text, client_info auth.client_info, session_id uuid DEFAULT NULL::uuid)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(enroll_factor.user_id);
begin
  if v_account.user_id is null then
    raise exception 'There is no account to protect' using errcode = 'NTFND';
  end if;
  if exists (
    select from auth.mfa_factors as factor
    where factor.user_id = v_account.user_id and factor.factor_type = 'totp' and factor.state = 'enabled'
  ) then
    raise exception 'An authenticator app is enabled already'
      using errcode = 'TAKEN', hint = 'Disable it with one of its codes before you enrol another one.';
  end if;
  if auth.has_factor(v_account.user_id) and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return null;
  end if;
  delete from auth.mfa_factors as pending
    where pending.user_id = v_account.user_id and pending.factor_type = 'totp' and pending.state = 'pending';
  insert into auth.mfa_factors (user_id, factor_type, secret) values (v_account.user_id, 'totp', enroll_factor.secret);
  perform auth.log_event('factor.enrolled', v_account.user_id, client_info);
  return v_account.username;
end;
$function$;
comment on function auth.enroll_factor(bigint,text,auth.client_info,uuid) is 'not enrolled or pending -> pending. Returns the user name that the app displays; null when the sign-in must prove another factor first.';

-- function auth.ensure_administrator(text,text,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.ensure_administrator(name text, email text, password_hash text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform pg_advisory_xact_lock(hashtextextended('auth.ensure_administrator', 0));
  if auth.has_administrator() then
    return false;
  end if;
  perform auth.add_account(name, email, 'admin', password_hash, client_info);
  return true;
end;
$function$;
comment on function auth.ensure_administrator(text,text,text,auth.client_info) is 'Creates the first administrator. False: there is one.';

-- function auth.exchange_oauth_code(bytea,text,text,text,bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.exchange_oauth_code(code_hash bytea, client_id text, redirect_uri text, challenge text, token_hash bytea, client_info auth.client_info, OUT outcome text, OUT claims jsonb, OUT session auth.oauth_sessions, OUT expires_at timestamp with time zone, OUT nonce text, OUT signed_in_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_request auth.oauth_authorizations;
  v_grant auth.oauth_grants;
  v_account auth.users;
begin
  select request.user_id into v_account.user_id
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_request
    from auth.oauth_authorizations as request where request.code_hash = exchange_oauth_code.code_hash for update;
  select * into v_grant from auth.oauth_grants as granted
    where granted.user_id = v_request.user_id and granted.client_id = v_request.client_id and granted.expires_at > clock_timestamp();
  outcome := case
    when v_request.id is null or v_request.client_id <> exchange_oauth_code.client_id or v_account.user_id is null then 'absent'
    when v_request.used_at is not null then 'reused'
    when v_request.expires_at <= clock_timestamp() or v_grant.id is null or auth.is_disabled(v_account) then 'ended'
    when v_request.redirect_uri is distinct from exchange_oauth_code.redirect_uri then 'redirect'
    when v_request.challenge is distinct from exchange_oauth_code.challenge then 'verifier'
    else 'passed'
  end;
  if outcome = 'reused' then
    perform auth.end_oauth_sessions(array[v_request.session_id]);
    perform auth.log_event('oauth.code_reused', v_account.user_id, client_info, jsonb_build_object('client', v_request.client_id));
  elsif outcome = 'passed' then
    expires_at := v_grant.expires_at;
    claims := auth.open_tokens(
      v_account.user_id, exchange_oauth_code.token_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer,
      client_info, array['oauth_provider/authorization_code'], case when auth.has_factor(v_account.user_id) then 2 else 1 end::smallint, true
    );
    insert into auth.oauth_sessions (session_id, grant_id, scopes, resource, expires_at)
      values ((claims ->> 'session_id')::uuid, v_grant.id, v_request.scopes, v_request.resource, v_grant.expires_at) returning * into session;
    perform auth.end_oauth_sessions(array(
      select held.session_id from auth.oauth_sessions as held join auth.token_sessions as kept on kept.id = held.session_id
      where held.grant_id = v_grant.id order by kept.refreshed_at desc offset content_service.bound('sign-ins of a grant')
    ));
    update auth.oauth_authorizations as used set used_at = clock_timestamp(), session_id = session.session_id where used.id = v_request.id;
    nonce := v_request.nonce;
    signed_in_at := v_request.signed_in_at;
  end if;
end;
$function$;
comment on function auth.exchange_oauth_code(bytea,text,text,text,bytea,auth.client_info) is 'Exchanges the code of an application for a sign-in by tokens, whose access is restricted: passed, or why not.';

-- function auth.fail_login(text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.fail_login(counted_name text, user_id bigint, reason text, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.end_attempt(counted_name, client_info.address, 'failed');
  perform auth.log_event('login.failed', user_id, client_info, jsonb_build_object('reason', reason));
end;
$function$;
comment on function auth.fail_login(text,bigint,text,auth.client_info) is 'Records a failed attempt. The log does not contain the name: people type passwords there.';

-- function auth.federated_user(auth.providers,text,jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.federated_user(provider auth.providers, subject text, claims jsonb, client_info auth.client_info, OUT outcome text, OUT user_id bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
      on conflict on constraint content_service_users_pkey do nothing;
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
$function$;
comment on function auth.federated_user(auth.providers,text,jsonb,auth.client_info) is 'The user of an identity: found, linked or registered; or why there is none: conflict, closed, nameless. Locks the account.';

-- function auth.find_account(text)
CREATE OR REPLACE FUNCTION auth.find_account(name text)
 RETURNS auth.users
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select account from auth.users as account
  where lower(account.username) = lower(find_account.name) or account.user_id = auth.find_user(find_account.name);
$function$;
comment on function auth.find_account(text) is 'The account with that user name or e-mail address.';

-- function auth.find_invitation(bytea)
CREATE OR REPLACE FUNCTION auth.find_invitation(token_hash bytea)
 RETURNS TABLE(user_id bigint, email text, role text)
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select token.user_id, token.email, token.role
  from auth.mail_tokens as token join auth.find_mail_token(find_invitation.token_hash, 'invitation') as found using (user_id)
  where token.token_hash = find_invitation.token_hash and auth.may_invite(token.inviter_id);
$function$;
comment on function auth.find_invitation(bytea) is 'The invitation of a link that can be used: it has not expired, and its inviter is an administrator still.';

-- function auth.find_mail_token(bytea,text)
CREATE OR REPLACE FUNCTION auth.find_mail_token(token_hash bytea, purpose text)
 RETURNS TABLE(user_id bigint, username text, email text)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT token.user_id,
     account.username,
     token.email
    FROM ((auth.mail_tokens token
      CROSS JOIN LATERAL auth.profile_of(token.user_id) profile(name, email))
      LEFT JOIN auth.users account ON ((account.user_id = token.user_id)))
   WHERE ((token.token_hash = find_mail_token.token_hash) AND (token.purpose = find_mail_token.purpose) AND (token.expires_at > now()) AND (NOT auth.is_disabled(account.*)) AND (lower(token.email) =
         CASE token.purpose
             WHEN 'reset'::text THEN lower(COALESCE(account.verified_email, profile.email))
             ELSE lower(profile.email)
         END));
END;
comment on function auth.find_mail_token(bytea,text) is 'The user of a valid mail token.';

-- function auth.find_oauth_session(text,bytea,uuid)
CREATE OR REPLACE FUNCTION auth.find_oauth_session(client_id text, token_hash bytea, session_id uuid)
 RETURNS TABLE(session auth.oauth_sessions, user_id bigint, issued_at timestamp with time zone, expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT held.*::auth.oauth_sessions AS held,
     granted.user_id,
     token.issued_at,
     LEAST(token.expires_at, held.expires_at, granted.expires_at) AS "least"
    FROM (((auth.oauth_sessions held
      JOIN auth.oauth_grants granted ON ((granted.id = held.grant_id)))
      JOIN auth.refresh_tokens token ON ((token.family_id = held.session_id)))
      JOIN auth.users account ON ((account.user_id = granted.user_id)))
   WHERE ((granted.client_id = find_oauth_session.client_id) AND (LEAST(held.expires_at, granted.expires_at) > now()) AND (NOT auth.is_disabled(account.*)) AND (token.rotated_at IS NULL) AND (token.revoked_at IS NULL) AND (token.expires_at > now()) AND ((token.token_hash = find_oauth_session.token_hash) OR (held.session_id = find_oauth_session.session_id)))
  LIMIT 1;
END;
comment on function auth.find_oauth_session(text,bytea,uuid) is 'The live sign-in of an application with this refresh token, or of this id.';

-- function auth.find_user(text)
CREATE OR REPLACE FUNCTION auth.find_user(email text)
 RETURNS bigint
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT users.id
    FROM public.users
   WHERE (lower(users.email) = lower(find_user.email));
END;
comment on function auth.find_user(text) is 'The user with that e-mail address, who may have no account.';

-- function auth.has_administrator()
CREATE OR REPLACE FUNCTION auth.has_administrator()
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (EXISTS (SELECT FROM auth.user_roles WHERE (user_roles.role = 'admin'::text)));
comment on function auth.has_administrator() is 'Whether there is an administrator.';

-- function auth.has_factor(bigint)
CREATE OR REPLACE FUNCTION auth.has_factor(user_id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM auth.mfa_factors factor
           WHERE ((factor.user_id = has_factor.user_id) AND (factor.state = 'enabled'::text)))) AS "exists";
END;
comment on function auth.has_factor(bigint) is 'Whether signing in requires a second factor.';

-- function auth.has_second_factor_session(bigint,uuid)
CREATE OR REPLACE FUNCTION auth.has_second_factor_session(user_id bigint, session_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM auth.token_sessions session
           WHERE ((session.id = has_second_factor_session.session_id) AND (session.user_id = has_second_factor_session.user_id) AND (session.aal >= 2)))) AS "exists";
END;
comment on function auth.has_second_factor_session(bigint,uuid) is 'Whether this sign-in by tokens has proved a second factor.';

-- function auth.has_token_session(bigint,uuid)
CREATE OR REPLACE FUNCTION auth.has_token_session(user_id bigint, session_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (EXISTS (SELECT FROM auth.refresh_tokens token WHERE ((token.family_id = has_token_session.session_id) AND (token.user_id = has_token_session.user_id) AND (token.rotated_at IS NULL) AND (token.revoked_at IS NULL) AND (token.expires_at > now()))));
comment on function auth.has_token_session(bigint,uuid) is 'Whether this sign-in by tokens of the user has not ended.';

-- function auth.has_uuid_subjects()
CREATE OR REPLACE FUNCTION auth.has_uuid_subjects()
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select prorettype = 'uuid'::regtype from pg_catalog.pg_proc where oid = to_regprocedure('auth.uid()')
$function$;
comment on function auth.has_uuid_subjects() is 'Whether auth.uid() returns the uuid of the calling user, as at Supabase.';

-- function auth.import_account(jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.import_account(account jsonb, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.import_account(jsonb,auth.client_info) is 'Creates an account from a row of another service: imported, known, skipped (deleted, or without an address) or refused.';

-- function auth.import_identity(jsonb)
CREATE OR REPLACE FUNCTION auth.import_identity(identity jsonb)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
    on conflict on constraint content_service_identities_pkey do nothing;
  return case when found then 'imported' else 'known' end;
end;
$function$;
comment on function auth.import_identity(jsonb) is 'Links an account to the subject at a provider of that name: imported, known, skipped, or no_provider.';

-- function auth.insert_user(text,text,integer)
CREATE OR REPLACE FUNCTION auth.insert_user(name text, email text, age integer, OUT user_id bigint, OUT user_row jsonb, OUT metadata jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  insert into public.users (name, email, age) values (insert_user.name, insert_user.email, insert_user.age)
    returning * into v_user;
  user_id := v_user.id;
  user_row := to_jsonb(v_user);
  metadata := '{}';
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered'
      using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$function$;
comment on function auth.insert_user(text,text,integer) is 'Creates the row of public.users: the id, the row that a registration returns, and the metadata of the account.';

-- function auth.invite_account(bigint,auth.client_info)
CREATE OR REPLACE FUNCTION auth.invite_account(user_id bigint, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(invite_account.user_id);
  update auth.users as account set invited_at = clock_timestamp() where account.user_id = invite_account.user_id;
  perform auth.log_event('account.invited', invite_account.user_id, client_info);
end;
$function$;
comment on function auth.invite_account(bigint,auth.client_info) is 'Records that an administrator invites the user.';

-- function auth.is_admin()
CREATE OR REPLACE FUNCTION auth.is_admin()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN pg_has_role((auth.role())::name, 'admin'::name, 'usage'::text);
grant execute on function auth.is_admin() to anon, authenticated, service_role;
comment on function auth.is_admin() is 'Whether the caller acts as admin, or as a role that inherits from admin.';

-- function auth.is_current_address(auth.users,auth.mail_tokens)
CREATE OR REPLACE FUNCTION auth.is_current_address(account auth.users, token auth.mail_tokens)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO ''
AS $function$
  select case token.purpose
    when 'email_change_new' then true
    when 'phone_change' then true
    when 'sms' then token.email = account.phone
    when 'sms_signup' then token.email = account.phone
    else lower(token.email) = lower(coalesce(account.verified_email, account.email))
  end;
$function$;
comment on function auth.is_current_address(auth.users,auth.mail_tokens) is 'Whether a link or code was sent to where the user is reached now.';

-- function auth.is_disabled(auth.users)
CREATE OR REPLACE FUNCTION auth.is_disabled(account auth.users)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select account.disabled_at is not null or account.deleted_at is not null or coalesce(account.banned_until > now(), false);
$function$;
comment on function auth.is_disabled(auth.users) is 'Whether the account may not sign in: an operator disabled it, it is banned for some time, or it is deleted.';

-- function auth.is_first_confirmation(auth.users,jsonb)
CREATE OR REPLACE FUNCTION auth.is_first_confirmation(account auth.users, changes jsonb)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select account.verified_email is null and account.is_self_registered is not false and coalesce(
    (changes ->> 'email_confirm')::boolean
      and (auth.own_email(account) is not null or account.phone is not null and account.phone_confirmed_at is null)
    or (changes ->> 'phone_confirm')::boolean and account.phone_confirmed_at is null
      and (auth.own_email(account) is not null or account.phone is not null), false
  );
$function$;
comment on function auth.is_first_confirmation(auth.users,jsonb) is 'Whether an administrator who makes these changes gives the first proof of an address or number that somebody entered.';

-- function auth.is_known_network(bigint,inet)
CREATE OR REPLACE FUNCTION auth.is_known_network(user_id bigint, address inet)
 RETURNS boolean
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM auth.audit_log entry
           WHERE ((entry.user_id = is_known_network.user_id) AND (entry.event = ANY (ARRAY['session.created'::text, 'refresh_token.created'::text])) AND (entry.at > (now() - '30 days'::interval)) AND (NOT (entry.details ? 'lacks_factor'::text)) AND (auth.network_of(entry.address) = auth.network_of(is_known_network.address))))) AS "exists";
END;
comment on function auth.is_known_network(bigint,inet) is 'Whether the user has signed in from this network within 30 days.';

-- function auth.issue_flow_code(uuid,bigint,bytea,bytea,integer)
CREATE OR REPLACE FUNCTION auth.issue_flow_code(flow_id uuid, user_id bigint, code_hash bytea, sealed bytea, seconds integer)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.flow_states as flow set
    user_id = issue_flow_code.user_id, code_hash = issue_flow_code.code_hash, sealed = issue_flow_code.sealed,
    expires_at = clock_timestamp() + make_interval(secs => seconds)
  where flow.id = issue_flow_code.flow_id and flow.code_hash is null and flow.expires_at > clock_timestamp()
    and (flow.user_id is null or flow.user_id = issue_flow_code.user_id);
  return found;
end;
$function$;
comment on function auth.issue_flow_code(uuid,bigint,bytea,bytea,integer) is 'Stores the code of a user who has signed in. False: the sign-in has expired, or has a code already. The caller has locked the account.';

-- function auth.jwt()
CREATE OR REPLACE FUNCTION auth.jwt()
 RETURNS jsonb
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb;
grant execute on function auth.jwt() to anon, authenticated, service_role;
comment on function auth.jwt() is 'The claims of the caller''s token; null without a token.';

-- function auth.keep_anonymous_account(bigint,auth.providers,jsonb,auth.client_info)
CREATE OR REPLACE FUNCTION auth.keep_anonymous_account(user_id bigint, provider auth.providers, claims jsonb, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(keep_anonymous_account.user_id);
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
begin
  if not v_account.is_anonymous then
    return;
  end if;
  if v_email is not null
    and (provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false))
    and not exists (select from auth.account_faults(null, v_email, null, null) as fault where fault.field = 'email')
    and auth.find_user(v_email) is null
  then
    perform auth.set_confirmed_email(v_account.user_id, v_email, client_info);
  end if;
  update auth.users as account set is_anonymous = false where account.user_id = v_account.user_id;
end;
$function$;
comment on function auth.keep_anonymous_account(bigint,auth.providers,jsonb,auth.client_info) is 'Makes an anonymous account, to which an identity was linked, permanent, with the address that the provider has verified. The caller has locked the address.';

-- function auth.kept_token_sessions(uuid[])
CREATE OR REPLACE FUNCTION auth.kept_token_sessions(session_ids uuid[])
 RETURNS TABLE(id uuid, kept_at bigint)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT session.id,
     (EXTRACT(epoch FROM session.kept_at))::bigint AS "extract"
    FROM auth.token_sessions session
   WHERE ((session.id = ANY (kept_token_sessions.session_ids)) AND (session.kept_at IS NOT NULL));
END;
comment on function auth.kept_token_sessions(uuid[]) is 'Those of these sign-ins by tokens that were kept when the others of the user ended, and the moment.';

-- function auth.lacks_second_factor(bigint,uuid)
CREATE OR REPLACE FUNCTION auth.lacks_second_factor(user_id bigint, session_id uuid)
 RETURNS boolean
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (auth.has_factor(user_id) AND (NOT (EXISTS ( SELECT
            FROM auth.token_sessions session
           WHERE ((session.id = lacks_second_factor.session_id) AND (session.user_id = lacks_second_factor.user_id) AND ((session.aal >= 2) OR (NOT session.requires_factor)))))));
END;
comment on function auth.lacks_second_factor(bigint,uuid) is 'Whether the account has a second factor that this sign-in by tokens has not proved.';

-- function auth.link_identity(bigint,auth.providers,text,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.link_identity(user_id bigint, provider auth.providers, subject text, left_at timestamp with time zone, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_most constant integer := 50;
  v_account constant auth.users := auth.lock_account(link_identity.user_id);
begin
  if v_account.user_id is null or auth.is_disabled(v_account) then
    return 'disabled';
  end if;
  -- The link may have been started by whoever knew the previous password.
  if v_account.password_changed_at > link_identity.left_at then
    return 'ended';
  end if;
  -- A provider may give one person as many subjects as the person registers there.
  if (select count(*) from auth.identities as own where own.user_id = v_account.user_id) >= v_most and not exists (
    select from auth.identities as own
    where own.user_id = v_account.user_id and own.issuer = provider.issuer and own.subject = link_identity.subject
  ) then
    return 'too_many';
  end if;
  insert into auth.identities as known (issuer, subject, user_id, is_vouched)
    values (provider.issuer, link_identity.subject, v_account.user_id, true)
    on conflict on constraint content_service_identities_pkey do update set is_vouched = true where known.user_id = EXCLUDED.user_id;
  if not found then
    return 'taken';
  end if;
  perform auth.log_event('identity.linked', v_account.user_id, client_info, jsonb_build_object('provider', provider.name));
  return 'linked';
end;
$function$;
comment on function auth.link_identity(bigint,auth.providers,text,timestamp with time zone,auth.client_info) is 'Links an identity to the user who is signed in: linked, taken (it is another user''s), too_many, or ended (the password was changed meanwhile).';

-- function auth.list_api_keys(bigint)
CREATE OR REPLACE FUNCTION auth.list_api_keys(of_owner bigint)
 RETURNS TABLE(id bigint, prefix text, role text, owner_id bigint, name text, created_at timestamp with time zone, expires_at timestamp with time zone, revoked_at timestamp with time zone, last_used_at timestamp with time zone)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT api_keys.id,
     api_keys.prefix,
     api_keys.role,
     api_keys.owner_id,
     api_keys.name,
     api_keys.created_at,
     api_keys.expires_at,
     api_keys.revoked_at,
     api_keys.last_used_at
    FROM auth.api_keys
   WHERE ((list_api_keys.of_owner IS NULL) OR (api_keys.owner_id = list_api_keys.of_owner))
   ORDER BY api_keys.id;
END;
comment on function auth.list_api_keys(bigint) is 'The keys of an owner, or all, without secrets.';

-- function auth.list_linked_providers(bigint)
CREATE OR REPLACE FUNCTION auth.list_linked_providers(user_id bigint)
 RETURNS TABLE(name text, title text, linked_at timestamp with time zone, last_used_at timestamp with time zone)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT providers.name,
     COALESCE(providers.title, initcap(providers.name)) AS "coalesce",
     min(identities.created_at) AS min,
     max(identities.last_used_at) AS max
    FROM (auth.identities
      JOIN auth.providers ON ((providers.issuer = identities.issuer)))
   WHERE (identities.user_id = list_linked_providers.user_id)
   GROUP BY providers.name
   ORDER BY providers.name;
END;
comment on function auth.list_linked_providers(bigint) is 'The providers through which a user can sign in.';

-- function auth.list_oauth_grants(bigint)
CREATE OR REPLACE FUNCTION auth.list_oauth_grants(user_id bigint)
 RETURNS TABLE(granted auth.oauth_grants, client auth.oauth_clients, last_used_at timestamp with time zone)
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select jsonb_populate_record(granted, jsonb_build_object('scopes', granted.scopes || array(
    select distinct scope from auth.oauth_sessions as held cross join unnest(held.scopes) as scope
    where held.grant_id = granted.id and held.expires_at > now() and scope <> all (granted.scopes) and exists (
      select from auth.refresh_tokens as token
      where token.family_id = held.session_id and token.rotated_at is null and token.revoked_at is null and token.expires_at > now()
    ) order by scope
  ))), client, (
    select max(used.refreshed_at) from auth.oauth_sessions as held
    join auth.token_sessions as used on used.id = held.session_id where held.grant_id = granted.id
  )
  from auth.oauth_grants as granted join auth.oauth_clients as client on client.id = granted.client_id
  where granted.user_id = list_oauth_grants.user_id and granted.expires_at > now()
  order by granted.granted_at desc
$function$;
comment on function auth.list_oauth_grants(bigint) is 'What a user has granted to applications, with the scopes of sign-ins that began with earlier consents.';

-- function auth.list_providers()
CREATE OR REPLACE FUNCTION auth.list_providers()
 RETURNS TABLE(name text, kind text, title text, issuer text, client_id text, enabled boolean, sign_ups boolean, identities bigint)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT providers.name,
     providers.kind,
     COALESCE(providers.title, initcap(providers.name)) AS "coalesce",
     providers.issuer,
     providers.client_id,
     providers.enabled,
     providers.sign_ups,
     ( SELECT count(*) AS count
            FROM auth.identities
           WHERE (identities.issuer = providers.issuer)) AS count
    FROM auth.providers
   ORDER BY providers.name;
END;
comment on function auth.list_providers() is 'The identity providers, without secrets.';

-- function auth.list_sign_ins(bigint,bytea)
CREATE OR REPLACE FUNCTION auth.list_sign_ins(user_id bigint, id_hash bytea)
 RETURNS TABLE(family_id uuid, is_current boolean, signed_in_at timestamp with time zone, last_used_at timestamp with time zone, address inet, user_agent text)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT NULL::uuid AS uuid,
     (sessions.id_hash = list_sign_ins.id_hash),
     sessions.created_at,
     sessions.last_used_at,
     sessions.address,
     sessions.user_agent
    FROM auth.sessions
   WHERE ((sessions.user_id = list_sign_ins.user_id) AND (LEAST(sessions.idle_expires_at, sessions.expires_at) > now()))
 UNION ALL
 ( SELECT token.family_id,
     false,
     COALESCE(token.signed_in_at, token.issued_at) AS "coalesce",
     token.issued_at,
     token.address,
     token.user_agent
    FROM auth.refresh_tokens token
   WHERE ((token.user_id = list_sign_ins.user_id) AND (token.rotated_at IS NULL) AND (token.revoked_at IS NULL) AND (token.expires_at > now()))
   ORDER BY token.issued_at DESC
  LIMIT 100);
END;
comment on function auth.list_sign_ins(bigint,bytea) is 'Where a user is signed in: the session of a browser, without family_id, and families of refresh tokens, of which the newest 100.';

-- function auth.live_sessions(bytea[])
CREATE OR REPLACE FUNCTION auth.live_sessions(id_hashes bytea[])
 RETURNS SETOF bytea
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT sessions.id_hash
    FROM auth.sessions
   WHERE ((sessions.id_hash = ANY (live_sessions.id_hashes)) AND (LEAST(sessions.idle_expires_at, sessions.expires_at) > now()));
END;
comment on function auth.live_sessions(bytea[]) is 'Those of these sessions that have not ended; does not extend them.';

-- function auth.lock_account(bigint)
CREATE OR REPLACE FUNCTION auth.lock_account(user_id bigint)
 RETURNS auth.users
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
begin
  perform auth.lock_user(lock_account.user_id);
  select * into v_account from auth.users as account where account.user_id = lock_account.user_id for no key update;
  return v_account;
end;
$function$;
comment on function auth.lock_account(bigint) is 'Locks the account until the end of the transaction and returns it; later queries see what the previous holder committed.';

-- function auth.lock_address(bigint)
CREATE OR REPLACE FUNCTION auth.lock_address(user_id bigint)
 RETURNS auth.users
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform from public.users where users.id = lock_address.user_id for update;
  return auth.lock_account(lock_address.user_id);
end;
$function$;
comment on function auth.lock_address(bigint) is 'Locks the account as auth.lock_account does, for a change of its address.';

-- function auth.lock_user(bigint)
CREATE OR REPLACE FUNCTION auth.lock_user(user_id bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select from public.users where users.id = lock_user.user_id for key share;
$function$;
comment on function auth.lock_user(bigint) is 'Locks what a deletion of the user locks before the account.';

-- function auth.log_event(text,bigint,auth.client_info,jsonb)
CREATE OR REPLACE FUNCTION auth.log_event(event text, user_id bigint, client_info auth.client_info, details jsonb DEFAULT '{}'::jsonb)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.client_info).address, (log_event.client_info).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.client_info).user_agent, 'by', (log_event.client_info).actor))
      || log_event.details
  );
$function$;
comment on function auth.log_event(text,bigint,auth.client_info,jsonb) is 'Writes to the audit log in the current transaction.';

-- function auth.login_counters(text,inet)
CREATE OR REPLACE FUNCTION auth.login_counters(name text, address inet)
 RETURNS TABLE(scope text, key text, most integer)
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
 SELECT counters.scope,
     counters.key,
     counters.most
    FROM (COALESCE(host(auth.network_of(login_counters.address)), 'unknown'::text) place(place)
      CROSS JOIN LATERAL ( VALUES ('address'::text,place.place,50), ('pair'::text,((lower(login_counters.name) || ' '::text) || place.place),5), ('site'::text,
                 CASE family(login_counters.address)
                     WHEN 6 THEN host((network(set_masklen(login_counters.address, 48)))::inet)
                     ELSE NULL::text
                 END,200), ('user'::text,lower(login_counters.name),100)) counters(scope, key, most))
   WHERE (counters.key IS NOT NULL)
   ORDER BY counters.scope;
END;
comment on function auth.login_counters(text,inet) is 'The counters of a sign-in and their limits in 15 minutes, in the order in which they are locked.';

-- function auth.may_invite(bigint)
CREATE OR REPLACE FUNCTION auth.may_invite(inviter_id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select inviter_id is null or exists (
    select from auth.users as account join auth.user_roles using (user_id)
    where account.user_id = may_invite.inviter_id and not auth.is_disabled(account)
      and pg_has_role(to_regrole(quote_ident(user_roles.role)), 'admin', 'usage')
  );
$function$;
comment on function auth.may_invite(bigint) is 'Whether the inviter is an administrator now.';

-- function auth.merge_metadata(jsonb,jsonb)
CREATE OR REPLACE FUNCTION auth.merge_metadata(metadata jsonb, changes jsonb)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
BEGIN ATOMIC
 SELECT COALESCE(jsonb_object_agg(entry.key, entry.value), '{}'::jsonb) AS "coalesce"
    FROM jsonb_each((merge_metadata.metadata || COALESCE(merge_metadata.changes, '{}'::jsonb))) entry(key, value)
   WHERE (NOT COALESCE(((merge_metadata.changes -> entry.key) = 'null'::jsonb), false));
END;
comment on function auth.merge_metadata(jsonb,jsonb) is 'The object with the changes, without the keys that are null in the changes.';

-- function auth.network_of(inet)
CREATE OR REPLACE FUNCTION auth.network_of(address inet)
 RETURNS inet
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN network(set_masklen(address, CASE family(address) WHEN 4 THEN 32 ELSE 64 END));
comment on function auth.network_of(inet) is 'The network that counts as one client: an IPv4 address, or an IPv6 address''s /64.';

-- function auth.open_oauth_authorization(uuid,bigint)
CREATE OR REPLACE FUNCTION auth.open_oauth_authorization(id uuid, user_id bigint)
 RETURNS TABLE(request auth.oauth_authorizations, client auth.oauth_clients, is_granted boolean)
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_request auth.oauth_authorizations;
begin
  update auth.oauth_authorizations as opened set user_id = open_oauth_authorization.user_id
    where opened.id = open_oauth_authorization.id and opened.expires_at > now() and opened.code_hash is null
      and (opened.user_id is null or opened.user_id = open_oauth_authorization.user_id)
    returning * into v_request;
  return query
    select v_request, asking, not v_request.asks_always and asking.registration = 'manual' and asking.auth_method <> 'none' and exists (
      select from auth.oauth_grants as granted
      where granted.user_id = v_request.user_id and granted.client_id = v_request.client_id and granted.resource = v_request.resource
        and granted.scopes @> v_request.scopes and granted.expires_at > now()
    )
    from auth.oauth_clients as asking where asking.id = v_request.client_id;
end;
$function$;
comment on function auth.open_oauth_authorization(uuid,bigint) is 'A request for access that this user may decide about, and whether the same was granted before to an application that keeps a secret. No row: none, or somebody else''s.';

-- function auth.open_session(bigint,bytea,integer,integer,auth.client_info)
CREATE OR REPLACE FUNCTION auth.open_session(user_id bigint, id_hash bytea, idle_seconds integer, seconds integer, client_info auth.client_info, OUT username text, OUT claims jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.sessions where sessions.user_id = open_session.user_id;
  insert into auth.sessions (id_hash, user_id, idle_expires_at, expires_at, address, user_agent)
    values (
      open_session.id_hash, open_session.user_id, now() + make_interval(secs => idle_seconds),
      now() + make_interval(secs => open_session.seconds), client_info.address, client_info.user_agent
    );
  perform auth.log_event('session.created', open_session.user_id, client_info);
  delete from auth.sessions as expired where expired.id_hash in (
    select sessions.id_hash from auth.sessions where least(idle_expires_at, expires_at) < now()
    order by least(idle_expires_at, expires_at) limit 10 for update skip locked
  );
  update auth.users as account set last_sign_in_at = now()
    where account.user_id = open_session.user_id returning account.username into username;
  claims := auth.claims_of(open_session.user_id);
end;
$function$;
comment on function auth.open_session(bigint,bytea,integer,integer,auth.client_info) is 'Creates a session and ends the previous one. The caller has locked the account.';

-- function auth.open_tokens(bigint,bytea,integer,auth.client_info,text[],smallint,boolean)
CREATE OR REPLACE FUNCTION auth.open_tokens(user_id bigint, token_hash bytea, seconds integer, client_info auth.client_info, methods text[] DEFAULT '{}'::text[], aal smallint DEFAULT 1, is_complete boolean DEFAULT false)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_now constant timestamptz := clock_timestamp();
  v_session_id constant uuid := gen_random_uuid();
  v_lacks_factor constant boolean := open_tokens.aal < 2 and not is_complete and auth.has_factor(open_tokens.user_id);
begin
  perform auth.log_event(
    'refresh_token.created', open_tokens.user_id, client_info, case when v_lacks_factor then '{"lacks_factor": true}' else '{}' end::jsonb
  );
  insert into auth.token_sessions (id, user_id, created_at, aal, amr, requires_factor)
    values (v_session_id, open_tokens.user_id, v_now, open_tokens.aal, (
      select coalesce(jsonb_agg(auth.amr_entry(method, v_now)), '[]') from unnest(open_tokens.methods) as method
    ), v_lacks_factor);
  update auth.users as account set last_sign_in_at = v_now where account.user_id = open_tokens.user_id;
  return auth.add_refresh_token(open_tokens.user_id, open_tokens.token_hash, v_session_id, seconds, client_info);
end;
$function$;
comment on function auth.open_tokens(bigint,bytea,integer,auth.client_info,text[],smallint,boolean) is 'Starts a sign-in by tokens and returns the claims of its first access token. The caller has locked the account.';

-- function auth.own_email(auth.users)
CREATE OR REPLACE FUNCTION auth.own_email(account auth.users)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO ''
AS $function$
  select case when not account.is_anonymous and account.email !~ '@(phone|anonymous)\.invalid$' then account.email end;
$function$;
comment on function auth.own_email(auth.users) is 'The address of the user; null for an account without one.';

-- function auth.pass_factor(text,bigint,uuid,uuid,uuid,bigint,uuid,bigint,boolean,auth.client_info)
CREATE OR REPLACE FUNCTION auth.pass_factor(counted_name text, user_id bigint, session_id uuid, factor_id uuid, challenge_id uuid, step bigint, passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(pass_factor.user_id);
  v_is_first constant boolean := not auth.has_factor(v_account.user_id);
  v_factor auth.mfa_factors;
  v_challenge auth.mfa_challenges;
  v_outcome text;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = pass_factor.factor_id and factor.user_id = v_account.user_id;
  select * into v_challenge from auth.mfa_challenges as challenge
    where challenge.id = challenge_id and challenge.factor_id = v_factor.id;
  v_outcome := case
    when v_factor.id is null or v_challenge.id is null then 'challenge'
    when v_challenge.expires_at <= clock_timestamp() then 'expired'
    when v_challenge.address is distinct from client_info.address then 'address'
    when auth.is_disabled(v_account) then 'disabled'
    -- Whoever has added this factor before the first one was verified may know the password alone.
    when v_factor.state = 'pending' and not v_is_first
      and not auth.has_second_factor_session(v_account.user_id, session_id) then 'level'
    when v_factor.last_used_step >= step then 'code'
    when passkey_id is not null and not auth.use_passkey(passkey_id, counter, is_backed_up) then 'code'
    when not auth.raise_session(v_account.user_id, session_id, v_factor) then 'session'
    else 'passed'
  end;
  if v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome <> 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    delete from auth.mfa_challenges as challenge where challenge.id = v_challenge.id;
    update auth.mfa_factors as factor
      set state = 'enabled', enabled_at = coalesce(factor.enabled_at, now()), updated_at = now(),
        last_used_step = coalesce(step, factor.last_used_step)
      where factor.id = v_factor.id;
    delete from auth.mfa_factors as pending
      where pending.user_id = v_account.user_id and pending.state = 'pending' and pending.factor_type = v_factor.factor_type;
    if v_is_first then
      perform auth.end_sign_ins_without_factor(v_account.user_id, session_id, null);
    end if;
    perform auth.log_event(
      'factor.verified', v_account.user_id, client_info,
      jsonb_build_object('factor', v_factor.id, 'type', v_factor.factor_type)
    );
  end if;
  return v_outcome;
end;
$function$;
comment on function auth.pass_factor(text,bigint,uuid,uuid,uuid,bigint,uuid,bigint,boolean,auth.client_info) is 'Verifies a factor for a sign-in by tokens, which rises to level 2: passed, or why it is refused. A pending factor is enabled.';

-- function auth.pass_federated_factor(bytea,text,bigint,text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.pass_federated_factor(browser_hash bytea, counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(pass_federated_factor.user_id);
  v_outcome text;
begin
  v_outcome := case
    when not exists (
      select from auth.federation_logins as login
      where login.browser_hash = pass_federated_factor.browser_hash and login.user_id = v_account.user_id
        and login.expires_at > now()
    ) then 'ended'
    when auth.is_disabled(v_account) then 'disabled'
    when auth.use_factor(v_account.user_id, factor_secret, step, backup_code_hash, client_info) in ('used', 'none') then 'passed'
    else 'code'
  end;
  if v_outcome = 'passed' then
    delete from auth.federation_logins as login where login.browser_hash = pass_federated_factor.browser_hash;
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
    perform auth.log_event('federation.signed_in', v_account.user_id, client_info);
  elsif v_outcome = 'code' then
    perform auth.fail_login(counted_name, v_account.user_id, 'code', client_info);
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    perform auth.log_event('login.refused', v_account.user_id, client_info, jsonb_build_object('reason', v_outcome));
  end if;
  return v_outcome;
end;
$function$;
comment on function auth.pass_federated_factor(bytea,text,bigint,text,bigint,text,auth.client_info) is 'Spends the code that a sign-in through a provider requires: passed, or what is wrong.';

-- function auth.pass_federation(text,text,jsonb,bigint,timestamp with time zone,auth.client_info)
CREATE OR REPLACE FUNCTION auth.pass_federation(provider text, subject text, claims jsonb, linking bigint, left_at timestamp with time zone, client_info auth.client_info, OUT outcome text, OUT user_id bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_provider auth.providers;
begin
  select * into v_provider from auth.providers where providers.name = pass_federation.provider and enabled for key share;
  if not found then
    outcome := 'gone';
    return;
  end if;

  if claims ? 'message_id' and not auth.use_message(
    v_provider.issuer, claims ->> 'message_id', (claims ->> 'message_expires_at')::timestamptz
  ) then
    outcome := 'replayed';
    return;
  end if;

  if linking is not null then
    -- Before the account: the link of an anonymous one may change its address.
    perform auth.lock_address(linking);
    outcome := auth.link_identity(linking, v_provider, subject, left_at, client_info);
    user_id := linking;
    if outcome = 'linked' then
      perform auth.keep_anonymous_account(linking, v_provider, claims, client_info);
    end if;
    return;
  end if;

  select * into outcome, user_id from auth.federated_user(v_provider, subject, claims, client_info);
  if user_id is null or outcome = 'conflict' then
    return;
  end if;
  if exists (
    select from auth.users as account where account.user_id = pass_federation.user_id and auth.is_disabled(account)
  ) then
    outcome := 'disabled';
    return;
  end if;
  update auth.identities set last_used_at = now()
    where identities.issuer = v_provider.issuer and identities.subject = pass_federation.subject;
  outcome := case
    when v_provider.trusts_factor and coalesce((claims ->> 'second_factor')::boolean, false) then 'passed'
    when auth.has_factor(pass_federation.user_id) then 'code_missing'
    else 'passed'
  end;
  if outcome = 'passed' then
    perform auth.log_event(
      'federation.signed_in', pass_federation.user_id, client_info, jsonb_build_object('provider', v_provider.name)
    );
  end if;
end;
$function$;
comment on function auth.pass_federation(text,text,jsonb,bigint,timestamp with time zone,auth.client_info) is 'The result of a sign-in through a provider: passed, linked, code_missing; or why it is refused.';

-- function auth.pass_login(text,bigint,text,text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.pass_login(counted_name text, user_id bigint, password_hash text, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(pass_login.user_id);
  v_outcome text;
begin
  v_outcome := case
    when v_account.password_hash is distinct from pass_login.password_hash then 'password'
    when auth.is_disabled(v_account) then 'disabled'
    else case auth.use_factor(pass_login.user_id, factor_secret, step, backup_code_hash, client_info)
      when 'missing' then 'code_missing'
      when 'wrong' then 'code'
      else 'passed'
    end
  end;
  if v_outcome in ('password', 'code') then
    perform auth.fail_login(counted_name, v_account.user_id, v_outcome, client_info);
  elsif v_outcome = 'passed' then
    perform auth.end_attempt(counted_name, client_info.address, 'passed');
  else
    perform auth.end_attempt(counted_name, client_info.address, 'undecided');
    if v_outcome = 'disabled' then
      perform auth.log_event('login.refused', v_account.user_id, client_info, '{"reason":"disabled"}');
    end if;
  end if;
  return v_outcome;
end;
$function$;
comment on function auth.pass_login(text,bigint,text,text,bigint,text,auth.client_info) is 'The result of an attempt with the right password: passed, or what is missing or wrong.';

-- function auth.pass_passkey(bigint,uuid,bigint,boolean,auth.client_info)
CREATE OR REPLACE FUNCTION auth.pass_passkey(user_id bigint, passkey_id uuid, counter bigint, is_backed_up boolean, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.pass_passkey(bigint,uuid,bigint,boolean,auth.client_info) is 'The result of a sign-in with a passkey whose signature the service has verified: passed, or why it is refused.';

-- function auth.pending_email(bigint)
CREATE OR REPLACE FUNCTION auth.pending_email(user_id bigint)
 RETURNS text
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT token.new_email
    FROM auth.mail_tokens token
   WHERE ((token.user_id = pending_email.user_id) AND (token.purpose = ANY (ARRAY['email_change_new'::text, 'email_change_current'::text])) AND (token.expires_at > now()))
   ORDER BY token.created_at DESC
  LIMIT 1;
END;
comment on function auth.pending_email(bigint) is 'The address that the user changes to, once it is confirmed; null without a change.';

-- function auth.pending_sign_up(bigint,text)
CREATE OR REPLACE FUNCTION auth.pending_sign_up(user_id bigint, purpose text)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select coalesce(sign_up.token, jsonb_build_object('password_hash', account.password_hash))
  from auth.users as account
  left join lateral (
    select jsonb_build_object('password_hash', token.password_hash, 'name', token.user_name, 'metadata', token.user_metadata) as token
    from auth.mail_tokens as token
    where token.user_id = account.user_id and token.purpose = pending_sign_up.purpose
      and token.purpose in ('signup', 'sms_signup') and token.password_hash is not null
    order by token.created_at desc limit 1
  ) as sign_up on true
  where account.user_id = pending_sign_up.user_id
    and not (account.has_several_sign_ups is true and pending_sign_up.purpose in ('signup', 'sms_signup'));
$function$;
comment on function auth.pending_sign_up(bigint,text) is 'What a mail to this account proves if it is of no sign-up of its own: {name, password_hash, metadata}; null: no password.';

-- function auth.phone_recipient(text,text)
CREATE OR REPLACE FUNCTION auth.phone_recipient(phone text, requested text DEFAULT 'sms'::text, OUT user_id bigint, OUT state text, OUT purpose text, OUT user_json jsonb)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_last auth.mail_tokens;
begin
  select account.user_id into user_id from auth.users as account where account.phone = phone_recipient.phone;
  v_account := auth.lock_account(user_id);
  user_id := v_account.user_id;
  user_json := auth.user_json(v_account.user_id);
  state := case
    when v_account.user_id is null then 'absent'
    when auth.is_disabled(v_account) then 'disabled'
    else 'found'
  end;
  select * into v_last from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose in ('sms', 'sms_signup')
    order by token.expires_at desc limit 1;
  purpose := case
    when v_last.purpose = 'sms' and v_last.expires_at > now() then 'sms'
    else coalesce(requested, v_last.purpose, 'sms')
  end;
end;
$function$;
comment on function auth.phone_recipient(text,text) is 'The account with that phone number, which is locked: absent, disabled or found; and what a code is for: to sign in, or to confirm a sign-up.';

-- function auth.profile_of(bigint)
CREATE OR REPLACE FUNCTION auth.profile_of(user_id bigint)
 RETURNS TABLE(name text, email text)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT users.name,
     users.email
    FROM public.users
   WHERE (users.id = profile_of.user_id);
END;
comment on function auth.profile_of(bigint) is 'The name and e-mail address of a user, who may have no account.';

-- function auth.providers_of(bigint)
CREATE OR REPLACE FUNCTION auth.providers_of(user_id bigint)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT COALESCE(jsonb_agg(way.name ORDER BY way.since, way.name), '[]'::jsonb) AS "coalesce"
    FROM ( SELECT 'email'::text AS name,
             account.created_at AS since
            FROM auth.users account
           WHERE ((account.user_id = providers_of.user_id) AND (auth.own_email(account.*) IS NOT NULL) AND ((account.password_hash IS NOT NULL) OR (NOT (EXISTS ( SELECT
                    FROM auth.identities
                   WHERE (identities.user_id = account.user_id))))))
         UNION ALL
          SELECT 'phone'::text,
             account.phone_confirmed_at
            FROM auth.users account
           WHERE ((account.user_id = providers_of.user_id) AND (account.phone_confirmed_at IS NOT NULL))
         UNION ALL
          SELECT providers.name,
             min(identities.created_at) AS min
            FROM (auth.identities
              JOIN auth.providers ON ((providers.issuer = identities.issuer)))
           WHERE (identities.user_id = providers_of.user_id)
           GROUP BY providers.name) way;
END;
comment on function auth.providers_of(bigint) is 'How the user can sign in, the first one first: email, phone, and names of identity providers.';

-- function auth.raise_session(bigint,uuid,auth.mfa_factors)
CREATE OR REPLACE FUNCTION auth.raise_session(user_id bigint, session_id uuid, factor auth.mfa_factors)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not auth.add_session_method(
    raise_session.user_id, raise_session.session_id,
    case factor.factor_type when 'webauthn' then 'mfa/webauthn' else factor.factor_type end, 2::smallint
  ) then
    return false;
  end if;
  update auth.token_sessions as session set factor_id = factor.id, requires_factor = false
    where session.id = raise_session.session_id;
  update auth.refresh_tokens as token set revoked_at = now()
    from auth.token_sessions as session
    where session.user_id = raise_session.user_id and session.aal < 2
      and token.family_id = session.id and token.revoked_at is null;
  return true;
end;
$function$;
comment on function auth.raise_session(bigint,uuid,auth.mfa_factors) is 'Raises a sign-in by tokens to level 2 and ends those of level 1. False: it has ended. The caller has locked the account.';

-- function auth.refresh_oauth_tokens(bytea,bytea,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.refresh_oauth_tokens(token_hash bytea, next_hash bytea, client_id text, client_info auth.client_info, OUT outcome text, OUT claims jsonb, OUT session auth.oauth_sessions, OUT expires_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  select held.session_id, held.grant_id, held.scopes, held.resource, held.expires_at, least(held.expires_at, granted.expires_at)
    into session.session_id, session.grant_id, session.scopes, session.resource, session.expires_at, expires_at
    from auth.refresh_tokens as token
    join auth.oauth_sessions as held on held.session_id = token.family_id
    join auth.oauth_grants as granted on granted.id = held.grant_id
    where token.token_hash = refresh_oauth_tokens.token_hash and granted.client_id = refresh_oauth_tokens.client_id;
  if not found or expires_at <= clock_timestamp() then
    outcome := 'ended';
    return;
  end if;
  select rotated.outcome, rotated.claims into refresh_oauth_tokens.outcome, refresh_oauth_tokens.claims
    from auth.rotate_refresh_token(
      refresh_oauth_tokens.token_hash, next_hash, greatest(1, extract(epoch from expires_at - clock_timestamp()))::integer, null, client_info
    ) as rotated;
end;
$function$;
comment on function auth.refresh_oauth_tokens(bytea,bytea,text,auth.client_info) is 'Exchanges the refresh token of an application: rotated; reused, which ends the sign-in; or ended.';

-- function auth.register(text,text,integer,text,text,auth.client_info,jsonb,boolean)
CREATE OR REPLACE FUNCTION auth.register(name text, email text, age integer, username text, password_hash text, client_info auth.client_info, user_metadata jsonb DEFAULT NULL::jsonb, is_anonymous boolean DEFAULT false)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user record;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
  end if;

  if octet_length(register.user_metadata::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;

  v_user := auth.insert_user(name, email, age);
  begin
    insert into auth.users (user_id, username, email, password_hash, is_anonymous, raw_user_meta_data)
      values (
        v_user.user_id, coalesce(register.username, register.email),
        case when not register.is_anonymous then register.email end, register.password_hash, register.is_anonymous,
        case when register.user_metadata is null then v_user.metadata else auth.merge_metadata('{}', register.user_metadata) end
      );
  exception when unique_violation then
    -- Also of the address, where another sign-up has just taken it.
    if auth.find_user(register.email) is distinct from v_user.user_id and auth.find_user(register.email) is not null then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    end if;
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.user_id, client_info);
  return v_user.user_row;
end;
$function$;
comment on function auth.register(text,text,integer,text,text,auth.client_info,jsonb,boolean) is 'Creates a user who can sign in; without a password hash, through another provider only. Returns the row of the user.';

-- function auth.remove_factor(bigint,uuid,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.remove_factor(user_id bigint, factor_id uuid, session_id uuid, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(remove_factor.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = remove_factor.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return 'missing';
  elsif v_factor.state = 'enabled' and not auth.has_second_factor_session(v_account.user_id, session_id) then
    return 'level';
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return 'removed';
end;
$function$;
comment on function auth.remove_factor(bigint,uuid,uuid,auth.client_info) is 'Removes a factor of that user: removed; missing; or level, when the sign-in must prove a second factor first.';

-- function auth.remove_oauth_client(text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.remove_oauth_client(id text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.end_oauth_sessions(array(
    select session.session_id from auth.oauth_sessions as session
    join auth.oauth_grants as granted on granted.id = session.grant_id where granted.client_id = remove_oauth_client.id
  ));
  delete from auth.oauth_clients where oauth_clients.id = remove_oauth_client.id;
  if not found then
    return false;
  end if;
  perform auth.log_event('oauth_client.removed', null, client_info, jsonb_build_object('client', remove_oauth_client.id));
  return true;
end;
$function$;
comment on function auth.remove_oauth_client(text,auth.client_info) is 'Removes an application, and ends what was granted to it. False: there is none.';

-- function auth.remove_passkey(bigint,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.remove_passkey(user_id bigint, passkey_id uuid, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.remove_passkey(bigint,uuid,auth.client_info) is 'Removes a passkey of that user. False: there is no such passkey.';

-- function auth.remove_provider(text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.remove_provider(name text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.providers where providers.name = remove_provider.name;
  if not found then
    return false;
  end if;
  perform auth.log_event('provider.removed', null, client_info, jsonb_build_object('provider', remove_provider.name));
  return true;
end;
$function$;
comment on function auth.remove_provider(text,auth.client_info) is 'Removes a provider and its identities; accounts stay. False: no such provider.';

-- function auth.rename_passkey(bigint,uuid,text)
CREATE OR REPLACE FUNCTION auth.rename_passkey(user_id bigint, passkey_id uuid, friendly_name text)
 RETURNS auth.passkeys
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update auth.passkeys as passkey set friendly_name = rename_passkey.friendly_name, updated_at = now()
  where passkey.id = passkey_id and passkey.user_id = rename_passkey.user_id and passkey.factor_id is null
  returning passkey.*;
$function$;
comment on function auth.rename_passkey(bigint,uuid,text) is 'Names a passkey of that user; null if there is no such passkey.';

-- function auth.rename_user(bigint,text)
CREATE OR REPLACE FUNCTION auth.rename_user(user_id bigint, name text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set name = rename_user.name where users.id = rename_user.user_id;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_fault := api.field_error('public.users', v_constraint);
  raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$function$;
comment on function auth.rename_user(bigint,text) is 'Changes the name of the user who is signed in.';

-- function auth.renew_backup_codes(text,bigint,text,bigint,text,text[],auth.client_info)
CREATE OR REPLACE FUNCTION auth.renew_backup_codes(counted_name text, user_id bigint, factor_secret text, step bigint, backup_code_hash text, new_hashes text[], client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_outcome text;
begin
  perform auth.lock_account(renew_backup_codes.user_id);
  v_outcome := auth.use_factor(renew_backup_codes.user_id, factor_secret, step, backup_code_hash, client_info);
  if v_outcome = 'wrong' then
    perform auth.fail_login(counted_name, renew_backup_codes.user_id, 'code', client_info);
    return v_outcome;
  end if;
  perform auth.end_attempt(counted_name, client_info.address, 'undecided');
  if v_outcome = 'used' then
    perform auth.replace_backup_codes(renew_backup_codes.user_id, new_hashes);
    perform auth.log_event('backup_codes.renewed', renew_backup_codes.user_id, client_info);
  end if;
  return v_outcome;
end;
$function$;
comment on function auth.renew_backup_codes(text,bigint,text,bigint,text,text[],auth.client_info) is 'Replaces all backup codes, given a valid code; returns the result of use_factor.';

-- function auth.renew_password_hash(bigint,text,text)
CREATE OR REPLACE FUNCTION auth.renew_password_hash(user_id bigint, old_hash text, new_hash text)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update auth.users as account set password_hash = new_hash
  where account.user_id = renew_password_hash.user_id and password_hash = old_hash;
$function$;
comment on function auth.renew_password_hash(bigint,text,text) is 'The same password, hashed with the current parameters.';

-- function auth.replace_backup_codes(bigint,text[])
CREATE OR REPLACE FUNCTION auth.replace_backup_codes(user_id bigint, code_hashes text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.mfa_backup_codes as code where code.user_id = replace_backup_codes.user_id;
  insert into auth.mfa_backup_codes (user_id, code_hash)
    select replace_backup_codes.user_id, code_hash from unnest(code_hashes) as code_hash;
end;
$function$;
comment on function auth.replace_backup_codes(bigint,text[]) is 'Replaces all backup codes of the user. The caller has locked the account.';

-- function auth.replace_mail_tokens(bigint,text,text)
CREATE OR REPLACE FUNCTION auth.replace_mail_tokens(user_id bigint, purpose text, password_hash text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_max_others constant integer := case when purpose in ('signup', 'sms_signup', 'verify') then 2 else 0 end;
begin
  -- Remembered beyond the time that the mails are valid.
  update auth.users as account set has_several_sign_ups = true
    where account.user_id = replace_mail_tokens.user_id and replace_mail_tokens.password_hash is not null
      and account.has_several_sign_ups is not true and (
        account.password_hash <> replace_mail_tokens.password_hash
        or exists (
          select from auth.mail_tokens as pending
          where pending.user_id = replace_mail_tokens.user_id and pending.password_hash <> replace_mail_tokens.password_hash
        )
      );
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = 'sms_signup' and replace_mail_tokens.purpose = 'sms';
  delete from auth.mail_tokens as sent
    where sent.user_id = replace_mail_tokens.user_id and sent.purpose = replace_mail_tokens.purpose and sent.token_hash not in (
      select kept.token_hash from auth.mail_tokens as kept
      where kept.user_id = replace_mail_tokens.user_id and kept.purpose = replace_mail_tokens.purpose
        and kept.password_hash is distinct from replace_mail_tokens.password_hash
      order by kept.created_at desc limit v_max_others
    );
end;
$function$;
comment on function auth.replace_mail_tokens(bigint,text,text) is 'Deletes the links and codes that a new mail of this purpose replaces.';

-- function auth.reset_password(bytea,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.reset_password(token_hash bytea, new_hash text, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_token record;
  v_account auth.users;
begin
  select * into v_token from auth.find_mail_token(reset_password.token_hash, 'reset');
  if not found then
    return null;
  end if;
  v_account := auth.lock_account(v_token.user_id);
  delete from auth.mail_tokens as token where token.token_hash = reset_password.token_hash;
  if not found then
    return null;
  end if;
  -- An identity that was linked before may belong to somebody else: whoever created the account with this address before it was
  -- verified, or knew the password that is replaced.
  update auth.identities set is_vouched = false where identities.user_id = v_token.user_id;
  if v_account.user_id is not null and lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, null, client_info);
  end if;
  insert into auth.users (user_id, username)
    select v_token.user_id, v_token.email on conflict (user_id) do nothing;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.set_password(v_token.user_id, new_hash);
  perform auth.log_event('password.reset', v_token.user_id, client_info);
  return v_token.user_id;
end;
$function$;
comment on function auth.reset_password(bytea,text,auth.client_info) is 'Spends the token, sets the password and ends all sign-ins of the user. Null: the token is invalid.';

-- function auth.revoke_api_key(bigint,bigint,auth.client_info)
CREATE OR REPLACE FUNCTION auth.revoke_api_key(id bigint, owner_id bigint, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_owner_id bigint;
begin
  update auth.api_keys set revoked_at = now()
    where api_keys.id = revoke_api_key.id and revoked_at is null
      and (revoke_api_key.owner_id is null or api_keys.owner_id = revoke_api_key.owner_id)
    returning api_keys.owner_id into v_owner_id;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    'api_key.revoked', v_owner_id, client_info, jsonb_build_object('api_key', revoke_api_key.id)
  );
  return true;
end;
$function$;
comment on function auth.revoke_api_key(bigint,bigint,auth.client_info) is 'Revokes a key; given an owner, only one of that owner''s. False: no such key, or it has ended.';

-- function auth.revoke_oauth_token(text,bytea,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.revoke_oauth_token(client_id text, token_hash bytea, session_id uuid, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_session_id uuid;
  v_user_id bigint;
begin
  select held.session_id, granted.user_id into v_session_id, v_user_id
    from auth.oauth_sessions as held
    join auth.oauth_grants as granted on granted.id = held.grant_id
    join auth.refresh_tokens as token on token.family_id = held.session_id
    where granted.client_id = revoke_oauth_token.client_id
      and (token.token_hash = revoke_oauth_token.token_hash or held.session_id = revoke_oauth_token.session_id)
    limit 1;
  if found then
    perform auth.lock_account(v_user_id);
    perform auth.end_oauth_sessions(array[v_session_id]);
    perform auth.log_event('oauth.revoked', v_user_id, client_info, jsonb_build_object('client', client_id));
  end if;
end;
$function$;
comment on function auth.revoke_oauth_token(text,bytea,uuid,auth.client_info) is 'Ends the sign-in of an application that one of its tokens belongs to; an unknown token is none.';

-- function auth.revoke_refresh_tokens(bigint,auth.client_info)
CREATE OR REPLACE FUNCTION auth.revoke_refresh_tokens(user_id bigint, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(revoke_refresh_tokens.user_id);
  update auth.refresh_tokens set revoked_at = now()
    where refresh_tokens.user_id = revoke_refresh_tokens.user_id and revoked_at is null;
  perform auth.log_event('refresh_tokens.revoked', revoke_refresh_tokens.user_id, client_info);
end;
$function$;
comment on function auth.revoke_refresh_tokens(bigint,auth.client_info) is 'Ends all sign-ins of the user by tokens.';

-- function auth.role()
CREATE OR REPLACE FUNCTION auth.role()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE(NULLIF(current_setting('role'::text, true), 'none'::text), (SESSION_USER)::text);
grant execute on function auth.role() to anon, authenticated, service_role;
comment on function auth.role() is 'The database role in which the caller acts: anon, authenticated, admin or service_role.';

-- function auth.rotate_refresh_token(bytea,bytea,integer,bytea,auth.client_info,boolean)
CREATE OR REPLACE FUNCTION auth.rotate_refresh_token(token_hash bytea, next_hash bytea, seconds integer, retry_hash bytea, client_info auth.client_info, keeps_answers boolean DEFAULT false, OUT outcome text, OUT claims jsonb, OUT sealed_answer bytea)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user_id bigint;
  v_account auth.users;
  v_token auth.refresh_tokens;
begin
  select refresh_tokens.user_id into v_user_id
    from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;
  v_account := auth.lock_account(v_user_id);
  select * into v_token from auth.refresh_tokens where refresh_tokens.token_hash = rotate_refresh_token.token_hash;

  if v_token.token_hash is null or v_token.revoked_at is not null or v_token.expires_at <= clock_timestamp()
    or v_account.user_id is null or auth.is_disabled(v_account)
  then
    outcome := 'ended';
  elsif v_token.idempotency_key_hash = retry_hash and v_token.sealed_until > clock_timestamp() then
    outcome := 'repeated';
    sealed_answer := v_token.sealed_answer;
  elsif v_token.rotated_at is null or keeps_answers and not exists (
    select from auth.refresh_tokens as later where later.family_id = v_token.family_id and later.rotated_at > v_token.rotated_at
  ) then
    outcome := 'rotated';
    update auth.refresh_tokens as token
      set rotated_at = coalesce(v_token.rotated_at, clock_timestamp())
      where token.family_id = v_token.family_id and token.rotated_at is null;
    -- The bearer of this token has received the response that was sealed; others of its sign-in may not, where each may retry.
    update auth.refresh_tokens as earlier
      set idempotency_key_hash = null, sealed_answer = null, sealed_until = null
      where earlier.family_id = v_token.family_id and earlier.sealed_answer is not null
        and (not keeps_answers or earlier.sealed_until < clock_timestamp());
    claims := auth.add_refresh_token(v_user_id, next_hash, v_token.family_id, seconds, client_info);
  else
    outcome := 'reused';
    update auth.refresh_tokens as token set revoked_at = now()
      where token.family_id = v_token.family_id and token.revoked_at is null;
    perform auth.log_event('refresh_token.reused', v_user_id, client_info);
  end if;
end;
$function$;
comment on function auth.rotate_refresh_token(bytea,bytea,integer,bytea,auth.client_info,boolean) is 'Exchanges a refresh token: rotated; repeated for a retry; reused or ended otherwise.';

-- function auth.save_email_template(text,text,text,text,bigint)
CREATE OR REPLACE FUNCTION auth.save_email_template(name text, subject text, html text, text text, administrator bigint)
 RETURNS auth.email_templates
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_saved auth.email_templates;
begin
  if not auth.may_invite(administrator) then
    raise exception 'Only administrators may change e-mails' using errcode = '42501';
  end if;
  insert into auth.email_templates as template (name, subject, html, text, saved_by)
    values (save_email_template.name, save_email_template.subject, save_email_template.html, save_email_template.text, administrator)
    on conflict on constraint content_service_email_templates_pkey do update
    set subject = excluded.subject, html = excluded.html, text = excluded.text, saved_by = excluded.saved_by, saved_at = now()
    returning template.* into v_saved;
  return v_saved;
end;
$function$;
comment on function auth.save_email_template(text,text,text,text,bigint) is 'Saves or replaces the e-mail of that name.';

-- function auth.save_federation_login(jsonb,bytea,integer)
CREATE OR REPLACE FUNCTION auth.save_federation_login(login jsonb, browser_hash bytea, seconds integer)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.federation_logins as gone
    where gone.browser_hash = save_federation_login.browser_hash or gone.browser_hash in (
      select logins.browser_hash from auth.federation_logins as logins where expires_at < now()
      order by expires_at limit 10 for update skip locked
    );
  insert into auth.federation_logins (
    browser_hash, provider, user_id, mode, redirect_to, code_challenge, sign_out_hint, expires_at
  )
    select save_federation_login.browser_hash, given.provider, given.user_id, given.mode, given.redirect_to,
      given.code_challenge, given.sign_out_hint, now() + make_interval(secs => seconds)
    from jsonb_populate_record(null::auth.federation_logins, save_federation_login.login) as given;
end;
$function$;
comment on function auth.save_federation_login(jsonb,bytea,integer) is 'Stores a user who has come back from a provider until that browser shows a code. One per browser.';

-- function auth.save_federation_session(bytea,text,text,text,text)
CREATE OR REPLACE FUNCTION auth.save_federation_session(session_hash bytea, provider text, subject text, session_index text, sign_out_hint text)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  insert into auth.federation_sessions (session_hash, provider, subject, session_index, sign_out_hint)
  values (
    save_federation_session.session_hash, save_federation_session.provider, save_federation_session.subject,
    save_federation_session.session_index, save_federation_session.sign_out_hint
  );
$function$;
comment on function auth.save_federation_session(bytea,text,text,text,text) is 'Stores the provider through which a session was opened.';

-- function auth.save_oauth_client(jsonb,bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.save_oauth_client(client jsonb, secret_hash bytea, client_info auth.client_info)
 RETURNS auth.oauth_clients
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_new constant auth.oauth_clients := jsonb_populate_record(null::auth.oauth_clients, client);
  v_saved auth.oauth_clients;
begin
  if v_new.registration <> 'manual' and not exists (select from auth.oauth_clients where id = v_new.id) then
    perform auth.trim_oauth_clients();
  end if;
  insert into auth.oauth_clients as saved (
    id, name, uri, logo_uri, redirect_uris, grant_types, scope, auth_method, secret_hash, registration, fresh_until
  ) values (
    coalesce(v_new.id, gen_random_uuid()::text), v_new.name, v_new.uri, v_new.logo_uri, v_new.redirect_uris, v_new.grant_types,
    v_new.scope, v_new.auth_method, save_oauth_client.secret_hash, v_new.registration, v_new.fresh_until
  )
  on conflict on constraint content_service_oauth_clients_pkey do update set
    name = excluded.name, uri = excluded.uri, logo_uri = excluded.logo_uri, redirect_uris = excluded.redirect_uris,
    grant_types = excluded.grant_types, scope = excluded.scope, auth_method = excluded.auth_method, secret_hash = excluded.secret_hash,
    updated_at = now(), fresh_until = excluded.fresh_until
    where saved.registration = excluded.registration
  returning * into v_saved;
  if v_saved.registration <> 'document' then
    perform auth.log_event('oauth_client.saved', null, client_info, jsonb_build_object('client', v_saved.id));
  end if;
  return v_saved;
end;
$function$;
comment on function auth.save_oauth_client(jsonb,bytea,auth.client_info) is 'Registers an application, or replaces what is known of the one with this id. Its secret is null for one without.';

-- function auth.session_claims(bigint,uuid)
CREATE OR REPLACE FUNCTION auth.session_claims(user_id bigint, session_id uuid)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.session_claims(bigint,uuid) is 'The claims of an access token of /auth/v1 issued now, and the id that may become its subject.';

-- function auth.set_account_settings(boolean)
CREATE OR REPLACE FUNCTION auth.set_account_settings(sign_ups boolean)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if exists (select from auth.account_settings as settings where settings.sign_ups = set_account_settings.sign_ups) then
    return;
  end if;
  insert into auth.account_settings as settings (sign_ups) values (set_account_settings.sign_ups)
    on conflict (is_only) do update set sign_ups = excluded.sign_ups;
end;
$function$;
comment on function auth.set_account_settings(boolean) is 'Saves AUTH_SIGN_UPS. Each start of the service calls it.';

-- function auth.set_confirmed_email(bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.set_confirmed_email(user_id bigint, email text, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.set_email(set_confirmed_email.user_id, set_confirmed_email.email);
  update auth.users as account set verified_email = set_confirmed_email.email, is_anonymous = false
    where account.user_id = set_confirmed_email.user_id;
  delete from auth.mail_tokens as token where token.user_id = set_confirmed_email.user_id;
  perform auth.log_event('email.changed', set_confirmed_email.user_id, client_info);
end;
$function$;
comment on function auth.set_confirmed_email(bigint,text,auth.client_info) is 'Changes the address, which counts as proved. The caller has locked the account.';

-- function auth.set_email(bigint,text)
CREATE OR REPLACE FUNCTION auth.set_email(user_id bigint, email text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set email = set_email.email where users.id = set_email.user_id;
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$function$;
comment on function auth.set_email(bigint,text) is 'Changes the address of the user. The caller has locked the account.';

-- function auth.set_metadata(bigint,jsonb,jsonb)
CREATE OR REPLACE FUNCTION auth.set_metadata(user_id bigint, user_metadata jsonb, app_metadata jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(set_metadata.user_id);
  v_user jsonb := auth.merge_metadata(v_account.raw_user_meta_data, set_metadata.user_metadata);
  v_app jsonb := auth.merge_metadata(v_account.raw_app_meta_data, set_metadata.app_metadata);
begin
  if octet_length(v_user::text) > 8192 or octet_length(v_app::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;
  update auth.users as account set raw_user_meta_data = v_user, raw_app_meta_data = v_app
    where account.user_id = set_metadata.user_id and (account.raw_user_meta_data, account.raw_app_meta_data) <> (v_user, v_app);
end;
$function$;
comment on function auth.set_metadata(bigint,jsonb,jsonb) is 'Changes the given keys of the metadata and removes those that are null. Null: none.';

-- function auth.set_password(bigint,text,uuid)
CREATE OR REPLACE FUNCTION auth.set_password(user_id bigint, new_hash text, kept_session uuid DEFAULT NULL::uuid)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.users as account set password_hash = new_hash, password_changed_at = clock_timestamp()
    where account.user_id = set_password.user_id;
  perform auth.end_sign_ins(set_password.user_id, kept_session);
  delete from auth.mail_tokens
    where mail_tokens.user_id = set_password.user_id and purpose not in ('verify', 'signup', 'invite');
  delete from auth.flow_states where flow_states.user_id = set_password.user_id;
  delete from auth.federation_states where federation_states.user_id = set_password.user_id;
  delete from auth.federation_logins where federation_logins.user_id = set_password.user_id;
  delete from auth.federation_codes where federation_codes.user_id = set_password.user_id;
end;
$function$;
comment on function auth.set_password(bigint,text,uuid) is 'Sets the password and ends all sign-ins of the user, except one by tokens. The caller has locked the account.';

-- function auth.set_phone(bigint,text,boolean)
CREATE OR REPLACE FUNCTION auth.set_phone(user_id bigint, phone text, is_confirmed boolean)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.users as account set
    phone = set_phone.phone, phone_confirmed_at = case when is_confirmed then clock_timestamp() end
  where account.user_id = set_phone.user_id;
exception when unique_violation then
  raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
end;
$function$;
comment on function auth.set_phone(bigint,text,boolean) is 'Sets the phone number of an account.';

-- function auth.set_users_access(text)
CREATE OR REPLACE FUNCTION auth.set_users_access(access text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_table text;
begin
  if access is null or access not in ('open', 'owner') then
    raise exception 'USERS_ACCESS is open or owner' using errcode = '22023';
  end if;
  if auth.users_access() is not distinct from access or auth.users_access() is null then
    return false;
  end if;
  -- Several processes may start at the same time.
  perform pg_advisory_xact_lock(hashtextextended('auth.set_users_access', 0));

  foreach v_table in array '{users,articles,article_translations,comments}'::text[] loop
    continue when to_regclass('public.' || v_table) is null;
    execute format('drop policy if exists select_all on public.%I', v_table);
    if access = 'open' then
      execute format('create policy select_all on public.%I for select using (true)', v_table);
    end if;
  end loop;
  if to_regclass('public.comments') is not null then
    drop policy if exists insert_open on public.comments;
    if access = 'open' then
      create policy insert_open on public.comments for insert to authenticated
        with check (author_id = (select auth.uid()));
    end if;
  end if;
  if access = 'open' then
    grant select (email) on public.users to anon;
    grant select on public.users to authenticated;
  else
    revoke select (email) on public.users from anon;
    perform auth.withhold_addresses();
  end if;
  return true;
end;
$function$;
comment on function auth.set_users_access(text) is 'Makes the policies and privileges those of USERS_ACCESS; returns whether they were others. Each start of the service calls it.';

-- function auth.sign_out(bigint,uuid,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.sign_out(user_id bigint, session_id uuid, scope text, client_info auth.client_info)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(sign_out.user_id);
  if scope = 'local' then
    update auth.refresh_tokens as token set revoked_at = now()
      where token.user_id = sign_out.user_id and token.revoked_at is null and token.family_id = sign_out.session_id;
  else
    perform auth.end_sign_ins(sign_out.user_id, case scope when 'others' then session_id end);
  end if;
  perform auth.log_event('account.signed_out', sign_out.user_id, client_info, jsonb_build_object('scope', scope));
end;
$function$;
comment on function auth.sign_out(bigint,uuid,text,auth.client_info) is 'Ends sign-ins of the user: all (global), this one by tokens (local), or all except this one (others).';

-- function auth.sign_up(text,text,integer,text,text,auth.client_info,jsonb,boolean)
CREATE OR REPLACE FUNCTION auth.sign_up(name text, email text, age integer, username text, password_hash text, client_info auth.client_info, user_metadata jsonb DEFAULT NULL::jsonb, is_anonymous boolean DEFAULT false)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user jsonb;
begin
  if not auth.accepts_sign_ups() then
    raise exception 'Sign-ups are closed' using errcode = 'NSIGN', hint = 'Ask an administrator for an account.';
  end if;
  v_user := auth.register(
    sign_up.name, sign_up.email, sign_up.age, sign_up.username, sign_up.password_hash, sign_up.client_info,
    sign_up.user_metadata, sign_up.is_anonymous
  );
  update auth.users as account set is_self_registered = true where account.user_id = (v_user ->> 'id')::bigint;
  return v_user;
end;
$function$;
comment on function auth.sign_up(text,text,integer,text,text,auth.client_info,jsonb,boolean) is 'Creates an account for whoever asks for one, unless sign-ups are closed. Returns the row of the user.';

-- function auth.signers(bigint[],jsonb[])
CREATE OR REPLACE FUNCTION auth.signers(user_ids bigint[], signed jsonb[])
 RETURNS TABLE(place bigint, is_account boolean, stands boolean, role text, claims jsonb)
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select signer.place, account.user_id is not null,
    coalesce(state.state, 'active') = 'active'
      and (not signer.claims ? 'oauth_grant_id' or exists (
        select from auth.oauth_grants as granted
        where granted.id::text = signer.claims ->> 'oauth_grant_id' and granted.client_id = signer.claims ->> 'client_id'
          and granted.user_id = signer.user_id and granted.expires_at > now()
      ))
      and (not signer.claims ? 'api_key' or exists (
        select from auth.api_keys as key
        where key.id::text = signer.claims ->> 'api_key' and key.role = signer.claims ->> 'role'
          and key.owner_id is not distinct from signer.user_id
          and key.revoked_at is null and (key.expires_at is null or key.expires_at > now())
      )),
    current.claims ->> 'role', current.claims
  from unnest(user_ids, signed) with ordinality as signer (user_id, claims, place)
  left join auth.users as account on account.user_id = signer.user_id
  left join auth.account_states(user_ids) as state on state.user_id = signer.user_id
  left join lateral (
    select auth.session_claims(account.user_id, null) as claims where account.user_id is not null
  ) as current on true;
$function$;
comment on function auth.signers(bigint[],jsonb[]) is 'Whether the accounts, grants and keys of these signers stand, and the claims and the role that their accounts have now.';

-- function auth.store_retry_response(bytea,bytea,bytea,integer)
CREATE OR REPLACE FUNCTION auth.store_retry_response(token_hash bytea, retry_hash bytea, sealed_answer bytea, seconds integer)
 RETURNS void
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update auth.refresh_tokens as token set
    idempotency_key_hash = store_retry_response.retry_hash,
    sealed_answer = store_retry_response.sealed_answer,
    sealed_until = clock_timestamp() + make_interval(secs => seconds)
  where token.token_hash = store_retry_response.token_hash;
$function$;
comment on function auth.store_retry_response(bytea,bytea,bytea,integer) is 'Stores the pair that the token was exchanged for, in the same transaction, for a retry with the same Idempotency-Key.';

-- function auth.take_passkey_challenge(text,bigint,uuid)
CREATE OR REPLACE FUNCTION auth.take_passkey_challenge(purpose text, user_id bigint, id uuid)
 RETURNS auth.mfa_challenges
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  delete from auth.mfa_challenges as challenge
  where challenge.id = take_passkey_challenge.id and challenge.purpose = take_passkey_challenge.purpose
    and challenge.user_id is not distinct from take_passkey_challenge.user_id
  returning challenge.*;
$function$;
comment on function auth.take_passkey_challenge(text,bigint,uuid) is 'Returns a challenge once, also an expired one; null if there is none, or it was used.';

-- function auth.tg_accounts__copy_email()
CREATE OR REPLACE FUNCTION auth.tg_accounts__copy_email()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  select users.email into NEW.email from public.users where users.id = NEW.user_id;
  return NEW;
end;
$function$;
comment on function auth.tg_accounts__copy_email() is 'Before insert: an account has the address of its user.';

-- function auth.tg_user_roles__end_tokens()
CREATE OR REPLACE FUNCTION auth.tg_user_roles__end_tokens()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_key_id bigint;
begin
  if NEW.role is distinct from OLD.role then
    perform auth.end_access_tokens(coalesce(NEW.user_id, OLD.user_id));
    -- A key in the role would be a way to keep it.
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
$function$;
comment on function auth.tg_user_roles__end_tokens() is 'After a change: ends tokens that name the previous role, and the user''s keys in it.';

-- function auth.tg_users__end_oauth_codes()
CREATE OR REPLACE FUNCTION auth.tg_users__end_oauth_codes()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.oauth_authorizations as pending
    where pending.user_id = new.user_id and pending.code_hash is not null and pending.used_at is null;
  return null;
end;
$function$;
comment on function auth.tg_users__end_oauth_codes() is 'After update: codes that wait to be exchanged end with the user''s tokens.';

-- function auth.tg_users__follow_changes()
CREATE OR REPLACE FUNCTION auth.tg_users__follow_changes()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if NEW.email_confirmed_at is not null and (TG_OP = 'INSERT' or OLD.email_confirmed_at is null) then
    NEW.verified_email := NEW.email;
  end if;
  NEW.email_confirmed_at := case
    when lower(NEW.verified_email) = lower(NEW.email) then coalesce(NEW.email_confirmed_at, clock_timestamp())
  end;
  if TG_OP = 'UPDATE' and num_nulls(NEW.email_confirmed_at, NEW.phone_confirmed_at) < num_nulls(OLD.email_confirmed_at, OLD.phone_confirmed_at) then
    NEW.is_anonymous := false;
  end if;
  NEW.updated_at := clock_timestamp();
  return NEW;
end;
$function$;
comment on function auth.tg_users__follow_changes() is 'Before insert or update: keeps email_confirmed_at and updated_at.';

-- function auth.tg_users__guard_address()
CREATE OR REPLACE FUNCTION auth.tg_users__guard_address()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  if not exists (select from auth.users as account where account.user_id = OLD.id) then
    return NEW;
  end if;
  if OLD.id is distinct from auth.uid() then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  elsif current_setting('app.users_access', true) is distinct from 'open' then
    raise exception 'A new e-mail address must be confirmed before it replaces this one' using errcode = 'NOPER', detail = 'email',
      hint = 'Change it at /auth/account, or by PUT /auth/v1/user: an e-mail with a link is sent to the new address.';
  end if;
  return NEW;
end;
$function$;
comment on function auth.tg_users__guard_address() is 'Before update by a request: refuses a change of the address of a user with an account, except by an administrator.';

-- function auth.tg_users__remember_deletion()
CREATE OR REPLACE FUNCTION auth.tg_users__remember_deletion()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  insert into auth.deleted_accounts (user_id) values (OLD.user_id)
    on conflict (user_id) do update set deleted_at = now();
  delete from auth.deleted_accounts where user_id in (
    select user_id from auth.deleted_accounts where deleted_at < now() - interval '1 day'
    order by deleted_at limit 10 for update skip locked
  );
  perform auth.log_event('account.deleted', OLD.user_id, null);
  return null;
end;
$function$;
comment on function auth.tg_users__remember_deletion() is 'After delete: records the account, whose tokens have ended.';

-- function auth.tg_users__rename_account()
CREATE OR REPLACE FUNCTION auth.tg_users__rename_account()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  update auth.users as account set
      email = NEW.email, username = case when lower(account.username) = lower(OLD.email) or account.is_anonymous then NEW.email else account.username end
    where account.user_id = NEW.id;
  if found and TG_ARGV[0] = 'request' then
    perform auth.log_event('email.changed', NEW.id, null, jsonb_build_object('by', auth.uid(), 'is_confirmed', false));
  end if;
  return null;
end;
$function$;
comment on function auth.tg_users__rename_account() is 'After update: the address of the account, and a user name that is the address, change with it.';

-- function auth.token_claims(bigint)
CREATE OR REPLACE FUNCTION auth.token_claims(user_id bigint)
 RETURNS jsonb
 LANGUAGE sql
BEGIN ATOMIC
 SELECT (auth.claims_of(account.user_id) || jsonb_build_object('iat', (EXTRACT(epoch FROM GREATEST(date_trunc('second'::text, clock_timestamp()), account.tokens_valid_from)))::bigint))
    FROM auth.users account
   WHERE (account.user_id = token_claims.user_id);
END;
comment on function auth.token_claims(bigint) is 'The claims of an access token issued now.';

-- function auth.trim_oauth_authorizations(text,inet)
CREATE OR REPLACE FUNCTION auth.trim_oauth_authorizations(client_id text, network inet)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_client_id text := trim_oauth_authorizations.client_id;
begin
  delete from auth.oauth_authorizations as expired where expired.id in (
    select old.id from auth.oauth_authorizations as old where old.expires_at < now()
    order by old.expires_at limit 10 for update skip locked
  );
  delete from auth.oauth_authorizations as own where own.id in (
    select old.id from auth.oauth_authorizations as old where old.user_id is null and old.network = trim_oauth_authorizations.network
    order by old.created_at desc offset content_service.bound('unopened authorizations of a network') - 1 limit 10 for update skip locked
  );
  if (select count(*) from (
    select from auth.oauth_authorizations as old where old.user_id is null limit content_service.bound('rows of auth.oauth_authorizations')
  ) as counted) >= content_service.bound('rows of auth.oauth_authorizations') then
    -- The client with most of them, whichever this one is.
    select old.client_id into v_client_id from auth.oauth_authorizations as old where old.user_id is null
      group by old.client_id order by count(*) desc, min(old.created_at) limit 1;
  elsif (select count(*) from (
    select from auth.oauth_authorizations as old where old.user_id is null and old.client_id = v_client_id
    limit content_service.bound('unopened authorizations of a client')
  ) as counted) < content_service.bound('unopened authorizations of a client') then
    return;
  end if;
  delete from auth.oauth_authorizations as crowded where crowded.id in (
    select old.id from auth.oauth_authorizations as old
    where old.user_id is null and old.client_id = v_client_id and old.network = (
      select most.network from auth.oauth_authorizations as most where most.user_id is null and most.client_id = v_client_id
      group by most.network order by count(*) desc, min(most.created_at) limit 1
    )
    order by old.created_at limit 1 for update skip locked
  );
end;
$function$;
comment on function auth.trim_oauth_authorizations(text,inet) is 'Makes room for another request of an application, of this client and from this network.';

-- function auth.trim_oauth_clients()
CREATE OR REPLACE FUNCTION auth.trim_oauth_clients()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.oauth_clients where id in (
    select client.id from auth.oauth_clients as client
    where client.registration <> 'manual' and client.created_at < now() - interval '1 day'
      and not exists (select from auth.oauth_grants where oauth_grants.client_id = client.id)
    order by client.created_at limit 10 for update skip locked
  );
  if (select count(*) from (
    select from auth.oauth_clients where registration <> 'manual' limit content_service.bound('registered clients') + 1
  ) as counted) >= content_service.bound('registered clients') then
    delete from auth.oauth_clients where id in (
      select client.id from auth.oauth_clients as client
      where client.registration <> 'manual'
        and not exists (select from auth.oauth_grants where oauth_grants.client_id = client.id)
      order by client.created_at limit 1 for update skip locked
    );
    if not found then
      raise exception 'Too many applications are registered' using errcode = 'TOMNY', hint = 'Ask an administrator to register the application.';
    end if;
  end if;
end;
$function$;
comment on function auth.trim_oauth_clients() is 'Makes room for another application that registers itself.';

-- function auth.uid()
CREATE OR REPLACE FUNCTION auth.uid()
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (COALESCE("substring"((auth.jwt() ->> 'sub'::text), '^[1-9][0-9]{0,17}$'::text), "substring"((auth.jwt() ->> 'user_id'::text), '^[1-9][0-9]{0,17}$'::text)))::bigint;
grant execute on function auth.uid() to anon, authenticated, service_role;
comment on function auth.uid() is 'The id of the calling user; null for callers who are not signed in.';

-- function auth.unlink_identity(bigint,uuid,auth.client_info)
CREATE OR REPLACE FUNCTION auth.unlink_identity(user_id bigint, identity_id uuid, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(unlink_identity.user_id);
  v_identity auth.identities;
  v_provider text;
begin
  select identities.* into v_identity from auth.identities
    where identities.user_id = v_account.user_id
      and md5(identities.issuer || ' ' || identities.subject)::uuid = unlink_identity.identity_id;
  if not found then
    return 'absent';
  end if;
  select providers.name into v_provider from auth.providers where providers.issuer = v_identity.issuer;
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = v_account.user_id and providers.enabled
      and (identities.issuer, identities.subject) <> (v_identity.issuer, v_identity.subject)
  ) then
    return 'last';
  end if;
  delete from auth.identities
    where identities.issuer = v_identity.issuer and identities.subject = v_identity.subject;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state where state.user_id = v_account.user_id and state.provider = v_provider;
  perform auth.log_event(
    'identity.unlinked', v_account.user_id, client_info, jsonb_build_object('provider', v_provider)
  );
  return 'unlinked';
end;
$function$;
comment on function auth.unlink_identity(bigint,uuid,auth.client_info) is 'Removes one identity of a user: unlinked; absent: it is not the user''s; last: the user could not sign in then.';

-- function auth.unlink_provider(bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.unlink_provider(user_id bigint, provider text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account constant auth.users := auth.lock_account(unlink_provider.user_id);
begin
  if v_account.password_hash is null and not exists (
    select from auth.identities join auth.providers on providers.issuer = identities.issuer
    where identities.user_id = unlink_provider.user_id and providers.name <> unlink_provider.provider and providers.enabled
  ) then
    raise exception 'This is your only way to sign in' using errcode = 'WRONG', hint = 'Set a password first.';
  end if;
  delete from auth.identities using auth.providers
    where identities.user_id = unlink_provider.user_id and identities.issuer = providers.issuer
      and providers.name = unlink_provider.provider;
  if not found then
    return false;
  end if;
  -- A link that is in progress would be completed after this.
  delete from auth.federation_states as state
    where state.user_id = unlink_provider.user_id and state.provider = unlink_provider.provider;
  perform auth.log_event(
    'identity.unlinked', unlink_provider.user_id, client_info, jsonb_build_object('provider', unlink_provider.provider)
  );
  return true;
end;
$function$;
comment on function auth.unlink_provider(bigint,text,auth.client_info) is 'Removes the identities of a user at that provider, unless the user could not sign in then. False: there are none.';

-- function auth.use_api_keys(bytea[])
CREATE OR REPLACE FUNCTION auth.use_api_keys(key_hashes bytea[])
 RETURNS TABLE(key_hash bytea, claims jsonb, expires_at timestamp with time zone)
 LANGUAGE sql
BEGIN ATOMIC
 WITH live AS (
          SELECT api_keys.id,
             api_keys.key_hash,
             api_keys.role,
             api_keys.owner_id,
             api_keys.expires_at,
             account.id AS owner_uuid
            FROM (auth.api_keys
              LEFT JOIN auth.users account ON ((account.user_id = api_keys.owner_id)))
           WHERE ((api_keys.key_hash = ANY (use_api_keys.key_hashes)) AND (api_keys.revoked_at IS NULL) AND ((api_keys.expires_at IS NULL) OR (api_keys.expires_at > now())) AND (NOT auth.is_disabled(account.*)))
         ), noted AS (
          UPDATE auth.api_keys SET last_used_at = now()
           WHERE (api_keys.id IN ( SELECT api_keys_1.id
                    FROM auth.api_keys api_keys_1
                   WHERE ((api_keys_1.id IN ( SELECT live_1.id
                            FROM live live_1)) AND ((api_keys_1.last_used_at IS NULL) OR (api_keys_1.last_used_at < (now() - '00:01:00'::interval))))
                  FOR NO KEY UPDATE OF api_keys_1 SKIP LOCKED))
         )
  SELECT live.key_hash,
     jsonb_strip_nulls(jsonb_build_object('role', live.role, 'api_key', (live.id)::text, 'sub',
         CASE
             WHEN subject.is_uuid THEN (live.owner_uuid)::text
             ELSE (live.owner_id)::text
         END, 'user_id',
         CASE
             WHEN subject.is_uuid THEN (live.owner_id)::text
             ELSE NULL::text
         END)) AS jsonb_strip_nulls,
     live.expires_at
    FROM (live
      CROSS JOIN ( SELECT auth.has_uuid_subjects() AS is_uuid) subject);
END;
comment on function auth.use_api_keys(bytea[]) is 'The claims of these keys, by SHA-256; called by the service as the owner.';

-- function auth.use_factor(bigint,text,bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_factor(user_id bigint, factor_secret text, step bigint, backup_code_hash text, client_info auth.client_info)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not auth.has_factor(use_factor.user_id) then
    return 'none';
  elsif step is null and backup_code_hash is null then
    return 'missing';
  elsif step is not null then
    update auth.mfa_factors set last_used_step = step
      where mfa_factors.user_id = use_factor.user_id and state = 'enabled' and secret = factor_secret
        and coalesce(last_used_step < step, true);
  else
    update auth.mfa_backup_codes set used_at = now()
      where mfa_backup_codes.user_id = use_factor.user_id and code_hash = backup_code_hash and used_at is null;
    if found then
      perform auth.log_event('backup_code.used', use_factor.user_id, client_info);
    end if;
  end if;
  return case when found then 'used' else 'wrong' end;
end;
$function$;
comment on function auth.use_factor(bigint,text,bigint,text,auth.client_info) is 'Spends a code: used; wrong when it was used before; missing when one is required; none without a factor.';

-- function auth.use_federation_code(bytea,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_federation_code(code_hash bytea, code_challenge text, client_info auth.client_info, OUT outcome text, OUT user_id bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_code auth.federation_codes;
begin
  v_account := auth.lock_account((
    select codes.user_id from auth.federation_codes as codes where codes.code_hash = use_federation_code.code_hash
  ));
  delete from auth.federation_codes as code
    where code.code_hash = use_federation_code.code_hash
    returning * into v_code;
  if v_code.user_id is null or v_code.expires_at < now()
    or v_code.code_challenge is distinct from use_federation_code.code_challenge
  then
    perform auth.log_event('federation.refused', v_code.user_id, client_info, '{"reason":"code"}');
    outcome := 'wrong';
  elsif auth.is_disabled(v_account) then
    perform auth.log_event('login.refused', v_code.user_id, client_info, '{"reason":"disabled"}');
    outcome := 'disabled';
  else
    outcome := 'passed';
    user_id := v_code.user_id;
  end if;
end;
$function$;
comment on function auth.use_federation_code(bytea,text,auth.client_info) is 'The user of a code for tokens. Locks the account.';

-- function auth.use_flow_code(bytea,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_flow_code(code_hash bytea, verifier text, client_info auth.client_info, OUT outcome text, OUT user_id bigint, OUT method text, OUT sealed bytea)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_flow auth.flow_states;
begin
  select flow.user_id into v_account.user_id from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  v_account := auth.lock_account(v_account.user_id);
  select * into v_flow from auth.flow_states as flow where flow.code_hash = use_flow_code.code_hash;
  outcome := case
    when v_flow.id is null or v_account.user_id is null then 'absent'
    when v_flow.expires_at <= clock_timestamp() then 'expired'
    when auth.is_disabled(v_account) then 'disabled'
    when v_flow.challenge is distinct from case v_flow.challenge_method
      when 'plain' then verifier
      else rtrim(translate(encode(sha256(convert_to(verifier, 'UTF8')), 'base64'), '+/', '-_'), '=')
    end then 'verifier'
    else 'passed'
  end;
  if outcome = 'passed' then
    user_id := v_flow.user_id;
    method := v_flow.method;
    sealed := v_flow.sealed;
  end if;
  if outcome in ('passed', 'expired') then
    delete from auth.flow_states as flow where flow.id = v_flow.id;
  end if;
end;
$function$;
comment on function auth.use_flow_code(bytea,text,auth.client_info) is 'Spends a code for tokens and locks the account: passed, or why not: absent, expired, disabled, or another verifier.';

-- function auth.use_mail_code(text,bytea,text[],auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_mail_code(email text, code_hash bytea, purposes text[], client_info auth.client_info, OUT outcome text, OUT user_id bigint, OUT purpose text, OUT wait integer)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_max_attempts constant integer := 5;
  v_counted_name constant text := 'code ' || left(email, 254);
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  -- A pending change names the new address. Of several accounts that change to it, the one whose code this is counts.
  select token.user_id into v_account.user_id from auth.mail_tokens as token
    where lower(token.email) = lower(use_mail_code.email) and token.purpose in ('email_change_new', 'phone_change')
      and token.purpose = any (purposes) and token.used_at is null
    order by token.code_hash is not distinct from use_mail_code.code_hash desc, token.created_at desc
    limit 1;
  if not found then
    select account.user_id into v_account.user_id from auth.users as account
      where case when 'sms' = any (purposes) then account.phone = use_mail_code.email else lower(account.email) = lower(use_mail_code.email) end;
  end if;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  wait := auth.count_attempt(
    v_counted_name, client_info.address, auth.is_known_network(v_account.user_id, client_info.address)
  );
  if wait > 0 then
    outcome := 'wait';
    return;
  end if;
  select * into v_token from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
      and token.expires_at > clock_timestamp() and token.attempts < v_max_attempts
      and token.code_hash = use_mail_code.code_hash and auth.is_current_address(v_account, token)
    limit 1;
  if v_token.user_id is null then
    update auth.mail_tokens as token set attempts = token.attempts + 1
      where token.user_id = v_account.user_id and token.purpose = any (purposes) and token.used_at is null
        and token.attempts < v_max_attempts;
    perform auth.end_attempt(v_counted_name, client_info.address, 'failed');
    outcome := 'expired';
    return;
  end if;
  perform auth.end_attempt(v_counted_name, client_info.address, 'passed');
  if auth.is_disabled(v_account) then
    outcome := 'disabled';
    return;
  end if;
  outcome := auth.confirm_mail_code(v_token, v_account, client_info);
  user_id := v_token.user_id;
  purpose := v_token.purpose;
end;
$function$;
comment on function auth.use_mail_code(text,bytea,text[],auth.client_info) is 'Spends a code of six digits and locks the account: passed, half, or why not: expired, disabled, or wait for some seconds.';

-- function auth.use_mail_link(bytea,text[],boolean,auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_mail_link(token_hash bytea, purposes text[], needs_flow boolean, client_info auth.client_info, OUT outcome text, OUT user_id bigint, OUT purpose text, OUT flow_id uuid)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  select token.user_id into v_account.user_id from auth.mail_tokens as token where token.token_hash = use_mail_link.token_hash;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = use_mail_link.token_hash and token.purpose = any (purposes)
      and token.used_at is null and token.expires_at > clock_timestamp()
      and auth.is_current_address(v_account, token);
  if v_token.user_id is null or v_account.user_id is null then
    outcome := 'expired';
  elsif auth.is_disabled(v_account) then
    outcome := 'disabled';
  elsif needs_flow and v_token.is_pkce and v_token.flow_id is null then
    outcome := 'flow_expired';
  else
    outcome := auth.confirm_mail_code(v_token, v_account, client_info);
    user_id := v_token.user_id;
    purpose := v_token.purpose;
    flow_id := v_token.flow_id;
  end if;
end;
$function$;
comment on function auth.use_mail_link(bytea,text[],boolean,auth.client_info) is 'Spends a link and locks the account: passed, half, or why not: expired, disabled, or the sign-in that it belongs to has expired.';

-- function auth.use_message(text,text,timestamp with time zone)
CREATE OR REPLACE FUNCTION auth.use_message(issuer text, message_id text, expires_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  delete from auth.federation_replays as expired where (expired.issuer, expired.message_id) in (
    select replays.issuer, replays.message_id from auth.federation_replays as replays where replays.expires_at < now()
    order by replays.expires_at limit 10 for update skip locked
  );
  insert into auth.federation_replays (issuer, message_id, expires_at)
    values (use_message.issuer, use_message.message_id, use_message.expires_at)
    on conflict on constraint content_service_federation_replays_pkey do nothing;
  return found;
end;
$function$;
comment on function auth.use_message(text,text,timestamp with time zone) is 'Whether this message of a provider is used for the first time.';

-- function auth.use_passkey(uuid,bigint,boolean)
CREATE OR REPLACE FUNCTION auth.use_passkey(passkey_id uuid, counter bigint, is_backed_up boolean)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  update auth.passkeys as passkey
    set counter = use_passkey.counter, is_backed_up = use_passkey.is_backed_up, last_used_at = now()
    where passkey.id = passkey_id
      and (passkey.counter < use_passkey.counter or (passkey.counter = 0 and use_passkey.counter = 0));
  return found;
end;
$function$;
comment on function auth.use_passkey(uuid,bigint,boolean) is 'Records a use of the passkey. False: its counter has not increased, or it was removed.';

-- function auth.use_reauthentication(bigint,bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.use_reauthentication(user_id bigint, code_hash bytea, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_max_attempts constant integer := 5;
  v_account constant auth.users := auth.lock_account(use_reauthentication.user_id);
begin
  delete from auth.mail_tokens as token
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.expires_at > clock_timestamp()
      and token.attempts < v_max_attempts and token.code_hash = use_reauthentication.code_hash;
  if found then
    return true;
  end if;
  update auth.mail_tokens as token set attempts = token.attempts + 1
    where token.user_id = v_account.user_id and token.purpose = 'reauthentication' and token.attempts < v_max_attempts;
  return false;
end;
$function$;
comment on function auth.use_reauthentication(bigint,bytea,auth.client_info) is 'Spends the code that a signed-in user confirms a change with; false if it is wrong.';

-- function auth.use_session(bytea,integer)
CREATE OR REPLACE FUNCTION auth.use_session(id_hash bytea, idle_seconds integer)
 RETURNS TABLE(user_id bigint, username text, claims jsonb, signed_in_at timestamp with time zone, expires_at timestamp with time zone)
 LANGUAGE sql
BEGIN ATOMIC
 WITH live AS (
          SELECT session.id_hash,
             session.user_id,
             account.username,
             session.created_at,
             session.expires_at
            FROM (auth.sessions session
              JOIN auth.users account ON ((account.user_id = session.user_id)))
           WHERE ((session.id_hash = use_session.id_hash) AND (LEAST(session.idle_expires_at, session.expires_at) > now()) AND (NOT auth.is_disabled(account.*)))
         ), moved AS (
          UPDATE auth.sessions session SET last_used_at = now(), idle_expires_at = (now() + make_interval(secs => (use_session.idle_seconds)::double precision))
           WHERE (session.id_hash IN ( SELECT sessions.id_hash
                    FROM auth.sessions
                   WHERE ((sessions.id_hash IN ( SELECT live_1.id_hash
                            FROM live live_1)) AND (sessions.last_used_at < (now() - '00:00:15'::interval)))
                  FOR NO KEY UPDATE OF sessions SKIP LOCKED))
         )
  SELECT live.user_id,
     live.username,
     auth.claims_of(live.user_id) AS claims_of,
     live.created_at,
     live.expires_at
    FROM live;
END;
comment on function auth.use_session(bytea,integer) is 'The user and claims of a session. No row: it has ended.';

-- function auth.user_factors(auth.users)
CREATE OR REPLACE FUNCTION auth.user_factors(account auth.users)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', factor.id,
    'friendly_name', factor.friendly_name,
    'factor_type', factor.factor_type,
    'status', case factor.state when 'enabled' then 'verified' else 'unverified' end,
    'created_at', factor.created_at,
    'updated_at', factor.updated_at,
    'last_challenged_at', factor.last_challenged_at
  ) order by factor.created_at, factor.id), '[]')
  from auth.mfa_factors as factor where factor.user_id = account.user_id;
$function$;
comment on function auth.user_factors(auth.users) is 'The second factors of the user, as clients of Supabase Auth read them.';

-- function auth.user_identities(auth.users)
CREATE OR REPLACE FUNCTION auth.user_identities(account auth.users)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
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
$function$;
comment on function auth.user_identities(auth.users) is 'How the user can sign in, as clients of Supabase Auth read it.';

-- function auth.user_json(bigint)
CREATE OR REPLACE FUNCTION auth.user_json(user_id bigint)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (jsonb_strip_nulls(jsonb_build_object('id', account.id, 'aud', 'authenticated', 'role', COALESCE(( SELECT user_roles.role
            FROM auth.user_roles
           WHERE (user_roles.user_id = account.user_id)), 'authenticated'::text), 'email', COALESCE(auth.own_email(account.*), ''::text), 'email_confirmed_at', account.email_confirmed_at, 'new_email', auth.pending_email(account.user_id), 'email_change_sent_at', sent.email_change, 'confirmation_sent_at', sent.confirmation, 'recovery_sent_at', sent.recovery, 'phone', COALESCE(account.phone, ''::text), 'phone_confirmed_at', account.phone_confirmed_at, 'confirmed_at', LEAST(account.email_confirmed_at, account.phone_confirmed_at), 'invited_at', account.invited_at, 'last_sign_in_at', account.last_sign_in_at, 'created_at', account.created_at, 'updated_at', account.updated_at, 'banned_until', account.banned_until, 'deleted_at', account.deleted_at, 'is_anonymous', account.is_anonymous, 'is_sso_user', NULLIF(account.is_sso_user, false))) || jsonb_build_object('app_metadata', (account.raw_app_meta_data || jsonb_strip_nulls(jsonb_build_object('provider', (auth.providers_of(account.user_id) -> 0), 'providers', auth.providers_of(account.user_id)))), 'user_metadata', account.raw_user_meta_data, 'identities', auth.user_identities(account.*), 'factors', auth.user_factors(account.*)))
    FROM (auth.users account
      CROSS JOIN LATERAL ( SELECT max(token.created_at) FILTER (WHERE (token.purpose = ANY (ARRAY['email_change_new'::text, 'email_change_current'::text]))) AS email_change,
             max(token.created_at) FILTER (WHERE (token.purpose = ANY (ARRAY['signup'::text, 'verify'::text]))) AS confirmation,
             max(token.created_at) FILTER (WHERE (token.purpose = ANY (ARRAY['recovery'::text, 'reset'::text]))) AS recovery
            FROM auth.mail_tokens token
           WHERE (token.user_id = account.user_id)) sent)
   WHERE (account.user_id = user_json.user_id);
END;
comment on function auth.user_json(bigint) is 'The user as clients of Supabase Auth read it; null without such an account.';

-- function auth.username_fault(text,text)
CREATE OR REPLACE FUNCTION auth.username_fault(username text, email text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO ''
AS $function$
  select case
    when username like '%@%' and lower(username) <> lower(email)
      then 'A user name with an @ can only be your own e-mail address'
    when username not like '%@%' and username !~ '^[^\s:[:cntrl:]]{1,254}$'
      then 'A user name has 1 to 254 characters, and neither spaces nor colons'
  end
$function$;
comment on function auth.username_fault(text,text) is 'Why a user with that address cannot have this user name; null when it is acceptable.';

-- function auth.users_access()
CREATE OR REPLACE FUNCTION auth.users_access()
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN CASE WHEN (to_regclass('public.users'::text) IS NULL) THEN NULL::text WHEN (EXISTS (SELECT FROM pg_policies WHERE ((pg_policies.schemaname = 'public'::name) AND (pg_policies.tablename = 'users'::name) AND (pg_policies.policyname = 'select_all'::name)))) THEN 'open'::text ELSE 'owner'::text END;
comment on function auth.users_access() is 'The value of USERS_ACCESS that policies and privileges implement; null without the table of users.';

-- function auth.users_are_open(text)
CREATE OR REPLACE FUNCTION auth.users_are_open(verb text)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE verb WHEN 'insert'::text THEN ((current_setting('request.interface'::text, true) = ANY (ARRAY['resource'::text, 'graphql'::text])) AND auth.accepts_sign_ups()) ELSE ((current_setting('request.interface'::text, true) = 'resource'::text) AND (current_setting('app.users_access'::text, true) = 'open'::text)) END;
grant execute on function auth.users_are_open(text) to anon, authenticated;
comment on function auth.users_are_open(text) is 'Whether anybody at all may insert, update or delete users in this request.';

-- function auth.verify_email(bytea,auth.client_info)
CREATE OR REPLACE FUNCTION auth.verify_email(token_hash bytea, client_info auth.client_info)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  v_account := auth.lock_account((select found.user_id from auth.find_mail_token(verify_email.token_hash, 'verify') as found));
  if v_account.user_id is null then
    return null;
  end if;
  delete from auth.mail_tokens as token where token.token_hash = verify_email.token_hash returning * into v_token;
  if not found then
    return null;
  end if;
  if lower(v_account.verified_email) is distinct from lower(v_token.email) then
    perform auth.claim_account(v_account.user_id, v_token, client_info);
  end if;
  update auth.users as account set verified_email = v_token.email where user_id = v_token.user_id;
  perform auth.log_event('email.verified', v_token.user_id, client_info);
  return v_token.user_id;
end;
$function$;
comment on function auth.verify_email(bytea,auth.client_info) is 'Spends the token and marks the address as verified, which ends what was there before. Null: the token is invalid.';

-- function auth.withdraw_oauth_grant(bigint,text,auth.client_info)
CREATE OR REPLACE FUNCTION auth.withdraw_oauth_grant(user_id bigint, client_id text, client_info auth.client_info)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform auth.lock_account(withdraw_oauth_grant.user_id);
  perform auth.end_oauth_sessions(array(
    select held.session_id from auth.oauth_sessions as held join auth.oauth_grants as granted on granted.id = held.grant_id
    where granted.user_id = withdraw_oauth_grant.user_id and granted.client_id = withdraw_oauth_grant.client_id
  ));
  delete from auth.oauth_authorizations as pending
    where pending.user_id = withdraw_oauth_grant.user_id and pending.client_id = withdraw_oauth_grant.client_id;
  delete from auth.oauth_grants as granted
    where granted.user_id = withdraw_oauth_grant.user_id and granted.client_id = withdraw_oauth_grant.client_id;
  if not found then
    return false;
  end if;
  perform auth.log_event(
    'oauth.withdrawn', withdraw_oauth_grant.user_id, client_info, jsonb_build_object('client', withdraw_oauth_grant.client_id)
  );
  return true;
end;
$function$;
comment on function auth.withdraw_oauth_grant(bigint,text,auth.client_info) is 'Ends what a user has granted to an application. False: nothing was granted.';

-- function auth.withhold_addresses()
CREATE OR REPLACE FUNCTION auth.withhold_addresses()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  revoke select on public.users from authenticated;
  execute format('grant select (%s) on public.users to authenticated', (
    select string_agg(quote_ident(attname), ', ') from pg_attribute
    where attrelid = 'public.users'::regclass and attnum > 0 and not attisdropped
      and coalesce(col_description(attrelid, attnum), '') !~ '(^|\n)@personal '
  ));
end;
$function$;
comment on function auth.withhold_addresses() is 'Lets signed-in callers select all columns of users but the address, of which they read their own by public.users_own_email.';

-- function content_service.add_bucket_usage(text[],text[],bigint[])
CREATE OR REPLACE FUNCTION content_service.add_bucket_usage(bucket_ids text[], owner_ids text[], bytes bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  perform content_service.lock_bounded_buckets(array(
    select changed.bucket_id from unnest(bucket_ids, add_bucket_usage.bytes) as changed (bucket_id, bytes) where changed.bytes > 0
  ));
  -- In the order of the key, so that transactions do not deadlock.
  insert into content_service.bucket_usage as usage (bucket_id, owner_id, bytes)
    select changed.bucket_id, changed.owner_id, sum(changed.bytes)
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes)
    where exists (select from storage.buckets where buckets.id = changed.bucket_id)
    group by changed.bucket_id, changed.owner_id having sum(changed.bytes) <> 0
    order by changed.bucket_id, changed.owner_id
    on conflict (bucket_id, owner_id) do update set bytes = usage.bytes + excluded.bytes;
  perform content_service.check_bucket_usage(array_agg(changed.bucket_id), array_agg(changed.owner_id))
    from unnest(bucket_ids, owner_ids, add_bucket_usage.bytes) as changed (bucket_id, owner_id, bytes) where changed.bytes > 0;
end;
$function$;
comment on function content_service.add_bucket_usage(text[],text[],bigint[]) is 'Counts contents of objects that were added, or with negative sizes removed; throws beyond the bound of a bucket.';

-- function content_service.article_document(text,text[],text)
CREATE OR REPLACE FUNCTION content_service.article_document(title text, tags text[], content text)
 RETURNS tsvector
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 10000
RETURN ((setweight(to_tsvector('simple'::regconfig, "left"(title, 1000)), 'A'::"char") || setweight(to_tsvector('simple'::regconfig, array_to_string(tags, ' '::text)), 'B'::"char")) || setweight(to_tsvector('simple'::regconfig, "left"(content, 200000)), 'C'::"char"));
grant execute on function content_service.article_document(text,text[],text) to anon, authenticated, service_role;
comment on function content_service.article_document(text,text[],text) is 'The text of an article for full-text search: title before tags before content.';

-- function content_service.article_text(text,text[],text)
CREATE OR REPLACE FUNCTION content_service.article_text(title text, tags text[], content text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 1000
RETURN ((((title || '
'::text) || array_to_string(tags, '
'::text)) || '
'::text) || content);
grant execute on function content_service.article_text(text,text[],text) to anon, authenticated, service_role;
comment on function content_service.article_text(text,text[],text) is 'The text of an article for substring search.';

-- function content_service.articles_containing(text)
CREATE OR REPLACE FUNCTION content_service.articles_containing(keyword text)
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE SECURITY DEFINER ROWS 20
 SET search_path TO ''
AS $function$
  select part.id from public.articles as part
  where content_service.article_text(part.title, part.tags, part.content) ilike content_service.containing(keyword)
  union
  select word.id from public.articles as word
  where btrim(keyword) ~ '[^[:alnum:]]'
    and content_service.article_document(word.title, word.tags, word.content)
      @@ plainto_tsquery('simple', left(keyword, 1000));
$function$;
grant execute on function content_service.articles_containing(text) to anon, authenticated, service_role;
comment on function content_service.articles_containing(text) is 'The ids of all articles with the keyword, whoever may read them.';

-- function content_service.articles_sharing(text[])
CREATE OR REPLACE FUNCTION content_service.articles_sharing(tags text[])
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE SECURITY DEFINER ROWS 20
 SET search_path TO ''
AS $function$
  select articles.id from public.articles where articles.tags && articles_sharing.tags;
$function$;
grant execute on function content_service.articles_sharing(text[]) to anon, authenticated, service_role;
comment on function content_service.articles_sharing(text[]) is 'The ids of all articles with one of the tags, whoever may read them.';

-- function content_service.await_events(integer)
CREATE OR REPLACE FUNCTION content_service.await_events(seconds integer, OUT was_awaited boolean, OUT at double precision, OUT writers text[])
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_now timestamptz;
begin
  -- Serialized: otherwise the time could be set back.
  perform pg_advisory_xact_lock(hashtext('content_service.await_events'));
  v_now := clock_timestamp();
  was_awaited := coalesce(to_timestamp(pg_sequence_last_value('content_service.events_awaited_until')) >= v_now, false);
  at := extract(epoch from v_now);
  perform setval('content_service.events_awaited_until', ceil(at)::bigint + seconds);
  if not was_awaited then
    perform nextval('content_service.event_number');
  end if;
  select coalesce(array_agg(virtualtransaction), '{}') into writers
    from pg_locks
    where locktype = 'relation' and relation = 'content_service.events_awaited_until'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())
      and pid is distinct from pg_backend_pid();
end;
$function$;
grant execute on function content_service.await_events(integer) to authenticator;
comment on function content_service.await_events(integer) is 'Emits events for so many seconds. Returns whether they were emitted until now, when that was, and which transactions had checked already.';

-- function content_service.begin_schedule_minutes(timestamp with time zone)
CREATE OR REPLACE FUNCTION content_service.begin_schedule_minutes(planned_at timestamp with time zone, OUT processed timestamp with time zone, OUT until timestamp with time zone, OUT was_set_back boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_now timestamptz;
begin
  select schedule_clock.processed into begin_schedule_minutes.processed from content_service.schedule_clock for update;
  v_now := clock_timestamp();
  until := date_trunc('minute', greatest(v_now, least(planned_at, v_now + interval '30 seconds')));
  was_set_back := until < processed - interval '1 minute';
  if was_set_back then
    update api.schedules set changed_at = until, next_run_at = null where next_run_at > until;
    processed := until;
  end if;
  until := greatest(until, processed);
end;
$function$;
comment on function content_service.begin_schedule_minutes(timestamp with time zone) is 'Locks the clock until the end of the transaction, and returns how far the schedules are to be processed; called by the service as the owner.';

-- function content_service.begin_task(text)
CREATE OR REPLACE FUNCTION content_service.begin_task(lane text)
 RETURNS TABLE(id uuid, caller jsonb, request jsonb, body bytea, function text, arguments jsonb, call_statement text, time_limit interval, attempts integer)
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
#variable_conflict use_column
declare
  v_turn bigint;
  v_next bigint;
  v_limit bigint := content_service.bound(case begin_task.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
  v_id uuid;
  v_from bigint;
begin
  -- A task whose beginning is lost by a crash is begun again.
  perform set_config('synchronous_commit', 'off', true);
  select task_lanes.turn into v_turn from content_service.task_lanes where name = begin_task.lane for update;
  with due as materialized (
    select tasks.id, tasks.caller_key, tasks.run_at, tasks.created_at from content_service.tasks
    where tasks.lane = begin_task.lane and tasks.status = 'queued' and tasks.turn is null and tasks.run_at <= clock_timestamp()
    order by tasks.run_at limit 1000
    for update skip locked
  ), latest as materialized (
    -- One look into the index per caller, however many of its tasks wait.
    select callers.caller_key, (
      select max(waiting.turn) from content_service.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.caller_key = callers.caller_key and waiting.status = 'queued'
        and waiting.turn is not null
    ) as turn
    from (select distinct due.caller_key from due) as callers
  ), placed as (
    select due.id, greatest(v_turn, latest.turn)
      + row_number() over (partition by due.caller_key order by due.run_at, due.created_at, due.id) as turn
    from due
    left join latest using (caller_key)
  )
  update content_service.tasks set turn = placed.turn from placed where tasks.id = placed.id;

  -- Without a limit those before the turn of the lane have begun: their dead rows are not read again. One that was locked then is left.
  foreach v_from in array case when v_limit is null then array[v_turn, 0] else array[0] end loop
    select waiting.id, waiting.turn into v_id, v_next from content_service.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.status = 'queued' and waiting.turn >= v_from and (
        v_limit is null
        or v_limit > (
          select count(*) from content_service.tasks as running
          where running.lane = waiting.lane and running.caller_key = waiting.caller_key and running.status = 'running'
        )
        or exists (select from pg_roles where rolname = waiting.caller ->> 'role' and rolbypassrls)
      )
      order by waiting.turn, waiting.run_at limit 1 for update skip locked;
    exit when found;
  end loop;
  if v_id is null then
    return;
  end if;
  update content_service.task_lanes set turn = greatest(turn, v_next) where name = begin_task.lane;
  return query
    update content_service.tasks set status = 'running', started_at = clock_timestamp(), attempts = tasks.attempts + 1
      where tasks.id = v_id
      returning tasks.id, tasks.caller, tasks.request, tasks.body, tasks.function, tasks.arguments,
        content_service.call_statement(tasks.function, tasks.arguments),
        tasks.time_limit, tasks.attempts;
end;
$function$;
comment on function content_service.begin_task(text) is 'Chooses the task of a lane that is to run next, if one is due; called by the service as the owner.';

-- function content_service.begin_upload(uuid,text,text,text,text,text,text,jsonb,bigint,bigint)
CREATE OR REPLACE FUNCTION content_service.begin_upload(id uuid, caller text, quota_key text, role text, bucket text, name text, owner text, about jsonb, bytes bigint, max_bytes bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  perform content_service.lock_bounded_buckets(array[bucket]);
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || begin_upload.quota_key, 0));
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads to ' || bucket || '/' || coalesce(begin_upload.owner, ''), 0));
  insert into content_service.unfinished_uploads as upload (id, caller, quota_key, bucket_id, name, owner_id, about, bytes)
    values (
      begin_upload.id, begin_upload.caller, begin_upload.quota_key, bucket, begin_upload.name, coalesce(begin_upload.owner, ''),
      begin_upload.about, begin_upload.bytes
    )
    on conflict on constraint content_service_unfinished_uploads_pkey do update set bytes = excluded.bytes, started_at = now();
  if content_service.is_upload_bounded(begin_upload.role) then
    perform content_service.check_unfinished_uploads(begin_upload.quota_key, begin_upload.max_bytes);
  end if;
  perform content_service.check_bucket_usage(array[bucket], array[coalesce(begin_upload.owner, '')]);
end;
$function$;
grant execute on function content_service.begin_upload(uuid,text,text,text,text,text,text,jsonb,bigint,bigint) to authenticator;
comment on function content_service.begin_upload(uuid,text,text,text,text,text,text,jsonb,bigint,bigint) is 'Begins an upload in parts, or notes its size; throws if the caller or the bucket has too much.';

-- function content_service.bound(text)
CREATE OR REPLACE FUNCTION content_service.bound(name text)
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (SELECT bounds.bound FROM content_service.bounds WHERE (bounds.name = bound.name));
comment on function content_service.bound(text) is 'How much of something may be kept; changed by an update of content_service.bounds.';

-- function content_service.bucket_terms(text)
CREATE OR REPLACE FUNCTION content_service.bucket_terms(bucket text, OUT is_public boolean, OUT file_size_limit bigint, OUT allowed_mime_types text[])
 RETURNS SETOF record
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 SELECT COALESCE(buckets.public, false) AS "coalesce",
     buckets.file_size_limit,
     buckets.allowed_mime_types
    FROM storage.buckets
   WHERE (buckets.id = bucket_terms.bucket);
END;
grant execute on function content_service.bucket_terms(text) to authenticator;
comment on function content_service.bucket_terms(text) is 'Whether everybody may download from a bucket, and what may be uploaded, whoever asks.';

-- function content_service.call_statement(text,jsonb)
CREATE OR REPLACE FUNCTION content_service.call_statement(function text, arguments jsonb)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_function regprocedure := to_regprocedure(function);
  v_inputs text := (
    select string_agg(format('%I %s', input.name, format_type(input.type, null)), ', ')
    from content_service.function_inputs(v_function) as input where arguments ? input.name
  );
  v_values text := (
    select string_agg(
      format('%s%I => given.%I', case when input.is_variadic then 'variadic ' end, input.name, input.name), ', '
    )
    from content_service.function_inputs(v_function) as input where arguments ? input.name
  );
  v_from text := case
    when v_inputs is null then '(select $1::pg_catalog.jsonb) as given'
    else format('pg_catalog.jsonb_to_record($1::pg_catalog.jsonb) as given (%s)', v_inputs)
  end;
  v_call text;
begin
  select format('%I.%I(%s)', namespace.nspname, proc.proname, v_values) into v_call
    from pg_proc as proc join pg_namespace as namespace on namespace.oid = proc.pronamespace
    where proc.oid = v_function;
  return (
    select case
      when proc.proretset then format(
        'select coalesce(pg_catalog.json_agg(item), ''[]'') from (select %s as item from %s) as call', v_call, v_from
      )
      when proc.prorettype = 'void'::regtype then format(
        'select nullif(%s::pg_catalog.text, '''')::pg_catalog.json from %s', v_call, v_from
      )
      else format('select pg_catalog.to_json(%s) from %s', v_call, v_from)
    end
    from pg_proc as proc where proc.oid = v_function
  );
end;
$function$;
comment on function content_service.call_statement(text,jsonb) is 'The statement that calls a function with an object of arguments and returns its result as JSON; null where the function does not exist.';

-- function content_service.callable_function(text,text,jsonb)
CREATE OR REPLACE FUNCTION content_service.callable_function(role text, function text, arguments jsonb)
 RETURNS regprocedure
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  -- The name, with or without its schema, and the types of its parameters, with or without.
  v_parts text[] := regexp_match(
    function, '^\s*((?:(?:"(?:[^"]|"")+"|[^\s"().]+)\s*\.\s*)?(?:"(?:[^"]|"")+"|[^\s"().]+))\s*(\(.*\))?\s*$'
  );
  v_path text[];
  v_signature regprocedure;
  v_callable oid[];
  v_matching oid[];
begin
  begin
    v_path := parse_ident(v_parts[1]);
    v_path := case cardinality(v_path) when 1 then array['public'] || v_path else v_path end;
    v_signature := to_regprocedure(format('%I.%I', v_path[1], v_path[2]) || v_parts[2]);
  exception when others then
    v_path := null;
  end;

  select array_agg(proc.oid order by proc.oid) into v_callable
    from pg_proc as proc
    join pg_namespace as namespace on namespace.oid = proc.pronamespace
    join pg_type as result on result.oid = proc.prorettype
    where namespace.nspname = v_path[1] and proc.proname = v_path[2]
      and (v_parts[2] is null or proc.oid = v_signature)
      and proc.prokind = 'f' and (result.typtype <> 'p' or result.typname in ('void', 'record'))
      and namespace.nspname !~ '^pg_' and namespace.nspname <> 'information_schema'
      and not exists (
        select from pg_depend where classid = 'pg_proc'::regclass and objid = proc.oid and deptype = 'e'
      )
      and not exists (
        select from content_service.function_inputs(proc.oid) as input
        join pg_type on pg_type.oid = input.type where pg_type.typtype = 'p'
      )
      and has_schema_privilege(callable_function.role, namespace.oid, 'usage')
      and has_function_privilege(callable_function.role, proc.oid, 'execute');
  if v_callable is null then
    raise exception 'There is no function % that % may call', function, role using errcode = 'NTFND', detail = 'function',
      hint = format(
        'Write its name with its schema, and the types of its parameters where several have the name. If the role lacks the privilege: '
        'grant execute on function … to %I, and grant usage on its schema. Procedures, aggregates, '
        'triggers, functions with polymorphic parameters and those of Postgres and of extensions cannot be queued.', role
      );
  end if;

  select array_agg(callable order by callable) into v_matching
    from unnest(v_callable) as callable where content_service.takes_arguments(callable, callable_function.arguments);
  if v_matching is null then
    raise exception 'The arguments do not match the parameters of %', function using errcode = 'WRONG', detail = 'arguments',
      hint = 'It is called by ' || (
        select string_agg(
          format('%s(%s)', oid::regproc, pg_get_function_arguments(oid)), ' or ' order by oid
        ) from unnest(v_callable) as oid
      ) || '. Name each argument that has no default.';
  end if;
  if cardinality(v_matching) > 1 or content_service.is_ambiguous_call(v_matching[1], arguments) then
    raise exception 'Several functions take these arguments of %', function using errcode = 'WRONG', detail = 'function',
      hint = 'Write the types of the parameters, as in public.f(integer, text), and name all arguments.';
  end if;
  return v_matching[1];
end;
$function$;
comment on function content_service.callable_function(text,text,jsonb) is 'The function that a role means by a name or a signature, and by the names of the arguments.';

-- function content_service.check_bucket_usage(text[],text[])
CREATE OR REPLACE FUNCTION content_service.check_bucket_usage(bucket_ids text[], owner_ids text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_full text;
begin
  select buckets.id into v_full from unnest(bucket_ids, owner_ids) as changed (bucket_id, owner_id)
    join storage.buckets on buckets.id = changed.bucket_id
    where buckets.max_bytes is not null and coalesce((
        select sum(usage.bytes) from content_service.bucket_usage as usage where usage.bucket_id = buckets.id
      ), 0) + coalesce((
        select sum(upload.bytes) from content_service.unfinished_uploads as upload where upload.bucket_id = buckets.id
      ), 0) > buckets.max_bytes
      or buckets.max_bytes_of_owner is not null and coalesce((
        select sum(usage.bytes) from content_service.bucket_usage as usage
        where usage.bucket_id = buckets.id and usage.owner_id = changed.owner_id
      ), 0) + coalesce((
        select sum(upload.bytes) from content_service.unfinished_uploads as upload
        where upload.bucket_id = buckets.id and upload.owner_id = changed.owner_id
      ), 0) > buckets.max_bytes_of_owner
    limit 1;
  if found then
    raise exception 'The bucket % is full.', v_full using errcode = 'PT413', hint = 'Delete objects and unfinished uploads that are not needed.';
  end if;
end;
$function$;
comment on function content_service.check_bucket_usage(text[],text[]) is 'Throws if objects and unfinished uploads take more than the bounds of a bucket.';

-- function content_service.check_cron(text)
CREATE OR REPLACE FUNCTION content_service.check_cron(cron text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO ''
AS $function$
declare
  v_fields text[] := regexp_split_to_array(btrim(cron), ' +');
  v_days integer[];
  v_months integer[];
begin
  if lower(btrim(cron)) in ('@hourly', '@daily', '@weekly', '@monthly', '@yearly') then
    return;
  end if;
  if cardinality(v_fields) <> 5 then
    raise exception 'A cron text has five fields, and "%" has %', cron, cardinality(v_fields)
      using errcode = 'WRONG', detail = 'cron',
        hint = 'Write minute, hour, day, month and weekday, such as 30 3 * * *, or @hourly, @daily, @weekly, @monthly or @yearly.';
  end if;
  perform content_service.cron_values(v_fields[1], 'minute', 0, 59, null);
  perform content_service.cron_values(v_fields[2], 'hour', 0, 23, null);
  v_days := content_service.cron_values(v_fields[3], 'day', 1, 31, null);
  v_months := content_service.cron_values(v_fields[4], 'month', 1, 12, '{jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec}');
  perform content_service.cron_values(v_fields[5], 'weekday', 0, 7, '{sun,mon,tue,wed,thu,fri,sat}');
  if v_fields[5] = '*' and not exists (
    select from unnest(v_days) as day, unnest(v_months) as month
    where day <= case when month = 2 then 29 when month in (4, 6, 9, 11) then 30 else 31 end
  ) then
    raise exception 'The months of "%" have no such day', cron using errcode = 'WRONG', detail = 'cron';
  end if;
end;
$function$;
comment on function content_service.check_cron(text) is 'Raises if the cron text cannot be read, or names no day that exists.';

-- function content_service.check_task_bounds(text,text,text)
CREATE OR REPLACE FUNCTION content_service.check_task_bounds(lane text, caller_key text, role text)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_is_anonymous boolean := lane = 'anonymous';
  v_waiting bigint := content_service.bound(case when v_is_anonymous then 'tasks of an anonymous caller' else 'tasks of a caller' end);
  v_kept bigint := content_service.bound(case when v_is_anonymous then 'kept tasks of an anonymous caller' else 'kept tasks of a caller' end);
  v_bytes bigint := content_service.bound('bytes of tasks of a caller');
  v_all bigint := content_service.bound('tasks of all anonymous callers');
begin
  if (
    select count(*) >= v_waiting from (
      select from content_service.tasks
      where tasks.caller_key = check_task_bounds.caller_key and tasks.finished_at is null limit v_waiting
    ) as unfinished
  ) then
    raise exception '% tasks of yours are waiting already', v_waiting using errcode = 'TOMNY';
  end if;
  if exists (select from pg_roles where rolname = role and rolbypassrls) then
    return;
  end if;
  if (
    select count(*) >= v_kept or sum(bytes) >= v_bytes from (
      select tasks.bytes from content_service.tasks where tasks.caller_key = check_task_bounds.caller_key limit v_kept
    ) as kept
  ) then
    raise exception 'Too many tasks of yours are kept' using errcode = 'TOMNY',
      hint = 'Delete finished tasks, or wait: they are deleted a day after their end.';
  end if;
  if v_is_anonymous and (
    select count(*) >= v_all from (
      select from content_service.tasks where tasks.lane = 'anonymous' and tasks.finished_at is null limit v_all
    ) as unfinished
  ) then
    raise exception 'Too many tasks of anonymous callers are waiting' using errcode = 'TOMNY', hint = 'Sign in, or try again later.';
  end if;
end;
$function$;
comment on function content_service.check_task_bounds(text,text,text) is 'Refuses one more task of a caller who has too many.';

-- function content_service.check_task_role(text)
CREATE OR REPLACE FUNCTION content_service.check_task_role(role text)
 RETURNS void
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = role) then
    raise exception 'There is no role %', role using errcode = 'WRONG', detail = 'role';
  end if;
  if exists (
    select from pg_roles where rolname = role and (
      rolsuper or oid = (select relowner from pg_class where oid = 'content_service.tasks'::regclass)
    )
  ) then
    raise exception 'No function is queued as %, which bypasses the policies', role
      using errcode = 'NOPER', hint = 'Choose a role of requests, such as service_role: "set role service_role" before '
        'api.enqueue, the argument of api.enqueue_as, or the column "role" of a schedule.';
  end if;
  -- The logins of the service are those that may lock tasks.
  if not exists (
    select from pg_roles as login
    where not login.rolsuper and has_function_privilege(login.oid, 'content_service.lock_task(text)', 'execute')
      and login.oid <> (select relowner from pg_class where oid = 'content_service.tasks'::regclass)
      and pg_has_role(login.oid, role, v_become)
  ) then
    raise exception 'The login of the service cannot run functions as %', role
      using errcode = 'NOPER', hint = format('Run once as the owner: grant %I to authenticator', role);
  end if;
end;
$function$;
comment on function content_service.check_task_role(text) is 'Refuses roles that tasks cannot or must not run as.';

-- function content_service.check_unfinished_uploads(text,bigint)
CREATE OR REPLACE FUNCTION content_service.check_unfinished_uploads(quota_key text, max_bytes bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_uploads bigint;
  v_bytes numeric;
begin
  select count(*), coalesce(sum(bytes), 0) into v_uploads, v_bytes
    from content_service.unfinished_uploads where unfinished_uploads.quota_key = check_unfinished_uploads.quota_key;
  if v_uploads > content_service.bound('unfinished uploads of a caller')
    or v_bytes > greatest(content_service.bound('bytes of unfinished uploads of a caller'), max_bytes) then
    raise exception 'Too many unfinished uploads.'
      using errcode = 'PT429', hint = 'Finish or abort some; those of more than a day are deleted.';
  end if;
end;
$function$;
comment on function content_service.check_unfinished_uploads(text,bigint) is 'Throws if uploads that are not finished take more of the file store than a caller may.';

-- function content_service.claim_response(text,text,text)
CREATE OR REPLACE FUNCTION content_service.claim_response(place text, caller_key text DEFAULT ''::text, role text DEFAULT NULL::text, OUT is_claimed boolean, OUT answer text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_id bytea := decode(place, 'hex');
  v_is_anonymous boolean := caller_key like 'address %';
  v_bound bigint;
begin
  select encode(kept.sealed_answer, 'base64') into answer
    from content_service.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  is_claimed := answer is null and pg_try_advisory_xact_lock(('x' || left(place, 16))::bit(64)::bigint);
  if is_claimed then
    -- A separate statement after the lock was taken: it sees what the previous transaction committed.
    select encode(kept.sealed_answer, 'base64') into answer
      from content_service.kept_answers as kept where kept.id = v_id and kept.expires_at > now();
  end if;
  if is_claimed and answer is null and not exists (
    select from pg_roles where rolname = claim_response.role and rolbypassrls
  ) then
    v_bound := content_service.bound(
      case when v_is_anonymous then 'idempotency keys of an anonymous caller' else 'idempotency keys of a caller' end
    );
    if (select own.keys >= v_bound from content_service.responses_of_caller(claim_response.caller_key) as own) or v_is_anonymous and exists (
      select from content_service.bounds where name = 'idempotency keys of all anonymous callers' and used >= bound
    ) then
      raise exception 'Too many Idempotency-Keys' using errcode = 'TOMNY', detail = 'Nothing was changed.',
        hint = 'Each key is kept for a day. Send the request without a key, or later.';
    end if;
  end if;
end;
$function$;
grant execute on function content_service.claim_response(text,text,text) to authenticator;
comment on function content_service.claim_response(text,text,text) is 'Returns the stored response; without one claims the id until the end of the transaction, unless another transaction has it.';

-- function content_service.composite_key(json,text[])
CREATE OR REPLACE FUNCTION content_service.composite_key("row" json, keys text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN (SELECT (json_agg((composite_key."row" -> key.name) ORDER BY key."position"))::text AS json_agg FROM unnest(composite_key.keys) WITH ORDINALITY key(name, "position"));
comment on function content_service.composite_key(json,text[]) is 'The values of a key of several columns.';

-- function content_service.containing(text)
CREATE OR REPLACE FUNCTION content_service.containing(keyword text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (('%'::text || regexp_replace("left"(keyword, 1000), '([\\%_])'::text, '\\\1'::text, 'g'::text)) || '%'::text);
grant execute on function content_service.containing(text) to anon, authenticated, service_role;
comment on function content_service.containing(text) is 'The pattern for like and ilike that finds the keyword (its first 1,000 characters) anywhere; wildcards are escaped.';

-- function content_service.count_requests(text[],integer[],integer)
CREATE OR REPLACE FUNCTION content_service.count_requests(callers text[], counts integer[], seconds integer)
 RETURNS TABLE(key text, points integer, milliseconds double precision)
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_now bigint := extract(epoch from clock_timestamp()) * 1000;
begin
  delete from content_service.rate_limits where rate_limits.key in (
    select expired.key from content_service.rate_limits as expired where expired.expire <= v_now and expired.key <> all (callers)
    order by expired.expire limit 100 for update skip locked
  );
  return query
    insert into content_service.rate_limits as counted (key, points, expire)
    select told.caller, told.count, v_now + seconds * 1000
    from unnest(callers, counts) as told (caller, count)
    order by told.caller
    on conflict on constraint content_service_rate_limits_pkey do update set
      points = case when counted.expire <= v_now then 0 else counted.points end + excluded.points,
      expire = case when counted.expire <= v_now then excluded.expire else counted.expire end
    returning counted.key, counted.points, (counted.expire - v_now)::double precision;
end;
$function$;
comment on function content_service.count_requests(text[],integer[],integer) is 'Adds the requests counted by a process and returns the totals; called by the service as the owner.';

-- function content_service.count_responses(text)
CREATE OR REPLACE FUNCTION content_service.count_responses(caller_key text)
 RETURNS void
 LANGUAGE sql
BEGIN ATOMIC
 INSERT INTO content_service.kept_answer_counts (caller_key, keys, bytes, number, counted_at)  SELECT count_responses.caller_key AS caller_key,
             count(*) AS count,
             COALESCE(sum(kept.bytes), (0)::numeric) AS "coalesce",
             COALESCE(max(kept.number), (0)::bigint) AS "coalesce",
             clock_timestamp() AS clock_timestamp
            FROM content_service.kept_answers kept
           WHERE (kept.caller_key = count_responses.caller_key) ON CONFLICT(caller_key) DO UPDATE SET keys = excluded.keys, bytes = excluded.bytes, number = excluded.number, counted_at = excluded.counted_at;
END;
comment on function content_service.count_responses(text) is 'Counts the responses that are kept for the caller, and remembers the result.';

-- function content_service.create_webhook_triggers(api.webhooks)
CREATE OR REPLACE FUNCTION content_service.create_webhook_triggers(webhook api.webhooks)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_table regclass := to_regclass(webhook.table_name);
  v_event text;
  v_level text := case when content_service.is_in_hierarchy(v_table) then 'for each row' else 'for each statement' end;
begin
  foreach v_event in array webhook.events loop
    execute format(
      'create trigger %I after %s on %s %s %s execute function content_service.tg__webhook(%L)',
      content_service.webhook_trigger_name(webhook.id, v_event), v_event, v_table,
      case when v_level = 'for each row' then ''
        else 'referencing' || case v_event when 'INSERT' then '' else ' old table as old_rows' end
          || case v_event when 'DELETE' then '' else ' new table as new_rows' end
      end,
      v_level, webhook.id
    );
  end loop;
end;
$function$;
comment on function content_service.create_webhook_triggers(api.webhooks) is 'Creates the triggers that record the changes of a table for a webhook.';

-- function content_service.cron_values(text,text,integer,integer,text[])
CREATE OR REPLACE FUNCTION content_service.cron_values(field text, unit text, low integer, high integer, names text[])
 RETURNS integer[]
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO ''
AS $function$
declare
  v_item text;
  v_match text[];
  v_bounds integer[];
  v_step integer;
  v_values integer[] := '{}';
begin
  foreach v_item in array string_to_array(lower(field), ',') loop
    v_match := regexp_match(v_item, '^(?:\*|(\d\d?|[a-z]{3})(?:-(\d\d?|[a-z]{3}))?)(?:/(\d\d?))?$');
    v_bounds := array[low, high];
    v_step := coalesce(v_match[3]::integer, 1);
    if v_match[1] is not null then
      v_bounds := array(
        select case when bound ~ '^\d' then bound::integer else array_position(names, bound) - 1 + low end
        from unnest(array[v_match[1], coalesce(v_match[2], v_match[1])]) with ordinality as bounds (bound, place)
        order by place
      );
    end if;
    if v_match is null or array_position(v_bounds, null) is not null
      or v_bounds[1] < low or v_bounds[2] > high or v_bounds[1] > v_bounds[2]
      or v_step not between 1 and coalesce(cardinality(names), high - low + 1)
      or (v_match[3] is not null and v_match[1] is not null and v_match[2] is null)
    then
      raise exception 'The % of a cron text cannot be "%"', unit, v_item using errcode = 'WRONG', detail = 'cron', hint = format(
        'Write *, numbers from %s to %s, ranges such as %s-%s, steps such as */2 or %s-%s/2, or a list of these separated by commas%s.',
        low, high, low, low + 5, low, low + 5, ', or names such as ' || names[1]
      );
    end if;
    v_values := v_values || array(select generate_series(v_bounds[1], v_bounds[2], v_step));
  end loop;
  return v_values;
end;
$function$;
comment on function content_service.cron_values(text,text,integer,integer,text[]) is 'The values of one field of a cron text. Raises if the field cannot be read.';

-- function content_service.drop_webhook_triggers(uuid)
CREATE OR REPLACE FUNCTION content_service.drop_webhook_triggers(webhook uuid)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_trigger record;
begin
  for v_trigger in
    select tgname, tgrelid::regclass as "table" from pg_trigger
    where tgfoid = 'content_service.tg__webhook()'::regprocedure and tgparentid = 0
      and tgname in (
        content_service.webhook_trigger_name(webhook, 'INSERT'), content_service.webhook_trigger_name(webhook, 'UPDATE'),
        content_service.webhook_trigger_name(webhook, 'DELETE')
      )
  loop
    execute format('drop trigger %I on %s', v_trigger.tgname, v_trigger."table");
  end loop;
end;
$function$;
comment on function content_service.drop_webhook_triggers(uuid) is 'Drops the triggers that record changes for a webhook, wherever its table is.';

-- function content_service.end_upload(uuid)
CREATE OR REPLACE FUNCTION content_service.end_upload(id uuid)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 DELETE FROM content_service.unfinished_uploads
   WHERE (unfinished_uploads.id = end_upload.id);
END;
grant execute on function content_service.end_upload(uuid) to authenticator;
comment on function content_service.end_upload(uuid) is 'Forgets an upload that is finished or was aborted.';

-- function content_service.expire_uploads(interval)
CREATE OR REPLACE FUNCTION content_service.expire_uploads(age interval)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 DELETE FROM content_service.unfinished_uploads
   WHERE (unfinished_uploads.started_at < (now() - expire_uploads.age));
END;
comment on function content_service.expire_uploads(interval) is 'Forgets uploads that nobody has finished.';

-- function content_service.fail_task(uuid,jsonb)
CREATE OR REPLACE FUNCTION content_service.fail_task(id uuid, error jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_lane text;
  v_caller_key text;
begin
  update content_service.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = octet_length(fail_task.error::text)
    where tasks.id = fail_task.id and finished_at is null
    returning lane, caller_key into v_lane, v_caller_key;
  if found then
    perform content_service.wake_lane(v_lane, v_caller_key);
  end if;
end;
$function$;
comment on function content_service.fail_task(uuid,jsonb) is 'Marks a task as failed; called by the service as the owner.';

-- function content_service.find_upload(uuid,text)
CREATE OR REPLACE FUNCTION content_service.find_upload(id uuid, caller text)
 RETURNS SETOF content_service.unfinished_uploads
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select unfinished_uploads.* from content_service.unfinished_uploads
  where unfinished_uploads.id = find_upload.id and unfinished_uploads.caller = find_upload.caller;
$function$;
grant execute on function content_service.find_upload(uuid,text) to authenticator;
comment on function content_service.find_upload(uuid,text) is 'An upload in parts that the caller has begun.';

-- function content_service.finish_task(text,text)
CREATE OR REPLACE FUNCTION content_service.finish_task(id text, result text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_task content_service.tasks;
  v_bytes bigint := content_service.bound('bytes of tasks of a caller');
  v_is_kept boolean;
begin
  select * into v_task from content_service.tasks where tasks.id = finish_task.id::uuid;
  v_is_kept := v_task.lane = 'system'
    or exists (select from pg_roles where rolname = v_task.caller ->> 'role' and rolbypassrls)
    or octet_length(result) + coalesce((
      select sum(tasks.bytes) from content_service.tasks where tasks.caller_key = v_task.caller_key and tasks.id <> v_task.id
    ), 0) <= v_bytes;
  update content_service.tasks
    set status = 'done', result = case when v_is_kept then finish_task.result::json else 'null' end,
      error = case when not v_is_kept then jsonb_build_object(
        'status', 507, 'code', 'RESULT_NOT_KEPT',
        'message', 'The task is done. Its result is not kept, because the results of your tasks take too much space.',
        'hint', 'Delete finished tasks, or wait: they are deleted a day after their end.'
      ) end,
      finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = case when v_is_kept then octet_length(finish_task.result) else 0 end
    where tasks.id = v_task.id;
  perform content_service.wake_lane(v_task.lane, v_task.caller_key);
end;
$function$;
grant execute on function content_service.finish_task(text,text) to authenticator;
comment on function content_service.finish_task(text,text) is 'Stores the response of the task that this transaction runs.';

-- function content_service.function_inputs(oid)
CREATE OR REPLACE FUNCTION content_service.function_inputs(function oid)
 RETURNS TABLE(name text, type oid, is_variadic boolean, is_required boolean)
 LANGUAGE sql
BEGIN ATOMIC
 SELECT NULLIF(input.name, ''::text) AS "nullif",
     input.type,
     COALESCE((input.mode = 'v'::"char"), false) AS "coalesce",
     (row_number() OVER (ORDER BY input."position") <= (proc.pronargs - proc.pronargdefaults))
    FROM pg_proc proc,
     LATERAL UNNEST(COALESCE(proc.proallargtypes, (proc.proargtypes)::oid[]), proc.proargnames, proc.proargmodes) WITH ORDINALITY input(type, name, mode, "position")
   WHERE ((proc.oid = function_inputs.function) AND (COALESCE(input.mode, 'i'::"char") = ANY (ARRAY['i'::"char", 'b'::"char", 'v'::"char"])))
   ORDER BY input."position";
END;
comment on function content_service.function_inputs(oid) is 'The parameters of a function that a call gives values to; those without a name have null.';

-- function content_service.hold_object(text,text,uuid,text)
CREATE OR REPLACE FUNCTION content_service.hold_object(bucket text, name text, id uuid, version text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  perform from storage.objects
    where objects.bucket_id = bucket and objects.name = hold_object.name
      and objects.id = hold_object.id and objects.version is not distinct from hold_object.version
    for update;
  return found;
end;
$function$;
grant execute on function content_service.hold_object(text,text,uuid,text) to authenticator;
comment on function content_service.hold_object(text,text,uuid,text) is 'Keeps an object as it is until the end of the transaction; false if it is another one or another version.';

-- function content_service.is_ambiguous_call(oid,jsonb)
CREATE OR REPLACE FUNCTION content_service.is_ambiguous_call(function oid, arguments jsonb)
 RETURNS boolean
 LANGUAGE sql
BEGIN ATOMIC
 SELECT ((EXISTS ( SELECT
            FROM content_service.function_inputs(is_ambiguous_call.function) input(name, type, is_variadic, is_required)
           WHERE (NOT COALESCE((is_ambiguous_call.arguments ? input.name), false)))) AND (EXISTS ( SELECT
            FROM (pg_proc proc
              JOIN pg_proc other ON (((other.proname = proc.proname) AND (other.pronamespace = proc.pronamespace) AND (other.oid <> proc.oid))))
           WHERE ((proc.oid = is_ambiguous_call.function) AND content_service.takes_arguments(other.oid, is_ambiguous_call.arguments) AND (NOT (EXISTS ( SELECT
                    FROM (content_service.function_inputs(proc.oid) input(name, type, is_variadic, is_required)
                      JOIN content_service.function_inputs(other.oid) other_input(name, type, is_variadic, is_required) ON ((other_input.name = input.name)))
                   WHERE ((is_ambiguous_call.arguments ? input.name) AND (other_input.type <> input.type)))))))));
END;
comment on function content_service.is_ambiguous_call(oid,jsonb) is 'Whether a call with these named arguments could mean another function of the same name.';

-- function content_service.is_in_hierarchy(oid)
CREATE OR REPLACE FUNCTION content_service.is_in_hierarchy("table" oid)
 RETURNS boolean
 LANGUAGE sql
BEGIN ATOMIC
 SELECT ((pg_class.relkind = 'p'::"char") OR pg_class.relispartition OR pg_class.relhassubclass OR (EXISTS ( SELECT
            FROM pg_inherits
           WHERE (pg_inherits.inhrelid = pg_class.oid))))
    FROM pg_class
   WHERE (pg_class.oid = is_in_hierarchy."table");
END;
comment on function content_service.is_in_hierarchy(oid) is 'Whether a table is partitioned, or a partition, or inherits.';

-- function content_service.is_served(pg_class)
CREATE OR REPLACE FUNCTION content_service.is_served(class pg_class)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (((class).relkind = ANY (ARRAY['r'::"char", 'p'::"char"])) AND ((class).relpersistence = 'p'::"char") AND ((class).relnamespace <> ALL (ARRAY[('auth'::regnamespace)::oid, ('api'::regnamespace)::oid, ('extensions'::regnamespace)::oid])) AND has_schema_privilege('authenticated'::name, (class).relnamespace, 'usage'::text));
comment on function content_service.is_served(pg_class) is 'Whether this table may be served.';

-- function content_service.is_upload_bounded(text)
CREATE OR REPLACE FUNCTION content_service.is_upload_bounded(role text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (NOT COALESCE((SELECT (pg_roles.rolbypassrls OR pg_roles.rolsuper) FROM pg_roles WHERE (pg_roles.rolname = is_upload_bounded.role)), false));
comment on function content_service.is_upload_bounded(text) is 'Whether unfinished uploads of callers in the role are bounded.';

-- function content_service.keep_file(text,bigint)
CREATE OR REPLACE FUNCTION content_service.keep_file(hash text, bytes bigint)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 INSERT INTO content_service.files (hash, bytes, released_at)
   VALUES (keep_file.hash, keep_file.bytes, clock_timestamp()) ON CONFLICT(hash) DO UPDATE SET bytes = GREATEST(files.bytes, excluded.bytes), released_at = clock_timestamp();
END;
grant execute on function content_service.keep_file(text,bigint) to authenticator;
comment on function content_service.keep_file(text,bigint) is 'Notes a content that an object is about to name.';

-- function content_service.keep_writable(regclass)
CREATE OR REPLACE FUNCTION content_service.keep_writable("table" regclass)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not exists (
    select from pg_attribute where attrelid = "table" and attgenerated = 'v' and not attisdropped
  ) then
    return;
  end if;
  if exists (select from pg_class where oid = "table" and relreplident = 'f') then
    execute format('alter table %s replica identity default', "table");
  end if;
  if not exists (select from pg_index where indrelid = "table" and indisprimary) and exists (
    select from pg_publication_rel
    join pg_publication on pg_publication.oid = prpubid
    where prrelid = "table" and pubname = 'supabase_realtime'
  ) then
    execute format('alter publication supabase_realtime drop table %s', "table");
  end if;
end;
$function$;
comment on function content_service.keep_writable(regclass) is 'Changes the replica identity of a published table if it would prevent updates.';

-- function content_service.large_row(anyelement,text[])
CREATE OR REPLACE FUNCTION content_service.large_row("row" anyelement, keys text[])
 RETURNS json
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_json json;
begin
  if pg_column_size("row") > 16777216 then
    return '{"": true}';
  end if;
  v_json := row_to_json("row");
  if octet_length(v_json::text) <= 1048576 then
    return v_json;
  end if;
  return (
    select coalesce(jsonb_object_agg(key, v_json -> key), '{}') || '{"": true}' from unnest(keys) as key
  );
exception when others then
  return '{"": true}';
end;
$function$;
comment on function content_service.large_row(anyelement,text[]) is 'A row as JSON, reduced to its key if it has more than 1 MiB.';

-- function content_service.list_parts(uuid,integer,integer)
CREATE OR REPLACE FUNCTION content_service.list_parts(id uuid, after_number integer, max_rows integer)
 RETURNS SETOF content_service.upload_parts
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select upload_parts.* from content_service.upload_parts
  where upload_parts.upload_id = list_parts.id and upload_parts.number > after_number
  order by upload_parts.number limit max_rows;
$function$;
grant execute on function content_service.list_parts(uuid,integer,integer) to authenticator;
comment on function content_service.list_parts(uuid,integer,integer) is 'The parts of an upload, by number.';

-- function content_service.list_uploads(text,text,text,text,uuid,integer)
CREATE OR REPLACE FUNCTION content_service.list_uploads(bucket text, caller text, prefix text, after_name text, after_id uuid, max_rows integer)
 RETURNS SETOF content_service.unfinished_uploads
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select unfinished_uploads.* from content_service.unfinished_uploads
  where unfinished_uploads.bucket_id = bucket and unfinished_uploads.caller = list_uploads.caller
    and starts_with(unfinished_uploads.name, prefix)
    and (after_name is null or unfinished_uploads.name collate "C" > after_name
      or (unfinished_uploads.name = after_name and unfinished_uploads.id > after_id))
  order by unfinished_uploads.name collate "C", unfinished_uploads.id limit max_rows;
$function$;
grant execute on function content_service.list_uploads(text,text,text,text,uuid,integer) to authenticator;
comment on function content_service.list_uploads(text,text,text,text,uuid,integer) is 'Uploads in parts that the caller has begun, by name.';

-- function content_service.lock_bounded_buckets(text[])
CREATE OR REPLACE FUNCTION content_service.lock_bounded_buckets(bucket_ids text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_id text;
begin
  -- One after the other in the order of ids, so that transactions do not deadlock.
  for v_id in
    select distinct buckets.id from storage.buckets
    where buckets.id = any (bucket_ids) and (buckets.max_bytes is not null or buckets.max_bytes_of_owner is not null) order by buckets.id
  loop
    perform pg_advisory_xact_lock(hashtextextended('usage of ' || v_id, 0));
  end loop;
end;
$function$;
comment on function content_service.lock_bounded_buckets(text[]) is 'Waits until the uploads to buckets with a bound that others have begun are committed.';

-- function content_service.lock_task(text)
CREATE OR REPLACE FUNCTION content_service.lock_task(id text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  perform from content_service.tasks where tasks.id = lock_task.id::uuid and finished_at is null for update skip locked;
  if found then
    perform set_config('request.task', lock_task.id, true);
  end if;
  return found;
end;
$function$;
grant execute on function content_service.lock_task(text) to authenticator;
comment on function content_service.lock_task(text) is 'Whether this transaction may run the task.';

-- function content_service.maintain_responses()
CREATE OR REPLACE FUNCTION content_service.maintain_responses()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_count bigint;
  v_bytes bigint;
begin
  delete from content_service.kept_answers where id in (
    select id from content_service.kept_answers where expires_at <= now() order by expires_at limit 1000 for update skip locked
  );
  -- What has expired makes room.
  perform content_service.count_responses(counts.caller_key) from (
    select caller_key from content_service.kept_answer_counts where counted_at < clock_timestamp() - interval '1 minute'
    order by counted_at limit 20 for update skip locked
  ) as counts;
  delete from content_service.kept_answer_counts where keys = 0;
  -- Of several processes one counts.
  perform from content_service.bounds
    where name = 'idempotency keys of all anonymous callers' and used_at < clock_timestamp() - interval '5 seconds'
    for update skip locked;
  if not found then
    return;
  end if;
  select count(*), coalesce(sum(kept.bytes), 0) into v_count, v_bytes
    from content_service.kept_answers as kept where kept.caller_key like 'address %';
  update content_service.bounds
    set used_at = clock_timestamp(),
      used = case name when 'idempotency keys of all anonymous callers' then v_count else v_bytes end
    where name in ('idempotency keys of all anonymous callers', 'bytes of kept responses of all anonymous callers');
end;
$function$;
comment on function content_service.maintain_responses() is 'Deletes expired responses, and counts those of anonymous callers; called by the service as the owner.';

-- function content_service.maintain_tasks()
CREATE OR REPLACE FUNCTION content_service.maintain_tasks()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_dead record;
begin
  for v_dead in
    select tasks.id, tasks.attempts from content_service.tasks
    where status = 'running' and finished_at is null and coalesce(started_at, created_at) < now() - interval '10 seconds'
    for update skip locked
  loop
    if v_dead.attempts < 5 then
      perform content_service.requeue_task(v_dead.id, '0 seconds');
    else
      perform content_service.fail_task(
        v_dead.id, '{"status": 500, "code": "XX000", "message": "The task was given up after several attempts."}'
      );
    end if;
  end loop;
  perform graphile_worker.add_job('perform_' || jobless.lane, '{}', max_attempts => 5)
    from (
      select name as lane, (
        select count(*) from (
          select from content_service.tasks where tasks.lane = name and status = 'queued' and run_at <= now() limit 10
        ) as due
      ) - (
        select count(*) from (
          select from graphile_worker.jobs
          where task_identifier = 'perform_' || name and locked_at is null and run_at <= now() and attempts < max_attempts limit 10
        ) as ready
      ) as missing
      from content_service.task_lanes
    ) as jobless, generate_series(1, jobless.missing);
  delete from content_service.tasks where tasks.id in (
    select expired.id from content_service.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$function$;
comment on function content_service.maintain_tasks() is 'Requeues abandoned tasks, fails hopeless ones, adds missing jobs and deletes old tasks; called by the service as the owner.';

-- function content_service.maintain_webhooks()
CREATE OR REPLACE FUNCTION content_service.maintain_webhooks()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_webhook api.webhooks;
  v_name text;
begin
  if not pg_try_advisory_xact_lock(hashtext('content_service.maintain_webhooks')) then
    return;
  end if;
  perform set_config('lock_timeout', '1s', true);
  for v_webhook in select * from api.webhooks loop
    begin
      select format('%I.%I', nspname, relname) into v_name
        from pg_class join pg_namespace on pg_namespace.oid = relnamespace where pg_class.oid = content_service.webhook_table(v_webhook.id);
      if v_name <> v_webhook.table_name then
        update api.webhooks set table_name = v_name where id = v_webhook.id;
      elsif v_name is null and to_regclass(v_webhook.table_name) is not null then
        perform content_service.create_webhook_triggers(v_webhook);
      elsif content_service.is_in_hierarchy(to_regclass(v_name)) and exists (
        select from pg_trigger
        where tgrelid = to_regclass(v_name) and tgname = content_service.webhook_trigger_name(v_webhook.id, v_webhook.events[1]) and tgtype & 1 = 0
      ) then
        perform content_service.drop_webhook_triggers(v_webhook.id);
        perform content_service.create_webhook_triggers(v_webhook);
      end if;
    exception when others then
      raise warning 'Webhook % is not maintained: %', v_webhook.name, sqlerrm;
    end;
  end loop;
  with recursive recorded as (
    (select webhook_id from content_service.webhook_deliveries where state = 'pending' order by webhook_id limit 1)
    union all
    select (
      select webhook_id from content_service.webhook_deliveries
      where state = 'pending' and webhook_id > recorded.webhook_id order by webhook_id limit 1
    ) from recorded where webhook_id is not null
  )
  delete from content_service.webhook_deliveries where state = 'pending' and webhook_id in (
    select webhook_id from recorded where not exists (select from api.webhooks where id = webhook_id)
  );
end;
$function$;
comment on function content_service.maintain_webhooks() is 'Follows renamed tables and creates missing triggers; called by the service as the owner.';

-- function content_service.may_change_view(content_service.table_views,bigint)
CREATE OR REPLACE FUNCTION content_service.may_change_view(view content_service.table_views, user_id bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select view.saved_by is null or view.saved_by is not distinct from may_change_view.user_id or not exists (
    select from auth.users as account join auth.user_roles using (user_id)
    where account.user_id = view.saved_by and not auth.is_disabled(account)
      and pg_has_role(to_regrole(quote_ident(user_roles.role)), 'admin', 'usage')
  );
$function$;
comment on function content_service.may_change_view(content_service.table_views,bigint) is 'Whether this administrator may change and delete the view; a null user is one who has not signed in.';

-- function content_service.name_content(text,text,text)
CREATE OR REPLACE FUNCTION content_service.name_content(bucket text, name text, hash text)
 RETURNS SETOF uuid
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 SELECT
    FROM storage.buckets
   WHERE (buckets.id = name_content.bucket)
  FOR KEY SHARE OF buckets;
 UPDATE content_service.files SET released_at = NULL::timestamp with time zone
   WHERE (files.hash = name_content.hash);
 UPDATE storage.objects SET content = name_content.hash
   WHERE ((objects.bucket_id = name_content.bucket) AND (objects.name = name_content.name))
   RETURNING objects.id;
END;
grant execute on function content_service.name_content(text,text,text) to authenticator;
comment on function content_service.name_content(text,text,text) is 'Gives an object its content.';

-- function content_service.note_stray_files(text[])
CREATE OR REPLACE FUNCTION content_service.note_stray_files(hashes text[])
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO ''
BEGIN ATOMIC
 INSERT INTO content_service.files (hash, bytes, released_at)  SELECT unnest.unnest,
             0,
             clock_timestamp() AS clock_timestamp
            FROM unnest(note_stray_files.hashes) unnest(unnest) ON CONFLICT(hash) DO NOTHING;
END;
comment on function content_service.note_stray_files(text[]) is 'Notes contents of the file store without an object, which are deleted after a while.';

-- function content_service.object_version(text,text)
CREATE OR REPLACE FUNCTION content_service.object_version(bucket text, name text)
 RETURNS TABLE(id uuid, version text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select objects.id, objects.version from storage.objects
  where objects.bucket_id = bucket and objects.name = object_version.name;
$function$;
grant execute on function content_service.object_version(text,text) to authenticator;
comment on function content_service.object_version(text,text) is 'Which object there is, and its version; no row if the name is free.';

-- function content_service.outlives_session(uuid)
CREATE OR REPLACE FUNCTION content_service.outlives_session(id uuid)
 RETURNS boolean
 LANGUAGE sql
BEGIN ATOMIC
 SELECT (EXISTS ( SELECT
            FROM ((content_service.tasks task
              JOIN auth.users account ON ((account.user_id = (COALESCE("substring"(((task.caller -> 'claims'::text) ->> 'sub'::text), '^[1-9][0-9]{0,17}$'::text), "substring"(((task.caller -> 'claims'::text) ->> 'user_id'::text), '^[1-9][0-9]{0,17}$'::text)))::bigint)))
              LEFT JOIN auth.user_roles ON ((user_roles.user_id = account.user_id)))
           WHERE ((task.id = outlives_session.id) AND (account.password_changed_at <= task.created_at) AND ((task.caller ->> 'role'::text) = COALESCE(user_roles.role, 'authenticated'::text)) AND ((NOT ((task.caller -> 'claims'::text) ? 'session_digest'::text)) OR ((task.caller -> 'claims'::text) ? 'iat'::text) OR (NOT (((task.caller -> 'claims'::text) -> 'permissions'::text) IS DISTINCT FROM (auth.claims_of(account.user_id) -> 'permissions'::text))))))) AS "exists";
END;
comment on function content_service.outlives_session(uuid) is 'Whether the user of a task has kept the password and the role since it was queued, and the permissions of a session; called by the service as the owner.';

-- function content_service.public_object(text,text)
CREATE OR REPLACE FUNCTION content_service.public_object(bucket text, name text)
 RETURNS SETOF storage.objects
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select objects.* from storage.objects join storage.buckets on buckets.id = objects.bucket_id
  where objects.bucket_id = bucket and objects.name = public_object.name and buckets.public;
$function$;
grant execute on function content_service.public_object(text,text) to authenticator;
comment on function content_service.public_object(text,text) is 'An object of a public bucket.';

-- function content_service.put_part(uuid,text,integer,text,bigint,bigint)
CREATE OR REPLACE FUNCTION content_service.put_part(id uuid, role text, number integer, hash text, bytes bigint, max_bytes bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
#variable_conflict use_column
declare
  v_upload content_service.unfinished_uploads;
  v_before bigint;
begin
  select * into v_upload from content_service.unfinished_uploads where unfinished_uploads.id = put_part.id;
  perform content_service.lock_bounded_buckets(array[v_upload.bucket_id]);
  perform pg_advisory_xact_lock(hashtextextended('unfinished uploads of ' || v_upload.quota_key, 0));
  select * into v_upload from content_service.unfinished_uploads where unfinished_uploads.id = put_part.id for update;
  if not found then
    return false;
  end if;
  select upload_parts.bytes into v_before from content_service.upload_parts where upload_id = put_part.id and upload_parts.number = put_part.number;
  update content_service.files set released_at = null where files.hash = put_part.hash;
  insert into content_service.upload_parts (upload_id, number, content, bytes) values (put_part.id, put_part.number, put_part.hash, put_part.bytes)
    on conflict (upload_id, number) do update set content = excluded.content, bytes = excluded.bytes, stored_at = now();
  update content_service.unfinished_uploads set bytes = unfinished_uploads.bytes + put_part.bytes - coalesce(v_before, 0)
    where unfinished_uploads.id = put_part.id returning * into v_upload;
  if v_upload.bytes > put_part.max_bytes then
    raise exception 'The object exceeded the maximum allowed size' using errcode = 'PT413';
  end if;
  if content_service.is_upload_bounded(put_part.role) then
    perform content_service.check_unfinished_uploads(v_upload.quota_key, put_part.max_bytes);
  end if;
  perform content_service.check_bucket_usage(array[v_upload.bucket_id], array[v_upload.owner_id]);
  return true;
end;
$function$;
grant execute on function content_service.put_part(uuid,text,integer,text,bigint,bigint) to authenticator;
comment on function content_service.put_part(uuid,text,integer,text,bigint,bigint) is 'Adds or replaces a part; false if the upload has ended.';

-- function content_service.queue_call(text,jsonb,text,jsonb,timestamp with time zone,text,interval,text,text)
CREATE OR REPLACE FUNCTION content_service.queue_call(role text, claims jsonb, function text, arguments jsonb, run_at timestamp with time zone DEFAULT now(), key text DEFAULT NULL::text, time_limit interval DEFAULT NULL::interval, lane text DEFAULT NULL::text, caller_key text DEFAULT NULL::text)
 RETURNS uuid
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
#variable_conflict use_column
declare
  v_function text;
  v_id uuid;
  v_owner text := content_service.task_owner(queue_call.role, queue_call.claims);
  v_lane text := coalesce(queue_call.lane, content_service.task_lane(queue_call.role, queue_call.claims));
begin
  if to_regnamespace('graphile_worker') is null then
    raise exception 'There is no queue yet' using errcode = '55000', hint = 'Start the service: it creates the queue.';
  end if;
  perform content_service.check_task_role(role);
  v_function := content_service.callable_function(role, function, arguments)::text;
  if not isfinite(run_at) then
    raise exception 'The time to run at must be finite' using errcode = 'WRONG', detail = 'run_at';
  end if;
  if length(key) not between 1 and 200 then
    raise exception 'A key has 1 to 200 characters' using errcode = 'WRONG', detail = 'key';
  end if;

  insert into content_service.tasks as task (
    owner, work, caller, request, body, function, arguments, run_at, key, time_limit, lane, caller_key, bytes
  )
    values (
      v_owner, v_function,
      jsonb_build_object(
        'kind', case queue_call.role when 'anon' then 'anonymous' else 'known' end,
        'role', queue_call.role, 'claims', queue_call.claims
      ),
      '{}', '', v_function, queue_call.arguments, coalesce(queue_call.run_at, now()), queue_call.key, queue_call.time_limit,
      v_lane, coalesce(queue_call.caller_key, v_owner),
      octet_length(queue_call.arguments::text) + coalesce(octet_length(queue_call.claims::text), 0)
    )
    on conflict (owner, key) where status = 'queued' and attempts = 0 do update
      set work = excluded.work, caller = excluded.caller, function = excluded.function, arguments = excluded.arguments,
        run_at = excluded.run_at, time_limit = excluded.time_limit, created_at = excluded.created_at,
        lane = excluded.lane, caller_key = excluded.caller_key, bytes = excluded.bytes, turn = null
    returning task.id into v_id;
  perform graphile_worker.add_job(
    'perform_' || v_lane, json_build_object('task', v_id), run_at => coalesce(queue_call.run_at, now()), job_key => v_id::text,
    max_attempts => 5
  );
  return v_id;
end;
$function$;
comment on function content_service.queue_call(text,jsonb,text,jsonb,timestamp with time zone,text,interval,text,text) is 'Queues the call of a function as a role and with claims. For the owner only; api.enqueue is for callers.';

-- function content_service.queue_task(uuid,text,text,jsonb,jsonb,bytea,text,text)
CREATE OR REPLACE FUNCTION content_service.queue_task(given_id uuid, owner text, work text, caller jsonb, request jsonb, body bytea, caller_key text DEFAULT NULL::text, lane text DEFAULT 'caller'::text, OUT id uuid, OUT estimate integer)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
#variable_conflict use_variable
declare
  v_waiting integer;
begin
  caller_key := coalesce(caller_key, owner);
  select count(*) into v_waiting from content_service.tasks
    where tasks.caller_key = queue_task.caller_key and tasks.finished_at is null;
  if not exists (select from content_service.tasks where tasks.id = given_id) then
    perform content_service.check_task_bounds(lane, caller_key, caller ->> 'role');
  end if;
  id := coalesce(given_id, gen_random_uuid());
  insert into content_service.tasks (id, owner, work, caller, request, body, caller_key, lane, bytes)
    values (
      queue_task.id, queue_task.owner, queue_task.work, queue_task.caller, queue_task.request, queue_task.body,
      queue_task.caller_key, queue_task.lane,
      octet_length(body) + octet_length(request::text) + octet_length(caller::text)
    )
    on conflict on constraint content_service_tasks_pkey do nothing;
  if found then
    perform graphile_worker.add_job(
      'perform_' || lane, json_build_object('task', queue_task.id), job_key => queue_task.id::text, max_attempts => 5
    );
  end if;
  -- The duration of recent tasks of its kind, after those that the caller has queued before.
  select greatest(1, ceil((v_waiting + 1) * coalesce(avg(extract(epoch from finished_at - started_at)), 1)))
    into estimate
    from (
      select tasks.started_at, tasks.finished_at from content_service.tasks
      where tasks.work = queue_task.work and tasks.finished_at is not null
      order by tasks.finished_at desc limit 20
    ) as latest;
end;
$function$;
comment on function content_service.queue_task(uuid,text,text,jsonb,jsonb,bytea,text,text) is 'Queues a task and estimates how many seconds it will take; called by the service as the owner.';

-- function content_service.read_task(uuid,text)
CREATE OR REPLACE FUNCTION content_service.read_task(id uuid, owner text)
 RETURNS TABLE(status text, progress integer, result json, error jsonb, created_at timestamp with time zone, started_at timestamp with time zone, finished_at timestamp with time zone)
 LANGUAGE sql
BEGIN ATOMIC
 SELECT tasks.status,
         CASE tasks.status
             WHEN 'queued'::text THEN 0
             WHEN 'done'::text THEN 100
             WHEN 'running'::text THEN content_service.task_progress(tasks.id)
             ELSE NULL::integer
         END AS "case",
     tasks.result,
     tasks.error,
     tasks.created_at,
     tasks.started_at,
     tasks.finished_at
    FROM content_service.tasks
   WHERE ((tasks.id = read_task.id) AND (tasks.owner = read_task.owner) AND ((tasks.expires_at IS NULL) OR (tasks.expires_at > now())));
END;
comment on function content_service.read_task(uuid,text) is 'The state of a task, for its owner only. Called by the service as the owner of the database.';

-- function content_service.record_requests(jsonb[],bigint[])
CREATE OR REPLACE FUNCTION content_service.record_requests(shapes jsonb[], counts bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_rare bytea[];
begin
  lock table content_service.recorded_requests in share row exclusive mode;
  with reported as (
    select sha256(convert_to(each.shape::text, 'UTF8')) as id, each.shape, sum(each.count)::bigint as requests
    from unnest(shapes, counts) as each (shape, count) group by each.shape
  ), stored as (
    insert into content_service.recorded_requests (id, shape) select reported.id, reported.shape from reported
    on conflict on constraint content_service_recorded_requests_pkey do update set seen_at = now()
  )
  insert into content_service.recorded_request_counts as counted (request_id, period, requests)
  select reported.id, date_bin('5 minutes', now(), 'epoch'), reported.requests from reported
  on conflict on constraint content_service_recorded_request_counts_pkey do update set requests = counted.requests + excluded.requests;

  delete from content_service.recorded_request_counts where period <= now() - interval '65 minutes';
  delete from content_service.recorded_requests where seen_at <= now() - interval '1 hour';

  v_rare := array(
    select recorded.id from content_service.recorded_requests as recorded
    left join content_service.recorded_request_counts as counted on counted.request_id = recorded.id
    where not recorded.shape ? 'others' group by recorded.id
    order by coalesce(sum(counted.requests), 0) desc, recorded.seen_at desc, recorded.id
    offset content_service.bound('rows of content_service.recorded_requests')
  );
  if v_rare = '{}' then
    return;
  end if;
  with rare as (
    select jsonb_build_object('interface', recorded.shape -> 'interface', 'others', true) as shape, counted.period, sum(counted.requests)::bigint as requests
    from content_service.recorded_requests as recorded
    join content_service.recorded_request_counts as counted on counted.request_id = recorded.id
    where recorded.id = any (v_rare) group by recorded.shape -> 'interface', counted.period
  ), stored as (
    insert into content_service.recorded_requests (id, shape)
    select distinct sha256(convert_to(rare.shape::text, 'UTF8')), rare.shape from rare
    on conflict on constraint content_service_recorded_requests_pkey do update set seen_at = now()
  )
  insert into content_service.recorded_request_counts as counted (request_id, period, requests)
  select sha256(convert_to(rare.shape::text, 'UTF8')), rare.period, rare.requests from rare
  on conflict on constraint content_service_recorded_request_counts_pkey do update set requests = counted.requests + excluded.requests;
  delete from content_service.recorded_requests where id = any (v_rare);
end;
$function$;
comment on function content_service.record_requests(jsonb[],bigint[]) is 'Adds the requests counted by a process; called by the service as the owner.';

-- function content_service.record_schedule_minutes(timestamp with time zone,jsonb)
CREATE OR REPLACE FUNCTION content_service.record_schedule_minutes(until timestamp with time zone, outcomes jsonb)
 RETURNS TABLE(schedule text, status text, runs bigint)
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  return query
    with outcome as (
      select * from jsonb_to_recordset(outcomes) as outcome (
        name text, due timestamptz, missed timestamptz[], next timestamptz
      )
    ), missed_run as (
      insert into api.schedule_runs (schedule, planned_at, status)
        select outcome.name, missed.planned_at, 'missed' from outcome, unnest(outcome.missed) as missed (planned_at)
        on conflict on constraint content_service_schedule_runs_pkey do nothing
        returning schedule_runs.schedule, schedule_runs.status
    ), due_run as (
      select outcome.name as schedule, content_service.start_schedule_run(outcome.name, outcome.due) as status
      from outcome where outcome.due is not null order by outcome.name
    ), processed as (
      update api.schedules set next_run_at = outcome.next from outcome where schedules.name = outcome.name
    )
    select run.schedule, run.status, count(*)
    from (table missed_run union all table due_run) as run
    where run.status is not null group by 1, 2 order by 1, 2;
  delete from api.schedule_runs as run using (
    select outcome.name as schedule, (
      select latest.planned_at from api.schedule_runs as latest
      where latest.schedule = outcome.name order by latest.planned_at desc offset 99 limit 1
    ) as planned_at
    from jsonb_to_recordset(outcomes) as outcome (name text)
  ) as oldest
    where run.schedule = oldest.schedule and run.planned_at < least(oldest.planned_at, record_schedule_minutes.until - interval '7 days')
      and oldest.planned_at is not null and run.status not in ('queued', 'running');
  update content_service.schedule_clock set processed = record_schedule_minutes.until;
end;
$function$;
comment on function content_service.record_schedule_minutes(timestamp with time zone,jsonb) is 'Queues what is due, records what was missed, and deletes old runs; called by the service as the owner, after begin_schedule_minutes.';

-- function content_service.remove_jobs_of(uuid[])
CREATE OR REPLACE FUNCTION content_service.remove_jobs_of(tasks uuid[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform graphile_worker.complete_jobs(array(
    select job.id from graphile_worker.jobs as job
    where job.key = any (remove_jobs_of.tasks::text[]) and job.locked_at is null
  ));
end;
$function$;
comment on function content_service.remove_jobs_of(uuid[]) is 'Removes the jobs of tasks that have ended; called by the service as the owner.';

-- function content_service.requeue_task(uuid,interval)
CREATE OR REPLACE FUNCTION content_service.requeue_task(id uuid, after interval)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_lane text;
begin
  update content_service.tasks set status = 'queued', run_at = clock_timestamp() + requeue_task.after, turn = null
    where tasks.id = requeue_task.id and status = 'running'
    returning lane into v_lane;
  if found then
    perform graphile_worker.add_job('perform_' || v_lane, '{}', run_at => clock_timestamp() + requeue_task.after, max_attempts => 5);
  end if;
end;
$function$;
comment on function content_service.requeue_task(uuid,interval) is 'Leaves a task whose attempt failed to another attempt; called by the service as the owner.';

-- function content_service.responses_of_caller(text)
CREATE OR REPLACE FUNCTION content_service.responses_of_caller(caller_key text, OUT keys bigint, OUT bytes bigint, OUT uncounted bigint)
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_counted content_service.kept_answer_counts;
begin
  select counts.* into v_counted from content_service.kept_answer_counts as counts
    where counts.caller_key = responses_of_caller.caller_key;
  select count(*), coalesce(sum(kept.bytes), 0) into uncounted, bytes from content_service.kept_answers as kept
    where kept.caller_key = responses_of_caller.caller_key and kept.number > coalesce(v_counted.number, 0);
  keys := uncounted + coalesce(v_counted.keys, 0);
  bytes := bytes + coalesce(v_counted.bytes, 0);
end;
$function$;
comment on function content_service.responses_of_caller(text) is 'How many responses are kept for the caller, and their bytes; uncounted is how many were stored since the last count.';

-- function content_service.row_key(json,text[])
CREATE OR REPLACE FUNCTION content_service.row_key("row" json, keys text[])
 RETURNS text
 LANGUAGE sql
 STABLE
RETURN CASE WHEN (keys IS NULL) THEN ''::text WHEN ((keys)[2] IS NULL) THEN COALESCE(("row" ->> (keys)[1]), ''::text) ELSE content_service.composite_key("row", keys) END;
comment on function content_service.row_key(json,text[]) is 'The primary key of a row as text; empty if the table has none.';

-- function content_service.schedule_fault(api.schedules)
CREATE OR REPLACE FUNCTION content_service.schedule_fault(schedule api.schedules, OUT message text, OUT hint text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  perform content_service.check_task_role(schedule.role);
  perform content_service.callable_function(schedule.role, schedule.function, schedule.arguments);
exception when others then
  get stacked diagnostics message = message_text, hint = pg_exception_hint;
end;
$function$;
comment on function content_service.schedule_fault(api.schedules) is 'Why a schedule that was written before cannot run now; null if it can.';

-- function content_service.sees_task(text)
CREATE OR REPLACE FUNCTION content_service.sees_task(owner text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
RETURN (auth.is_admin() OR (owner = content_service.task_owner(auth.role(), auth.jwt())));
comment on function content_service.sees_task(text) is 'Whether a task is the caller''s own; administrators see all.';

-- function content_service.start_schedule_run(text,timestamp with time zone)
CREATE OR REPLACE FUNCTION content_service.start_schedule_run(schedule text, planned_at timestamp with time zone)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_schedule api.schedules;
  v_message text;
  v_hint text;
begin
  -- A transaction that is starting a run is not waited for: it may be open for long.
  if not pg_try_advisory_xact_lock(hashtextextended('start_schedule_run ' || schedule, 0)) then
    insert into api.schedule_runs (schedule, planned_at, status)
      values (start_schedule_run.schedule, start_schedule_run.planned_at, 'skipped')
      on conflict on constraint content_service_schedule_runs_pkey do nothing;
    return case when found then 'skipped' end;
  end if;
  update api.schedule_runs as run
    set status = 'failed', finished_at = now(), error = '{"code": "XX000", "message": "The task is gone."}'
    where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
      and not exists (select from content_service.tasks where tasks.id = run.task and tasks.finished_at is null);
  insert into api.schedule_runs (schedule, planned_at, status)
    select start_schedule_run.schedule, start_schedule_run.planned_at, case when exists (
      select from api.schedule_runs as run
      where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
    ) then 'skipped' else 'queued' end
    on conflict on constraint content_service_schedule_runs_pkey do nothing;
  if not found then
    return null;
  end if;
  select * into v_schedule from api.schedules where schedules.name = start_schedule_run.schedule;
  begin
    update api.schedule_runs as run
      set task = content_service.queue_call(
        v_schedule.role, v_schedule.claims || jsonb_build_object('role', v_schedule.role),
        v_schedule.function, v_schedule.arguments, time_limit => v_schedule.time_limit,
        lane => 'system', caller_key => 'schedule ' || v_schedule.name
      )
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at and run.status = 'queued';
    return case when found then 'queued' else 'skipped' end;
  exception when others then
    if sqlstate ~ '^(08|40|53|55|57|58|XX)' then
      raise;
    end if;
    get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
    update api.schedule_runs as run
      set status = 'failed', finished_at = now(),
        error = jsonb_build_object('code', sqlstate, 'message', v_message, 'hint', nullif(v_hint, ''))
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at;
    return 'failed';
  end;
end;
$function$;
comment on function content_service.start_schedule_run(text,timestamp with time zone) is 'Queues a run, unless the previous one is unfinished or this time was run before; returns the status of the run.';

-- function content_service.store_response(text,text,integer,text,text,text)
CREATE OR REPLACE FUNCTION content_service.store_response(place text, answer text, seconds integer, caller_key text DEFAULT ''::text, role text DEFAULT NULL::text, brief_answer text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_id bytea := decode(place, 'hex');
  v_bytes bigint := octet_length(answer) / 4 * 3;
  v_own record := content_service.responses_of_caller(store_response.caller_key);
  v_is_brief boolean := brief_answer is not null and not exists (
    select from pg_roles where rolname = store_response.role and rolbypassrls
  ) and (
    v_bytes + v_own.bytes > content_service.bound('bytes of kept responses of a caller')
    or caller_key like 'address %' and exists (
      select from content_service.bounds where name = 'bytes of kept responses of all anonymous callers' and used >= bound
    )
  );
  v_answer bytea := decode(case when v_is_brief then brief_answer else answer end, 'base64');
begin
  delete from content_service.kept_answers where id = v_id and expires_at <= now();
  insert into content_service.kept_answers (id, sealed_answer, expires_at, caller_key, bytes) values (
    v_id, v_answer, clock_timestamp() + make_interval(secs => seconds), store_response.caller_key, octet_length(v_answer)
  );
  -- Under stricter isolation, rows deleted by another transaction would fail this one (40001).
  if current_setting('transaction_isolation') = 'read committed' then
    delete from content_service.kept_answers where id in (
      select id from content_service.kept_answers where expires_at <= now()
      order by expires_at limit 10 for update skip locked
    );
    -- One of several transactions counts; the others do not wait for it.
    if v_own.uncounted >= 256 and pg_try_advisory_xact_lock(hashtextextended(store_response.caller_key, 256)) then
      perform content_service.count_responses(store_response.caller_key);
    end if;
  end if;
end;
$function$;
grant execute on function content_service.store_response(text,text,integer,text,text,text) to authenticator;
comment on function content_service.store_response(text,text,integer,text,text,text) is 'Stores a response at the id that this transaction has claimed.';

-- function content_service.take_unused_files(interval,integer)
CREATE OR REPLACE FUNCTION content_service.take_unused_files(grace interval, max_files integer)
 RETURNS SETOF text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_before timestamptz := least(
    clock_timestamp() - grace,
    (select min(xact_start) from pg_catalog.pg_stat_activity where datname = current_database() and pid <> pg_backend_pid())
  );
begin
  -- Skipping locked rows: uploads lock contents in another order, and would wait for this in a circle.
  update content_service.files set released_at = null where hash in (
    select named.hash from content_service.files as named
    where named.released_at < v_before and (
      exists (select from storage.objects where objects.content = named.hash)
      or exists (select from content_service.upload_parts where upload_parts.content = named.hash)
    ) for update skip locked
  );
  return query
    delete from content_service.files where hash in (
      select unused.hash from content_service.files as unused
      where unused.released_at < v_before
        and not exists (select from storage.objects where objects.content = unused.hash)
        and not exists (select from content_service.upload_parts where upload_parts.content = unused.hash)
      order by unused.released_at limit max_files for update skip locked
    ) returning files.hash;
end;
$function$;
comment on function content_service.take_unused_files(interval,integer) is 'Forgets contents that no object has named for a while, and returns them to be deleted.';

-- function content_service.takes_arguments(oid,jsonb)
CREATE OR REPLACE FUNCTION content_service.takes_arguments(function oid, arguments jsonb)
 RETURNS boolean
 LANGUAGE sql
BEGIN ATOMIC
 SELECT ((jsonb_typeof(arguments) = 'object'::text) AND (NOT (EXISTS ( SELECT
            FROM jsonb_object_keys(
                 CASE jsonb_typeof(takes_arguments.arguments)
                     WHEN 'object'::text THEN takes_arguments.arguments
                     ELSE '{}'::jsonb
                 END) given(given)
           WHERE (NOT (EXISTS ( SELECT
                    FROM content_service.function_inputs(takes_arguments.function) input(name, type, is_variadic, is_required)
                   WHERE (input.name = given.given))))))) AND (NOT (EXISTS ( SELECT
            FROM content_service.function_inputs(takes_arguments.function) input(name, type, is_variadic, is_required)
           WHERE (input.is_required AND (NOT COALESCE((takes_arguments.arguments ? input.name), false)))))));
END;
comment on function content_service.takes_arguments(oid,jsonb) is 'Whether a function can be called with these named arguments.';

-- function content_service.task_lane(text,jsonb)
CREATE OR REPLACE FUNCTION content_service.task_lane(role text, claims jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN ((role = 'anon'::text) OR COALESCE(((claims -> 'is_anonymous'::text) = 'true'::jsonb), false)) THEN 'anonymous'::text ELSE 'caller'::text END;
comment on function content_service.task_lane(text,jsonb) is 'Which tasks a task takes turns with, if it is not one of the service''s own.';

-- function content_service.task_owner(text,jsonb)
CREATE OR REPLACE FUNCTION content_service.task_owner(role text, claims jsonb)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN COALESCE(('user '::text || CASE jsonb_typeof((claims -> 'sub'::text)) WHEN 'string'::text THEN NULLIF((claims ->> 'sub'::text), ''::text) ELSE NULL::text END), ('role '::text || role));
comment on function content_service.task_owner(text,jsonb) is 'Whose a task is: the user''s with any credential, or the role''s where there is no user.';

-- function content_service.task_progress(uuid)
CREATE OR REPLACE FUNCTION content_service.task_progress(id uuid)
 RETURNS integer
 LANGUAGE sql
BEGIN ATOMIC
 SELECT max((pg_locks.objid)::integer) AS max
    FROM pg_locks
   WHERE ((pg_locks.locktype = 'advisory'::text) AND (pg_locks.objsubid = 2) AND (pg_locks.mode = 'ShareLock'::text) AND (pg_locks.database = ( SELECT pg_database.oid
            FROM pg_database
           WHERE (pg_database.datname = current_database()))) AND ((pg_locks.classid)::bigint = ((hashtext((task_progress.id)::text))::bigint & '4294967295'::bigint)));
END;
comment on function content_service.task_progress(uuid) is 'The progress that a task has reported, in percent.';

-- function content_service.tg__check_schedule()
CREATE OR REPLACE FUNCTION content_service.tg__check_schedule()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  if TG_OP = 'UPDATE' and not NEW.is_enabled then
    return NEW;
  end if;
  perform content_service.check_cron(NEW.cron);
  if not exists (select from pg_timezone_names where name = NEW.time_zone) then
    raise exception 'There is no time zone %', NEW.time_zone using errcode = 'WRONG', detail = 'time_zone',
      hint = coalesce(
        (select format('Write %s.', name) from pg_timezone_names where lower(name) = lower(NEW.time_zone) limit 1),
        'Write a name of pg_timezone_names, such as Europe/Berlin.'
      );
  end if;
  perform content_service.check_task_role(NEW.role);
  perform content_service.callable_function(NEW.role, NEW.function, NEW.arguments);
  if TG_OP = 'INSERT' or (NEW.cron, NEW.time_zone, NEW.is_enabled) is distinct from (OLD.cron, OLD.time_zone, OLD.is_enabled) then
    NEW.changed_at := clock_timestamp();
    NEW.next_run_at := null;
  end if;
  return NEW;
end;
$function$;
comment on function content_service.tg__check_schedule() is 'Refuses a schedule that could not run.';

-- function content_service.tg__check_schedule_role()
CREATE OR REPLACE FUNCTION content_service.tg__check_schedule_role()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  -- A schedule whose role is gone can be disabled.
  if TG_OP = 'UPDATE' and not NEW.is_enabled and NEW.role = OLD.role then
    return NEW;
  end if;
  if NEW.role is null then
    raise exception 'A schedule must have a role' using errcode = 'WRONG', detail = 'role',
      hint = 'Write the role that the function runs as, such as service_role.';
  end if;
  if to_regrole(quote_ident(NEW.role)) is null then
    raise exception 'There is no role %', NEW.role using errcode = 'WRONG', detail = 'role';
  end if;
  if not pg_has_role(to_regrole(quote_ident(NEW.role)), 'member') then
    raise exception 'Only members of % may choose it as the role of a schedule', NEW.role
      using errcode = 'NOPER', detail = 'role', hint = format('Run as a superuser: grant %I to %I', NEW.role, current_user);
  end if;
  return NEW;
end;
$function$;
comment on function content_service.tg__check_schedule_role() is 'Refuses a role that the writer of a schedule is no member of.';

-- function content_service.tg__event()
CREATE OR REPLACE FUNCTION content_service.tg__event()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_row jsonb;
  v_schema text := TG_TABLE_SCHEMA;
  v_table text := TG_TABLE_NAME;
begin
  if coalesce(to_timestamp(pg_sequence_last_value('content_service.events_awaited_until')) < clock_timestamp(), true) then
    return null;
  end if;
  v_row := to_jsonb(case TG_OP when 'DELETE' then OLD else NEW end);
  -- The trigger of a partitioned table fires on the partition; clients know the partitioned table.
  if pg_partition_root(TG_RELID) <> TG_RELID then
    select pg_namespace.nspname, pg_class.relname into v_schema, v_table
      from pg_class join pg_namespace on pg_namespace.oid = pg_class.relnamespace
      where pg_class.oid = pg_partition_root(TG_RELID);
  end if;
  perform pg_notify('graphql', jsonb_build_object(
    'n', nextval('content_service.event_number'),
    's', v_schema,
    't', v_table,
    'op', lower(TG_OP),
    'k', (select jsonb_object_agg(key, v_row ->> key) from unnest('{id}' || TG_ARGV) as key where v_row ? key)
  )::text);
  return null;
end;
$function$;
comment on function content_service.tg__event() is 'For each row: notifies channel graphql of the change, while events are awaited. Arguments: the columns to send besides id.';

-- function content_service.tg__follow_schedule_run()
CREATE OR REPLACE FUNCTION content_service.tg__follow_schedule_run()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if TG_OP = 'DELETE' then
    update api.schedule_runs
      set status = 'failed', finished_at = now(), error = '{"code": "57014", "message": "The task was deleted before it was finished."}'
      where schedule_runs.task = OLD.id;
  else
    update api.schedule_runs
      set status = NEW.status, started_at = NEW.started_at, finished_at = NEW.finished_at, error = NEW.error
      where schedule_runs.task = NEW.id;
  end if;
  return null;
end;
$function$;
comment on function content_service.tg__follow_schedule_run() is 'Copies the state of a task to the run of the schedule that queued it.';

-- function content_service.tg__log_whole_rows()
CREATE OR REPLACE FUNCTION content_service.tg__log_whole_rows()
 RETURNS event_trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_table regclass;
begin
  for v_table in
    select class.oid
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class) and not command.in_extension and pg_has_role(class.relowner, 'usage')
  loop
    execute format('alter table %s replica identity full', v_table);
  end loop;
end;
$function$;
comment on function content_service.tg__log_whole_rows() is 'Gives a new table that may be served the replica identity full.';

-- function content_service.tg__publish_rows()
CREATE OR REPLACE FUNCTION content_service.tg__publish_rows()
 RETURNS event_trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_table regclass;
  v_is_new boolean;
begin
  for v_table, v_is_new in
    select class.oid, bool_or(command.command_tag <> 'ALTER TABLE')
    from pg_event_trigger_ddl_commands() as command
    join pg_class as class on command.classid = 'pg_class'::regclass and class.oid = command.objid
    where content_service.is_served(class)
      and not command.in_extension
      and pg_has_role(class.relowner, 'usage')
      and exists (select from pg_publication where pubname = 'supabase_realtime' and not puballtables)
    group by class.oid
  loop
    if v_is_new and not (select relispartition from pg_class where oid = v_table) then
      execute format('alter publication supabase_realtime add table %s', v_table);
    end if;
    perform content_service.keep_writable(member)
    from (select v_table union select relid from pg_partition_tree(v_table)) as members (member);
  end loop;
end;
$function$;
comment on function content_service.tg__publish_rows() is 'Publishes the changes of a new table that may be served.';

-- function content_service.tg__schema_changed()
CREATE OR REPLACE FUNCTION content_service.tg__schema_changed()
 RETURNS event_trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if TG_EVENT = 'sql_drop' then
    if not exists (select from pg_event_trigger_dropped_objects() where original and not is_temporary) then
      return;
    end if;
  elsif not exists (
    select from pg_event_trigger_ddl_commands()
    where schema_name is distinct from 'pg_temp' and command_tag <> 'REFRESH MATERIALIZED VIEW'
  ) then
    return;
  end if;
  notify pgrst, 'reload schema';
  -- Also in the change stream, where it precedes changes that the new policies apply to.
  perform pg_logical_emit_message(true, 'schema', '');
end;
$function$;
comment on function content_service.tg__schema_changed() is 'Notifies the service that the schema has changed.';

-- function content_service.tg__timestamps()
CREATE OR REPLACE FUNCTION content_service.tg__timestamps()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$function$;
comment on function content_service.tg__timestamps() is 'Before update: keeps created_at, moves updated_at forward.';

-- function content_service.tg__webhook()
CREATE OR REPLACE FUNCTION content_service.tg__webhook()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
 SET enable_nestloop TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
 SET "TimeZone" TO 'UTC'
 SET bytea_output TO 'hex'
 SET "IntervalStyle" TO 'postgres'
 SET extra_float_digits TO '1'
AS $function$
-- The columns of the table may have any name.
#variable_conflict use_variable
declare
  v_webhook uuid := TG_ARGV[0]::uuid;
  v_keys text[];
  v_old json;
  v_new json;
begin
  if not exists (select from api.webhooks where id = v_webhook and is_enabled) then
    return null;
  end if;
  select array_agg(attname order by position) into v_keys
    from pg_index, unnest(indkey::smallint[]) with ordinality as key (number, position), pg_attribute
    where indrelid = TG_RELID and indisprimary and attrelid = TG_RELID and attnum = number;
  if TG_LEVEL = 'ROW' then
    if TG_OP <> 'INSERT' then
      v_old := case when pg_column_size(OLD) > 8000 then content_service.large_row(OLD, v_keys) else row_to_json(OLD) end;
    end if;
    if TG_OP <> 'DELETE' then
      v_new := case when pg_column_size(NEW) > 8000 then content_service.large_row(NEW, v_keys) else row_to_json(NEW) end;
    end if;
    insert into content_service.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      values (
        v_webhook, TG_OP, content_service.row_key(coalesce(v_old, v_new), v_keys),
        case TG_OP when 'UPDATE' then nullif(content_service.row_key(v_new, v_keys), content_service.row_key(v_old, v_keys)) end, v_old, v_new
      );
  elsif TG_OP = 'INSERT' then
    insert into content_service.webhook_deliveries (webhook_id, type, key, new)
      select v_webhook, TG_OP, content_service.row_key(image, v_keys), image
      from (
        select case when pg_column_size(n.*) > 8000 then content_service.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n offset 0
      ) as images (image);
  elsif TG_OP = 'DELETE' then
    insert into content_service.webhook_deliveries (webhook_id, type, key, old)
      select v_webhook, TG_OP, content_service.row_key(image, v_keys), image
      from (
        select case when pg_column_size(o.*) > 8000 then content_service.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o offset 0
      ) as images (image);
  else
    insert into content_service.webhook_deliveries (webhook_id, type, key, moved_to, old, new)
      select v_webhook, TG_OP, content_service.row_key(before.image, v_keys),
        nullif(content_service.row_key(after.image, v_keys), content_service.row_key(before.image, v_keys)), before.image, after.image
      from (
        select row_number() over (),
          case when pg_column_size(o.*) > 8000 then content_service.large_row(o.*, v_keys) else row_to_json(o.*) end
        from old_rows as o
      ) as before (number, image)
      join (
        select row_number() over (),
          case when pg_column_size(n.*) > 8000 then content_service.large_row(n.*, v_keys) else row_to_json(n.*) end
        from new_rows as n
      ) as after (number, image) using (number)
      order by number;
  end if;
  return null;
end;
$function$;
comment on function content_service.tg__webhook() is 'Records changes for the webhook whose id is the argument.';

-- function content_service.tg_buckets__count_usage()
CREATE OR REPLACE FUNCTION content_service.tg_buckets__count_usage()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  -- Waits for uploads to the bucket that were counted before it was bounded.
  perform from storage.buckets where id = NEW.id for update;
  delete from content_service.bucket_usage where bucket_id = NEW.id;
  if NEW.max_bytes is not null or NEW.max_bytes_of_owner is not null then
    insert into content_service.bucket_usage (bucket_id, owner_id, bytes)
      select NEW.id, coalesce(objects.owner_id, ''), sum(files.bytes) from storage.objects join content_service.files on files.hash = objects.content
      where objects.bucket_id = NEW.id group by 2;
  end if;
  return null;
end;
$function$;
comment on function content_service.tg_buckets__count_usage() is 'Counts what a bucket has when its bounds are set.';

-- function content_service.tg_objects__check_owner()
CREATE OR REPLACE FUNCTION content_service.tg_objects__check_owner()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_claims jsonb := nullif(current_setting('request.jwt.claims', true), '');
  v_caller text := case when jsonb_typeof(v_claims -> 'sub') = 'string' then nullif(v_claims ->> 'sub', '') end;
begin
  if (NEW.owner_id is distinct from OLD.owner_id and NEW.owner_id is distinct from v_caller)
    or (NEW.owner is distinct from OLD.owner and NEW.owner is not null and NEW.owner::text is distinct from v_caller)
  then
    if current_user <> 'service_role' and not pg_has_role(current_user, (select relowner from pg_class where oid = TG_RELID), 'usage')
      and not exists (select from pg_roles where rolname = current_user and (rolbypassrls or rolsuper))
    then
      raise exception 'You cannot give an object to another owner.'
        using errcode = '42501', hint = 'Leave owner and owner_id as they are: they change when somebody else replaces the object.';
    end if;
  end if;
  return NEW;
end;
$function$;
comment on function content_service.tg_objects__check_owner() is 'Keeps callers from giving their objects, and the bytes, to others.';

-- function content_service.tg_objects__count_usage()
CREATE OR REPLACE FUNCTION content_service.tg_objects__count_usage()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_bucket_ids text[];
  v_owner_ids text[];
  v_bytes bigint[];
begin
  if not exists (select from storage.buckets where max_bytes is not null or max_bytes_of_owner is not null) then
    return null;
  end if;
  if TG_OP = 'INSERT' then
    select array_agg(bucket_id), array_agg(coalesce(owner_id, '')), array_agg(files.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from new_rows join content_service.files on hash = content;
  elsif TG_OP = 'DELETE' then
    select array_agg(bucket_id), array_agg(coalesce(owner_id, '')), array_agg(-files.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from old_rows join content_service.files on hash = content;
  else
    select array_agg(changed.bucket_id), array_agg(changed.owner_id), array_agg(changed.bytes) into v_bucket_ids, v_owner_ids, v_bytes
      from (
        select bucket_id, coalesce(owner_id, '') as owner_id, sum(bytes)::bigint as bytes from (
          select bucket_id, owner_id, files.bytes from new_rows join content_service.files on hash = content
          union all
          select bucket_id, owner_id, -files.bytes from old_rows join content_service.files on hash = content
        ) as both_rows group by 1, 2 having sum(bytes) <> 0
      ) as changed;
  end if;
  if v_bucket_ids is not null then
    perform content_service.add_bucket_usage(bucket_ids, owner_ids, bytes) from (
      select array_agg(bounded.bucket_id) as bucket_ids, array_agg(bounded.owner_id) as owner_ids, array_agg(bounded.bytes) as bytes
      from unnest(v_bucket_ids, v_owner_ids, v_bytes) as bounded (bucket_id, owner_id, bytes)
      join storage.buckets on buckets.id = bounded.bucket_id and (max_bytes is not null or max_bytes_of_owner is not null)
    ) as sums where bucket_ids is not null;
  end if;
  return null;
end;
$function$;
comment on function content_service.tg_objects__count_usage() is 'Counts what objects take, in buckets that are bounded.';

-- function content_service.tg_objects__keep_content()
CREATE OR REPLACE FUNCTION content_service.tg_objects__keep_content()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if not pg_has_role(current_user, (select relowner from pg_class where oid = TG_RELID), 'usage') then
    if TG_OP = 'INSERT' then
      NEW.content := null;
    else
      NEW.content := OLD.content;
    end if;
  end if;
  if TG_OP = 'UPDATE' then
    NEW.updated_at := now();
  end if;
  return NEW;
end;
$function$;
comment on function content_service.tg_objects__keep_content() is 'Lets the owner alone name contents, and notes when an object was changed.';

-- function content_service.tg_objects__release_content()
CREATE OR REPLACE FUNCTION content_service.tg_objects__release_content()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO ''
AS $function$
begin
  update content_service.files set released_at = clock_timestamp() where hash = OLD.content;
  return null;
end;
$function$;
comment on function content_service.tg_objects__release_content() is 'Notes that a content may be without an object.';

-- function content_service.tg_webhooks__capture()
CREATE OR REPLACE FUNCTION content_service.tg_webhooks__capture()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if TG_OP = 'DELETE' then
    perform content_service.drop_webhook_triggers(OLD.id);
    delete from content_service.webhook_deliveries where webhook_id = OLD.id;
    delete from content_service.webhook_leases where webhook_id = OLD.id;
  elsif TG_OP = 'INSERT' then
    perform content_service.create_webhook_triggers(NEW);
  elsif NEW.id <> OLD.id or NEW.events <> OLD.events
    or content_service.webhook_table(NEW.id) is distinct from to_regclass(NEW.table_name)
  then
    perform content_service.drop_webhook_triggers(OLD.id);
    perform content_service.create_webhook_triggers(NEW);
  end if;
  notify webhooks;
  return null;
end;
$function$;
comment on function content_service.tg_webhooks__capture() is 'Creates and drops the triggers that record the changes for a webhook, and notifies the service.';

-- function content_service.tg_webhooks__check()
CREATE OR REPLACE FUNCTION content_service.tg_webhooks__check()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_become text := case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end;
  v_name text[];
  v_given text := NEW.table_name;
begin
  if TG_OP = 'UPDATE' and NEW.disabled_because is not distinct from OLD.disabled_because then
    NEW.disabled_because := null;
  end if;
  if TG_OP = 'INSERT' or NEW.table_name <> OLD.table_name then
    begin
      v_name := parse_ident(NEW.table_name);
    exception when others then
      v_name := '{}';
    end;
    if cardinality(v_name) = 1 then
      v_name := array['public', v_name[1]];
    end if;
    select format('%I.%I', nspname, relname) into NEW.table_name
      from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where array[nspname, relname]::text[] = v_name and relkind in ('r', 'p') and relpersistence <> 't'
        and nspname not in ('api', 'content_service', 'pg_catalog', 'information_schema');
    if not found then
      raise exception 'There is no table % whose changes can be sent', v_given
        using errcode = 'WRONG', detail = 'table_name', hint = 'Write the name with its schema: public.orders.';
    end if;
  end if;
  if TG_OP = 'INSERT' or NEW.role <> OLD.role then
    -- The service sends what this role may read. The owner of the tables, and a superuser, are bound by no policy.
    if not exists (
      select from pg_roles as login
      where not login.rolsuper and has_function_privilege(login.oid, 'content_service.lock_task(text)', 'execute')
        and login.oid <> (select relowner from pg_class where oid = TG_RELID)
        and pg_has_role(login.oid, to_regrole(quote_ident(NEW.role)), v_become)
    ) then
      raise exception 'The login of the service cannot read as role %', NEW.role
        using errcode = 'WRONG', detail = 'role',
          hint = 'Choose a role of requests, such as service_role, whose rights decide which rows and columns are sent.';
    end if;
  end if;
  return NEW;
end;
$function$;
comment on function content_service.tg_webhooks__check() is 'Checks the table and the role of a webhook.';

-- function content_service.trim_tables()
CREATE OR REPLACE FUNCTION content_service.trim_tables()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_table record;
begin
  perform from content_service.bounds
    where name = 'rows of auth.audit_log' and used_at < clock_timestamp() - interval '50 seconds' for update skip locked;
  if not found then
    return;
  end if;
  update content_service.bounds set used_at = clock_timestamp() where name = 'rows of auth.audit_log';

  for v_table in
    select * from (values
      ('auth.flow_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_states', 'expires_at', 'expires_at < now()'),
      ('auth.federation_logins', 'expires_at', 'expires_at < now()'),
      ('auth.federation_codes', 'expires_at', 'expires_at < now()'),
      ('auth.federation_replays', 'expires_at', 'expires_at < now()'),
      ('auth.mail_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.mfa_challenges', 'expires_at', 'expires_at < now() - interval ''10 minutes'''),
      ('auth.refresh_tokens', 'expires_at', 'expires_at < now()'),
      ('auth.sessions', 'expires_at', 'least(idle_expires_at, expires_at) < now()'),
      ('auth.login_throttle', 'window_started_at', 'window_started_at < now() - interval ''15 minutes'''),
      ('auth.deleted_accounts', 'deleted_at', 'deleted_at < now() - interval ''1 day'''),
      ('content_service.rate_limits', 'expire', 'expire < extract(epoch from clock_timestamp()) * 1000'),
      -- Its times have no index, but the order of its ids.
      (
        'auth.audit_log', 'id', 'id in (select id from auth.audit_log order by id limit 100000)
          and at < now() - make_interval(days => content_service.bound(''days of auth.audit_log'')::integer)'
      )
    ) as kept (name, age, is_over)
  loop
    execute format(
      'delete from %1$s where ctid in (select ctid from %1$s where %2$s order by %3$s limit 100000 for update skip locked)',
      v_table.name, v_table.is_over, v_table.age
    );
    if content_service.bound('rows of ' || v_table.name) is not null then
      execute format(
        'delete from %1$s where ctid in (
          select ctid from %1$s order by %2$s limit greatest(0, (%3$s) - %4$s) for update skip locked
        )',
        v_table.name, v_table.age,
        -- Of the table whose rows are deleted in the order of their numbers only, nothing has to be counted.
        format(case v_table.age when 'id' then 'select max(id) - min(id) + 1 from %s' else 'select count(*) from %s' end, v_table.name),
        content_service.bound('rows of ' || v_table.name)
      );
    end if;
  end loop;

  delete from content_service.webhook_deliveries where id in (
    select dead.id from api.webhooks
    cross join lateral (
      select recorded_at from content_service.webhook_deliveries
      where webhook_id = webhooks.id and state = 'dead' order by recorded_at desc
      offset content_service.bound('dead deliveries of a webhook') limit 1
    ) as newest
    join content_service.webhook_deliveries as dead
      on dead.webhook_id = webhooks.id and dead.state = 'dead' and dead.recorded_at <= newest.recorded_at
    limit 100000
  );
  -- Only tokens that were exchanged: their repetition is then refused as unknown, and ends no session any more.
  delete from auth.refresh_tokens where token_hash in (
    select token_hash from (
      select token.token_hash, token.rotated_at, row_number() over (partition by token.family_id order by token.issued_at desc) as place
      from auth.refresh_tokens as token
      where token.family_id in (
        select family_id from auth.refresh_tokens group by 1 having count(*) > content_service.bound('refresh tokens of a session')
      )
    ) as placed
    where place > content_service.bound('refresh tokens of a session') and rotated_at is not null limit 100000
  );
  delete from auth.token_sessions where id in (
    select id from (
      select session.id, row_number() over (partition by session.user_id order by session.refreshed_at desc) as place
      from auth.token_sessions as session
      where session.user_id in (
        select user_id from auth.token_sessions group by 1 having count(*) > content_service.bound('token sessions of a user')
      )
    ) as placed
    where place > content_service.bound('token sessions of a user') limit 100000
  );
end;
$function$;
comment on function content_service.trim_tables() is 'Deletes what is past its time, and the oldest rows beyond the bounds of tables; called by the service as the owner.';

-- function content_service.wake_lane(text,text)
CREATE OR REPLACE FUNCTION content_service.wake_lane(lane text, caller_key text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_limit bigint := content_service.bound(case wake_lane.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
begin
  if v_limit is null then
    return;
  end if;
  -- The task that has ended does not count any more.
  if v_limit - 1 <= (
    select count(*) from content_service.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'running'
  ) and exists (
    select from content_service.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'queued'
      and tasks.turn is not null
  ) then
    perform graphile_worker.add_job('perform_' || lane, '{}', max_attempts => 5);
  end if;
end;
$function$;
comment on function content_service.wake_lane(text,text) is 'Lets the next task of a caller begin when one has ended.';

-- function content_service.webhook_table(uuid)
CREATE OR REPLACE FUNCTION content_service.webhook_table(webhook uuid)
 RETURNS regclass
 LANGUAGE sql
BEGIN ATOMIC
 SELECT (pg_trigger.tgrelid)::regclass AS tgrelid
    FROM pg_trigger
   WHERE ((pg_trigger.tgfoid = ('content_service.tg__webhook()'::regprocedure)::oid) AND (pg_trigger.tgparentid = (0)::oid) AND (pg_trigger.tgargs = (convert_to((webhook_table.webhook)::text, 'UTF8'::name) || '\x00'::bytea)))
  LIMIT 1;
END;
comment on function content_service.webhook_table(uuid) is 'The table that has the triggers of a webhook, whatever it is called by now.';

-- function content_service.webhook_trigger_name(uuid,text)
CREATE OR REPLACE FUNCTION content_service.webhook_trigger_name(webhook uuid, event text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
RETURN ((('_950_webhook_'::text || lower(event)) || '_'::text) || replace((webhook)::text, '-'::text, ''::text));
comment on function content_service.webhook_trigger_name(uuid,text) is 'The name of the trigger that records one kind of change for a webhook.';

-- function content_service.withdraw_task(uuid,text)
CREATE OR REPLACE FUNCTION content_service.withdraw_task(id uuid, owner text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_status text;
begin
  select status into v_status from content_service.tasks
    where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner for update skip locked;
  if not found then
    return (
      select 'running' from content_service.tasks where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner
    );
  end if;
  if v_status <> 'running' then
    delete from content_service.tasks where tasks.id = withdraw_task.id;
    perform graphile_worker.remove_job(withdraw_task.id::text);
  end if;
  return v_status;
end;
$function$;
comment on function content_service.withdraw_task(uuid,text) is 'Withdraws a task that has not begun, and deletes a finished one; returns its status, or null when there is none.';

-- function public.articles_matching(text)
CREATE OR REPLACE FUNCTION public.articles_matching(keyword text)
 RETURNS SETOF public.articles
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 20
 SET search_path TO ''
AS $function$
  select article.*
  from public.articles as article
  where article.id in (select found.id from api.matching_articles(keyword) as found (id));
$function$;
grant execute on function public.articles_matching(text) to anon, authenticated, service_role;
comment on function public.articles_matching(text) is '@behavior -*
@filter
Articles with the keyword in title, tags or content.';

-- function public.articles_related_articles(public.articles,integer)
CREATE OR REPLACE FUNCTION public.articles_related_articles(article public.articles, "limit" integer DEFAULT 5)
 RETURNS SETOF public.articles
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 5
 SET search_path TO ''
AS $function$
  select other.*
  from api.related_articles(article.id, article.tags, "limit") with ordinality as found (id, position)
  join public.articles as other on other.id = found.id
  order by found.position;
$function$;
grant execute on function public.articles_related_articles(public.articles,integer) to anon, authenticated, service_role;
comment on function public.articles_related_articles(public.articles,integer) is 'Other articles that share a tag with this one, those with the most tags in common first.';

-- function public.articles_summary(public.articles)
CREATE OR REPLACE FUNCTION public.articles_summary(article public.articles)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select coalesce(article.summary, pg_catalog.left(article.content, 200));
$function$;
grant execute on function public.articles_summary(public.articles) to anon, authenticated, service_role;
comment on function public.articles_summary(public.articles) is 'The author''s summary, or else the first 200 characters of the content.';

-- function public.articles_title(public.articles,text)
CREATE OR REPLACE FUNCTION public.articles_title(article public.articles, language text DEFAULT NULL::text)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select case
    when language is null then article.title
    else coalesce(api.translated_title(article.id, language), article.title)
  end;
$function$;
grant execute on function public.articles_title(public.articles,text) to anon, authenticated, service_role;
comment on function public.articles_title(public.articles,text) is '@notNull
The title, in the given language (such as de or pt-BR) when there is a translation.';

-- function public.create_article(text,text,text[],public.article_status)
CREATE OR REPLACE FUNCTION public.create_article(title text, content text, tags text[] DEFAULT NULL::text[], status public.article_status DEFAULT 'DRAFT'::public.article_status)
 RETURNS public.mutation_result
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_article public.articles;
  v_result public.mutation_result;
  v_constraint text;
begin
  v_result.success := false;
  if auth.uid() is null then
    v_result.message := 'Login required: sign in to write an article.';
    return v_result;
  end if;

  insert into public.articles (title, content, tags, status)
    values (
      create_article.title,
      create_article.content,
      coalesce(create_article.tags, '{}'),
      coalesce(create_article.status, 'DRAFT')
    )
    returning * into v_article;
  v_result.success := true;
  v_result.message := 'The article was created.';
  v_result.article := v_article;
  return v_result;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_result.message := 'The article was not created: see errors.';
  v_result.errors := array[api.field_error('public.articles', v_constraint)];
  return v_result;
end;
$function$;
grant execute on function public.create_article(text,text,text[],public.article_status) to anon, authenticated, service_role;
comment on function public.create_article(text,text,text[],public.article_status) is 'Write an article as the user who is signed in. What is wrong with the input comes back in errors.';

-- function public.create_comment(bigint,text)
CREATE OR REPLACE FUNCTION public.create_comment(article_id bigint, content text)
 RETURNS public.comments
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_comment public.comments;
begin
  if auth.uid() is null then
    raise exception 'Sign in to write a comment' using errcode = 'LOGIN';
  end if;
  if not exists (select from public.articles where articles.id = create_comment.article_id) then
    raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'article_id';
  end if;
  insert into public.comments (article_id, content) values (create_comment.article_id, create_comment.content)
    returning * into v_comment;
  return v_comment;
end;
$function$;
grant execute on function public.create_comment(bigint,text) to anon, authenticated, service_role;
comment on function public.create_comment(bigint,text) is 'Comment on an article, as the user who is signed in.';

-- function public.create_user(text,text,integer)
CREATE OR REPLACE FUNCTION public.create_user(name text, email text, age integer DEFAULT NULL::integer)
 RETURNS public.users
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_user public.users;
begin
  -- Without the address, which anonymous callers may not read.
  insert into public.users (name, email, age) values (create_user.name, create_user.email, create_user.age)
    returning users.id, users.name, users.age, users.avatar, users.created_at, users.updated_at
    into v_user.id, v_user.name, v_user.age, v_user.avatar, v_user.created_at, v_user.updated_at;
  v_user.email := create_user.email;
  return v_user;
exception when unique_violation then
  raise exception 'This e-mail address is already registered'
    using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
end;
$function$;
grant execute on function public.create_user(text,text,integer) to anon, authenticated, service_role;
comment on function public.create_user(text,text,integer) is '@signUp
Add a user. An e-mail address can be registered once.';

-- function public.delete_article(bigint)
CREATE OR REPLACE FUNCTION public.delete_article(id bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to delete an article' using errcode = 'LOGIN';
  end if;

  delete from public.articles as article where article.id = delete_article.id;
  if found then
    return true;
  end if;

  if exists (select from public.articles as article where article.id = delete_article.id) then
    raise exception 'Only its author may delete this article' using errcode = 'NOPER';
  end if;
  return false;
end;
$function$;
grant execute on function public.delete_article(bigint) to anon, authenticated, service_role;
comment on function public.delete_article(bigint) is 'Delete an article of yours and its comments. False when there is no such article.';

-- function public.me()
CREATE OR REPLACE FUNCTION public.me()
 RETURNS public.users
 LANGUAGE plpgsql
 STABLE PARALLEL SAFE SECURITY DEFINER
 SET search_path TO ''
AS $function$
declare
  v_user public.users;
begin
  select users.* into v_user from public.users where users.id = (select auth.uid());
  if v_user.id is null then
    raise exception 'You are not signed in' using errcode = 'LOGIN', hint = 'Send a valid access token.';
  end if;
  return v_user;
end;
$function$;
grant execute on function public.me() to anon, authenticated, service_role;
comment on function public.me() is '@notNull
The user who is signed in.';

-- function public.publish(public.articles)
CREATE OR REPLACE FUNCTION public.publish(article public.articles)
 RETURNS public.articles
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select public.publish_article(article.id);
$function$;
grant execute on function public.publish(public.articles) to anon, authenticated, service_role;
comment on function public.publish(public.articles) is '@behavior -*
Give this article the status PUBLISHED.';

-- function public.publish_article(bigint)
CREATE OR REPLACE FUNCTION public.publish_article(id bigint)
 RETURNS public.articles
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  select public.update_article(publish_article.id, status => 'PUBLISHED');
$function$;
grant execute on function public.publish_article(bigint) to anon, authenticated, service_role;
comment on function public.publish_article(bigint) is 'Give an article of yours the status PUBLISHED.';

-- function public.search(text)
CREATE OR REPLACE FUNCTION public.search(keyword text)
 RETURNS SETOF public.articles
 LANGUAGE sql
 STABLE PARALLEL SAFE ROWS 20
 SET search_path TO ''
AS $function$
  select article.*
  from api.search_articles(keyword) with ordinality as found (id, position)
  join public.articles as article on article.id = found.id
  order by found.position;
$function$;
grant execute on function public.search(text) to anon, authenticated, service_role;
comment on function public.search(text) is 'Articles with the keyword in title, tags or content, the best match first.';

-- function public.update_article(bigint,text,text,text[],public.article_status)
CREATE OR REPLACE FUNCTION public.update_article(id bigint, title text DEFAULT NULL::text, content text DEFAULT NULL::text, tags text[] DEFAULT NULL::text[], status public.article_status DEFAULT NULL::public.article_status)
 RETURNS public.articles
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
declare
  v_article public.articles;
begin
  -- A caller that bypasses policies (service_role) needs no account.
  if auth.uid() is null and row_security_active('public.articles') then
    raise exception 'Sign in to change an article' using errcode = 'LOGIN';
  end if;

  update public.articles as article
    set
      title = coalesce(update_article.title, article.title),
      content = coalesce(update_article.content, article.content),
      tags = coalesce(update_article.tags, article.tags),
      status = coalesce(update_article.status, article.status)
    where article.id = update_article.id
    returning * into v_article;
  if found then
    return v_article;
  end if;

  if exists (select from public.articles as article where article.id = update_article.id) then
    raise exception 'Only its author may change this article' using errcode = 'NOPER';
  end if;
  raise exception 'There is no article with that id' using errcode = 'NTFND', detail = 'id';
end;
$function$;
grant execute on function public.update_article(bigint,text,text,text[],public.article_status) to anon, authenticated, service_role;
comment on function public.update_article(bigint,text,text,text[],public.article_status) is 'Change an article of yours. What is left out stays as it is.';

-- function public.users_own_email(bigint)
CREATE OR REPLACE FUNCTION public.users_own_email(id bigint)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE SECURITY DEFINER
 SET search_path TO ''
AS $function$
  select users.email from public.users where users.id = users_own_email.id and users.id = (select auth.uid());
$function$;
grant execute on function public.users_own_email(bigint) to authenticated, service_role;
comment on function public.users_own_email(bigint) is '@behavior -*
The address of the user, for the user; null for others.';

-- function realtime.broadcast_changes(text,text,text,text,text,record,record,text)
CREATE OR REPLACE FUNCTION realtime.broadcast_changes(topic_name text, event_name text, operation text, table_name text, table_schema text, new record, old record, level text DEFAULT 'ROW'::text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if level = 'STATEMENT' then
    raise exception 'Changes are broadcast for each row, not for each statement' using errcode = 'WRONG', detail = 'level';
  end if;
  perform realtime.send(
    jsonb_build_object(
      'old_record', to_jsonb(broadcast_changes.old),
      'record', to_jsonb(broadcast_changes.new),
      'operation', operation,
      'table', table_name,
      'schema', table_schema
    ),
    event_name,
    topic_name
  );
end;
$function$;
grant execute on function realtime.broadcast_changes(text,text,text,text,text,record,record,text) to service_role;
comment on function realtime.broadcast_changes(text,text,text,text,text,record,record,text) is 'Broadcasts the change of a row to a private channel; for triggers, which pass NEW and OLD.';

-- function realtime.send(jsonb,text,text,boolean)
CREATE OR REPLACE FUNCTION realtime.send(payload jsonb, event text, topic text, private boolean DEFAULT true)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'cannot execute realtime.send() in a read-only transaction' using errcode = 'read_only_sql_transaction';
  end if;
  perform pg_logical_emit_message(true, 'realtime', jsonb_build_object(
    'said', jsonb_build_array(jsonb_build_object(
      'kind', 'broadcast',
      'topic', topic,
      'private', private,
      'event', event,
      'encoding', 'json',
      'payload', payload::text
    ))
  )::text);
end;
$function$;
grant execute on function realtime.send(jsonb,text,text,boolean) to service_role;
comment on function realtime.send(jsonb,text,text,boolean) is 'Broadcasts to a channel, when the transaction commits. Fails in a read-only transaction.';

-- function realtime.send_binary(bytea,text,text,boolean)
CREATE OR REPLACE FUNCTION realtime.send_binary(payload bytea, event text, topic text, private boolean DEFAULT true)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
begin
  if current_setting('transaction_read_only')::boolean then
    raise exception 'cannot execute realtime.send_binary() in a read-only transaction' using errcode = 'read_only_sql_transaction';
  end if;
  perform pg_logical_emit_message(true, 'realtime', jsonb_build_object(
    'said', jsonb_build_array(jsonb_build_object(
      'kind', 'broadcast',
      'topic', topic,
      'private', private,
      'event', event,
      'encoding', 'raw',
      'payload', encode(payload, 'base64')
    ))
  )::text);
end;
$function$;
grant execute on function realtime.send_binary(bytea,text,text,boolean) to service_role;
comment on function realtime.send_binary(bytea,text,text,boolean) is 'Broadcasts bytes to a channel, when the transaction commits. Fails in a read-only transaction.';

-- function realtime.topic()
CREATE OR REPLACE FUNCTION realtime.topic()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('realtime.topic'::text, true), ''::text);
grant execute on function realtime.topic() to anon, authenticated, service_role;
comment on function realtime.topic() is 'The private channel that is being checked, for policies on realtime.messages.';

-- function storage.change_bucket(text,boolean,bigint,text[],text[])
CREATE OR REPLACE FUNCTION storage.change_bucket(id text, public boolean, file_size_limit bigint, allowed_mime_types text[], clears text[])
 RETURNS SETOF text
 LANGUAGE sql
BEGIN ATOMIC
 UPDATE storage.buckets SET public = COALESCE(change_bucket.public, buckets.public), file_size_limit =
         CASE
             WHEN ('file_size_limit'::text = ANY (change_bucket.clears)) THEN NULL::bigint
             ELSE COALESCE(change_bucket.file_size_limit, buckets.file_size_limit)
         END, allowed_mime_types =
         CASE
             WHEN ('allowed_mime_types'::text = ANY (change_bucket.clears)) THEN NULL::text[]
             ELSE COALESCE(change_bucket.allowed_mime_types, buckets.allowed_mime_types)
         END, updated_at = now()
   WHERE (buckets.id = change_bucket.id)
   RETURNING buckets.id;
END;
grant execute on function storage.change_bucket(text,boolean,bigint,text[],text[]) to anon, authenticated, service_role;
comment on function storage.change_bucket(text,boolean,bigint,text[],text[]) is 'Changes settings of a bucket.';

-- function storage.empty_bucket(text)
CREATE OR REPLACE FUNCTION storage.empty_bucket(id text)
 RETURNS bigint
 LANGUAGE sql
BEGIN ATOMIC
 WITH removed AS (
          DELETE FROM storage.objects
           WHERE (objects.bucket_id = empty_bucket.id)
           RETURNING 1 AS "?column?"
         )
  SELECT count(*) AS count
    FROM removed;
END;
grant execute on function storage.empty_bucket(text) to anon, authenticated, service_role;
comment on function storage.empty_bucket(text) is 'Deletes the objects of a bucket that the caller may delete.';

-- function storage.end_of_prefix(text)
CREATE OR REPLACE FUNCTION storage.end_of_prefix(prefix text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN ((prefix <> ''::text) AND (ascii("right"(prefix, 1)) < 127)) THEN ("left"(prefix, '-1'::integer) || chr((ascii("right"(prefix, 1)) + 1))) ELSE NULL::text END;
grant execute on function storage.end_of_prefix(text) to anon, authenticated, service_role;
comment on function storage.end_of_prefix(text) is 'The first text that follows all texts with the prefix, in the order of bytes.';

-- function storage.extension(text)
CREATE OR REPLACE FUNCTION storage.extension(name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN reverse(split_part(reverse(storage.filename(name)), '.'::text, 1));
grant execute on function storage.extension(text) to anon, authenticated, service_role;
comment on function storage.extension(text) is 'The extension: png of a/b/c.png.';

-- function storage.filename(text)
CREATE OR REPLACE FUNCTION storage.filename(name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (string_to_array(name, '/'::text))[array_length(string_to_array(name, '/'::text), 1)];
grant execute on function storage.filename(text) to anon, authenticated, service_role;
comment on function storage.filename(text) is 'The name without folders: c.png of a/b/c.png.';

-- function storage.find_buckets(text,text,text,boolean,integer,integer)
CREATE OR REPLACE FUNCTION storage.find_buckets(id text, search text, sort_column text, is_descending boolean, max_rows integer, skipped integer)
 RETURNS SETOF storage.buckets
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select buckets.* from storage.buckets
  where (find_buckets.id is null or buckets.id = find_buckets.id)
    and (find_buckets.search is null or strpos(lower(buckets.name), lower(find_buckets.search)) > 0)
  order by
    case when not is_descending then case sort_column
      when 'created_at' then buckets.created_at::text when 'updated_at' then buckets.updated_at::text else buckets.name end end collate "C",
    case when is_descending then case sort_column
      when 'created_at' then buckets.created_at::text when 'updated_at' then buckets.updated_at::text else buckets.name end end collate "C" desc
  limit max_rows offset skipped;
$function$;
grant execute on function storage.find_buckets(text,text,text,boolean,integer,integer) to anon, authenticated, service_role;
comment on function storage.find_buckets(text,text,text,boolean,integer,integer) is 'The buckets that the caller may read.';

-- function storage.find_objects(text,text[])
CREATE OR REPLACE FUNCTION storage.find_objects(bucket text, names text[])
 RETURNS SETOF storage.objects
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  select objects.* from storage.objects where objects.bucket_id = bucket and objects.name = any (names);
$function$;
grant execute on function storage.find_objects(text,text[]) to anon, authenticated, service_role;
comment on function storage.find_objects(text,text[]) is 'The objects with these names that the caller may read.';

-- function storage.foldername(text)
CREATE OR REPLACE FUNCTION storage.foldername(name text)
 RETURNS text[]
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (string_to_array(name, '/'::text))[:(array_length(string_to_array(name, '/'::text), 1) - 1)];
grant execute on function storage.foldername(text) to anon, authenticated, service_role;
comment on function storage.foldername(text) is 'The folders of an object: {a,b} of a/b/c.png.';

-- function storage.get_size_by_bucket()
CREATE OR REPLACE FUNCTION storage.get_size_by_bucket()
 RETURNS TABLE(size bigint, bucket_id text)
 LANGUAGE sql
 STABLE
BEGIN ATOMIC
 SELECT (sum(((objects.metadata ->> 'size'::text))::bigint))::bigint AS sum,
     objects.bucket_id
    FROM storage.objects
   GROUP BY objects.bucket_id;
END;
grant execute on function storage.get_size_by_bucket() to anon, authenticated, service_role;
comment on function storage.get_size_by_bucket() is 'The size of the objects that the caller may read, by bucket.';

-- function storage.list_names(text,text,boolean,boolean,text,integer)
CREATE OR REPLACE FUNCTION storage.list_names(bucket text, prefix text, has_folders boolean, is_descending boolean, after_entry text, max_rows integer)
 RETURNS TABLE(entry text, is_folder boolean, object storage.objects)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
declare
  v_end text := storage.end_of_prefix(prefix);
  -- Names have no control characters, so nothing lies between a name and the name followed by one.
  v_from text := case
    when after_entry is null then prefix
    when has_folders and starts_with(after_entry, prefix) and strpos(substr(after_entry, length(prefix) + 1), '/') = length(after_entry) - length(prefix)
      and after_entry <> prefix then storage.end_of_prefix(after_entry)
    else after_entry || chr(1)
  end;
  v_before text := coalesce(after_entry, v_end);
  v_found storage.objects;
  v_rest text;
begin
  for v_count in 1 .. max_rows loop
    if is_descending then
      select objects.* into v_found from storage.objects
        where objects.bucket_id = bucket and starts_with(objects.name, prefix)
          and objects.name collate "C" >= prefix and (v_before is null or objects.name collate "C" < v_before)
        order by objects.name collate "C" desc limit 1;
    else
      select objects.* into v_found from storage.objects
        where objects.bucket_id = bucket and starts_with(objects.name, prefix)
          and objects.name collate "C" >= v_from and (v_end is null or objects.name collate "C" < v_end)
        order by objects.name collate "C" limit 1;
    end if;
    exit when not found;
    v_rest := substr(v_found.name, length(prefix) + 1);
    is_folder := has_folders and strpos(v_rest, '/') > 0;
    entry := case when is_folder then prefix || split_part(v_rest, '/', 1) || '/' else v_found.name end;
    object := case when not is_folder then v_found end;
    v_before := entry;
    v_from := case when is_folder then storage.end_of_prefix(entry) else entry || chr(1) end;
    return next;
  end loop;
end;
$function$;
grant execute on function storage.list_names(text,text,boolean,boolean,text,integer) to anon, authenticated, service_role;
comment on function storage.list_names(text,text,boolean,boolean,text,integer) is 'Objects below a prefix in the order of their names, or the folders and objects of one level, after an entry.';

-- function storage.list_times(text,text,boolean,boolean,boolean,timestamp with time zone,text,integer)
CREATE OR REPLACE FUNCTION storage.list_times(bucket text, prefix text, has_folders boolean, is_descending boolean, by_update boolean, after_time timestamp with time zone, after_entry text, max_rows integer)
 RETURNS TABLE(entry text, is_folder boolean, object storage.objects, at timestamp with time zone)
 LANGUAGE sql
 STABLE
 SET search_path TO ''
AS $function$
  with named as (
    select objects as object, case when by_update then objects.updated_at else objects.created_at end as at,
      has_folders and strpos(substr(objects.name, length(prefix) + 1), '/') > 0 as is_folder,
      prefix || split_part(substr(objects.name, length(prefix) + 1), '/', 1) || '/' as folder
    from storage.objects
    where objects.bucket_id = bucket and starts_with(objects.name, prefix)
      and (prefix = '' or objects.name collate "C" >= prefix)
      and (storage.end_of_prefix(prefix) is null or objects.name collate "C" < storage.end_of_prefix(prefix))
  ),
  entries as (
    select named.folder as entry, true as is_folder, null::storage.objects as object,
      case when by_update then max(named.at) else min(named.at) end as at
    from named where named.is_folder group by named.folder
    union all
    select (named.object).name, false, named.object, named.at from named where not named.is_folder
  )
  select entries.entry, entries.is_folder, entries.object, entries.at from entries
  where after_entry is null
    or (is_descending and (entries.at, entries.entry) < (after_time, after_entry))
    or (not is_descending and (entries.at, entries.entry) > (after_time, after_entry))
  order by
    case when not is_descending then entries.at end, case when not is_descending then entries.entry end,
    case when is_descending then entries.at end desc, case when is_descending then entries.entry end desc
  limit max_rows;
$function$;
grant execute on function storage.list_times(text,text,boolean,boolean,boolean,timestamp with time zone,text,integer) to anon, authenticated, service_role;
comment on function storage.list_times(text,text,boolean,boolean,boolean,timestamp with time zone,text,integer) is 'Objects below a prefix in the order of a time, or the folders and objects of one level, after an entry.';

-- function storage.move_object(text,text,text,text,text,text)
CREATE OR REPLACE FUNCTION storage.move_object(bucket text, name text, to_bucket text, to_name text, owner text, version text)
 RETURNS SETOF storage.objects
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  update storage.objects set
    bucket_id = to_bucket, name = to_name, version = move_object.version, owner_id = coalesce(move_object.owner, objects.owner_id),
    owner = case
      when move_object.owner is null then objects.owner
      when move_object.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cast(move_object.owner as uuid)
    end
  where objects.bucket_id = bucket and objects.name = move_object.name
  returning objects.*;
$function$;
grant execute on function storage.move_object(text,text,text,text,text,text) to anon, authenticated, service_role;
comment on function storage.move_object(text,text,text,text,text,text) is 'Renames an object that the caller may read and update; its content stays.';

-- function storage.put_bucket(text,text,boolean,bigint,text[])
CREATE OR REPLACE FUNCTION storage.put_bucket(id text, owner text, public boolean, file_size_limit bigint, allowed_mime_types text[])
 RETURNS void
 LANGUAGE sql
BEGIN ATOMIC
 INSERT INTO storage.buckets (id, name, owner, owner_id, public, file_size_limit, allowed_mime_types)
   VALUES (put_bucket.id, put_bucket.id,
         CASE
             WHEN (put_bucket.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'::text) THEN (put_bucket.owner)::uuid
             ELSE NULL::uuid
         END, put_bucket.owner, COALESCE(put_bucket.public, false), put_bucket.file_size_limit, put_bucket.allowed_mime_types);
END;
grant execute on function storage.put_bucket(text,text,boolean,bigint,text[]) to anon, authenticated, service_role;
comment on function storage.put_bucket(text,text,boolean,bigint,text[]) is 'Adds a bucket.';

-- function storage.put_object(text,text,text,jsonb,jsonb,text,boolean)
CREATE OR REPLACE FUNCTION storage.put_object(bucket text, name text, owner text, metadata jsonb, user_metadata jsonb, version text, replaces boolean)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO ''
AS $function$
#variable_conflict use_column
declare
  v_owner uuid := case when put_object.owner ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then cast(put_object.owner as uuid) end;
begin
  if replaces then
    insert into storage.objects as object (bucket_id, name, owner, owner_id, metadata, user_metadata, version)
      values (bucket, put_object.name, v_owner, put_object.owner, put_object.metadata, put_object.user_metadata, put_object.version)
      on conflict (bucket_id, name) do update set
        owner = excluded.owner, owner_id = excluded.owner_id, metadata = excluded.metadata,
        user_metadata = excluded.user_metadata, version = excluded.version;
  else
    insert into storage.objects (bucket_id, name, owner, owner_id, metadata, user_metadata, version)
      values (bucket, put_object.name, v_owner, put_object.owner, put_object.metadata, put_object.user_metadata, put_object.version);
  end if;
end;
$function$;
grant execute on function storage.put_object(text,text,text,jsonb,jsonb,text,boolean) to anon, authenticated, service_role;
comment on function storage.put_object(text,text,text,jsonb,jsonb,text,boolean) is 'Adds the row of an object, or replaces it.';

-- function storage.remove_bucket(text)
CREATE OR REPLACE FUNCTION storage.remove_bucket(id text)
 RETURNS SETOF text
 LANGUAGE sql
BEGIN ATOMIC
 DELETE FROM storage.buckets
   WHERE (buckets.id = remove_bucket.id)
   RETURNING buckets.id;
END;
grant execute on function storage.remove_bucket(text) to anon, authenticated, service_role;
comment on function storage.remove_bucket(text) is 'Deletes a bucket without objects.';

-- function storage.remove_objects(text,text[])
CREATE OR REPLACE FUNCTION storage.remove_objects(bucket text, names text[])
 RETURNS SETOF storage.objects
 LANGUAGE sql
 SET search_path TO ''
AS $function$
  delete from storage.objects where objects.bucket_id = bucket and objects.name = any (names) returning objects.*;
$function$;
grant execute on function storage.remove_objects(text,text[]) to anon, authenticated, service_role;
comment on function storage.remove_objects(text,text[]) is 'Deletes the objects with these names that the caller may delete.';

-- function storage.search(text,text,integer,integer,integer,text,text,text)
CREATE OR REPLACE FUNCTION storage.search(prefix text, bucketname text, limits integer DEFAULT 100, levels integer DEFAULT 1, offsets integer DEFAULT 0, search text DEFAULT ''::text, sortcolumn text DEFAULT 'name'::text, sortorder text DEFAULT 'asc'::text)
 RETURNS TABLE(name text, id uuid, updated_at timestamp with time zone, created_at timestamp with time zone, last_accessed_at timestamp with time zone, metadata jsonb, user_metadata jsonb)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO ''
AS $function$
#variable_conflict use_column
declare
  v_is_descending boolean := sortorder ilike 'desc';
begin
  if sortcolumn = 'name' and coalesce(search.search, '') = '' then
    return query
      select rtrim(substr(listed.entry, length(search.prefix) + 1), '/'), (listed.object).id, (listed.object).updated_at,
        (listed.object).created_at, (listed.object).last_accessed_at, (listed.object).metadata, (listed.object).user_metadata
      from storage.list_names(bucketname, search.prefix, true, v_is_descending, null, least(limits, 1500) + offsets) as listed
      offset offsets;
    return;
  end if;
  return query
    with named as (
      select objects.*, split_part(substr(objects.name, length(search.prefix) + 1), '/', 1) as entry,
        strpos(substr(objects.name, length(search.prefix) + 1), '/') > 0 as is_folder
      from storage.objects
      where objects.bucket_id = bucketname and starts_with(objects.name, search.prefix)
        and starts_with(lower(substr(objects.name, length(search.prefix) + 1)), lower(coalesce(search.search, '')))
    ),
    entries as (
      select distinct named.entry, null::uuid as id, null::timestamptz as updated_at, null::timestamptz as created_at,
        null::timestamptz as last_accessed_at, null::jsonb as metadata, null::jsonb as user_metadata, 0 as place
      from named where named.is_folder
      union all
      select named.entry, named.id, named.updated_at, named.created_at, named.last_accessed_at, named.metadata, named.user_metadata,
        case when sortcolumn = 'name' then 0 else 1 end
      from named where not named.is_folder
    ),
    sorted as (
      select entries.*, case sortcolumn
        when 'updated_at' then entries.updated_at when 'created_at' then entries.created_at
        when 'last_accessed_at' then entries.last_accessed_at end as at
      from entries
    )
    select sorted.entry, sorted.id, sorted.updated_at, sorted.created_at, sorted.last_accessed_at, sorted.metadata, sorted.user_metadata
    from sorted
    order by sorted.place,
      case when not v_is_descending then sorted.at end, case when v_is_descending then sorted.at end desc,
      case when not v_is_descending then sorted.entry collate "C" end, case when v_is_descending then sorted.entry collate "C" end desc
    limit least(limits, 1500) offset offsets;
end;
$function$;
grant execute on function storage.search(text,text,integer,integer,integer,text,text,text) to anon, authenticated, service_role;
comment on function storage.search(text,text,integer,integer,integer,text,text,text) is 'One page of the folders and objects of a folder, as Supabase''s function of this name.';

-- event trigger content_service_log_whole_rows
create event trigger content_service_log_whole_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') execute function content_service.tg__log_whole_rows();

-- event trigger content_service_publish_rows
create event trigger content_service_publish_rows on ddl_command_end when tag in ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER TABLE') execute function content_service.tg__publish_rows();

-- event trigger content_service_schema_changed
create event trigger content_service_schema_changed on ddl_command_end execute function content_service.tg__schema_changed();

-- event trigger content_service_schema_dropped
create event trigger content_service_schema_dropped on sql_drop execute function content_service.tg__schema_changed();

-- publication supabase_realtime
create publication supabase_realtime for table only public.article_translations, table only public.articles, table only public.comments, table only public.users, table only storage.buckets, table only storage.objects with (publish = 'insert, update, delete, truncate', publish_via_partition_root = true, publish_generated_columns = stored);
