import type { Column, Table } from "./described.ts";
import { canonical, isRecord, type Json, sorted } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { type Relation, relationsOf } from "./relations.ts";
import { qualified, quoted } from "./rows.ts";
import type { Served } from "./served.ts";
import { isComparable, someValue } from "./some-value.ts";

/** /rest/v1: all rows, each by its key, each column as a filter and an order, each foreign key embedded from both sides. */
export async function crawlTableInterface(served: Served, table: Table, findings: Findings): Promise<void> {
  const { ask } = served;
  const headers = { "Accept-Profile": table.schema };
  const address = `/rest/v1/${encodeURIComponent(table.name)}`;
  const read = async (query: string) => (await ask(`${address}?${query}`, { headers })).json;
  const rows = await compareTableRows(served, table, findings);

  for (const row of rows.slice(0, 3)) {
    if (table.primaryKey.length === 0 || !isRecord(row)) break;
    const key = table.primaryKey.map((name) => `${nameInQuery(name)}=${operand(row[name])}`).join("&");
    findings.compare("table", table.name, "row by key", [row], await read(key));
  }

  await Promise.all(
    table.columns.filter(isComparable).map((column) => compareColumn(served, table, column, { read, findings })),
  );
  for (const relation of relationsOf(served.tables, table))
    await compareEmbedding(served, table, relation, { read, findings });
}

/** The rows alone. */
export async function compareTableRows(
  { ask, sql }: Served,
  table: Table,
  findings: Findings,
): Promise<readonly Json[]> {
  const rows = await sql(`select t.* from ${qualified(table)} as t`);
  const { json } = await ask(`/rest/v1/${encodeURIComponent(table.name)}`, {
    headers: { "Accept-Profile": table.schema },
  });
  findings.compare("table", table.name, "rows", sorted(rows), sorted(json));
  return rows;
}

type Comparison = { readonly read: (query: string) => Promise<Json>; readonly findings: Findings };

async function compareColumn(
  served: Served,
  table: Table,
  column: Column,
  { read, findings }: Comparison,
): Promise<void> {
  const { sql } = served;
  const { name } = column;
  const subject = `${table.name}.${name}`;
  const value = await someValue(served, table, column);
  if (value !== null) {
    const expected = await sql(`select t.* from ${qualified(table)} as t where ${quoted(name)} = $1`, [value]);
    const told = await read(`${nameInQuery(name)}=eq.${encodeURIComponent(value)}`);
    findings.compare("table", subject, "filter", sorted(expected), sorted(told));
  }
  const ordered = await sql(
    `select ${quoted(name)} as value from ${qualified(table)} order by ${quoted(name)} desc nulls first`,
  );
  const told = await read(`select=value:${nameInQuery(name)}&order=${nameInQuery(name)}.desc.nullsfirst`);
  findings.compare("table", subject, "order", ordered, told);
}

async function compareEmbedding(
  { sql }: Served,
  table: Table,
  { kind, target, embedding, join, isSingle }: Relation,
  { read, findings }: Comparison,
): Promise<void> {
  const expected = await sql(
    isSingle
      ? `select t.*, (select row_to_json(o.*) from ${qualified(target)} as o where ${join}) as _embedded from ${qualified(table)} as t`
      : `select t.*, (select coalesce(json_agg(o.* order by (o.*)::text), '[]') from ${kind.from ?? `${qualified(target)} as o`} where ${join}) as _embedded
         from ${qualified(table)} as t`,
  );
  const told = await read(`select=*,_embedded:${embedding.map((name) => nameInQuery(name!)).join("!")}(*)`);
  const subject = `${table.name} ${kind.arrow} ${embedding.join("!")}`;
  findings.compare("table", subject, "embedding", embedded(expected), embedded(told));
}

/** The rows of a list within a row have no order that both sides know. */
function embedded(rows: Json): Json {
  if (!Array.isArray(rows)) return rows;
  return sorted(
    rows.map((row) =>
      isRecord(row) && Array.isArray(row._embedded) ? { ...row, _embedded: sorted(row._embedded) } : row,
    ),
  );
}

function operand(value: Json | undefined): string {
  return `eq.${encodeURIComponent(typeof value === "string" ? value : canonical(value))}`;
}

/** Quotes a name that would be read as something else. */
function nameInQuery(name: string): string {
  return encodeURIComponent(
    /^[a-z_][a-z0-9_]*$/i.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '\\"')}"`,
  );
}

const RESERVED: ReadonlySet<string> = new Set([
  "select",
  "order",
  "limit",
  "offset",
  "and",
  "or",
  "not",
  "columns",
  "on_conflict",
]);
