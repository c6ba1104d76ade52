import pg from "pg";
import { describe, expect, test } from "vitest";
import { createRecord } from "../../migrate/migration-state.ts";
import { cloneDatabase, type DatabaseTemplate, DROP_QUEUE } from "../database.ts";
import { readSupabaseTemplate } from "../supabase-template.ts";
import { usualNames } from "./usual-names.ts";

type NamedObject = { readonly kind: string; readonly owner: string; readonly name: string };

/** The names by which alone migrations look for objects. Row types of tables have the name of their table. */
const NAMED_OBJECTS = `
  with schemas as (
    select oid, nspname from pg_namespace
    where nspname not in ('pg_catalog', 'pg_toast', 'information_schema') and nspname <> 'public'
  )
  select 'constraint' as kind, coalesce(nullif(conrelid, 0)::regclass::text, contypid::regtype::text) as owner, conname::text as name
    from pg_constraint join schemas on schemas.oid = connamespace
    where not exists (select from pg_depend where objid = pg_constraint.oid and deptype = 'e')
  union all select 'index', indrelid::regclass::text, relname::text
    from pg_index join pg_class on pg_class.oid = indexrelid join schemas on schemas.oid = relnamespace
  union all select 'trigger', tgrelid::regclass::text, tgname::text
    from pg_trigger join pg_class on pg_class.oid = tgrelid join schemas on schemas.oid = relnamespace where not tgisinternal
  union all select 'event trigger', '', evtname::text from pg_event_trigger
  union all select 'type', nspname::text, typname::text
    from pg_type join pg_namespace on pg_namespace.oid = typnamespace left join pg_class on pg_class.oid = typrelid
    where (nspname = 'public' or pg_namespace.oid in (select oid from schemas)) and typcategory <> 'A' and (relkind is null or relkind = 'c')
      and not exists (select from pg_depend where objid = pg_type.oid and deptype = 'e')
  order by 1, 2, 3`;

/** A trigger's number is its place among those of the table, and `zz` is the last. */
const OWN_NAME = /^(_\d{3}_|zz_)?content_service_/;

/** The reasons why other names stay. No usual name is among them. */
const REASONS: Readonly<Record<string, string>> = {
  client_info: "functions of schema auth have a parameter of this type, and their bodies name it; it is in schema auth",
  field_error: "the documented GraphQL type FieldError is named for it",
  mutation_result: "the documented GraphQL type MutationResult of the example application is named for it",
  article_status: "the documented GraphQL type ArticleStatus of the example application is named for it",
  _050_copy_email: "a trigger of the example application, on its own table",
};
const OTHER_NAMES = Object.keys(REASONS);

/** Objects that a project of Supabase has there too, with these names. */
const NAMES_OF_SUPABASE = [
  ...[
    "aal_level",
    "factor_status",
    "factor_type",
    "http_method",
    "http_response",
    "http_response_result",
    "request_status",
  ],
  ...[
    "message_record",
    "metrics_result",
    "queue_record",
    "http_method_check",
    "users_email_partial_key",
    "meta_queue_name_key",
  ],
  ...["messages_inserted_at_topic_index", "_http_response_created_idx", "job_pkey", "job_run_details_pkey"],
  ...["jobname_username_uniq", "secrets_pkey", "secrets_name_idx", "hooks_pkey", "hooks_request_id_idx"],
  ...["hooks_hook_table_id_hook_name_idx", "migrations_pkey", "schema_migrations_pkey", "seed_files_pkey"],
  ...["schema_migrations_idempotency_key_key", "instances_pkey"],
];
const TABLES_OF_SUPABASE = /^auth\.(instances|saml_\w+|sso_\w+)$/;

async function readNames(template: DatabaseTemplate, more: (database: string) => string): Promise<NamedObject[]> {
  const database = await cloneDatabase(template);
  const client = new pg.Client({ connectionString: database.ownerUrl });
  try {
    await client.connect();
    await client.query(DROP_QUEUE);
    await client.query(more(database.name));
    return (await client.query<NamedObject>(NAMED_OBJECTS)).rows;
  } finally {
    await client.end();
    await database.drop();
  }
}

function withoutNotNull(objects: readonly NamedObject[]): NamedObject[] {
  return objects.filter(({ kind, name }) => kind !== "constraint" || !name.endsWith("_not_null"));
}

describe("names of constraints, indexes, triggers and types", () => {
  test.each(["platform", "content"] as const)("no project chooses those of the histories: %s", async (template) => {
    const objects = await readNames(template, () => "select");
    const others = objects.filter(({ name }) => !OWN_NAME.test(name) && !OTHER_NAMES.includes(name));
    expect(others).toEqual([]);
    const usual = usualNames();
    expect(usual.size).toBeGreaterThan(2000);
    const kept = new Set(objects.map(({ name }) => name).filter((name) => OTHER_NAMES.includes(name)));
    expect([...kept].sort()).toEqual(template === "platform" ? ["client_info", "field_error"] : OTHER_NAMES.toSorted());
    expect(objects.filter(({ name }) => usual.has(name))).toEqual([]);
  });

  test("those of the template supabase are as at Supabase, or no project chooses them", async () => {
    const objects = withoutNotNull(await readNames("platform", readSupabaseTemplate));
    const others = objects.filter(
      ({ owner, name }) =>
        !OWN_NAME.test(name) &&
        ![...OTHER_NAMES, ...NAMES_OF_SUPABASE].includes(name) &&
        !TABLES_OF_SUPABASE.test(owner),
    );
    expect(others).toEqual([]);
  });

  test("a project's table gets its key where it asks by name whether there is one", async () => {
    const tables = ["roles", "permissions", "role_permissions", "user_roles", "sessions", "users", "transactions"];
    const statements = tables.map(
      (table) => `create table public.${table} (id int);
        do $$ begin
          if not exists (select from pg_constraint where conname = '${table}_pkey') then
            alter table public.${table} add constraint ${table}_pkey primary key (id);
          end if;
        end $$;`,
    );
    const objects = await readNames(
      "platform",
      () => `${statements.join("\n")}
      alter schema public rename to project; create schema public;`,
    );
    const keys = objects.filter(({ kind, owner }) => kind === "constraint" && owner.startsWith("project."));
    expect(withoutNotNull(keys).map(({ name }) => name)).toEqual(tables.map((table) => `${table}_pkey`).toSorted());
  });
});

test("the record of migrations has such names as soon as it is made", async () => {
  const database = await cloneDatabase("empty");
  const client = new pg.Client({ connectionString: database.ownerUrl });
  try {
    await client.connect();
    await client.query("set search_path = ''");
    await createRecord(client);
    const { rows } = await client.query<NamedObject>(NAMED_OBJECTS);
    expect(withoutNotNull(rows).filter(({ name }) => !OWN_NAME.test(name))).toEqual([]);
  } finally {
    await client.end();
    await database.drop();
  }
});
