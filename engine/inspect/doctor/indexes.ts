import type { Table } from "../../catalog/tables.ts";
import { quotedName } from "../../quoted-name.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** Columns that every request or every delete looks rows up by, without an index to do it with. */
export function indexFindings({ catalog }: Facts): Finding[] {
  return exposedTables(catalog)
    .filter(({ kind }) => kind === "table" || kind === "partitioned table")
    .flatMap((table) => [...foreignKeyFindings(table), ...policyFindings(table)]);
}

function foreignKeyFindings(table: Table): Finding[] {
  return table.foreignKeys
    .filter(({ columns }) => !isIndexed(table, columns))
    .map(({ name, columns }) => ({
      kind: "slow",
      what: `Embedding by ${name}, and deleting what it points to, reads all of ${nameOf(table)}.`,
      fix: createIndex(table, columns),
    }));
}

function policyFindings(table: Table): Finding[] {
  const expressions = table.policies.flatMap(({ using }) => using ?? []);
  const compared = [...table.columns.keys()].filter((column) => expressions.some((text) => isComparedBy(column, text)));
  const keys = new Set(table.foreignKeys.flatMap(({ columns }) => (columns.length === 1 ? columns : [])));
  return compared
    .filter((column) => !keys.has(column) && !isIndexed(table, [column]))
    .map((column) => ({
      kind: "slow",
      what: `A policy of ${nameOf(table)} looks for rows by ${quotedName(column)}, which has no index.`,
      fix: createIndex(table, [column]),
    }));
}

/** As Postgres prints it: `(author_id = …)`, `(… = author_id)`. */
function isComparedBy(column: string, expression: string): boolean {
  const printed = /^[a-z_][a-z0-9_]*$/.test(column) ? column : quotedName(column);
  const escaped = printed.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(String.raw`(?<![\w."])${escaped} = |= ${escaped}(?![\w"(])`).test(expression);
}

/** An index that begins with these columns, in any order among themselves. */
function isIndexed({ indexes }: Table, columns: readonly string[]): boolean {
  return indexes.some(({ columns: indexed, predicate }) => {
    const leading = new Set(indexed.slice(0, columns.length));
    return predicate === null && columns.every((column) => leading.has(column));
  });
}

function createIndex(table: Table, columns: readonly string[]): string {
  return `create index concurrently on ${nameOf(table)} (${columns.map((column) => quotedName(column)).join(", ")});`;
}

function nameOf({ schema, name }: Table): string {
  return quotedName(schema, name);
}
