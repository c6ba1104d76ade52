import type pg from "pg";
import { withClient } from "#postgres/client";
import { withInterruption } from "./interruption.ts";

/** Drops the database if it exists, and creates it empty. */
export async function recreateDatabase(url: string, rootUrl: string): Promise<void> {
  await withClient(rootUrl, async (client) => {
    const name = client.escapeIdentifier(databaseNameIn(url));
    await client.query(`drop database if exists ${name}`);
    const owner = userNameIn(url);
    await client.query(`create database ${name}${owner ? ` owner ${client.escapeIdentifier(owner)}` : ""}`);
    await client.query(`revoke all on database ${name} from public`);
  });
}

/** The comment by which the next command knows the database of one that was killed. */
const MARK = "A scratch database. The next command that needs one drops it.";

/** Creates an empty database for the work, and drops it afterwards, also when a signal ends the process. */
export async function withScratchDatabase<T>(url: string, rootUrl: string, work: () => Promise<T>): Promise<T> {
  const name = databaseNameIn(url);
  return withClient(rootUrl, async (client) => {
    await claimDatabase(client, name);
    if (await isMarked(client, name)) await dropWithSessions(rootUrl, name);
    else await requireScratchDatabase(url, rootUrl);
    return withInterruption(async (interruption) => {
      await recreateDatabase(url, rootUrl);
      try {
        await client.query(`comment on database ${client.escapeIdentifier(name)} is ${client.escapeLiteral(MARK)}`);
        return await Promise.race([interruption, work()]);
      } finally {
        await dropWithSessions(rootUrl, name);
      }
    });
  });
}

/** Until the connection ends, so that no other command drops it while this one lives. */
async function claimDatabase(client: pg.ClientBase, name: string): Promise<void> {
  const { rows } = await client.query<{ isFree: boolean }>(
    `select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('scratch database ' || $1)) as "isFree"`,
    [name],
  );
  if (rows[0]!.isFree) return;
  throw new Error(`The scratch database ${name} is used by another command. Run this one again when that has ended.`);
}

async function isMarked(client: pg.ClientBase, name: string): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from pg_catalog.pg_database where datname = $1 and pg_catalog.shobj_description(oid, 'pg_database') = $2",
    [name, MARK],
  );
  return rowCount === 1;
}

/** A session of a killed command may still run its statement. */
async function dropWithSessions(rootUrl: string, name: string): Promise<void> {
  await withClient(rootUrl, (client) =>
    client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`),
  );
}

/** A scratch database without a mark has a record of migrations. Another database with tables contains somebody's data. */
async function requireScratchDatabase(url: string, rootUrl: string): Promise<void> {
  const name = databaseNameIn(url);
  const exists = await withClient(rootUrl, (client) =>
    client.query("select from pg_catalog.pg_database where datname = $1", [name]),
  );
  if (exists.rowCount === 0) return;
  const { rows } = await withClient(url, (client) =>
    client.query<{ isForeign: boolean }>(
      `select pg_catalog.to_regclass('graphile_migrate.migrations') is null and exists (
        select from pg_catalog.pg_tables where schemaname not in ('pg_catalog', 'information_schema')) as "isForeign"`,
    ),
  );
  if (!rows[0]!.isForeign) return;
  throw new Error(
    `The database ${name} has tables that these migrations did not create, so it is not used as the scratch database. ` +
      "Set SHADOW_DATABASE_URL to the name of a database that may be dropped.",
  );
}

// The host of a unix socket is empty, which URL does not allow.
function databaseNameIn(url: string): string {
  return decodeURIComponent(/^\w+:\/\/[^/?]*\/([^?]*)/.exec(url)?.[1] ?? "");
}

function userNameIn(url: string): string {
  return decodeURIComponent(/^\w+:\/\/([^:@/?]*)(?::[^@/?]*)?@/.exec(url)?.[1] ?? "");
}
