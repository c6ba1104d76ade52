import type pg from "pg";
import type { RelationStates, StatementMeasures } from "./measure-statement.ts";
import {
  findDifference,
  listLost,
  readSchemaState,
  type SchemaState,
  searchReverse,
  withEmptyPath,
} from "./reverse-migration.ts";
import { splitStatements } from "./split-statements.ts";
import { runWithoutRows } from "./sql-transaction.ts";

/** The rows of a table, or the position of a sequence, as one text. */
type StoredValues = { readonly name: string; readonly values: string };

export type StatementPlace = { readonly file: string; readonly line: number; readonly sql: string };

/** Says if a migration can be undone without losing a row or value from before it. */
export type UndoVerdict =
  | {
      readonly verdict: "can be undone";
      readonly sql: string;
      /** The values written since that the undo loses: `table public.notes`, or those that do not fit a former type. */
      readonly drops: readonly string[];
    }
  | {
      readonly verdict: "cannot be undone";
      readonly reason: string;
      /** Null if the statement, among several, is not known. */
      readonly statement: StatementPlace | null;
    };

/** A database before a migration. */
type UndoStart = {
  readonly schema: SchemaState;
  /** Null in a copy without rows. */
  readonly stored: ReadonlyMap<number, StoredValues> | null;
};

/** The effect of a statement on objects and rows from before its migration. */
export type StatementEffect = {
  readonly place: StatementPlace;
  readonly isSkipped: boolean;
  /** Relations with other rows or another file. */
  readonly touched: readonly number[];
  /** True if rows are changed, as far as is known without the rows. */
  readonly changesRows: boolean;
  /** Keys of columns and relations that are gone. */
  readonly dropped: readonly string[];
};

export async function readUndoStart(client: pg.ClientBase, withRows: boolean): Promise<UndoStart> {
  return inRolledBack(client, async () => {
    return {
      schema: await readSchemaState(client),
      stored: withRows ? await withEmptyPath(client, () => readStoredValues(client)) : null,
    };
  });
}

const DROPPED_COLUMNS = `select pg_catalog.format('pg_attribute %s %s', attrelid, attnum) as key from pg_catalog.pg_attribute
  where attrelid operator(pg_catalog.>=) 16384 and attnum operator(pg_catalog.>) 0 and attisdropped`;

/** The keys of dropped columns, as in `NamedObject`. */
export async function readDroppedColumns(client: pg.ClientBase): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ key: string }>(DROPPED_COLUMNS);
  return new Set(rows.map(({ key }) => key));
}

type EffectStates = {
  readonly begun: RelationStates;
  readonly before: RelationStates;
  readonly after: RelationStates;
  readonly droppedBefore: ReadonlySet<string>;
  readonly droppedAfter: ReadonlySet<string>;
};

export function toEffect(place: StatementPlace, measures: StatementMeasures, states: EffectStates): StatementEffect {
  const { begun, before, after, droppedBefore, droppedAfter } = states;
  const old = [...begun.keys()];
  const touched = old.filter((oid) => {
    const [was, now] = [before.get(oid), after.get(oid)];
    if (!was || !now) return false;
    return now.inserted > was.inserted || now.changed > was.changed || now.file !== was.file;
  });
  const inserts = touched.some((oid) => after.get(oid)!.inserted > before.get(oid)!.inserted);
  // This also finds changes in a copy without rows, and by functions.
  const locksRows = old.some((oid) => writesRows(after.get(oid)) && !writesRows(before.get(oid)));
  const gone = old.filter((oid) => before.has(oid) && !after.has(oid)).map((oid) => `pg_class ${oid}`);
  const columns = [...droppedAfter].filter((key) => !droppedBefore.has(key));
  const changesRows = inserts || locksRows || measures.changed > 0 || measures.rewritten.some(({ rows }) => rows > 0);
  return { place, isSkipped: false, touched, changesRows, dropped: [...gone, ...columns] };
}

/** Only writes of rows and `nextval` take this lock on tables and sequences of users. */
function writesRows(relation: { readonly modes: readonly string[] } | undefined): boolean {
  return relation?.modes.includes("RowExclusiveLock") ?? false;
}

/** Judges the undo after the migration is committed in the copy, which stays unchanged. */
export async function judgeUndo(
  client: pg.ClientBase,
  start: UndoStart,
  effects: readonly StatementEffect[],
): Promise<UndoVerdict> {
  const refuse = (reason: string, effect: StatementEffect | undefined): UndoVerdict => {
    const known = effect ?? (effects.length === 1 ? effects[0] : undefined);
    return { verdict: "cannot be undone", reason, statement: known?.place ?? null };
  };
  const skipped = effects.find(({ isSkipped }) => isSkipped);
  if (skipped) return refuse("It changes the server, and is not rehearsed.", skipped);
  const unproven = start.stored === null ? effects.find(({ changesRows }) => changesRows) : undefined;
  if (unproven)
    return refuse(
      "It writes rows, and without a copy of the rows nothing shows that a reverse restores them.",
      unproven,
    );
  return inRolledBack(client, async () => {
    const migrated = await readSchemaState(client);
    const [dropped] = listDropped(migrated, start.schema);
    if (dropped) {
      const effect = effects.find((each) => each.dropped.includes(dropped.key));
      return refuse(`The ${dropped.object} is dropped with its values.`, effect);
    }
    const tried = await tryReverse(client, start);
    if (tried.kind === "other schema") return refuse(`The reverse does not restore ${tried.what}.`, undefined);
    if (tried.kind === "same")
      return { verdict: "can be undone", sql: tried.sql, drops: listLosses(migrated, start.schema) };
    const effect = effects.findLast(({ touched }) => touched.includes(tried.oid));
    return refuse(`The reverse does not restore the values of ${tried.name}.`, effect);
  });
}

/** The tables and columns that the undo drops, and the columns to which it gives their former type. */
function listLosses(migrated: SchemaState, before: SchemaState): string[] {
  return [...listAdded(migrated, before), ...listRetyped(migrated, before)];
}

/** Tables and columns with values, without the columns of new tables. */
function listAdded(migrated: SchemaState, before: SchemaState): string[] {
  const added = [...migrated.names.values()].filter(({ key, hasValues }) => hasValues && !before.names.has(key));
  const keys = new Set(added.map(({ key }) => key));
  const isShown = ({ key, object }: (typeof added)[number]) => {
    const [catalogue, relation] = key.split(" ");
    return catalogue === "pg_attribute" ? !keys.has(`pg_class ${relation}`) : !object!.startsWith("sequence ");
  };
  return added.filter(isShown).map(({ object }) => object!);
}

/** Values that a former type cannot hold: a cast may cut or round them. */
function listRetyped(migrated: SchemaState, before: SchemaState): string[] {
  const former = new Map(before.tableParts.map(({ name, column }) => [name, column?.typeName]));
  return migrated.tableParts.flatMap(({ name, column }) => {
    const typeName = former.get(name);
    if (!column || !typeName || typeName === column.typeName) return [];
    return [`the values of ${name} that ${typeName} cannot hold`];
  });
}

const LOST_ORDER = ["table", "column", "sequence"];

/** Lists a table before its columns, and before their sequences. */
function listDropped(now: SchemaState, before: SchemaState) {
  const position = (object: string | null) => LOST_ORDER.indexOf(object!.split(" ")[0]!);
  return listLost(now, before)
    .filter(({ key }) => !now.names.has(key))
    .toSorted((one, other) => position(one.object) - position(other.object));
}

type ReverseTrial =
  | { readonly kind: "same"; readonly sql: string }
  | { readonly kind: "other schema"; readonly what: string }
  | { readonly kind: "other values"; readonly oid: number; readonly name: string };

const CREATES_FUNCTION = /^CREATE OR REPLACE (FUNCTION|PROCEDURE) /m;

/** Finds the reverse, and then runs it as a migration would. */
async function tryReverse(client: pg.ClientBase, { schema, stored }: UndoStart): Promise<ReverseTrial> {
  await client.query("set local check_function_bodies = off");
  await client.query("savepoint migrated");
  const { statements, unsolved } = await searchReverse(client, schema);
  if (unsolved !== null) return { kind: "other schema", what: unsolved };
  await client.query("rollback to savepoint migrated");
  await client.query("set local check_function_bodies = on");
  const needsNoCheck = statements.some((statement) => CREATES_FUNCTION.test(statement));
  const sql = [...(needsNoCheck ? ["set local check_function_bodies = off;"] : []), ...statements].join("\n");
  for (const statement of splitStatements(sql)) await runWithoutRows(client, statement.sql);
  await client.query("set constraints all immediate");
  const now = await readSchemaState(client);
  const what = findDifference(now, schema) ?? listLost(now, schema)[0]?.object;
  if (what) return { kind: "other schema", what };
  const restored = stored ? await withEmptyPath(client, () => readStoredValues(client)) : null;
  for (const [oid, { name, values }] of stored ?? [])
    if (restored?.get(oid)?.values !== values) return { kind: "other values", oid, name };
  return { kind: "same", sql };
}

/** The relations that the session can read as a whole. */
const READABLE = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, relkind = 'S' as "isSequence",
    pg_catalog.format('%I.%I', nspname, relname) as name
  from pg_catalog.pg_class as class join pg_catalog.pg_namespace as namespace on namespace.oid = relnamespace
  where class.oid >= 16384 and relkind in ('r', 'S') and relpersistence <> 't' and nspname !~ '^pg_'
    and pg_catalog.has_schema_privilege(namespace.oid, 'usage') and pg_catalog.has_table_privilege(class.oid, 'select')
    and not pg_catalog.row_security_active(class.oid)
  order by class.oid`;

/** The stored values by the oid of the relation. Reads all rows, in the open transaction. */
async function readStoredValues(client: pg.ClientBase): Promise<Map<number, StoredValues>> {
  const { rows } = await client.query<{ oid: number; isSequence: boolean; name: string }>(READABLE);
  const stored = new Map<number, StoredValues>();
  for (const { oid, isSequence, name } of rows) {
    const values = isSequence
      ? `select pg_catalog.concat(last_value, ' ', is_called) as values from ${name}`
      : `select pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.sum(pg_catalog.hashtextextended((stored_row.*)::pg_catalog.text, 0))) as values from only ${name} as stored_row`;
    const found = await client.query<{ values: string }>(values);
    stored.set(oid, { name, values: found.rows[0]!.values });
  }
  return stored;
}

async function inRolledBack<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    return await work();
  } finally {
    await client.query("rollback");
  }
}
