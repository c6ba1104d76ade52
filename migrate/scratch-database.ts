import type pg from "pg";
import { withClient } from "#postgres/client";
import { withInterruption } from "./interruption.ts";

/** Drops the database if it exists, and creates it empty. */
export async function recreateDatabase(url: string, rootUrl: string): Promise<void> {
  await withClient(rootUrl, (client) => recreateBy(client, url));
}

async function recreateBy(client: pg.ClientBase, url: string): Promise<void> {
  const name = client.escapeIdentifier(databaseNameIn(url));
  await client.query(`drop database if exists ${name}`);
  const owner = userNameIn(url);
  await client.query(`create database ${name}${owner ? ` owner ${client.escapeIdentifier(owner)}` : ""}`);
  await client.query(`revoke all on database ${name} from public`);
}

/** The comment that marks a scratch database for the next command, if this one was killed. */
export const SCRATCH_MARK = "A scratch database. The next command that needs one drops it.";

type ScratchDatabaseOptions = {
  /** Aborts the work, whose sessions end with the database. */
  readonly signal?: AbortSignal | undefined;
};

/** Creates an empty database for the work, and drops it afterwards, also when a signal ends the process. */
export async function withScratchDatabase<T>(
  url: string,
  rootUrl: string,
  work: () => Promise<T>,
  { signal }: ScratchDatabaseOptions = {},
): Promise<T> {
  const name = databaseNameIn(url);
  return withClient(rootUrl, async (client) => {
    await claimDatabase(client, name);
    const claim = watchClaim(client, name);
    // The session with the claim drops it: if the command is killed, Postgres still completes the statement, and the claim stays until then.
    if (await isMarked(client, name)) await dropWithSessions(client, name);
    else await requireScratchDatabase(url, rootUrl);
    return withInterruption(async (untilInterrupted) => {
      await recreateBy(client, url);
      try {
        await client.query(
          `comment on database ${client.escapeIdentifier(name)} is ${client.escapeLiteral(SCRATCH_MARK)}`,
        );
        signal?.throwIfAborted();
        return await untilInterrupted(() => Promise.race([claim.lost, rejectOnAbort(signal), work()]));
      } finally {
        if (claim.isHeld()) await dropWithSessions(client, name);
        else await dropUnlessClaimed(rootUrl, name);
      }
    });
  });
}

/**
 * Claims the database until the connection ends, so that no other command drops it meanwhile. Advisory locks count within the session's
 * database, which another command may not share; the names of sessions are visible in the whole server, to every role.
 */
async function claimDatabase(client: pg.ClientBase, name: string): Promise<void> {
  const claim = "'scratch database ' || pg_catalog.hashtext($1)";
  await client.query(
    `select pg_catalog.set_config('application_name', ${claim}, false), pg_catalog.set_config('idle_session_timeout', '0', false)`,
    [name],
  );
  const { rows } = await client.query<{ isFree: boolean }>(
    `select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtext('scratch database ' || $1)) and not exists (
      select from pg_catalog.pg_stat_activity where application_name = ${claim} and pid <> pg_catalog.pg_backend_pid()) as "isFree"`,
    [name],
  );
  if (rows[0]!.isFree) return;
  throw new Error(`The scratch database ${name} is used by another command. Run this one again when that has ended.`);
}

function rejectOnAbort(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}

/** Reports the loss of the claim: another command may drop the database as soon as the connection with the claim has ended. */
function watchClaim(client: pg.ClientBase, name: string) {
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => {});
  let isHeld = true;
  client.once("end", () => {
    isHeld = false;
    reject(new Error(`The connection that kept the scratch database ${name} for this command was lost. Run it again.`));
  });
  return { lost, isHeld: () => isHeld };
}

/** Ends this command's work in the database and drops it, unless another command has claimed it by now. */
async function dropUnlessClaimed(rootUrl: string, name: string): Promise<void> {
  await withClient(rootUrl, async (client) => {
    await claimDatabase(client, name);
    await dropWithSessions(client, name);
  });
}

async function isMarked(client: pg.ClientBase, name: string): Promise<boolean> {
  const { rowCount } = await client.query(
    "select from pg_catalog.pg_database where datname = $1 and pg_catalog.shobj_description(oid, 'pg_database') = $2",
    [name, SCRATCH_MARK],
  );
  return rowCount === 1;
}

/** Also ends sessions: one of a killed command may still run its statement. */
async function dropWithSessions(client: pg.ClientBase, name: string): Promise<void> {
  await client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`);
}

/** Throws for another database with tables, which contains somebody's data. A scratch database without a mark has a record of migrations. */
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
