import type pg from "pg";
import { quotedName } from "#postgres/client";
import { COMPARED_PARTS, CREATE_TABLE, groupByObject } from "./drift.ts";
import { readStatementsHere, tableLines } from "./dump-schema.ts";
import { BLOCKING_MODE_NAMES, type BlockedWork, lockModeName, strongestBlockingMode } from "./lock-modes.ts";
import { runsWithoutTransaction } from "./split-statements.ts";
import { inTrialTransaction, runStatements } from "./sql-transaction.ts";

/** What a script would do. */
export type DryRun = {
  /** False for a script that refuses a transaction, which cannot be taken back. */
  readonly tried: boolean;
  readonly changes: readonly SchemaChange[];
  /** Locks on tables that exist already, which others wait for until the script has ended. */
  readonly locks: readonly TableLock[];
  readonly warnings: readonly string[];
  readonly milliseconds: number;
  /** The rows of a table that roles see, if they were asked for. */
  readonly visible: readonly VisibleRows[];
};

/** Null: the role may not read the table, or there is none. */
export type VisibleRows = { readonly role: string; readonly before: number | null; readonly after: number | null };

/** Whose rows of which table are counted, before and after. */
export type RowCountRequest = {
  readonly table: { readonly schema: string; readonly name: string };
  readonly roles: readonly string[];
};

export type SchemaChange = {
  /** `table public.notes`. */
  readonly object: string;
  readonly change: "created" | "changed" | "dropped";
  /** Parts of the definition. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

export type TableLock = {
  readonly table: string;
  readonly mode: string;
  readonly blocks: BlockedWork;
  /** As Postgres estimates. */
  readonly rows: number;
};

/** From this number of rows on, work under a lock takes noticeable time. */
const MANY_ROWS = 50_000;
const MAX_COUNTED = 100_000;

/** Runs the script in a transaction that is rolled back. Throws a SqlScriptError if it fails. */
export async function dryRun(client: pg.ClientBase, script: string, counted?: RowCountRequest): Promise<DryRun> {
  if (runsWithoutTransaction(script)) return NOT_TRIED;
  return inTrialTransaction(client, async () => {
    const before = await readSchema(client);
    const seen = await countRows(client, counted);
    const begun = performance.now();
    await runStatements(client, script);
    const milliseconds = Math.round(performance.now() - begun);
    const locks = await readLocks(client);
    const after = await readSchema(client);
    const changes = compareObjects(before.objects, after.objects);
    const warnings = [...warnOfTables(before.tables, after.tables), ...warnOfChanges(changes, before.tables)];
    const now = await countRows(client, counted);
    const visible = seen.map(({ role, rows }, index) => ({ role, before: rows, after: now[index]!.rows }));
    return { tried: true, changes, locks: strongestLocks(locks, before.tables), warnings, milliseconds, visible };
  });
}

const NOT_TRIED: DryRun = { tried: false, changes: [], locks: [], warnings: [], milliseconds: 0, visible: [] };

type CountedRows = { readonly role: string; readonly rows: number | null };

/** As requests with this role, without a user. */
async function countRows(client: pg.ClientBase, counted: RowCountRequest | undefined): Promise<CountedRows[]> {
  const found: CountedRows[] = [];
  for (const role of counted?.roles ?? []) {
    await client.query("savepoint counting");
    const rows = await countAs(client, role, counted!.table).catch(() => null);
    await client.query("rollback to savepoint counting");
    found.push({ role, rows });
  }
  return found;
}

async function countAs(client: pg.ClientBase, role: string, { schema, name }: RowCountRequest["table"]) {
  await client.query("select pg_catalog.set_config('request.jwt.claims', $1, true)", [JSON.stringify({ role })]);
  await client.query(`set local role ${quotedName(role)}`);
  const { rows } = await client.query<{ count: number }>(
    `select pg_catalog.count(*)::int as count from (select from ${quotedName(schema, name)} limit ${MAX_COUNTED}) as rows`,
  );
  return rows[0]!.count;
}

/** The parts of each object's definition. */
type SchemaObjects = ReadonlyMap<string, readonly string[]>;

type TableState = {
  readonly object: string;
  readonly oid: number;
  /** Another one when the table is rewritten. */
  readonly file: number;
  readonly rows: number;
  readonly bytes: number;
};

type TableStates = ReadonlyMap<string, TableState>;

const TABLES = `
  select 'table ' || class.oid::pg_catalog.regclass as object, class.oid::pg_catalog.int8::int as oid, coalesce(pg_catalog.pg_relation_filenode(class.oid), 0)::pg_catalog.int8::int as file,
    (case when reltuples < 0 then pg_catalog.pg_relation_size(class.oid) / 100 else reltuples end)::pg_catalog.float8 as rows,
    pg_catalog.pg_relation_size(class.oid)::pg_catalog.float8 as bytes
  from pg_catalog.pg_class as class
  where relkind = 'r' and relnamespace not in (select oid from pg_catalog.pg_namespace where nspname ~ '^pg_|^information_schema$')`;

/** The search path is as before afterwards. */
async function readSchema(client: pg.ClientBase): Promise<{ objects: SchemaObjects; tables: TableStates }> {
  await client.query("savepoint reading");
  const statements = await readStatementsHere(client, COMPARED_PARTS);
  const lines = groupByObject(await readStatementsHere(client, [tableLines]));
  const { rows } = await client.query<TableState>(TABLES);
  await client.query("rollback to savepoint reading");
  const objects = new Map<string, string[]>();
  for (const [object, all] of groupByObject(statements)) {
    const rest = all.filter((statement) => !CREATE_TABLE.test(statement));
    objects.set(object, [...(lines.get(object) ?? []), ...rest]);
  }
  return { objects, tables: new Map(rows.map((table) => [table.object, table])) };
}

function compareObjects(before: SchemaObjects, after: SchemaObjects): SchemaChange[] {
  const changes: SchemaChange[] = [];
  for (const [object, parts] of after) {
    const known = before.get(object);
    const added = parts.filter((part) => !known?.includes(part));
    const removed = (known ?? []).filter((part) => !parts.includes(part));
    if (known && added.length === 0 && removed.length === 0) continue;
    changes.push({ object, change: known ? "changed" : "created", added, removed });
  }
  for (const [object, removed] of before) {
    if (!after.has(object)) changes.push({ object, change: "dropped", added: [], removed });
  }
  return changes;
}

type HeldLock = { readonly oid: number; readonly mode: string };

async function readLocks(client: pg.ClientBase): Promise<readonly HeldLock[]> {
  const { rows } = await client.query<HeldLock>(
    `select relation::pg_catalog.int8::int as oid, mode from pg_catalog.pg_locks
     where pid = pg_catalog.pg_backend_pid() and locktype = 'relation' and mode = any($1)`,
    [BLOCKING_MODE_NAMES],
  );
  return rows;
}

function strongestLocks(held: readonly HeldLock[], tables: TableStates): TableLock[] {
  return [...tables.values()].flatMap(({ object, oid, rows }) => {
    const modes = held.filter((lock) => lock.oid === oid).map(({ mode }) => mode);
    const strongest = strongestBlockingMode(modes);
    if (!strongest) return [];
    const { mode, blocks } = strongest;
    return [{ table: nameOf(object), mode: lockModeName(mode), blocks, rows: Math.round(rows) }];
  });
}

function warnOfTables(before: TableStates, after: TableStates): string[] {
  return [...before.values()].flatMap((table) => {
    const { object, file, bytes } = table;
    if (bytes === 0) return [];
    const now = after.get(object);
    if (!now) return [`Table ${nameOf(object)} is dropped with its ${describeSize(table)}.`];
    if (now.file === file) return [];
    if (now.bytes === 0) return [`All rows of ${nameOf(object)} are deleted.`];
    return [
      `Table ${nameOf(object)} is written anew (${describeSize(table)}); nobody can read or write it meanwhile. Where it is large, add a new column, ` +
        "copy the values in parts, and then drop the old one.",
    ];
  });
}

function describeSize({ rows, bytes }: TableState): string {
  return `${Math.round(rows)} rows, ${Math.ceil(bytes / 1024)} kB`;
}

/** What is fast here and now, and slow or refused in a database with more rows. */
function warnOfChanges(changes: readonly SchemaChange[], tables: TableStates): string[] {
  return changes
    .filter(({ change, object }) => change === "changed" && tables.has(object))
    .flatMap(({ object, added, removed }) => [
      ...added.flatMap((part) => warnOfPart(part, { table: tables.get(object)!, removed })),
      ...removed.filter((part) => isColumn(part) && !added.some((other) => sameName(other, part))).map(warnOfLoss),
    ]);

  function warnOfLoss(part: string): string {
    return `Column ${firstWord(part)} is dropped with its values, or renamed.`;
  }
}

type ChangedTable = { readonly table: TableState; readonly removed: readonly string[] };

function warnOfPart(part: string, { table, removed }: ChangedTable): string[] {
  const name = nameOf(table.object);
  const isLarge = table.rows >= MANY_ROWS;
  if (isColumn(part)) {
    if (!part.endsWith(" not null")) return [];
    const before = removed.find((other) => sameName(other, part));
    if (before === undefined) {
      const hasValue = / default | generated /.test(part);
      return hasValue
        ? []
        : [
            `Column ${firstWord(part)} is not null and has no default: this fails where ${name} has rows, in production for example.`,
          ];
    }
    return isLarge && !before.endsWith(" not null")
      ? [`All rows of ${name} are checked for nulls; nobody can read or write it meanwhile.`]
      : [];
  }
  if (!isLarge) return [];
  if (/^CREATE (UNIQUE )?INDEX/.test(part)) {
    return [
      `Nobody can write to ${name} while the index is built. Create it concurrently, in a migration of its own whose first line is "--! no-transaction".`,
    ];
  }
  if (/^constraint .* (FOREIGN KEY|CHECK) (?!.*NOT VALID$)/s.test(part)) {
    return [
      `All rows of ${name} are checked, and nobody can write to it meanwhile. Add the constraint as "not valid", and run "alter table … validate constraint" in a later migration.`,
    ];
  }
  if (/^constraint .* (UNIQUE|PRIMARY KEY)/.test(part)) {
    return [
      `Nobody can read or write ${name} while the index of the constraint is built. Create a unique index concurrently first, and add the constraint "using index".`,
    ];
  }
  return [];
}

/** Other parts are statements, or constraints. */
function isColumn(part: string): boolean {
  return !/^(constraint |CREATE |create |alter table |grant |comment on )/.test(part);
}

function sameName(one: string, other: string): boolean {
  return firstWord(one) === firstWord(other);
}

/** The name of the column. */
function firstWord(part: string): string {
  return /^("(?:[^"]|"")+"|\S+)/.exec(part)![0];
}

function nameOf(object: string): string {
  return object.replace(/^table /, "");
}
