import type { Table } from "./described.ts";
import { canonical, isRecord, type Json, sorted } from "./exact.ts";
import type { Findings } from "./findings.ts";
import { backward, forward } from "./relations.ts";
import { qualified, quoted } from "./rows.ts";
import type { Served } from "./served.ts";
import { isComparable, someValue } from "./some-value.ts";

/** Parameters of every list, which filter by no column of their name. */
const PARAMETERS: ReadonlySet<string> = new Set([
  ..."limit page size skip sort order fields links keyword envelope version api_key apikey".split(" "),
]);

/** /api/v1: the list, each row by its key, each column as a filter and an order, each foreign key as a link from both sides. */
export async function crawlResourceInterface(served: Served, table: Table, findings: Findings): Promise<void> {
  const { ask, sql } = served;
  const address = addressOf(table);
  const list = async (query: string) => rowsOf((await ask(`${address}?limit=1000&${query}`)).json);

  const rows = await compareResourceRows(served, table, findings);
  for (const row of rows.slice(0, 3)) {
    const key = keyOf(table, row);
    if (key === null) break;
    findings.compare("resource", table.name, "row by key", row, (await ask(`${address}/${key}`)).json);
  }

  await Promise.all(
    table.columns
      .filter((column) => isComparable(column) && !PARAMETERS.has(column.name))
      .map(async (column) => {
        const { name, baseType } = column;
        const subject = `${table.name}.${name}`;
        const value = await someValue(served, table, column);
        // A filter on a list finds the rows whose list contains the value.
        if (value !== null && !baseType.endsWith("[]")) {
          const expected = await sql(`select t.* from ${qualified(table)} as t where ${quoted(name)} = $1`, [value]);
          const told = await list(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
          findings.compare("resource", subject, "filter", sorted(expected), sorted(told));
        }
        const ordered = await sql(`select ${quoted(name)} from ${qualified(table)} order by ${quoted(name)} asc`);
        const told = await list(`sort=${encodeURIComponent(name)}:asc`);
        const values = Array.isArray(told) ? told.map((row) => (isRecord(row) ? { [name]: row[name]! } : row)) : told;
        findings.compare("resource", subject, "order", ordered, values);
      }),
  );
  await compareLinks(served, table, findings);
}

/** The rows alone. */
export async function compareResourceRows(
  { ask, sql }: Served,
  table: Table,
  findings: Findings,
): Promise<readonly Json[]> {
  const rows = await sql(`select t.* from ${qualified(table)} as t`);
  const { json } = await ask(`${addressOf(table)}?limit=1000`);
  findings.compare("resource", table.name, "rows", sorted(rows), sorted(rowsOf(json)));
  return rows;
}

async function compareLinks({ ask, sql, tables }: Served, table: Table, findings: Findings): Promise<void> {
  if (table.primaryKey.length === 0) return;
  const order = table.primaryKey.map(quoted).join(", ");
  for (const row of await sql(`select t.* from ${qualified(table)} as t order by ${order} limit 2`)) {
    const key = keyOf(table, row);
    if (key === null || !isRecord(row)) return;
    const own = `${addressOf(table)}/${key}`;
    const { json } = await ask(`${own}?links=true`);
    const links = isRecord(json) && isRecord(json._links) ? Object.values(json._links) : [];
    const hrefs = links.flatMap((link) => (isRecord(link) && link.method === undefined ? [String(link.href)] : []));
    const isHere = table.primaryKey.map((name) => `t.${quoted(name)} = ${literal(row[name])}`).join(" and ");

    for (const {
      target,
      join,
      key: { name },
    } of forward(tables, table)) {
      const [referred] = await sql(
        `select o.* from ${qualified(table)} as t join ${qualified(target)} as o on ${join} where ${isHere}`,
      );
      if (referred === undefined) continue;
      const expected = canonical([referred]);
      const candidates = hrefs.filter((href) => isOf(href, addressOf(target)));
      const told = await Promise.all(
        candidates.map(async (href) => canonical([rowsOf((await ask(href)).json)].flat())),
      );
      const subject = `${table.name} -> ${target.name} (${name})`;
      findings.note("resource", subject, "link", told.includes(expected), expected, told.join(" ") || "no link");
    }

    const below = hrefs.filter((href) => href.startsWith(`${own}/`));
    const behind = new Map<string, string>();
    for (const href of below) behind.set(href, canonical(sorted(rowsOf((await ask(`${href}?limit=1000`)).json))));
    for (const {
      target,
      join,
      key: { name },
    } of backward(tables, table)) {
      const referring = await sql(
        `select o.* from ${qualified(table)} as t join ${qualified(target)} as o on ${join} where ${isHere}`,
      );
      const expected = canonical(sorted(referring));
      const subject = `${table.name} <- ${target.name} (${name})`;
      const candidates = below.filter((href) =>
        href.slice(own.length + 1).startsWith(addressOf(target).slice("/api/v1/".length)),
      );
      const isRight = candidates.some((href) => behind.get(href) === expected);
      findings.note(
        "resource",
        subject,
        "link",
        isRight,
        expected,
        candidates.map((href) => `${href}: ${behind.get(href)}`).join(" "),
      );
    }
  }
}

export function addressOf({ name }: Pick<Table, "name">): string {
  return `/api/v1/${encodeURIComponent(name.replace(/[^\p{L}\p{N}]+/gu, "-").toLowerCase())}`;
}

/** Returns the key of a row in an address; null for a row without one. */
export function keyOf({ primaryKey }: Table, row: Json): string | null {
  if (primaryKey.length === 0 || !isRecord(row)) return null;
  const values = primaryKey.map((name) => textOf(row[name]));
  return values.includes("") ? null : values.map(encodeURIComponent).join(",");
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : canonical(value);
}

function literal(value: Json | undefined): string {
  return `'${textOf(value).replaceAll("'", "''")}'`;
}

/** True if the link leads to a row, or to rows that a query chooses. */
function isOf(href: string, collection: string): boolean {
  return href.startsWith(`${collection}/`) || href.startsWith(`${collection}?`);
}

function rowsOf(json: Json): Json {
  return isRecord(json) && json.pagination !== undefined ? json.data! : json;
}
