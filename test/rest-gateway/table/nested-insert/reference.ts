import type pg from "pg";
import type { PayloadRow, RelatedRows } from "./payloads.ts";
import { SHARED_COLUMNS, SHOP, type ShopRelation } from "./shop.ts";

export const CLAIMS = { role: "authenticated", sub: "ann" } as const;

type Values = Readonly<Record<string, unknown>>;

/** The code of the error for a row that a trigger has dropped. */
export const ROW_DROPPED = "row dropped";

type Insertion = {
  readonly client: pg.Client;
  /** Inserts a row with the rows below it. */
  attempt(insert: () => Promise<unknown>): Promise<unknown>;
};

/** Inserts the rows one after the other, as the role, in one transaction. Returns the SQLSTATE that it ends with; null without an error. */
export async function insertOneByOne(client: pg.Client, rows: readonly PayloadRow[]): Promise<string | null> {
  try {
    await beginAsCaller(client);
    await insertAll({ client, attempt: (insert) => insert() }, rows);
    await client.query("commit");
    return null;
  } catch (error) {
    await client.query("rollback");
    return codeOf(error);
  }
}

/** The SQLSTATEs of all rows that cannot be inserted, where the others are. */
export async function findFaults(client: pg.Client, rows: readonly PayloadRow[]): Promise<ReadonlySet<string>> {
  const faults = new Set<string>();
  const attempt: Insertion["attempt"] = async (insert) => {
    await client.query("savepoint attempt");
    try {
      await insert();
      await client.query("release savepoint attempt");
    } catch (error) {
      faults.add(codeOf(error));
      await client.query("rollback to savepoint attempt; release savepoint attempt");
    }
  };
  await beginAsCaller(client);
  await insertAll({ client, attempt }, rows);
  await attempt(() => client.query("set constraints all immediate"));
  await client.query("rollback");
  return faults;
}

async function beginAsCaller(client: pg.Client): Promise<void> {
  await client.query("begin");
  await client.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
    CLAIMS.role,
    JSON.stringify(CLAIMS),
  ]);
}

function codeOf(error: unknown): string {
  return (error as pg.DatabaseError).code ?? ROW_DROPPED;
}

async function insertAll(insertion: Insertion, rows: readonly PayloadRow[]): Promise<void> {
  for (const row of rows) await insertion.attempt(() => insertTree(insertion, row, {}, []));
}

/** Inserts parents first. Returns the columns that the row around it needs. */
async function insertTree(
  insertion: Insertion,
  { table, values, related }: PayloadRow,
  given: Values,
  needed: readonly string[],
): Promise<Values> {
  const own: Record<string, unknown> = { ...values, ...given };
  for (const { relation, rows } of related) {
    if (relation.kind !== "to-one") continue;
    const parent =
      rows &&
      (await insertTree(
        insertion,
        rows[0]!,
        {},
        relation.columns.map(([, other]) => other),
      ));
    for (const [name, other] of relation.columns) {
      if (parent) own[name] = parent[other];
      else if (!SHARED_COLUMNS[table]?.includes(name)) own[name] = null;
    }
  }
  const below = related.filter(({ relation, rows }) => relation.kind !== "to-one" && rows !== null && rows.length > 0);
  const keys = below.flatMap(({ relation }) => relation.columns.map(([name]) => name));
  const written = await insertRow(insertion, table, own, [...new Set([...needed, ...keys])]);
  for (const each of below) await insertRelated(insertion, each, written);
  return written;
}

async function insertRelated(insertion: Insertion, { relation, rows }: RelatedRows, row: Values): Promise<void> {
  if (relation.kind === "to-one") return;
  const { columns } = relation;
  const insert = async (each: PayloadRow) => {
    if (relation.kind === "to-many") return insertTree(insertion, each, keysFrom(columns, row), []);
    const { junction, targetColumns } = relation;
    const needed = targetColumns.map(([name]) => name);
    const target = await insertTree(insertion, each, {}, needed);
    return insertRow(insertion, junction, { ...keysFrom(columns, row), ...keysFrom(targetColumns, target) }, []);
  };
  for (const each of rows!) await insertion.attempt(() => insert(each));
}

function keysFrom(columns: ShopRelation["columns"], row: Values): Values {
  return Object.fromEntries(columns.map(([own, other]) => [other, row[own]]));
}

async function insertRow(
  { client }: Insertion,
  table: string,
  values: Values,
  needed: readonly string[],
): Promise<Values> {
  const names = Object.keys(values);
  const places = names.map((_, index) => `$${index + 1}`);
  const into = names.length > 0 ? `(${names}) values (${places})` : "default values";
  const returning = needed.length > 0 ? ` returning ${needed}` : "";
  const given = names.map((name) => toParameter(values[name]));
  const { rows, rowCount } = await client.query(`insert into public.${table} ${into}${returning}`, given);
  if (rowCount !== 1) throw new Error(`The row of ${table} was dropped.`);
  return rows[0] ?? {};
}

function toParameter(value: unknown): unknown {
  const isJson = value !== null && typeof value === "object" && !Array.isArray(value);
  return isJson ? JSON.stringify(value) : value;
}

/** Returns all rows, by their contents and references. */
export async function stateOf(owner: pg.Client): Promise<unknown> {
  const selects = Object.entries(SHOP).map(
    ([name, { shown }]) =>
      `select '${name}' as name, (select jsonb_agg(r order by r::text) from (select ${shown} from public.${name} as t) as r) as rows`,
  );
  return (await owner.query(selects.join(" union all "))).rows;
}
