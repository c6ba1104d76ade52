import pg from "pg";
import type { Service } from "../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../database.ts";
import { tokenFor } from "../graphql.ts";
import { serve } from "../serve.ts";
import { END, endTable, isTold } from "./crawl-realtime.ts";
import { describeRoutines, describeTables, type Routine, type Table } from "./described.ts";
import { canonical, type Json, parseJson } from "./exact.ts";
import type { PublicSchema } from "./public-schemas.ts";
import { fillTables, qualified, quoted } from "./rows.ts";

export type Answer = { readonly status: number; readonly text: string; readonly json: Json };

export type Served = {
  readonly schema: PublicSchema;
  readonly database: TestDatabase;
  readonly service: Service;
  /** Connects as the superuser who owns everything. */
  readonly owner: pg.Client;
  /** Partitions are no tables of their own here, and in no interface. */
  readonly tables: readonly Table[];
  readonly routines: readonly Routine[];
  /** The tables that the generator found no row for. */
  readonly empty: readonly string[];
  ask(path: string, request?: Request): Promise<Answer>;
  graphql(query: string, variables?: Readonly<Record<string, Json>>): Promise<Answer>;
  /** The rows of one statement as JSON, read in the caller's role. */
  sql(statement: string, values?: readonly unknown[]): Promise<readonly Json[]>;
  /** The caller of its requests. */
  readonly caller: Caller;
  as(caller: Caller): Served;
  close(): Promise<void>;
};

export type Caller = { readonly role: string; readonly claims?: object };

type Request = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
};

const SETTINGS = {
  GRAPHQL_PRELOAD: "on",
  GRAPHQL_MAX_COMPLEXITY: "1000000",
  GRAPHQL_MAX_TOKENS: "1000000",
  GRAPHQL_MAX_ALIASES: "100000",
  GRAPHQL_MAX_ROOT_FIELDS: "100000",
  PGRST_DB_TX_END: "rollback-allow-override",
  DB_STATEMENT_TIMEOUT_SECONDS: "60",
};

/** A schema of somebody else's in a database of its own, with some rows in it, granted to the usual roles and served. */
export async function serveSchema(schema: PublicSchema, { rows = 4 } = {}): Promise<Served> {
  await using opened = new AsyncDisposableStack();
  const database = await cloneDatabase("empty");
  const { ownRoles = [] } = schema;
  opened.defer(async () => {
    await database.drop();
    for (const role of ownRoles) await asSuperuser(`drop role ${quoted(role)}`);
  });
  for (const role of ownRoles) await asSuperuser(`create role ${quoted(role)}; grant ${quoted(role)} to authenticator`);
  await schema.load(database.ownerUrl);
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  owner.on("error", () => {});
  await owner.connect();
  opened.defer(() => owner.end().catch(() => {}));

  await owner.query(schema.rows ?? "");
  const everything = await describeTables(owner, schema.name);
  const empty = await fillTables(owner, everything, rows);
  await owner.query(grantsOf(schema, everything));
  // A partition is read by the table that it is a part of.
  const tables = everything.filter(({ isPartition }) => !isPartition);
  const service = await serve(database, { ...SETTINGS, PGRST_DB_SCHEMAS: schema.name });
  opened.defer(() => service.stop());
  const reader = new pg.Client({ connectionString: database.ownerUrl });
  await reader.connect();
  opened.defer(() => reader.end());

  // One statement after the other: they share a session, and so its role.
  let last: Promise<unknown> = Promise.resolve();
  const readInTurn = (caller: Caller, statement: string, values: readonly unknown[]) => {
    const read = last.then(() => readAs(reader, caller, statement, values));
    last = read.catch(() => {});
    return read;
  };
  const routines = await describeRoutines(owner, schema.name);
  const kept = opened.move();
  const common = { schema, database, service, owner, tables, routines, empty, close: () => kept.disposeAsync() };

  const as = (caller: Caller): Served => {
    const token = tokenOf(caller);
    const ask: Served["ask"] = async (path, { method = "GET", headers = {}, body } = {}) => {
      const response = await fetch(`${service.url}${path}`, {
        method,
        headers: { apikey: token, Authorization: `Bearer ${token}`, ...headers },
        ...(body !== undefined && { body }),
      });
      const text = await response.text();
      return { status: response.status, text, json: readable(text) };
    };
    const graphql: Served["graphql"] = (query, variables = {}) =>
      ask("/graphql", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: `{"query": ${JSON.stringify(query)}, "variables": ${canonical(variables)}}`,
      });
    return { ...common, caller, ask, graphql, sql: (text, values = []) => readInTurn(caller, text, values), as };
  };
  return as({ role: schema.role });
}

export function tokenOf({ role, claims = {} }: Caller): string {
  return tokenFor("1", { role, ...claims });
}

async function readAs(
  client: pg.Client,
  { role, claims = {} }: Caller,
  statement: string,
  values: readonly unknown[],
): Promise<readonly Json[]> {
  await client.query("begin");
  try {
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('timezone', 'UTC', true)", [
      JSON.stringify({ sub: "1", role, ...claims }),
    ]);
    await client.query(`set local role ${quoted(role)}`);
    const { rows } = await client.query<{ row: string }>(
      `select row_to_json(_result.*)::text as row from (${statement}) as _result`,
      [...values],
    );
    return rows.map(({ row }) => parseJson(row));
  } finally {
    await client.query("rollback");
  }
}

/** Returns the statements of anybody who serves such a database: rights for the roles, and a publication of the tables that allow it. */
function grantsOf({ name, ownRoles = [] }: PublicSchema, tables: readonly Table[]): string {
  const to = ["anon", "authenticated", "service_role", ...ownRoles].map(quoted).join(", ");
  const result = tables.filter(isTold);
  const whole = result.filter(({ columns }) => !columns.some(({ virtual }) => virtual));
  return `
    grant usage on schema ${quoted(name)} to ${to};
    grant all on all tables in schema ${quoted(name)} to ${to};
    grant all on all sequences in schema ${quoted(name)} to ${to};
    grant execute on all functions in schema ${quoted(name)} to ${to};
    ${whole.map((table) => `alter table ${qualified(table)} replica identity full;`).join("\n")}
    ${endTable(name)};
    grant select on ${quoted(name)}.${END} to ${to};
    create publication supabase_realtime for table ${[...result.map(qualified), `${quoted(name)}.${END}`].join(", ")}
      with (publish_via_partition_root = true, publish_generated_columns = stored);`;
}

/** Roles are the whole cluster's. */
async function asSuperuser(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: urlOf("postgres", "postgres") });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

function readable(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
