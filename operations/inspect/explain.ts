import type pg from "pg";
import { type Catalog, type CatalogTable, hasAnyColumnPrivilege, type TablePrivilege } from "#catalog";
import type { PostgresUrls } from "#cluster";
import { applyCallerSettings, quotedName, withClient } from "#postgres/client";
import type { Statement, StatementContext } from "#postgres/statement";
import type { AbortLike } from "#runtime/concurrency";

type InspectionOptions = {
  readonly timeoutMs: number;
  /** Aborted when nobody waits for the result. */
  readonly signal: AbortLike;
};

/** Makes Postgres notice a closed connection during a statement. Not every operating system supports this. */
const NOTICE_CLOSED_CONNECTIONS = "set client_connection_check_interval = '1s'";

/** Runs work on its own connections, as the login of requests and as the owner. Its statements end at the timeout, or when it is aborted. */
export async function withInspectionClients<T>(
  { requestUrl, directUrl }: Pick<PostgresUrls, "requestUrl" | "directUrl">,
  { timeoutMs, signal }: InspectionOptions,
  work: (clients: { readonly login: pg.Client; readonly owner: pg.Client }) => Promise<T>,
): Promise<T> {
  const bounded = async (client: pg.Client): Promise<pg.Client> => {
    await client.query(`set statement_timeout = ${timeoutMs}`);
    await client.query(NOTICE_CLOSED_CONNECTIONS).catch(() => {});
    return client;
  };
  return withClient(requestUrl, (loginClient) =>
    withClient(directUrl, async (ownerClient) => {
      const clients = [loginClient, ownerClient];
      const close = () => {
        for (const { connection } of clients as (pg.Client & { connection: pg.Connection })[])
          connection.stream.destroy();
      };
      signal.addEventListener("abort", close);
      try {
        return await work({ login: await bounded(loginClient), owner: await bounded(ownerClient) });
      } finally {
        signal.removeEventListener("abort", close);
      }
    }),
  );
}

/** Runs work in a transaction that changes nothing, with the caller's settings. The owner keeps its role. */
export async function inRolledBackTransaction<T>(
  client: pg.ClientBase,
  { role, settings }: StatementContext,
  { asRole }: { asRole: boolean },
  work: () => Promise<T>,
): Promise<T> {
  await client.query("begin read only");
  try {
    await applyCallerSettings(client, settings);
    if (asRole) await client.query(`set local role ${quotedName(role)}`);
    return await work();
  } finally {
    await client.query("rollback");
  }
}

/** Returns the statement's plan, with the time that it took. */
export async function explainStatement(client: pg.ClientBase, { text, values }: Statement): Promise<string> {
  const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (analyze, timing off) ${text}`, [...values]);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** True if the role may not use the schema of the table, and so cannot name the table. */
export function lacksUsage(role: string, table: CatalogTable, catalog: Catalog): boolean {
  const schema = catalog.schemas.get(table.schema);
  return schema !== undefined && !catalog.hasPrivilege(role, "usage", schema);
}

/** The grants that a role lacks for a command on a table, as SQL. */
export function findMissingTableGrants(
  { role, verb, table }: { readonly role: string; readonly verb: TablePrivilege; readonly table: CatalogTable },
  catalog: Catalog,
): string[] {
  const isGranted = hasAnyColumnPrivilege(catalog, role, verb, table);
  const to = `to ${quotedName(role)};`;
  return [
    ...(lacksUsage(role, table, catalog) ? [`grant usage on schema ${quotedName(table.schema)} ${to}`] : []),
    ...(isGranted ? [] : [`grant ${verb} on ${quotedName(table.schema, table.name)} ${to}`]),
  ];
}
