import type pg from "pg";
import { objectLabel, type SchemaRow } from "#catalog/definitions";
import { compareRows, compareSchemas, groupByObject } from "./compare-schemas.ts";
import { type DumpedSchema, readDumpedSchemaHere, readRows } from "./dump-schema.ts";
import { type NamedObject, OBJECT_NAMES } from "./object-names.ts";
import { objectSettings, opaqueObjects } from "./object-settings.ts";

export type SchemaState = DumpedSchema & {
  readonly settings: readonly SchemaRow[];
  readonly names: ReadonlyMap<string, NamedObject>;
};

/** A step with alternatives; each is for cases where those before it fail. */
type ReverseStep = { readonly name: string; readonly ways: readonly string[] };

type ReverseSearch = {
  readonly statements: readonly string[];
  /** The difference that remains, with its reason; null if there is none. */
  readonly unsolved: string | null;
};

/** Runs the work with an empty search path, so that Postgres writes every name with its schema; then restores the path. */
export async function withEmptyPath<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("savepoint reading");
  await client.query("set local search_path = ''");
  const result = await work();
  await client.query("rollback to savepoint reading");
  return result;
}

/** Reads the state in the open transaction. */
export async function readSchemaState(client: pg.ClientBase): Promise<SchemaState> {
  return withEmptyPath(client, async () => {
    const { statements, tableParts } = await readDumpedSchemaHere(client);
    const opaque = await readRows(client, [opaqueObjects]);
    const names = await client.query<NamedObject>(OBJECT_NAMES);
    return {
      statements: [...statements, ...opaque],
      tableParts,
      settings: await readRows(client, [objectSettings]),
      names: new Map(names.rows.map((each) => [each.key, each])),
    };
  });
}

/** The first part in which two states differ; null if they are equal. */
export function findDifference(now: SchemaState, before: SchemaState): string | null {
  const texts = (state: SchemaState) => [
    ...[...state.statements, ...state.tableParts].map(({ object, text }) => [`${object}\n${text}`, object] as const),
    ...state.settings.map(({ name, text }) => [`${name}\n${text}`, name] as const),
  ];
  const [here, there] = [new Map(texts(now)), new Map(texts(before))];
  const differing = [...here].find(([text]) => !there.has(text)) ?? [...there].find(([text]) => !here.has(text));
  return differing?.[1] ?? null;
}

/** Finds the statements that restore the former schema by executing them in the open transaction, in the order in which they succeed. */
export async function searchReverse(client: pg.ClientBase, before: SchemaState): Promise<ReverseSearch> {
  const statements: string[] = [];
  for (;;) {
    const now = await readSchemaState(client);
    const errors = new Map<string, string>();
    const search = { errors, statements };
    const stages = [listRenames(now, before), listSettings(now, before), listDifferences(now, before)];
    const applied = await applyFirstStage(client, stages, search);
    if (applied.length === 0) applied.push(...(await applySteps(client, await listViews(client, now, before), search)));
    statements.push(...applied);
    if (applied.length > 0) continue;
    const [name, error] = [...errors].at(-1) ?? [findDifference(now, before), null];
    return { statements, unsolved: name && error ? `${name}: ${error}` : (name ?? null) };
  }
}

type SearchState = { readonly errors: Map<string, string>; readonly statements: readonly string[] };

async function applyFirstStage(
  client: pg.ClientBase,
  stages: readonly (readonly ReverseStep[])[],
  search: SearchState,
): Promise<string[]> {
  for (const steps of stages) {
    const applied = await applySteps(client, steps, search);
    if (applied.length > 0) return applied;
  }
  return [];
}

async function applySteps(
  client: pg.ClientBase,
  steps: readonly ReverseStep[],
  { errors, statements }: SearchState,
): Promise<string[]> {
  const applied: string[] = [];
  const most = Math.max(0, ...steps.map(({ ways }) => ways.length));
  for (let way = 0; way < most && applied.length === 0; way++) {
    const pending = new Map<string, string>();
    for (const { name, ways } of steps) {
      const sql = ways[way];
      if (sql && !statements.includes(sql)) pending.set(sql, name);
    }
    for (let before = -1; before !== applied.length; ) {
      before = applied.length;
      for (const [sql, name] of pending) {
        const error = await trySql(client, sql);
        if (error) errors.set(name, error.message);
        else if (pending.delete(sql)) applied.push(sql);
      }
    }
  }
  return applied;
}

async function trySql(client: pg.ClientBase, sql: string): Promise<Error | null> {
  await client.query("savepoint trying");
  try {
    await client.query(sql);
    return null;
  } catch (error) {
    await client.query("rollback to savepoint trying");
    return error as Error;
  }
}

function listRenames(now: SchemaState, before: SchemaState): ReverseStep[] {
  const steps: ReverseStep[] = [];
  for (const [key, { name, schema, rename, move }] of now.names) {
    const known = before.names.get(key);
    if (known && known.name !== name) steps.push({ name: `the name ${known.name}`, ways: [`${rename}${known.name};`] });
    if (known?.schema && move && known.schema !== schema)
      steps.push({ name: `the schema of ${known.name}`, ways: [`${move}${known.schema};`] });
  }
  return [...steps, ...listReplaced(now, before)];
}

/** Drops objects that have taken the name of an object that now has another name. */
function listReplaced(now: SchemaState, before: SchemaState): ReverseStep[] {
  const keys = new Map([...before.names.values()].map(({ object, key }) => [object, key]));
  return [...now.names.values()].flatMap(({ key, object }) => {
    const original = object === null ? undefined : keys.get(object);
    if (original === undefined || original === key || before.names.has(key) || !now.names.has(original)) return [];
    return isColumn(key) ? [] : [{ name: object!, ways: [`drop ${object};`] }];
  });
}

function isColumn(key: string): boolean {
  return key.startsWith("pg_attribute ");
}

function listSettings(now: SchemaState, before: SchemaState): ReverseStep[] {
  const objects = new Set([...before.statements, ...before.settings].map(({ object }) => object));
  return compareRows(now.settings, before.settings)
    .filter(({ object }) => objects.has(object))
    .map(({ name, undoSql }) => ({ name, ways: [undoSql] }));
}

function listDifferences(now: SchemaState, before: SchemaState): ReverseStep[] {
  // Dropping these would lose objects that get their former names back.
  const kept = new Set(
    [...now.names.values()].flatMap(({ key, object }) => (object && before.names.has(key) ? [`drop ${object};`] : [])),
  );
  return (
    compareSchemas(now, before)
      .filter(({ undoSql }) => !kept.has(undoSql))
      // The type of a column cannot be changed below a view.
      .toSorted((one, other) => Number(other.name.startsWith("column ")) - Number(one.name.startsWith("column ")))
      .map(({ name, undoSql, recreateSql }) => ({ name, ways: [undoSql, ...(recreateSql ? [recreateSql] : [])] }))
  );
}

const DEPENDENT_VIEWS = `
  with recursive dependent as (
    select oid from pg_class where ${objectLabel("pg_class", "pg_class.oid")} = any ($1::text[])
    union
    select ev_class from dependent join pg_depend as used on refclassid = 'pg_class'::regclass and refobjid = dependent.oid
    join pg_rewrite as rule on classid = 'pg_rewrite'::regclass and rule.oid = objid
  )
  select ${objectLabel("pg_class", "class.oid")} as object
  from dependent join pg_class as class on class.oid = dependent.oid where relkind in ('v', 'm')`;

/** Drops the views of tables whose columns differ: they are created again afterwards. */
async function listViews(client: pg.ClientBase, now: SchemaState, before: SchemaState): Promise<ReverseStep[]> {
  const parts = groupByObject(now.tableParts);
  const tables = [...groupByObject(before.tableParts)]
    .filter(([object, wanted]) => wanted.some(({ text }) => !parts.get(object)?.some((part) => part.text === text)))
    .map(([object]) => object);
  const { rows } = await withEmptyPath(client, () => client.query<{ object: string }>(DEPENDENT_VIEWS, [tables]));
  return rows.map(({ object }) => ({ name: object, ways: [`drop ${object};`] }));
}

/** Objects with rows or values that are gone, or have another name: `table public.notes`. */
export function listLost(now: SchemaState, before: SchemaState): NamedObject[] {
  return [...before.names.values()].filter(({ key, object, hasValues }) => {
    return hasValues && now.names.get(key)?.object !== object;
  });
}
