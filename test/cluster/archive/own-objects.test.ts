import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pgDumpLines } from "../../../bench/archives/compare-restored.ts";
import { allTables } from "../../../cluster/archive/content/content-tables.ts";
import { checkArchive, restoreArchive } from "../../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { withOldCluster } from "../../../cluster/upgrade-cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../../database.ts";
import { hasOldPostgres, makeOldCluster, OLD_BINARIES } from "../../old-cluster.ts";
import { describeTables } from "../../schemas/described.ts";
import { PUBLIC_SCHEMAS, type PublicSchema } from "../../schemas/public-schemas.ts";
import { fillTables } from "../../schemas/rows.ts";

const OBJECTS = await readFile(new URL("own-objects.sql", import.meta.url), "utf8");
const DROP_ROLES = `drop role if exists backup_clerk, "backup Reader"`;

const run = (url: string, statement: string) => withClient(url, (client) => client.query(statement));
const settingsFor = (url: string) => ({ url, shadowUrl: "", rootUrl: urlOf("postgres", "postgres"), histories: [] });

/** Makes `create extension citext` create tables, too, as PostGIS does: keys, indexes, triggers, rules, and rows of its own and of users. */
const EXTENSION_OF_TABLES = `
  create function public.make_tables() returns event_trigger language plpgsql as $do$
  declare
    v_extension pg_catalog.oid := (select oid from pg_catalog.pg_extension where extname = 'citext');
  begin
    create table public.systems (
      id integer constraint systems_pkey primary key constraint systems_id_check check (id > 0),
      name text default 'none', code integer generated always as identity
    );
    comment on constraint systems_pkey on public.systems is 'Of the extension.';
    create sequence public.system_numbers start 40;
    create index systems_name on public.systems (name);
    create statistics public.systems_statistics on id, name from public.systems;
    create rule quiet as on delete to public.systems where old.id = 1 do instead nothing;
    create trigger unchanged before update on public.systems for each row execute function pg_catalog.suppress_redundant_updates_trigger();
    insert into public.systems values (1, 'of the extension');
    perform pg_catalog.nextval('public.system_numbers');
    create domain public.positive as integer constraint positive_check check (value > 0);
    create table public.parts_of_systems (id public.positive primary key, system integer references public.systems);
    create table public.all_parts (id integer primary key references public.parts_of_systems);
    alter extension citext add domain public.positive;
    alter extension citext add table public.parts_of_systems;
    alter extension citext add table public.all_parts;
    alter extension citext add table public.systems;
    alter extension citext add sequence public.system_numbers;
    update pg_catalog.pg_extension
    set extconfig = array['public.systems', 'public.system_numbers', 'public.parts_of_systems', 'public.all_parts']::regclass[]::oid[],
      extcondition = array['where id >= 9000', '', '', '']
    where oid = v_extension;
    drop event trigger making_tables;
    drop function public.make_tables();
  end $do$;
  create event trigger making_tables on ddl_command_end when tag in ('CREATE EXTENSION') execute function public.make_tables()`;

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "own-objects-"));
  // The old Postgres runs as another user.
  await chmod(folder, 0o755);
  file = join(folder, "backup.gz");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe.each(["empty", "content"] as const)("a database with the template %s", (template) => {
  let source: TestDatabase;
  let target: TestDatabase;
  beforeEach(async () => {
    [source, target] = [await cloneDatabase(template), await cloneDatabase("empty")];
  });
  afterEach(async () => {
    await source.drop();
    await target.drop();
    await run(urlOf("postgres", "postgres"), DROP_ROLES);
  });

  test("and with objects of all kinds that no migration makes is restored as it was", async () => {
    await run(source.ownerUrl, OBJECTS);
    await writeArchive(source.ownerUrl, file);
    const { warnings } = await checkArchive(file, settingsFor(target.ownerUrl));
    expect(warnings).toEqual([]);
    const rows = await run(
      target.ownerUrl,
      "select name, number, (home).zip, total_of from shop.customers, shop.total_of(customers)",
    );
    expect(rows.rows).toContainEqual({ name: "Ann", number: 87, zip: "12345", total_of: "1.10" });
    const largeObjects = "select md5(lo_get(424242)), length(lo_get(424243)) as empty";
    expect((await run(target.ownerUrl, largeObjects)).rows).toEqual((await run(source.ownerUrl, largeObjects)).rows);
  });
});

test("webhooks and what waits for them are restored, and record changes in the restored database", async () => {
  await using stack = new AsyncDisposableStack();
  const [source, target] = [await cloneDatabase(), await cloneDatabase("empty")];
  stack.defer(() => source.drop());
  stack.defer(() => target.drop());
  await run(
    source.ownerUrl,
    `create table public.orders (id integer primary key, note text);
     alter table public.orders enable row level security;
     insert into api.webhooks (name, table_name, url, role) values ('orders', 'orders', 'https://example.com', 'service_role');
     insert into public.orders values (1, 'before')`,
  );
  await writeArchive(source.ownerUrl, file);
  const { warnings } = await checkArchive(file, settingsFor(target.ownerUrl));
  expect(warnings).toEqual([]);
  await run(target.ownerUrl, "insert into public.orders values (2, 'after')");
  const { rows } = await run(
    target.ownerUrl,
    "select key, new ->> 'note' as note from content_service.webhook_deliveries order by id",
  );
  expect(rows).toEqual([
    { key: "1", note: "before" },
    { key: "2", note: "after" },
  ]);
});

test.each(Object.values<PublicSchema>(PUBLIC_SCHEMAS))(
  "the schema of $title is restored as it was, with its rows",
  async (schema) => {
    await using stack = new AsyncDisposableStack();
    const roles = schema.ownRoles ?? [];
    for (const role of roles) await run(urlOf("postgres", "postgres"), `create role "${role}"`);
    stack.defer(async () => {
      for (const role of roles) await run(urlOf("postgres", "postgres"), `drop role "${role}"`);
    });
    const [source, target] = [await cloneDatabase("empty"), await cloneDatabase("empty")];
    stack.defer(() => source.drop());
    stack.defer(() => target.drop());
    await schema.load(source.ownerUrl);
    await withClient(source.ownerUrl, async (client) => {
      await client.query(schema.rows ?? "");
      await fillTables(client, await describeTables(client, schema.name));
    });
    await writeArchive(source.ownerUrl, file);
    const { rows } = await checkArchive(file, settingsFor(target.ownerUrl));
    expect(rows).toBeGreaterThan(0);
  },
);

describe("a database", () => {
  let source: TestDatabase;
  let target: TestDatabase;
  beforeEach(async () => {
    [source, target] = [await cloneDatabase("empty"), await cloneDatabase("empty")];
  });
  afterEach(async () => {
    await source.drop();
    await target.drop();
  });

  test.each([
    [
      "operator class public.size_order",
      "create operator class public.size_order for type text using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 bttextcmp(text, text)",
    ],
    ["type public.half", "create type public.half"],
    ["conversion public.unusual", "create conversion public.unusual for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1"],
    [
      "subscription nightly",
      "create subscription nightly connection 'host=nowhere.invalid' publication news with (connect = false, slot_name = none)",
    ],
  ])("with the %s has no backup, and the message names it", async (name, statement) => {
    await run(source.ownerUrl, statement);
    try {
      await expect(writeArchive(source.ownerUrl, file)).rejects.toThrow(name);
      expect(await readdir(folder)).toEqual([]);
    } finally {
      // Otherwise the database cannot be dropped.
      await run(source.ownerUrl, "drop subscription if exists nightly");
    }
  });

  test("differs from a copy that a trigger has changed", async () => {
    await run(
      source.ownerUrl,
      "create table public.notes (id integer primary key); insert into public.notes values (1)",
    );
    await writeArchive(source.ownerUrl, file);
    await run(
      target.ownerUrl,
      `create function public.spoil() returns event_trigger language plpgsql as $$ begin
         update public.notes set id = 2;
         drop function public.spoil cascade;
       end $$;
       create event trigger spoil on ddl_command_end when tag in ('ALTER TABLE') execute function public.spoil()`,
    );
    await expect(checkArchive(file, settingsFor(target.ownerUrl))).rejects.toThrow(
      'A row of "public"."notes" differs from the backup',
    );
  });

  test("keeps each row of a table whose column, schema or type is named as an alias of the backup", async () => {
    await run(
      source.ownerUrl,
      `create table public.tiny (id integer primary key, t text, "row" text);
       insert into public.tiny values (1, '(7,secret of another,)', '(8,,)'), (2, null, null)`,
    );
    await writeArchive(source.ownerUrl, file);
    await checkArchive(file, settingsFor(target.ownerUrl));
    expect((await run(target.ownerUrl, "select * from public.tiny order by id")).rows).toEqual([
      { id: 1, t: "(7,secret of another,)", row: "(8,,)" },
      { id: 2, t: null, row: null },
    ]);
  });

  test("keeps foreign keys of partitions of partitions, also to their own table, and leaves out tables of sessions", async () => {
    await run(
      source.ownerUrl,
      `create table public.regions (id integer primary key);
       create table public.places (
         region integer references public.regions, id integer, near_region integer, near_id integer, primary key (region, id),
         foreign key (near_region, near_id) references public.places
       ) partition by list (region);
       create table public.places_1 partition of public.places for values in (1, 2) partition by list (region);
       create table public.places_1a partition of public.places_1 for values in (1);
       insert into public.regions values (1);
       insert into public.places values (1, 1, 1, 2), (1, 2, 1, 1)`,
    );
    await withClient(source.ownerUrl, async (session) => {
      await session.query("create temporary table notes (id integer primary key, other integer references notes)");
      await writeArchive(source.ownerUrl, file);
    });
    await checkArchive(file, settingsFor(target.ownerUrl));
    const keys =
      "select count(*)::int from pg_constraint where conrelid = 'public.places_1a'::regclass and contype = 'f'";
    expect((await run(target.ownerUrl, keys)).rows).toEqual([{ count: 2 }]);
  });

  test("leaves to an extension what belongs to its tables, but for rows and policies of users", async () => {
    await run(target.ownerUrl, EXTENSION_OF_TABLES);
    await run(source.ownerUrl, EXTENSION_OF_TABLES);
    await run(
      source.ownerUrl,
      `create extension citext;
       insert into public.systems (id, name) values (9000, 'of a user');
       insert into public.parts_of_systems values (1, 9000);
       insert into public.all_parts values (1);
       select nextval('public.system_numbers');
       alter table public.systems enable row level security;
       create policy everybody on public.systems using (true);
       create table public.places (id integer primary key, system integer references public.systems)`,
    );
    await writeArchive(source.ownerUrl, file);
    expect((await checkArchive(file, settingsFor(target.ownerUrl))).warnings).toEqual([]);
    const read = `select id, (select last_value::int from public.system_numbers) as number,
        (select count(*)::int from pg_constraint where conrelid = 'public.systems'::regclass and contype <> 'n') as constraints,
        (select count(*)::int from pg_trigger where tgrelid = 'public.systems'::regclass and not tgisinternal) as triggers,
        (select relrowsecurity from pg_class where oid = 'public.systems'::regclass) as secured
      from public.systems order by id`;
    expect((await run(target.ownerUrl, read)).rows).toEqual((await run(source.ownerUrl, read)).rows);
    expect((await run(target.ownerUrl, read)).rows).toEqual([
      { id: 1, number: 41, constraints: 2, triggers: 1, secured: true },
      { id: 9000, number: 41, constraints: 2, triggers: 1, secured: true },
    ]);
  });

  test("stays empty if a statement of the backup fails", async () => {
    await run(
      source.ownerUrl,
      `create table public.notes (id integer);
       insert into public.notes values (1);
       create function public.is_fine() returns boolean language sql immutable return current_database() = '${source.name}';
       alter table public.notes add constraint only_here check (public.is_fine())`,
    );
    await writeArchive(source.ownerUrl, file);
    await expect(restoreArchive(file, settingsFor(target.ownerUrl))).rejects.toThrow(
      "table constraint only_here on public.notes cannot be restored",
    );
    expect(await withClient(target.ownerUrl, allTables)).toEqual([]);
  });

  test("is restored by an owner who is no superuser, with warnings about what only those may create", async () => {
    const owner = `owner_of_${target.name}`;
    await run(
      source.ownerUrl,
      `create table public.notes (id integer primary key, text text);
       insert into public.notes values (1, 'first');
       alter table public.notes enable row level security;
       create policy own on public.notes to postgres using (true);
       create publication everything for all tables;
       create function public.watch() returns event_trigger language plpgsql as 'begin end';
       create event trigger watch on ddl_command_end execute function public.watch();
       comment on event trigger watch is 'Watches.'`,
    );
    await writeArchive(source.ownerUrl, file);
    await run(
      target.ownerUrl,
      `create role ${owner} login createrole; alter database ${target.name} owner to ${owner}`,
    );
    try {
      const { warnings } = await restoreArchive(file, settingsFor(urlOf(owner, target.name)));
      expect(warnings).toHaveLength(3);
      expect(warnings[0]).toContain("publication everything is not restored");
      const result = await run(
        target.ownerUrl,
        "select text, tableowner, roles::text from public.notes, pg_tables join pg_policies using (tablename) where tablename = 'notes'",
      );
      expect(result.rows).toEqual([{ text: "first", tableowner: owner, roles: `{${owner}}` }]);
    } finally {
      await run(
        target.ownerUrl,
        `alter database ${target.name} owner to postgres; drop owned by ${owner}; drop role ${owner}`,
      );
    }
  });
});

test.runIf(hasOldPostgres)("pg_dump writes the same of a database and of its copy", async () => {
  const cluster = join(folder, "postgres");
  await makeOldCluster(cluster);
  await withOldCluster(cluster, OLD_BINARIES, async (url) => {
    await run(url("postgres"), "create database source");
    await run(url("postgres"), "create database copy");
    await run(url("source"), OBJECTS);
    await writeArchive(url("source"), file);
    expect(await restoreArchive(file, settingsFor(url("copy")))).toMatchObject({ warnings: [] });
    const [original, copy] = [
      await pgDumpLines(OLD_BINARIES, url("source")),
      await pgDumpLines(OLD_BINARIES, url("copy")),
    ];
    expect(original.join("\n")).toContain("CREATE POLICY own ON shop.customers AS RESTRICTIVE");
    expect(copy).toEqual(original);
  });
});
