import type pg from "pg";
import { comparisonQueries, type SchemaRow } from "#catalog/definitions";

/** A schema as it is compared. */
export type DumpedSchema = {
  readonly statements: readonly SchemaRow[];
  /** The parts of the definitions of tables, such as columns and constraints. */
  readonly tableParts: readonly SchemaRow[];
};

const HEADING = "-- The schema as it is, to read and to compare. Made by: npm run migrate -- dump\n";

/** The others follow, by their names. */
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

/** Objects of the record of migrations, and of sessions. */
const IS_LEFT_OUT = "object ~ '^[a-z ]+ (graphile_migrate|pg_temp\\w*)(\\.|$)'";

/**
 * The schema of a database as SQL for reading and comparing: grouped by object, in an order that does not depend on its
 * history. Opens its own transaction.
 */
export async function dumpSchema(client: pg.ClientBase): Promise<string> {
  const statements = await inReadTransaction(client, async () => {
    const { definitions, groupedGrants, comments } = comparisonQueries(await readVersion(client));
    return readRows<Pick<SchemaRow, "object" | "statement">>(
      client,
      [...definitions, groupedGrants, comments],
      "statement",
    );
  });
  const objects = [...Map.groupBy(statements, ({ object }) => object)]
    .sort(([one], [other]) => kindPosition(one) - kindPosition(other) || (one < other ? -1 : 1))
    .map(([object, about]) => `-- ${object}\n${about.map(({ statement }) => `${statement};\n`).join("")}`);
  return [HEADING, ...objects].join("\n");
}

/** The schema of a database, in an order that does not depend on its history. Opens a transaction of its own. */
export async function readDumpedSchema(client: pg.ClientBase): Promise<DumpedSchema> {
  return inReadTransaction(client, () => readDumpedSchemaHere(client));
}

/** Reads the same within a transaction, and leaves its search path empty. */
export async function readDumpedSchemaHere(client: pg.ClientBase): Promise<DumpedSchema> {
  const { definitions, singleGrants, comments, tableParts } = comparisonQueries(await readVersion(client));
  return {
    statements: await readRows(client, [...definitions, singleGrants, comments]),
    tableParts: await readRows(client, tableParts),
  };
}

async function inReadTransaction<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin isolation level repeatable read, read only");
  try {
    return await work();
  } finally {
    await client.query("rollback");
  }
}

async function readVersion(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ version: number }>(
    "select pg_catalog.current_setting('server_version_num')::int as version",
  );
  return rows[0]!.version;
}

/** With an empty search path Postgres writes every name with its schema. */
export async function readRows<Row extends pg.QueryResultRow = SchemaRow>(
  client: pg.ClientBase,
  queries: readonly string[],
  order: keyof SchemaRow = "text",
): Promise<Row[]> {
  await client.query("set local search_path = ''");
  const rows: Row[] = [];
  for (const query of queries) {
    const found = await client.query<Row>(
      `select * from (${query}) as part where not (${IS_LEFT_OUT}) order by ${order} collate "C"`,
    );
    rows.push(...found.rows);
  }
  return rows;
}

function kindPosition(object: string): number {
  const position = KIND_ORDER.findIndex((kind) => object === kind || object.startsWith(`${kind} `));
  return position < 0 ? KIND_ORDER.length : position;
}
