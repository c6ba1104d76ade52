-- From the histories of 22 November 2026 (commit 6bd84e18) to those that platform-000022.sql goes on from. For each migration of the former
-- histories that a database does not have: its changes of tables, then those functions of the present histories that it had made or
-- replaced, then what needs these functions.
--! from platform/000055 sha1:fc0a08c0b94286fc915871073d3e8b5165105664
--! from content/000010 sha1:df3a11c3be2bd4870532b22d526bc4e650f3ad6a

--! migration platform/000056 sha1:cf3a57cf393a6eb3bdda47b142ad93a410936971
-- How much callers may make the tables of the service grow. Operators change the numbers.
create table if not exists private.bounds (
  name    text primary key,
  bound   bigint not null check (bound >= 0),
  used    bigint not null default 0,
  used_at timestamptz not null default '-infinity'
);
alter table private.bounds enable row level security;
comment on table private.bounds is 'How much callers may make the tables of the service grow. Change a number by an update; it applies at once.';
comment on column private.bounds.name is 'What is bounded.';
comment on column private.bounds.bound is 'The number of rows or bytes.';
comment on column private.bounds.used is 'How much there was when it was last counted; 0 where each request counts.';
comment on column private.bounds.used_at is 'When it was last counted.';
insert into private.bounds (name, bound) values
  ('tasks of a caller', 1000),
  ('tasks of an anonymous caller', 100),
  ('tasks of all anonymous callers', 10000),
  ('running tasks of a caller', 3),
  ('running tasks of an anonymous caller', 1),
  ('kept tasks of a caller', 10000),
  ('kept tasks of an anonymous caller', 1000),
  ('bytes of tasks of a caller', 67108864),
  ('idempotency keys of a caller', 10000),
  ('idempotency keys of an anonymous caller', 1000),
  ('idempotency keys of all anonymous callers', 200000),
  ('bytes of kept responses of a caller', 16777216),
  ('bytes of kept responses of all anonymous callers', 268435456)
  on conflict (name) do nothing;
-- The turns of each lane. Lanes have threads of their own, so that none waits for another.
create table if not exists private.task_lanes (
  name text primary key check (name in ('system', 'caller', 'anonymous')),
  turn bigint not null default 0
);
alter table private.task_lanes enable row level security;
comment on table private.task_lanes is 'Tasks that take turns: those of the service, of callers, and of anonymous callers.';
comment on column private.task_lanes.name is 'system: schedules and api.enqueue_as; caller; anonymous: callers without an account, and anonymous accounts.';
comment on column private.task_lanes.turn is 'The turn of the task that began last.';
insert into private.task_lanes (name) values ('system'), ('caller'), ('anonymous') on conflict (name) do nothing;
alter table private.tasks add if not exists lane text not null default 'caller' check (lane in ('system', 'caller', 'anonymous'));
alter table private.tasks add if not exists caller_key text not null default '';
alter table private.tasks add if not exists turn bigint;
alter table private.tasks add if not exists attempts integer not null default 0;
alter table private.tasks add if not exists bytes bigint not null default 0;
update private.tasks set caller_key = owner,
  bytes = octet_length(body) + coalesce(octet_length(result::text), 0),
  lane = case when exists (select from api.schedule_runs where schedule_runs.task = tasks.id) then 'system' else lane end;
comment on column private.tasks.lane is 'Which tasks it takes turns with.';
comment on column private.tasks.caller_key is 'The user, API key, address or schedule; tasks with the same value share bounds and take one turn.';
comment on column private.tasks.turn is 'The place among the tasks of its lane; null until it is due.';
comment on column private.tasks.attempts is 'How often it was begun.';
comment on column private.tasks.bytes is 'The approximate size of the request or of the result.';
drop index if exists private.tasks_waiting_key;
create unique index tasks_waiting_key on private.tasks (owner, key) where status = 'queued' and attempts = 0;
create index if not exists tasks_of_caller on private.tasks (caller_key) include (bytes);
create index if not exists tasks_by_turn on private.tasks (lane, turn, run_at) where status = 'queued';
create index if not exists tasks_running on private.tasks (lane, caller_key) where status = 'running';
alter table private.kept_answers add if not exists caller_key text not null default '';
alter table private.kept_answers add if not exists bytes bigint not null default 0;
comment on column private.kept_answers.caller_key is 'The user, API key or address that shares a quota.';
comment on column private.kept_answers.bytes is 'The size of the response.';
create index if not exists kept_answers_of_caller on private.kept_answers (caller_key text_pattern_ops) include (bytes);
update private.kept_answers set bytes = octet_length(sealed_answer);
drop function if exists private.claim_response(text);
drop function if exists private.store_response(text, text, integer);
drop function if exists private.queue_task(uuid, text, text, jsonb, jsonb, bytea);
-- Its body depends on the function that gets another signature; dropped, it would take functions of projects along that call it.
create or replace function api.enqueue_as(
  role text, function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null,
  claims jsonb default null
) returns uuid
begin atomic
  select null::uuid;
end;
drop function if exists private.queue_call(text, jsonb, text, jsonb, timestamptz, text, interval);
drop function if exists private.begin_task(uuid);
--! functions content_service.bound content_service.claim_response content_service.store_response content_service.maintain_responses content_service.task_lane content_service.check_task_bounds
--! functions content_service.queue_task content_service.queue_call api.enqueue_as api.enqueue content_service.start_schedule_run content_service.begin_task content_service.wake_lane
--! functions content_service.requeue_task content_service.fail_task content_service.finish_task content_service.maintain_tasks

--! migration platform/000057 sha1:4be4e296ca2b00eb9290d8dcb1aa3ac2f73aab6d
alter table auth.mail_tokens
  add column if not exists password_hash text constraint mail_tokens_password_hash_check check (password_hash like '$%'),
  add column if not exists user_name text constraint mail_tokens_user_name_max_length check (length(user_name) <= 200),
  add column if not exists user_metadata jsonb constraint mail_tokens_user_metadata_max_length check (octet_length(user_metadata::text) <= 8192);
comment on column auth.mail_tokens.password_hash is 'The password of the sign-up that this mail proves: the account has it afterwards.';
comment on column auth.mail_tokens.user_name is 'The name that this sign-up gives.';
comment on column auth.mail_tokens.user_metadata is 'The metadata that this sign-up gives.';
drop function if exists auth.claim_account(bigint, uuid, auth.client_info);
drop function if exists auth.add_mail_code(bytea, bytea, text, bigint, text, text, uuid, integer);
drop function if exists auth.add_mail_token(bytea, text, bigint, text, integer);
drop function if exists auth.apply_email_change(bigint, text, auth.client_info);
--! functions auth.replace_mail_tokens auth.pending_sign_up auth.add_mail_code auth.add_mail_token auth.claim_account auth.set_confirmed_email
--! functions auth.apply_email_change auth.change_email auth.begin_email_change auth.confirm_mail_code auth.code_recipient auth.begin_verification
--! functions auth.begin_sign_up auth.verify_email auth.reset_password auth.federated_user auth.session_claims

--! migration platform/000058 sha1:90afbbe4ed848556c30ec46b7996a9bcffc634d5
alter table auth.login_throttle drop constraint login_throttle_scope_check;
alter table auth.login_throttle add constraint login_throttle_scope_check check (scope in ('pair', 'address', 'site', 'user')) not valid;
comment on column auth.login_throttle.key is 'User name and address, address, site (IPv6 /48), or user name; names in lower case.';
--! functions auth.login_counters

--! migration platform/000059 sha1:1a57da9d68c8bce5ce27fab931d9e2a10b64534b
create index if not exists audit_log_sign_ins on auth.audit_log (user_id, at)
  where event in ('session.created', 'refresh_token.created');
drop function if exists auth.count_attempt(text, inet);
--! functions auth.network_of auth.is_known_network auth.login_counters auth.count_attempt auth.begin_login auth.use_mail_code

--! migration platform/000060 sha1:42fe4f22ad65245a711f7993069bbfc628bda164
insert into private.bounds (name, bound) values
  ('rows of auth.audit_log', 10000000),
  ('days of auth.audit_log', 400),
  ('rows of auth.flow_states', 200000),
  ('rows of auth.federation_states', 200000),
  ('rows of auth.mfa_challenges', 200000),
  ('rows of auth.login_throttle', 1000000),
  ('rows of private.rate_limits', 1000000),
  ('dead deliveries of a webhook', 100000),
  ('refresh tokens of a session', 1000),
  ('token sessions of a user', 1000)
  on conflict (name) do nothing;
--! functions content_service.trim_tables

--! migration platform/000061 sha1:b5fb6ba4a16ee91c6984f2dfa9a9d671ce756357
-- Without a default: Postgres refuses one while functions with a standard body take a row of the table.
alter table auth.users add column if not exists has_several_sign_ups boolean;
comment on column auth.users.has_several_sign_ups is 'Whether several sign-ups gave a password for the address or number, before its proof.';
--! functions auth.replace_mail_tokens auth.pending_sign_up

--! migration platform/000062 sha1:4b453185651648b4d7768221ab132f45fef4c1be
create table if not exists auth.account_settings (
  is_only  boolean primary key default true
           constraint account_settings_is_only check (is_only),
  sign_ups boolean not null
);
alter table auth.account_settings enable row level security;
comment on table auth.account_settings is 'Settings of the service that rules of the database need, as of its last start.';
--! functions auth.set_account_settings auth.accepts_sign_ups auth.sign_up auth.federated_user

--! migration platform/000063 sha1:4211fa80674faf059f1d094b28dda3cd0aa7ee27
--! functions auth.rotate_refresh_token

--! migration platform/000064 sha1:082fb7d51477b5127d3e3081de929fed90454621
--! functions auth.is_disabled auth.is_current_address auth.own_email auth.find_account

--! migration platform/000065 sha1:8f0c23f895a259b7eba6ea02b42c598374e60d53
-- A key without a response takes about 200 bytes for a day.
update private.bounds set bound = 50000 where name = 'idempotency keys of a caller' and bound = 10000;
update private.bounds set bound = 20000 where name = 'idempotency keys of an anonymous caller' and bound = 1000;
update private.bounds set bound = 400000 where name = 'idempotency keys of all anonymous callers' and bound = 200000;

--! migration platform/000066 sha1:c6340ed353a337d9b54320c569c0e5856670338b
-- Runs that were started at the same time by earlier releases: their tasks go on, and the first one stands for the schedule.
update api.schedule_runs as run
  set status = 'failed', finished_at = now(), task = null, error = '{"code": "55000", "message": "Another run was unfinished."}'
  where run.status in ('queued', 'running') and exists (
    select from api.schedule_runs as earlier
    where earlier.schedule = run.schedule and earlier.planned_at < run.planned_at and earlier.status in ('queued', 'running')
  );
drop index if exists api.schedule_runs_unfinished;
create unique index schedule_runs_unfinished on api.schedule_runs (schedule) where status in ('queued', 'running');
--! functions content_service.start_schedule_run

--! migration platform/000067 sha1:8359cb3fffec9402115b20da8bddba752d3d321d
-- Each job runs tasks until none is due, and a million of them that become due at once hold no other back.
--! functions content_service.begin_task content_service.wake_lane content_service.remove_spent_jobs

--! migration platform/000068 sha1:6f52e66bd6248a2d0541eba7c5db2f5fda9649ae
--! functions auth.call_claims_hook
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

--! migration platform/000069 sha1:e55fca0f26c4db1d80d07889b8d2bfefe24adf1c
-- Without a default: Postgres refuses one while functions with a standard body take a row of the table.
alter table auth.users add column if not exists is_self_registered boolean;
comment on column auth.users.is_self_registered is
  'Whether the account was made by whoever asked for it, not by an administrator. Null: unknown, of an earlier version.';
--! functions auth.sign_up auth.claim_profile auth.claim_account auth.federated_user auth.is_first_confirmation auth.apply_account_changes
--! functions auth.change_account auth.create_account

--! migration platform/000070 sha1:07e5bd82f97ea85086b47b6be938fef8f7153656
--! functions auth.link_identity

--! migration platform/000071 sha1:e91714c70709fc422d2e07b7ca1ebe7c55d9095c
-- A request with an Idempotency-Key counted all responses of its caller, twice: it became slower with each key.
alter table private.kept_answers add if not exists number bigint generated always as identity;
comment on column private.kept_answers.number is 'The order in which they were stored.';
drop index if exists private.kept_answers_of_caller;
create index kept_answers_of_caller on private.kept_answers (caller_key text_pattern_ops, number) include (bytes);
create table if not exists private.kept_answer_counts (
  caller_key text primary key,
  keys       bigint not null,
  bytes      bigint not null,
  number     bigint not null,
  counted_at timestamptz not null
);
alter table private.kept_answer_counts enable row level security;
comment on table private.kept_answer_counts is 'How many responses were kept for callers with many of them, when they were last counted.';
comment on column private.kept_answer_counts.caller_key is 'The user, API key or address that shares a quota.';
comment on column private.kept_answer_counts.keys is 'The number of responses.';
comment on column private.kept_answer_counts.bytes is 'The size of the responses.';
comment on column private.kept_answer_counts.number is 'The number of the last response that was counted.';
comment on column private.kept_answer_counts.counted_at is 'When they were counted.';
--! functions content_service.responses_of_caller content_service.count_responses content_service.claim_response content_service.store_response content_service.maintain_responses

--! migration content/000011 sha1:3bd99188d349c59daf287ea06bfd205a43f8f67a
-- The home of name and address is public.users.
--! functions auth.account_faults auth.delete_user auth.find_user auth.insert_user auth.lock_user auth.profile_of auth.rename_user auth.set_email
--! functions auth.tg_users__rename_account auth.lock_address

--! migration content/000012 sha1:e62ed7edd32eb8476f788985bf262eccb889fc82
--! functions auth.tg_users__guard_address auth.tg_users__rename_account
-- The user, too: only the proof of the new address changes it.
drop trigger _050_guard_address on public.users;
create trigger _050_guard_address before update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users') and not auth.is_admin())
  execute function auth.tg_users__guard_address();
drop trigger _200_rename_account on public.users;
drop trigger if exists _200_rename_account_by_request on public.users;
create trigger _200_rename_account after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and not row_security_active('public.users'))
  execute function auth.tg_users__rename_account();
create trigger _200_rename_account_by_request after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users'))
  execute function auth.tg_users__rename_account('request');

--! migration content/000013 sha1:54f444b652f507324366a1e03ca6da69dd57548c
--! functions auth.users_are_open

--! migration content/000014 sha1:a3a1d80764b437c56f246b36bb6d9357ece29b19
--! functions api.translated_title api.matching_articles api.related_articles api.search_articles public.articles_summary public.articles_title
--! functions public.articles_related_articles public.articles_matching public.search
-- String bodies: with standard bodies, current releases of Postgres refuse new columns of public.articles that have a default, and generated
-- ones. Their names are resolved as the caller, who has no USAGE on schema content_service, so what they call is in schema api.
drop function if exists content_service.translated_title;

--! migration content/000015 sha1:40dbfa70a32309bc20313158ceedd17a4b0b1dd8
--! functions public.users_own_email public.me auth.withhold_addresses auth.set_users_access
grant select on public.users to admin;
comment on column public.users.email is e'@personal users_own_email\nUnique among users, whatever its case.';
do $$
begin
  if auth.users_access() = 'owner' then
    perform auth.withhold_addresses();
  end if;
end $$;
