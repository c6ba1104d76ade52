import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

const SESSIONS = `
  insert into auth.token_sessions (id, user_id, address, user_agent) select users.id, user_id, '192.0.2.1', 'browser' from auth.users;`;

/** Projects that read the caller, or use the tables of Supabase Auth. */
export const SESSION_SHAPES: readonly Shape[] = [
  {
    name: "claims where there is no request: seeds with single claims, and functions for the service role that a job runs",
    files: {
      "migrations/20240101000000_claims.sql": `
        create table public.notes (id int primary key, owner uuid default auth.uid(), role text default auth.role(), email text default auth.email());
        create function public.clean_up() returns text language plpgsql security definer set search_path = '' as $$
        begin
          if auth.role() <> 'service_role' then raise exception 'Only for the service role' using errcode = '42501'; end if;
          return coalesce(auth.role(), 'job');
        end $$;
        create function public.own_role() returns text language sql stable as $$ select auth.role() $$;`,
      "seed.sql": `${USERS}
        select set_config('request.jwt.claim.sub', '${ALICE}', true), set_config('request.jwt.claim.role', 'authenticated', true), set_config('request.jwt.claim.email', 'alice@example.org', true);
        insert into notes (id) values (1);
        select set_config('request.jwt.claim.sub', '', true), set_config('request.jwt.claim.role', '', true), set_config('request.jwt.claim.email', '', true);
        insert into notes (id) values (2);
        select clean_up();`,
    },
    checks: [
      {
        as: "owner",
        sql: "select * from notes order by id",
        rows: [
          [1, ALICE, "authenticated", "alice@example.org"],
          [2, null, null, null],
        ],
      },
      { as: "service_role", sql: "select clean_up()", rows: [["service_role"]] },
      { as: ALICE, sql: "select clean_up()", error: "42501" },
      { as: "anon", sql: "select clean_up()", error: "42501" },
      {
        as: ALICE,
        sql: `select auth.uid() from set_config('request.jwt.claim.sub', '${BOB}', true)`,
        rows: [[ALICE]],
      },
      {
        as: ALICE,
        sql: `select own_role() from set_config('request.jwt.claims', '{"role": "service_role"}', true)`,
        rows: [["authenticated"]],
      },
      { as: ALICE, sql: "select auth.is_admin()", rows: [[false]] },
    ],
  },
  {
    name: "functions in schema auth with names of the service's, and triggers on accounts that leave metadata null",
    files: {
      "migrations/20240101000000_auth.sql": `
        create table public.staff (id uuid primary key references auth.users on delete cascade);
        create function auth.is_admin() returns boolean language sql stable security definer set search_path = '' as $$
          select exists (select from public.staff where id = auth.uid()) $$;
        create or replace function auth.tenant_id() returns text language sql stable as $$ select auth.jwt() -> 'app_metadata' ->> 'tenant' $$;
        create function public.sees_all_tasks() returns boolean language sql stable security definer as $$ select content_service.sees_task('user 0') $$;
        create function public.copy_name() returns trigger language plpgsql as $$
        begin
          new.raw_app_meta_data := jsonb_set(new.raw_app_meta_data, '{user_name}', new.raw_user_meta_data -> 'user_name');
          if new.email like 'bob%' then new.raw_user_meta_data := null; end if;
          return new;
        end $$;
        create trigger sync_user_meta_data before insert or update on auth.users for each row execute function public.copy_name();
        alter default privileges for role postgres, supabase_admin in schema public revoke all on tables from anon;
        create table public.closed (id int);`,
      "seed.sql": `${USERS} insert into staff values ('${ALICE}');`,
    },
    checks: [
      { as: ALICE, sql: "select auth.is_admin()", rows: [[true]] },
      { as: BOB, sql: "select auth.is_admin()", rows: [[false]] },
      { as: ALICE, sql: "select sees_all_tasks()", rows: [[false]] },
      { as: "owner", sql: "select raw_user_meta_data from auth.users where email like 'bob%'", rows: [[{}]] },
      { as: "anon", sql: "select from closed", error: "42501" },
    ],
  },
  {
    name: "triggers on sessions and identities: a log of sign-ins, one session at a time, no addresses, and providers in the profile",
    files: {
      "migrations/20240101000000_triggers.sql": `
        create table public.sign_ins (at timestamptz default clock_timestamp(), what text, who uuid, agent text);
        create table public.members (id uuid primary key references auth.users on delete cascade, providers text[], last_login timestamptz);
        create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.members (id) values (new.id);
          return new;
        end $$;
        create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user();
        create function public.log_sign_in() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.sign_ins (what, who, agent) values (tg_op, coalesce(new.user_id, old.user_id), new.user_agent);
          if tg_op = 'INSERT' then
            update public.members set last_login = new.created_at where id = new.user_id;
            delete from auth.sessions where user_id = new.user_id and id <> new.id;
          end if;
          return coalesce(new, old);
        end $$;
        drop trigger if exists on_auth_session_created on auth.sessions;
        create trigger on_auth_session_created after insert or delete on auth.sessions for each row execute function public.log_sign_in();
        create function public.forget_address() returns trigger language plpgsql as $$ begin new.ip := null; return new; end $$;
        create or replace trigger forget_address before insert or update on "auth"."sessions" for each row execute function forget_address();
        create function public.sync_providers() returns trigger language plpgsql security definer set search_path = '' as $$
        declare v_user uuid := coalesce(new.user_id, old.user_id);
        begin
          update public.members set providers = array(select provider from auth.identities where user_id = v_user) where id = v_user;
          return coalesce(new, old);
        end $$;
        create trigger on_identity after insert or update or delete on auth.identities for each row execute procedure public.sync_providers();
        do $$ begin
          execute 'create trigger unused after update on auth.sessions for each row execute function public.log_sign_in()';
        end $$;
        alter table auth.sessions disable trigger unused;
        create table factors (name text, what text);
        create function public.log_factor() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.factors values (coalesce(new.friendly_name, old.friendly_name), tg_op || ' ' || coalesce(new.status, old.status));
          return coalesce(new, old);
        end $$;
        do $$ begin
          if not exists (select from pg_trigger where tgname = 'on_factor') then
            execute 'create trigger on_factor after insert or update or delete on auth.mfa_factors for each row execute function public.log_factor()';
          end if;
          alter table auth.mfa_factors enable row level security;
        end $$;
        create function public.enroll() returns text[] language plpgsql as $$
        begin
          execute format('insert into %I.mfa_factors (user_id, factor_type, secret, friendly_name) select user_id, ''totp'', ''A'', ''phone'' from auth.users where id = %L', 'auth', '${ALICE}');
          execute format('update %I.mfa_factors set state = ''enabled'', enabled_at = now()', 'auth');
          execute format('delete from %I.mfa_factors', 'auth');
          return array(select name || ' ' || what from public.factors);
        end $$;`,
      "seed.sql": `${USERS} ${SESSIONS} insert into auth.token_sessions (id, user_id) select gen_random_uuid(), user_id from auth.users where id = '${ALICE}';
        insert into auth.identities (id, user_id, provider_id, provider, identity_data) values (gen_random_uuid(), '${BOB}', '7', 'github', '{}');`,
    },
    checks: [
      {
        as: "owner",
        sql: `select what, agent from sign_ins where who = '${ALICE}' order by at`,
        rows: [
          ["INSERT", "browser"],
          ["INSERT", null],
          ["DELETE", null],
        ],
      },
      { as: "owner", sql: "select count(*)::int, count(address)::int from auth.token_sessions", rows: [[2, 0]] },
      { as: "owner", sql: "select count(last_login)::int from members", rows: [[2]] },
      {
        as: "owner",
        sql: "select providers from members order by id",
        rows: [[["email"]], [["github", "email"]]],
      },
      {
        as: "owner",
        sql: "select enroll()",
        rows: [[["phone INSERT unverified", "phone UPDATE verified", "phone DELETE verified"]]],
      },
      { as: ALICE, sql: "select from supabase_auth.mfa_factor_mirror", error: "42501" },
      { as: ALICE, sql: "select from supabase_auth.session_mirror", error: "42501" },
    ],
  },
  {
    name: "sessions that functions end by their tokens and their end, entries of the audit log, and rows that go with an account",
    files: {
      "migrations/20240101000000_functions.sql": `
        create function public.revoke(p_user uuid) returns bigint language plpgsql security definer set search_path = '' as $$
        begin
          update auth.refresh_tokens set revoked = true, updated_at = now() where user_id = p_user::text and not revoked;
          return (select count(*) from auth.sessions where user_id = p_user);
        end $$;
        create function public.expire(p_user uuid) returns bigint language plpgsql security definer set search_path = '' as $$
        begin
          update auth.sessions set not_after = now(), updated_at = now() where user_id = p_user;
          return (select count(*) from auth.sessions where user_id = p_user);
        end $$;
        create function public.forget(p_user uuid) returns bigint language plpgsql security definer set search_path = '' as $$
        begin
          insert into auth.audit_log_entries (instance_id, id, payload, created_at, ip_address)
            values ('00000000-0000-0000-0000-000000000000', gen_random_uuid(), json_build_object('action', 'account.forgotten', 'actor_id', p_user), now(), '192.0.2.1');
          perform from auth.audit_log_entries where payload ->> 'action' = 'account.forgotten' and payload ->> 'actor_id' = p_user::text and ip_address = '192.0.2.1';
          if not found then raise exception 'nothing was logged'; end if;
          delete from auth.mfa_challenges; delete from auth.one_time_tokens where user_id = p_user; delete from auth.flow_state where user_id = p_user;
          delete from auth.mfa_amr_claims where session_id in (select id from auth.sessions where user_id = p_user);
          delete from auth.mfa_factors where user_id = p_user; delete from auth.refresh_tokens where user_id = p_user::text; delete from auth.sessions where user_id = p_user;
          delete from auth.identities where user_id = p_user; delete from auth.users where id = p_user;
          delete from auth.audit_log_entries where created_at <= now() and payload ->> 'action' = 'account.forgotten';
          return (select count(*) from auth.audit_log_entries where payload ->> 'action' = 'account.forgotten');
        end $$;`,
      "seed.sql": `${USERS} ${SESSIONS}
        update auth.token_sessions set amr = '[{"method": "password", "timestamp": 1700000000}]';
        do $$ begin execute 'insert into auth.' || 'refresh_tokens (token_hash, family_id, user_id, expires_at) select sha256(id::text::bytea), id, user_id, now() + interval ''1 day'' from auth.token_sessions'; end $$;
        insert into auth.mail_tokens (token_hash, purpose, user_id, email, expires_at) select sha256('x'), 'recovery', user_id, email, now() + interval '1 hour' from auth.users where email like 'alice%';`,
    },
    checks: [
      { as: "service_role", sql: `select revoke('${ALICE}')::int`, rows: [[0]] },
      { as: "service_role", sql: `select expire('${BOB}')::int`, rows: [[0]] },
      { as: "service_role", sql: `select forget('${ALICE}')::int`, rows: [[0]] },
    ],
  },
  {
    name: "triggers on the audit log, and the hook that refuses accounts",
    files: {
      "config.toml": `
        [auth.hook.before_user_created]
        enabled = true
        uri = "pg-functions://postgres/public/only_of_the_company"
        [auth.hook.send_sms]
        enabled = true
        uri = "https://example.org/sms"
        [auth.hook.password_verification_attempt]
        enabled = true
        uri = "pg-functions://postgres/public/f"`,
      "migrations/20240101000000_hooks.sql": `
        create table public.events (id uuid, action text, actor text);
        create function public.note_event() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          insert into public.events values (new.id, new.payload ->> 'action', new.payload ->> 'actor_username');
          return new;
        end $$;
        create trigger on_auth_event after insert on auth.audit_log_entries for each row execute function public.note_event();
        create function public.only_of_the_company(event jsonb) returns jsonb language plpgsql as $$
        begin
          if event -> 'user' ->> 'email' like '%@example.com' and event -> 'metadata' ->> 'name' = 'before-user-created' then return '{}'; end if;
          return jsonb_build_object('error', jsonb_build_object('http_code', 403, 'message', 'Only ' || (event -> 'user' -> 'user_metadata' ->> 'of')));
        end $$;
        grant execute on function public.only_of_the_company to supabase_auth_admin;
        revoke execute on function public.only_of_the_company from authenticated, anon, public;`,
      "seed.sql": `${USERS}
        insert into auth.audit_log (event, user_id) select 'login.succeeded', user_id from auth.users where id = '${ALICE}';`,
    },
    changes: [
      "a trigger on auth.users calls the hook public.only_of_the_company",
      "set SMS_WEBHOOK_URL=https://example.org/sms and SMS_WEBHOOK_SECRET for the hook send_sms",
      "the hook password_verification_attempt is not called here",
    ],
    checks: [
      { as: "owner", sql: "select count(*)::int from auth.users", rows: [[2]] },
      {
        as: "owner",
        sql: "select action, actor from events where id is not null",
        rows: [["login.succeeded", "alice@example.org"]],
      },
      {
        as: "owner",
        sql: `insert into auth.users (username, email, raw_user_meta_data) values ('carol', 'carol@example.org', '{"of": "the company"}')`,
        error: "PT403",
      },
      {
        as: "owner",
        sql: "insert into auth.users (username, email) values ('dave', 'dave@example.com') returning email",
        rows: [["dave@example.com"]],
      },
    ],
  },
];
