import type pg from "pg";
import {
  comments,
  defaultPrivileges,
  definitions,
  grants,
  indexes,
  policies,
  rowSettings,
  triggers,
} from "./definitions.ts";

/** One statement, and the object it is about: `table public.notes`. */
export type SchemaStatement = { readonly object: string; readonly statement: string };

/** In the order in which the statements about one object are to be read. */
export const SCHEMA_PARTS = [
  ...definitions,
  defaultPrivileges,
  indexes,
  triggers,
  rowSettings,
  policies,
  grants,
  comments,
];

const HEADING = "-- The schema as it is, to read and to compare. Made by: npm run migrate -- dump\n";

const KIND_ORDER = [
  "schema",
  "extension",
  "default privileges",
  "type",
  "sequence",
  "table",
  "view",
  "materialized view",
  "foreign table",
  "function",
  "procedure",
  "aggregate",
  "event trigger",
];

/**
 * The schema of a database as SQL for reading and comparing: grouped by object, in an order that does not depend on its
 * history. Opens its own transaction.
 */
export async function dumpSchema(client: pg.ClientBase): Promise<string> {
  const statements = await readStatements(client, SCHEMA_PARTS);
  const objects = [...Map.groupBy(statements, ({ object }) => object)]
    .sort(([one], [other]) => kindPosition(one) - kindPosition(other) || (one < other ? -1 : 1))
    .map(([object, about]) => `-- ${object}\n${about.map(({ statement }) => `${statement};\n`).join("")}`);
  return [HEADING, ...objects].join("\n");
}

/** The statements of a database's schema, in an order that does not depend on how it came about. Opens a transaction of its own. */
export async function readStatements(client: pg.ClientBase, parts: readonly string[]): Promise<SchemaStatement[]> {
  await client.query("begin isolation level repeatable read, read only");
  try {
    // Postgres then writes every name with its schema.
    await client.query("set local search_path = ''");
    const statements: SchemaStatement[] = [];
    for (const part of parts) {
      const { rows } = await client.query<SchemaStatement>(
        `select * from (${part}) as part order by statement collate "C"`,
      );
      statements.push(...rows);
    }
    return statements;
  } finally {
    await client.query("rollback");
  }
}

function kindPosition(object: string): number {
  return KIND_ORDER.findIndex((kind) => object === kind || object.startsWith(`${kind} `));
}
