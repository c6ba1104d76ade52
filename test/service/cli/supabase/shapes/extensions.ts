import { ALICE, BOB, type Shape, USERS } from "./shape.ts";

/** Uses of Supabase's extensions. */
export const EXTENSIONS: readonly Shape[] = [
  {
    name: "cron: cleanup jobs, seconds, altering and unscheduling",
    files: {
      "migrations/20240101000000_cron.sql": `
        create extension if not exists pg_cron with schema extensions;
        grant usage on schema cron to postgres;
        grant all privileges on all tables in schema cron to postgres;
        create table events (id int primary key, created_at timestamptz default now());
        select cron.schedule('delete-old-events', '0 3 * * *', $$ delete from public.events where created_at < now() - interval '30 days' $$);
        select cron.schedule('every-30-seconds', '30 seconds', 'select 1');
        select cron.schedule('end of month', '0 12 $ * *', 'vacuum');
        select cron.schedule('*/5 * * * *', 'select 2');
        select cron.unschedule('end of month');
        select cron.alter_job(job_id := (select jobid from cron.job where jobname = 'delete-old-events'), schedule := '0 4 * * *');
        do $$ begin
          if exists (select 1 from cron.job where jobname = 'none') then perform cron.unschedule('none'); end if;
        end $$;`,
    },
    changes: ["removed the extension pg_cron: schema cron stands in for it"],
    checks: [
      {
        as: "owner",
        sql: "select jobname, schedule, active from cron.job order by jobid",
        rows: [
          ["delete-old-events", "0 4 * * *", true],
          ["every-30-seconds", "30 seconds", true],
          [null, "*/5 * * * *", true],
        ],
      },
      { as: "owner", sql: "select cron.schedule('bad', '99 * * * *', 'select 1')", error: "22023" },
      { as: "owner", sql: "select cron.schedule('bad', '70 seconds', 'select 1')", error: "22023" },
      { as: "owner", sql: "select cron.unschedule('missing')", error: "XX000" },
      { as: "postgres", sql: "select count(*)::int from cron.job", rows: [[3]] },
      { as: ALICE, sql: "select from cron.job", error: "42501" },
    ],
  },
  {
    name: "cron calls an edge function with a secret of the vault",
    files: {
      "migrations/20240101000000_invoke.sql": `
        create extension if not exists pg_cron;
        create extension if not exists pg_net;
        create extension if not exists supabase_vault cascade;
        select vault.create_secret('https://project-ref.supabase.co', 'project_url');
        select vault.create_secret('YOUR_KEY', 'publishable_key', 'the key');
        select cron.schedule('invoke-function-every-minute', '* * * * *', $$
          select net.http_post(
            url := (select decrypted_secret from vault.decrypted_secrets where name = 'project_url') || '/functions/v1/function-name',
            headers := jsonb_build_object('Content-type', 'application/json', 'Authorization', 'Bearer ' || (select decrypted_secret from vault.decrypted_secrets where name = 'publishable_key')),
            body := concat('{"time": "', now(), '"}')::jsonb
          ) as request_id;
        $$);`,
    },
    checks: [
      {
        as: "owner",
        sql: "select decrypted_secret, description from vault.decrypted_secrets order by name",
        rows: [
          ["https://project-ref.supabase.co", ""],
          ["YOUR_KEY", "the key"],
        ],
      },
      { as: "owner", sql: "select count(*)::int from vault.secrets where secret like '%KEY%'", rows: [[0]] },
      { as: ALICE, sql: "select from vault.decrypted_secrets", error: "42501" },
      {
        as: "service_role",
        sql: "select count(*)::int from vault.decrypted_secrets where decrypted_secret = 'YOUR_KEY'",
        rows: [[1]],
      },
    ],
  },
  {
    name: "vault: update, and a function that reads for its caller",
    files: {
      "migrations/20240101000000_vault.sql": `
        create function public.read_secret(secret_name text) returns text language plpgsql security definer set search_path = public as $$
        declare secret text;
        begin
          if current_setting('role') != 'service_role' then raise exception 'authentication required' using errcode = '28000'; end if;
          select decrypted_secret from vault.decrypted_secrets where name = secret_name into secret;
          return secret;
        end $$;
        create function public.insert_secret(name text, secret text) returns uuid language plpgsql security definer set search_path = public as $$
        begin return vault.create_secret(secret, name); end $$;
        select insert_secret('stripe', 'sk_1');
        select vault.update_secret((select id from vault.secrets where name = 'stripe'), 'sk_2');
        insert into vault.secrets (name, secret) values ('plain', 'text');
        select vault.create_secret('sk_3', 'kept');
        select vault.update_secret((select id from vault.secrets where name = 'kept'), new_name => 'renamed');
        update vault.secrets set secret = secret, description = 'the same' where name = 'renamed';
        insert into vault.secrets (name, secret) select 'restored', secret from vault.secrets where name = 'renamed';
        select vault.create_secret('\\xabc', 'no bytes');
        set bytea_output = 'escape';
        select vault.create_secret('sk_4', 'escaped');
        reset bytea_output;`,
    },
    checks: [
      {
        as: "service_role",
        sql: "select name, decrypted_secret from vault.decrypted_secrets where name in ('renamed', 'restored', 'no bytes', 'escaped') order by name",
        rows: [
          ["escaped", "sk_4"],
          ["no bytes", "\\xabc"],
          ["renamed", "sk_3"],
          ["restored", "sk_3"],
        ],
      },
      { as: "service_role", sql: "select read_secret('stripe'), read_secret('plain')", rows: [["sk_2", "text"]] },
      { as: ALICE, sql: "select read_secret('stripe')", error: "28000" },
      { as: "owner", sql: "select vault.create_secret('x', 'stripe')", error: "23505" },
    ],
  },
  {
    name: "webhooks: a trigger of net.http_post, and one of supabase_functions.http_request",
    files: {
      "migrations/20240101000000_hooks.sql": `
        CREATE EXTENSION IF NOT EXISTS "pg_net" WITH SCHEMA "extensions";
        create table orders (id int primary key, total int);
        alter table orders enable row level security;
        create policy everybody on orders using (true) with check (true);
        create function public.notify_order() returns trigger language plpgsql as $$
        declare request_id bigint;
        begin
          select net.http_post(url := 'https://example.org/hook', body := jsonb_build_object('id', new.id), headers := '{"Content-Type": "application/json"}'::jsonb, timeout_milliseconds := 1000) into request_id;
          return new;
        end $$;
        create trigger notify after insert on orders for each row execute function notify_order();
        create trigger "order-webhook" after insert or delete on "public"."orders" for each row
          execute function "supabase_functions"."http_request"('https://example.org/orders', 'POST', '{"Content-type":"application/json","x-secret":"s"}', '{}', '1000');`,
      "seed.sql": "insert into orders values (1, 10);",
    },
    checks: [
      {
        as: "owner",
        sql: "select method, url, headers ->> 'x-secret', convert_from(body, 'UTF8')::jsonb -> 'record' ->> 'total', timeout_milliseconds from net.http_request_queue order by url desc",
        rows: [
          ["POST", "https://example.org/orders", "s", "10", 1000],
          ["POST", "https://example.org/hook", null, null, 1000],
        ],
      },
      { as: "owner", sql: "select hook_name from supabase_functions.hooks", rows: [["order-webhook"]] },
      { as: ALICE, sql: "insert into orders values (2, 5) returning id", rows: [[2]] },
      { as: ALICE, sql: "select from net.http_request_queue", error: "42501" },
      {
        as: ALICE,
        sql: "select net.http_post('https://example.org', '{}', headers => '{\"Content-Type\": \"text/plain\"}')",
        error: "P0001",
      },
    ],
  },
  {
    name: "queues of pgmq, with archives and metrics",
    files: {
      "migrations/20240101000000_queue.sql": `
        create extension if not exists pgmq;
        select pgmq.create('embedding_jobs');
        select from pgmq.create_unlogged('cache');
        create table docs (id int primary key, body text);
        create function public.queue_embedding() returns trigger language plpgsql security definer set search_path = '' as $$
        begin
          perform pgmq.send(queue_name => 'embedding_jobs', msg => jsonb_build_object('id', new.id, 'table', tg_table_name));
          return new;
        end $$;
        create trigger embed after insert or update of body on docs for each row execute function queue_embedding();`,
      "seed.sql": "insert into docs values (1, 'a'), (2, 'b'), (3, 'c');",
    },
    checks: [
      {
        as: "owner",
        sql: "select msg_id::int, read_ct, message ->> 'id' from pgmq.read('embedding_jobs', 60, 2)",
        rows: [
          [1, 1, "1"],
          [2, 1, "2"],
        ],
      },
      {
        as: "owner",
        sql: "select message ->> 'id' from pgmq.read('embedding_jobs', 60, 9, '{\"id\": 3}')",
        rows: [["3"]],
      },
      {
        as: "owner",
        sql: "select pgmq.archive('embedding_jobs', 1), pgmq.delete('embedding_jobs', 2::bigint), pgmq.delete('embedding_jobs', 99::bigint)",
        rows: [[true, true, false]],
      },
      {
        as: "owner",
        sql: "select queue_length::int, total_messages::int from pgmq.metrics('embedding_jobs')",
        rows: [[3, 3]],
      },
      { as: "owner", sql: "select message ->> 'id' from pgmq.pop('embedding_jobs')", rows: [["1"]] },
      {
        as: "owner",
        sql: "select * from pgmq.send_batch('embedding_jobs', array['{}', '{}']::jsonb[], 30)",
        rows: [["4"], ["5"]],
      },
      {
        as: "owner",
        sql: "select pgmq.drop_queue('cache'), pgmq.purge_queue('embedding_jobs')::int",
        rows: [[true, 3]],
      },
      { as: "owner", sql: "select pgmq.create(repeat('a', 48))", error: "P0001" },
      { as: ALICE, sql: "select pgmq.send('embedding_jobs', '{}')", error: "42501" },
    ],
  },
  {
    name: "queues for clients: pgmq_public, with a policy on the table of the queue",
    files: {
      "config.toml": '[api]\nschemas = ["public", "pgmq_public"]\n',
      "migrations/20240101000000_queue.sql": `
        create extension if not exists pgmq;
        select pgmq.create('jobs');
        alter table pgmq.q_jobs enable row level security;
        grant select, insert, update, delete on pgmq.q_jobs to authenticated;
        create policy "authenticated send" on pgmq.q_jobs to authenticated using (true) with check (message ->> 'kind' = 'mail');`,
    },
    checks: [
      { as: ALICE, sql: `select pgmq_public.send('jobs', '{"kind": "mail"}', 0)::int`, rows: [[1]] },
      { as: ALICE, sql: `select pgmq_public.send('jobs', '{"kind": "other"}')`, error: "42501" },
      { as: "anon", sql: `select pgmq_public.send('jobs', '{"kind": "mail"}')`, error: "42501" },
      { as: "service_role", sql: `select count(*)::int from pgmq_public.read('jobs', 10, 5)`, rows: [[0]] },
    ],
  },
  {
    name: "vector search: embeddings, an index, and match_documents",
    files: {
      "migrations/20240101000000_vector.sql": `
        create extension if not exists vector with schema extensions;
        create table documents (id bigserial primary key, content text, metadata jsonb, embedding extensions.vector(3));
        create function match_documents (query_embedding vector(3), match_threshold float, match_count int, filter jsonb default '{}')
        returns table (id bigint, content text, similarity float) language sql stable as $$
          select documents.id, documents.content, 1 - (documents.embedding <=> query_embedding) as similarity from documents
          where 1 - (documents.embedding <=> query_embedding) > match_threshold and metadata @> filter
          order by documents.embedding <=> query_embedding limit match_count;
        $$;
        create index on documents using hnsw (embedding vector_cosine_ops);
        create index on documents using ivfflat (embedding vector_l2_ops) with (lists = 100);`,
      "migrations/20240102000000_again.sql":
        "create extension if not exists vector with schema extensions; alter table documents alter column embedding set storage external;",
      "seed.sql": `insert into documents (content, metadata, embedding) values ('x', '{}', '[1, 0, 0]'), ('y', '{"a": 1}', array[0, 1, 0]::vector), ('xy', '{}', '[1,1,0]');`,
    },
    changes: ["where Postgres lacks the extension vector", "creates an index of type hnsw only where Postgres has it"],
    checks: [
      {
        as: "anon",
        sql: "select content, round(similarity::numeric, 2)::float from match_documents('[1,0,0]', 0.5, 5)",
        rows: [
          ["x", 1],
          ["xy", 0.71],
        ],
      },
      {
        as: "anon",
        sql: "select embedding <-> '[0,0,0]', embedding <#> '[2,0,0]', vector_dims(embedding), embedding::text from documents where id = 1",
        rows: [[1, -2, 3, "[1,0,0]"]],
      },
      {
        as: "anon",
        sql: "select avg(embedding)::text from documents where content in ('x', 'y')",
        rows: [["[0.5,0.5,0]"]],
      },
      { as: "owner", sql: "insert into documents (embedding) values ('[1,2]')", error: "22000" },
    ],
  },
  {
    name: "vector that was enabled in the dashboard",
    files: {
      "migrations/20240101000000_vector.sql":
        "create table items (id int primary key, embedding vector(2)); insert into items values (1, '[3,4]');",
    },
    changes: ["the type vector is used before its extension is created"],
    checks: [{ as: "owner", sql: "select embedding <-> '[0,0]' from items", rows: [[5]] }],
  },
  {
    name: "synchronous requests of the extension http",
    files: {
      "migrations/20240101000000_http.sql": `
        create extension if not exists http with schema extensions;
        create function public.get_weather(city text) returns jsonb language plpgsql security definer set search_path = public, extensions as $$
        declare response extensions.http_response;
        begin
          select * into response from extensions.http_get('https://example.org/' || extensions.urlencode(city));
          return response.content::jsonb;
        end $$;
        create function public.call(payload jsonb) returns int language sql as $$
          select status from extensions.http(('POST', 'https://example.org', array[extensions.http_header('Authorization', 'x')], 'application/json', payload::text)::extensions.http_request);
        $$;`,
    },
    changes: ["where Postgres lacks the extension http, its functions raise an error when they are called"],
    checks: [
      { as: "owner", sql: "select get_weather('Bern')", error: "0A000" },
      {
        as: "owner",
        sql: "select extname::text from extensions.pg_extension where extname = 'http'",
        rows: [["http"]],
      },
      { as: "owner", sql: "select extensions.urlencode('a b&c'::varchar)", rows: [["a%20b%26c"]] },
    ],
  },
  {
    name: "checks of JSON by pg_jsonschema",
    files: {
      "migrations/20240101000000_json.sql": `
        create extension if not exists "pg_jsonschema" with schema extensions;
        create table customer (id serial primary key, metadata json, check (
          json_matches_schema(schema := '{"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string", "maxLength": 16}}, "age": {"type": "integer", "minimum": 0}}, "required": ["tags"], "additionalProperties": false}', instance := metadata)
        ));`,
    },
    checks: [
      {
        as: "owner",
        sql: `insert into customer (metadata) values ('{"tags": ["vip"], "age": 3}') returning id`,
        rows: [[1]],
      },
      { as: "owner", sql: `insert into customer (metadata) values ('{"tags": [1]}')`, error: "23514" },
      { as: "owner", sql: `insert into customer (metadata) values ('{"tags": [], "more": 1}')`, error: "23514" },
      { as: "owner", sql: `insert into customer (metadata) values ('{}')`, error: "23514" },
    ],
  },
  {
    name: "the functions of pg_graphql, and its comments",
    files: {
      "migrations/20240101000000_graphql.sql": `
        create extension if not exists pg_graphql;
        comment on schema public is '@graphql({"inflect_names": true})';
        create table blog (id int primary key);
        comment on table public.blog is e'@graphql({"totalCount": {"enabled": true}})';
        create function graphql_public.graphql_wrapper(query text) returns jsonb language sql as $$ select graphql.resolve(query) $$;
        grant usage on schema graphql_public to anon;
        grant all on function graphql_public.graphql(text, text, jsonb, jsonb) to anon, authenticated, service_role;`,
    },
    checks: [
      {
        as: "anon",
        sql: `select graphql_public.graphql(query => '{ a }') -> 'errors' -> 0 ->> 'message' like 'pg_graphql extension is not enabled%'`,
        rows: [[true]],
      },
    ],
  },
  {
    name: "search by text: pg_trgm, unaccent, generated columns",
    files: {
      "migrations/20240101000000_search.sql": `
        create extension if not exists pg_trgm with schema extensions;
        create extension unaccent with schema extensions;
        create extension if not exists btree_gist;
        create table books (id int primary key, title text, author text, fts tsvector generated always as (to_tsvector('english', coalesce(title, '') || ' ' || coalesce(author, ''))) stored);
        create index books_fts on books using gin (fts);
        create index books_trgm on books using gin (title gin_trgm_ops);
        create index concurrently if not exists books_author on books (author);
        create function search_books(term text) returns setof books language sql stable as $$
          select * from books where fts @@ websearch_to_tsquery('english', term) or title % term order by similarity(title, term) desc; $$;`,
      "seed.sql": "insert into books values (1, 'Little Women', 'Alcott'), (2, 'Dune', 'Herbert');",
    },
    checks: [
      { as: "anon", sql: "select id from search_books('women')", rows: [[1]] },
      { as: "anon", sql: "select unaccent('Zürich')", rows: [["Zurich"]] },
    ],
  },
  {
    name: "database tests and tools of dumps: pgtap, hypopg, index_advisor, moddatetime",
    files: {
      "migrations/20240101000000_tools.sql": `
        create extension if not exists pgtap with schema extensions;
        create extension if not exists hypopg; create extension if not exists index_advisor;
        create extension if not exists moddatetime schema extensions;
        drop extension if exists "pg_net"; create extension pg_net;
        create table stamps (id int primary key, updated_at timestamptz default '2000-01-01');
        create trigger handle_updated_at before update on stamps for each row execute procedure extensions.moddatetime (updated_at);
        insert into stamps values (1);`,
    },
    changes: ["creates the extension pgtap only where Postgres has it"],
    checks: [{ as: "owner", sql: "update stamps set id = 2 returning updated_at > '2020-01-01'", rows: [[true]] }],
  },
  {
    name: "rows in replica mode, of users, buckets and objects",
    files: {
      "migrations/20240101000000_notes.sql":
        "create table notes (id int primary key, user_id uuid references auth.users); alter table notes enable row level security;",
      "seed.sql": `SET session_replication_role = replica; ${USERS}
        INSERT INTO "storage"."buckets" ("id", "name", "owner", "created_at", "updated_at", "public", "avif_autodetection", "file_size_limit", "allowed_mime_types", "owner_id") VALUES ('files', 'files', NULL, now(), now(), false, false, NULL, NULL, NULL);
        INSERT INTO notes VALUES (1, '${BOB}');
        RESET ALL;`,
    },
    checks: [
      {
        as: "owner",
        sql: "select username from auth.users order by 1",
        rows: [["alice@example.org"], ["bob@example.org"]],
      },
      { as: "service_role", sql: "select id from notes", rows: [[1]] },
    ],
  },
];
