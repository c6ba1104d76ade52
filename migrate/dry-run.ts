import type pg from "pg";
import type { SchemaRow, TableColumn } from "#catalog/definitions";
import { applyCallerSettings, makeRoomForApiSchema, quotedName } from "#postgres/client";
import { groupByObject, isTable } from "./compare-schemas.ts";
import { readDumpedSchemaHere } from "./dump-schema.ts";
import { type BlockedWork, lockModeName } from "./lock-modes.ts";
import { NO_MEASURES, type RelationStates, type RowEstimates, readRowEstimates } from "./measure-statement.ts";
import { type MeasuredTransaction, measureTransaction } from "./measured-transaction.ts";
import { lineAt, runsWithoutTransaction, splitStatements } from "./split-statements.ts";
import { inTrialTransaction, runStatements } from "./sql-transaction.ts";
import { type JudgedStatement, judgeWithoutTransaction } from "./statement-verdict.ts";

/** The effects that a script would have. */
export type DryRun = {
  /** False for a script that refuses a transaction, since it cannot be taken back. */
  readonly tried: boolean;
  readonly statements: readonly JudgedStatement[];
  readonly changes: readonly SchemaChange[];
  /** Locks on existing tables, which others wait for until the script has ended. */
  readonly locks: readonly TableLock[];
  /** Warnings about losses, and about statements that fail in a database with more rows. */
  readonly warnings: readonly string[];
  readonly milliseconds: number;
  /** The rows of a table that roles see, if they were asked for. */
  readonly visible: readonly VisibleRows[];
};

/** Null: the role may not read the table, or there is none. */
type VisibleRows = { readonly role: string; readonly before: number | null; readonly after: number | null };

/** The table whose rows are counted before and after, and the roles that count them. */
export type RowCountRequest = {
  readonly table: { readonly schema: string; readonly name: string };
  readonly roles: readonly string[];
};

type SchemaChange = {
  /** `table public.notes`. */
  readonly object: string;
  readonly change: "created" | "changed" | "dropped";
  /** Parts of the definition. */
  readonly added: readonly string[];
  readonly removed: readonly string[];
};

type TableLock = {
  readonly table: string;
  readonly mode: string;
  readonly blocks: BlockedWork;
  /** The number of rows as Postgres estimates it. */
  readonly rows: number;
};

const MAX_COUNTED = 100_000;

/** Runs the script in a transaction that is rolled back. Throws a SqlScriptError if it fails. */
export async function dryRun(client: pg.ClientBase, script: string, counted?: RowCountRequest): Promise<DryRun> {
  if (runsWithoutTransaction(script)) return judgeUntried(script);
  return inTrialTransaction(client, async () => {
    await makeRoomForApiSchema(client, script);
    const estimates = await readRowEstimates(client);
    const before = await readSchema(client);
    const seen = await countRows(client, counted);
    // Rows of a database that others use cannot be tried, so their locks are assumed.
    const measured = await measureTransaction(client, { estimates, hasRows: true, findRowLocks: null });
    const { begun } = measured;
    const { statements, ended } = await judgeStatements(script, measured);
    const changes = compareObjects(before, await readSchema(client));
    const warnings = [...warnOfTables({ begun, ended }, estimates), ...warnOfChanges(changes)];
    const now = await countRows(client, counted);
    const visible = seen.map(({ role, rows }, index) => ({ role, before: rows, after: now[index]!.rows }));
    const milliseconds = statements.reduce((sum, statement) => sum + statement.milliseconds, 0);
    const locks = listTableLocks(statements, begun, estimates);
    const textsOf = (rows: readonly SchemaRow[]) => rows.map(({ text }) => text);
    const shown = changes.map((each) => ({ ...each, added: textsOf(each.added), removed: textsOf(each.removed) }));
    return { tried: true, statements, changes: shown, locks, warnings, milliseconds, visible };
  });
}

function judgeUntried(script: string): DryRun {
  const statements = splitStatements(script).map(({ start, sql }) => {
    return { line: lineAt(script, start), sql, ...NO_MEASURES, ...judgeWithoutTransaction(sql) };
  });
  return { tried: false, statements, changes: [], locks: [], warnings: [], milliseconds: 0, visible: [] };
}

async function judgeStatements(script: string, measured: MeasuredTransaction) {
  const statements: JudgedStatement[] = [];
  let ended = measured.begun;
  await runStatements(script, async ({ start, sql }) => {
    const { judged, after } = await measured.run(sql);
    statements.push({ line: lineAt(script, start), sql, ...judged });
    ended = after;
  });
  return { statements, ended };
}

type CountedRows = { readonly role: string; readonly rows: number | null };

/** Counts rows like requests with this role and without a user. */
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
  await applyCallerSettings(client, [["request.jwt.claims", JSON.stringify({ role })]]);
  await client.query(`set local role ${quotedName(role)}`);
  const { rows } = await client.query<{ count: number }>(
    `select pg_catalog.count(*)::int as count from (select from ${quotedName(schema, name)} limit ${MAX_COUNTED}) as rows`,
  );
  return rows[0]!.count;
}

/** The parts of each object's definition. */
type SchemaObjects = ReadonlyMap<string, readonly SchemaRow[]>;

/** Reads the schema and restores the search path. */
async function readSchema(client: pg.ClientBase): Promise<SchemaObjects> {
  await client.query("savepoint reading");
  const { statements, tableParts } = await readDumpedSchemaHere(client);
  await client.query("rollback to savepoint reading");
  const parts = groupByObject(tableParts);
  return new Map(
    [...groupByObject(statements)].map(([object, rows]) => {
      return [object, [...(parts.get(object) ?? []), ...rows.filter((row) => !isTable(row))]];
    }),
  );
}

type DefinitionChange = {
  readonly object: string;
  readonly change: SchemaChange["change"];
  readonly added: readonly SchemaRow[];
  readonly removed: readonly SchemaRow[];
};

function compareObjects(before: SchemaObjects, after: SchemaObjects): DefinitionChange[] {
  const without = (rows: readonly SchemaRow[], others: readonly SchemaRow[]) =>
    rows.filter(({ text }) => others.every((other) => other.text !== text));
  const changes: DefinitionChange[] = [];
  for (const [object, rows] of after) {
    const known = before.get(object);
    const added = without(rows, known ?? []);
    const removed = without(known ?? [], rows);
    if (known && added.length === 0 && removed.length === 0) continue;
    changes.push({ object, change: known ? "changed" : "created", added, removed });
  }
  for (const [object, removed] of before) {
    if (!after.has(object)) changes.push({ object, change: "dropped", added: [], removed });
  }
  return changes;
}

/** Lists the locks of the last statement: locks are held until the end, so it has them all. */
function listTableLocks(
  statements: readonly JudgedStatement[],
  begun: RelationStates,
  estimates: RowEstimates,
): TableLock[] {
  const tables = new Set([...begun.values()].filter(({ kind }) => /^[rp]$/.test(kind)).map(({ name }) => name));
  return statements
    .at(-1)!
    .locks.filter(({ relation }) => tables.has(relation))
    .map(({ relation, mode, blocks }) => {
      return { table: relation, mode: lockModeName(mode), blocks, rows: Math.round(estimates(relation)) };
    });
}

type TrialStates = { readonly begun: RelationStates; readonly ended: RelationStates };

function warnOfTables({ begun, ended }: TrialStates, estimates: RowEstimates): string[] {
  return [...begun.values()].flatMap(({ oid, name, kind, file, bytes }) => {
    if (kind !== "r" || bytes === 0) return [];
    const now = ended.get(oid);
    if (!now)
      return [`Table ${name} is dropped with its ${Math.round(estimates(name))} rows, ${Math.ceil(bytes / 1024)} kB.`];
    return now.file !== file && now.bytes === 0 ? [`All rows of ${name} are deleted.`] : [];
  });
}

function warnOfChanges(changes: readonly DefinitionChange[]): string[] {
  const columnsOf = (rows: readonly SchemaRow[]) => rows.flatMap(({ column }) => column ?? []);
  return changes
    .filter(({ change, object }) => change === "changed" && object.startsWith("table "))
    .flatMap(({ object, added, removed }) => {
      const [now, before] = [columnsOf(added), columnsOf(removed)];
      const without = (columns: readonly TableColumn[], others: readonly TableColumn[]) =>
        columns.filter(({ name }) => others.every((other) => other.name !== name));
      return [
        ...without(now, before)
          .filter(isUnfilled)
          .map(
            ({ name }) =>
              `Column ${name} is not null and has no default: this fails where ${nameOf(object)} has rows, in production for example.`,
          ),
        ...without(before, now).map(({ name }) => `Column ${name} is dropped with its values, or renamed.`),
      ];
    });
}

function isUnfilled({ notNull, fallback, identity, isGenerated }: TableColumn): boolean {
  return notNull && fallback === null && identity === null && !isGenerated;
}

function nameOf(object: string): string {
  return object.replace(/^table /, "");
}
