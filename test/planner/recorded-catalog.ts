import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogQuery } from "../../catalog/catalog-query.ts";
import { queryWithTimeout } from "../../catalog/catalog-reader.ts";
import { readCatalogRows } from "../../catalog/catalog-rows.ts";
import { assembleCatalog } from "../../catalog/load-catalog.ts";
import { type FixtureDatabase, openFixture, SCHEMAS } from "./fixture-database.ts";

const FILE = join(import.meta.dirname, "recorded-catalog.jsonl");
const OPTIONS = { ...SCHEMAS, loginRole: "planning_login" };
const FIRST_RECORDED_OID = 100_000;

/** The tables of the fixture and those beside them. */
export async function openPlanningDatabase(): Promise<FixtureDatabase> {
  return openFixture(await readFile(join(import.meta.dirname, "planning.sql"), "utf8"));
}

/** The rows of one query of the catalogue. */
type RecordedRows = { readonly subject: string; readonly rows: readonly object[] };

/** The catalogue of the fixture and of planning.sql, from the recorded rows: without a database. */
export async function readRecordedCatalog(): Promise<Catalog> {
  const recorded = (await readRecordedRows()).trimEnd().split("\n");
  const queries = Map.groupBy(
    recorded.map((line) => JSON.parse(line) as RecordedRows),
    ({ subject }) => subject,
  );
  const read: CatalogQuery = async <Row extends object>(subject: string) =>
    queries.get(subject)!.shift()!.rows as Row[];
  const rows = await readCatalogRows(read, OPTIONS);
  return assembleCatalog(rows, OPTIONS, { version: 1, hash: "recorded", timeZones: new Set(["UTC"]) });
}

export function readRecordedRows(): Promise<string> {
  return readFile(FILE, "utf8");
}

export async function writeRecordedRows(text: string): Promise<void> {
  await writeFile(FILE, text);
}

/** The rows as they are recorded, which two databases with the same schema have in common: a line for each query. */
export async function recordRows(client: pg.ClientBase): Promise<string> {
  const recorded: RecordedRows[] = [];
  const read: CatalogQuery = async <Row extends object>(subject: string, text: string, values?: readonly unknown[]) => {
    const rows = await queryWithTimeout<Row>(client, text, values);
    recorded.push({ subject, rows });
    return rows;
  };
  await readCatalogRows(read, OPTIONS);
  const oids = await readOwnOids(client);
  const lines = recorded.map((query) => JSON.stringify(query, (_, value) => withRecordedOids(value, oids)));
  const { rows } = await client.query<{ name: string }>("select current_database() as name");
  return `${lines.join("\n").replaceAll(rows[0]!.name, "museum")}\n`;
}

/** The number by which the recording refers to each object of the schema: oids differ between databases. */
async function readOwnOids(client: pg.ClientBase): Promise<ReadonlyMap<number, number>> {
  const { rows } = await client.query<{ oid: number }>(`
    select oid from (
      select oid from pg_namespace union all select oid from pg_class union all select oid from pg_type
      union all select oid from pg_proc union all select oid from pg_constraint union all select oid from pg_policy
    ) as objects where oid >= 16384 order by oid`);
  return new Map(rows.map(({ oid }, index) => [oid, FIRST_RECORDED_OID + index]));
}

/** Texts are oids themselves, or the query trees of views, which are full of them. */
function withRecordedOids(value: unknown, oids: ReadonlyMap<number, number>): unknown {
  if (typeof value === "number") return oids.get(value) ?? value;
  if (typeof value !== "string" || !/^\d+$|:resorigtbl /.test(value)) return value;
  return value.replace(/\b\d{5,}\b/g, (oid) => String(oids.get(Number(oid)) ?? oid));
}
