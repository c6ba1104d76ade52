import pg from "pg";
import type { Column, ForeignKey, Table } from "./described.ts";

type Row = Readonly<Record<string, string | null>>;

const ATTEMPTS = 24;

/**
 * A few rows for every table, the same at each run: values of the columns' types, foreign keys to rows that exist, and
 * literals of check constraints where plain values break them. Triggers are not run. Gives the tables that stayed empty.
 */
export async function fillTables(client: pg.ClientBase, tables: readonly Table[], count = 4): Promise<string[]> {
  const rows = new Map<string, Row[]>();
  await client.query("set session_replication_role = replica");
  const pending = tables.filter(({ kind, isPartition }) => (kind === "r" || kind === "p") && !isPartition);
  for (const table of pending) rows.set(table.name, await readRows(client, table));
  // Parents come first; a table of a cycle has its turn when nothing else is left, and refers to nothing then.
  const left = new Set(pending);
  while (left.size > 0) {
    const isReady = ({ name, foreignKeys }: Table) =>
      foreignKeys.every(({ target }) => target === name || ![...left].some((other) => other.name === target));
    const table = [...left].find(isReady) ?? [...left][0]!;
    left.delete(table);
    await fill(table);
  }
  for (const table of pending.filter(({ name }) => rows.get(name)!.length === 0)) await fill(table);
  await client.query("set session_replication_role = origin");
  // Rows that are inserted later take numbers that no row has.
  await client.query(
    `select setval(oid::regclass, 1000) from pg_class where relkind = 'S' and relnamespace = $1::regnamespace`,
    [quoted(tables[0]?.schema ?? "public")],
  );
  for (const { schema, name } of tables.filter(({ kind }) => kind === "m"))
    await client.query(`refresh materialized view ${quoted(schema)}.${quoted(name)}`);
  return [...rows].filter(([, each]) => each.length === 0).map(([name]) => name);

  async function fill(table: Table): Promise<void> {
    for (let number = 0; number < count; number++) {
      const row = await insertRow(client, table, rows, number);
      if (row) rows.get(table.name)!.push(row);
    }
  }
}

/** Returns whether one more row of a table that `fillTables` filled could be made. The session runs no triggers. */
export async function insertOneMore(
  client: pg.ClientBase,
  table: Table,
  tables: readonly Table[],
  number: number,
): Promise<boolean> {
  const needed = [table.name, ...table.foreignKeys.map(({ target }) => target)];
  const rows = new Map<string, Row[]>();
  for (const each of tables.filter(({ name }) => needed.includes(name)))
    rows.set(each.name, await readRows(client, each));
  return (await insertRow(client, table, rows, number)) !== null;
}

export function quoted(name: string): string {
  return pg.escapeIdentifier(name);
}

export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${quoted(schema)}.${quoted(name)}`;
}

async function readRows(client: pg.ClientBase, table: Table): Promise<Row[]> {
  const columns = table.columns.map(({ name }) => `${quoted(name)}::text`).join(", ");
  return (await client.query<Row>(`select ${columns || "1"} from ${qualified(table)} limit 50`)).rows;
}

async function insertRow(
  client: pg.ClientBase,
  table: Table,
  rows: ReadonlyMap<string, readonly Row[]>,
  number: number,
): Promise<Row | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const row = makeRow(table, rows, number, attempt);
    if (row === null) continue;
    const names = Object.keys(row);
    const returning = table.columns.map(({ name }) => `${quoted(name)}::text`).join(", ");
    const values = names.map((_, index) => `$${index + 1}`).join(", ");
    const into =
      names.length > 0
        ? `(${names.map(quoted).join(", ")}) overriding system value values (${values})`
        : "default values";
    try {
      const result = await client.query<Row>(
        `insert into ${qualified(table)} ${into} returning ${returning}`,
        Object.values(row),
      );
      return result.rows[0]!;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
    }
  }
  return null;
}

function makeRow(table: Table, rows: ReadonlyMap<string, readonly Row[]>, number: number, attempt: number): Row | null {
  const row: Record<string, string | null> = {};
  const own = rows.get(table.name)?.length ?? 0;
  for (const key of [...table.foreignKeys].sort((one, other) => other.columns.length - one.columns.length)) {
    if (!refer(table, key, row, rows.get(key.target) ?? [], number + attempt)) return null;
  }
  const isSparse = number === 1 || attempt % 6 >= 4;
  for (const column of table.columns) {
    if (column.generated || column.name in row) continue;
    if (isSparse && column.hasDefault) continue;
    if ((number === 2 || attempt % 6 === 5) && !column.notNull) continue;
    row[column.name] = valueFor(table, column, own + 1 + attempt * 7, attempt);
  }
  return row;
}

/** Makes the columns of the key refer to a row, or to nothing where that is allowed; false if neither is possible. */
function refer(
  table: Table,
  { columns, targetColumns }: ForeignKey,
  row: Record<string, string | null>,
  parents: readonly Row[],
  turn: number,
): boolean {
  const fitting = parents.filter((parent) =>
    columns.every((name, index) => !(name in row) || row[name] === parent[targetColumns[index]!]),
  );
  const parent = fitting[turn % Math.max(1, fitting.length)];
  if (parent && targetColumns.every((name) => parent[name] !== null)) {
    columns.forEach((name, index) => {
      row[name] = parent[targetColumns[index]!]!;
    });
    return true;
  }
  const free = columns.find((name) => !(name in row) && !table.columns.find((each) => each.name === name)?.notNull);
  if (free === undefined) return columns.some((name) => row[name] === null);
  row[free] = null;
  return true;
}

function valueFor(table: Table, column: Column, n: number, attempt: number): string | null {
  const literals = table.checks
    .filter(({ columns }) => columns.includes(column.name) && (attempt >= 6 || columns.length === 1))
    .flatMap(({ definition }) => literalsOf(definition));
  if (literals.length > 0 && attempt % 3 !== 2) return literals[(n + attempt) % literals.length]!;
  if (column.labels) return column.labels[(n + attempt) % column.labels.length] ?? null;
  if (column.baseType.endsWith("[]")) {
    const element = sampleOf(column.baseType.slice(0, -2), n, column);
    return element === null ? "{}" : `{${JSON.stringify(element)}}`;
  }
  return sampleOf(column.baseType, n, column);
}

function literalsOf(definition: string): string[] {
  return [...definition.matchAll(/'((?:[^']|'')*)'/g)].map(([, literal]) => literal!.replaceAll("''", "'"));
}

/** A value of the type as text; null for types that nobody needed so far. */
export function sampleOf(type: string, n: number, { length, precision, scale }: Partial<Column> = {}): string | null {
  const two = String((n % 28) + 1).padStart(2, "0");
  switch (type) {
    case "smallint":
    case "integer":
    case "bigint":
    case "oid":
      return String(n);
    case "numeric": {
      const whole = precision ? n % 10 ** (precision - (scale ?? 0)) : n;
      return scale === 0 ? String(whole) : `${whole}.5`;
    }
    case "real":
    case "double precision":
      return `${n}.25`;
    case "boolean":
      return n % 2 === 0 ? "true" : "false";
    case "text":
    case "character varying":
    case "character":
    case "name":
      return textOf(n, length ?? null);
    case '"char"':
      return String.fromCharCode(97 + (n % 26));
    case "json":
    case "jsonb":
      return `{"n": ${n}, "text": "\\"é\\"", "big": 98765432109876543210}`;
    case "uuid":
      return `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
    case "bytea":
      return `\\x00ff${String(n % 100).padStart(2, "0")}`;
    case "date":
      return `2026-01-${two}`;
    case "timestamp with time zone":
      return `2026-01-${two} 03:04:05.${n}+02`;
    case "timestamp without time zone":
      return `2026-01-${two} 03:04:05.${n}`;
    case "time without time zone":
      return `03:04:${two}`;
    case "interval":
      return `1 year 2 days 03:04:${two}`;
    case "citext":
      return `Ann ${n}`;
    case "hstore":
      return `"key ${n}"=>"a \\"b\\"", "none"=>NULL`;
    case "ltree":
      return `top.n${n}`;
    case "tsvector":
      return `'word':${n}`;
    case "xml":
      return `<n>${n}</n>`;
    case "money":
      return `$${n},000.10`;
    case "time with time zone":
      return `03:04:${two}+02`;
    case "bit":
      return (n % 16).toString(2).padStart(4, "0");
    case "bit varying":
      return (n % 16).toString(2);
    case "cidr":
      return `10.${n % 256}.0.0/16`;
    case "inet":
      return `10.0.0.${n % 256}`;
    case "macaddr":
      return `08:00:2b:01:02:${two}`;
    default:
      return null;
  }
}

/** Returns a text with signs that mean something in an address, in JSON or in a filter, where there is room. */
function textOf(n: number, length: number | null): string {
  const long = n % 2 === 0 ? `text ${n}` : `é ${n}, "(a.b)" %&+`;
  if (length === null || long.length <= length) return long;
  return n.toString(36).slice(-length);
}
