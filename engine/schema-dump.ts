import type pg from "pg";
import { comments } from "./schema-dump/comments.ts";
import { definitions } from "./schema-dump/definitions.ts";
import { defaultPrivileges, grants } from "./schema-dump/grants.ts";
import { indexes, policies, rowLevels, triggers } from "./schema-dump/tables.ts";

/** One statement, and the object it is about: `table public.notes`. */
export type Statement = { readonly object: string; readonly statement: string };

/** In the order in which the statements about one object are to be read. */
export const SCHEMA_PARTS = [
  ...definitions,
  defaultPrivileges,
  indexes,
  triggers,
  rowLevels,
  policies,
  grants,
  comments,
];

const HEADING = "-- The schema as it is, to read and to compare. Made by: npm run migrate -- dump\n";

const KINDS = [
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
 * The schema of a database as SQL to read and to compare: everything about one object stands together, in an order that
 * does not depend on how it came about. Opens a transaction of its own.
 */
export async function dumpSchema(client: pg.ClientBase): Promise<string> {
  const statements = await readStatements(client, SCHEMA_PARTS);
  const objects = [...Map.groupBy(statements, ({ object }) => object)]
    .sort(([one], [other]) => place(one) - place(other) || (one < other ? -1 : 1))
    .map(([object, about]) => `-- ${object}\n${about.map(({ statement }) => `${statement};\n`).join("")}`);
  return [HEADING, ...objects].join("\n");
}

/** The statements of a database's schema, in an order that does not depend on how it came about. Opens a transaction of its own. */
export async function readStatements(client: pg.ClientBase, parts: readonly string[]): Promise<Statement[]> {
  await client.query("begin isolation level repeatable read, read only");
  try {
    // Postgres then writes every name with its schema.
    await client.query("set local search_path = ''");
    const statements: Statement[] = [];
    for (const part of parts) {
      const { rows } = await client.query<Statement>(`select * from (${part}) as part order by statement collate "C"`);
      statements.push(...rows);
    }
    return statements;
  } finally {
    await client.query("rollback");
  }
}

function place(object: string): number {
  return KINDS.findIndex((kind) => object === kind || object.startsWith(`${kind} `));
}
