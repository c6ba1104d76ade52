import { withClient } from "#postgres/client";

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

/** Creates an empty database for the work, and drops it afterwards. */
export async function withScratchDatabase<T>(url: string, rootUrl: string, work: () => Promise<T>): Promise<T> {
  await requireScratchDatabase(url, rootUrl);
  await recreateDatabase(url, rootUrl);
  try {
    return await work();
  } finally {
    await withClient(rootUrl, (client) =>
      client.query(`drop database if exists ${client.escapeIdentifier(databaseNameIn(url))} with (force)`),
    );
  }
}

/** A scratch database of an aborted run has a record of migrations. Another database with tables contains somebody's data. */
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
