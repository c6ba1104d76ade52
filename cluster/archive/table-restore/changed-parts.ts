import type pg from "pg";
import { withClient } from "#postgres/client";
import { setPortableFormats } from "../content/content-tables.ts";
import { quoteColumn, readTarget, type TargetTable, usableKey } from "./target-table.ts";

/** The number of parts. Rows are in the same part if the hashes of their keys have the same last bits. */
const PARTS = 16_384;

/** The parts of a table in which rows differ from those of an earlier time. */
export type ChangedParts = {
  /** The columns of the hash. */
  readonly columns: readonly string[];
  readonly numbers: readonly string[];
  /** The number of rows of all parts at that time. */
  readonly archived: number;
};

/** Compares rows as texts, which all types have; values that differ only in their text count as different. */
export function rowText(alias: string, columns: readonly string[]): string {
  return `row(${columns.map((name) => `${alias}.${quoteColumn(name)}::pg_catalog.text`)})`;
}

function hashOf(alias: string, columns: readonly string[]): string {
  return `pg_catalog.hashtextextended(${rowText(alias, columns)}::pg_catalog.text, 0)`;
}

function partOf(alias: string, columns: readonly string[]): string {
  return `(${hashOf(alias, columns)} & ${PARTS - 1})`;
}

/** Returns a condition for the rows that have to be compared. */
export function isInParts(alias: string, parts: ChangedParts | null): string {
  if (parts === null || parts.numbers.length === PARTS) return "true";
  if (parts.numbers.length === 0) return "false";
  return `${partOf(alias, parts.columns)} = any ('{${parts.numbers}}'::pg_catalog.int8[])`;
}

/** Each database reads its table once, and only digests are sent. Null if the earlier database has no such table. */
export async function findChangedParts(
  client: pg.ClientBase,
  target: TargetTable,
  earlierUrl: string,
): Promise<ChangedParts | null> {
  return withClient(earlierUrl, async (earlier) => {
    await setPortableFormats(earlier);
    const there = await readTarget(earlier, target.table);
    if (!there) return null;
    const archived = there.columns.map(({ name }) => name);
    const row = target.columns.map(({ name }) => name).filter((name) => archived.includes(name));
    const columns = usableKey(target, row)?.columns.map(({ name }) => name) ?? row;
    const [now, before] = await Promise.all([
      readDigests(client, target.relation, { columns, row }),
      readDigests(earlier, there.relation, { columns, row }),
    ]);
    const differs = (part: string) => now.get(part)?.digest !== before.get(part)?.digest;
    return {
      columns,
      numbers: [...new Set([...now.keys(), ...before.keys()])].filter(differs),
      archived: before.values().reduce((sum, { rows }) => sum + rows, 0),
    };
  });
}

type PartDigest = { readonly digest: string; readonly rows: number };

async function readDigests(
  client: pg.ClientBase,
  relation: string,
  { columns, row }: { readonly columns: readonly string[]; readonly row: readonly string[] },
): Promise<ReadonlyMap<string, PartDigest>> {
  const { rows } = await client.query<PartDigest & { part: string }>(
    `select ${partOf("t", columns)}::pg_catalog.text as part, pg_catalog.count(*)::pg_catalog.float8 as rows,
       pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.sum(${hashOf("t", row)})) as digest
     from ${relation} as t group by 1`,
  );
  return new Map(rows.map(({ part, ...digest }) => [part, digest]));
}
