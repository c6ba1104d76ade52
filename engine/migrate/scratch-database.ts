import { withClient } from "../with-client.ts";

/** Drops the database of that connection string, if there is one, and creates it empty. */
export async function recreateDatabase(url: string, rootUrl: string): Promise<void> {
  await withClient(rootUrl, async (client) => {
    const name = client.escapeIdentifier(databaseOf(url));
    await client.query(`drop database if exists ${name}`);
    const owner = userOf(url);
    await client.query(`create database ${name}${owner ? ` owner ${client.escapeIdentifier(owner)}` : ""}`);
    await client.query(`revoke all on database ${name} from public`);
  });
}

/** Lends a database that is empty at first and gone afterwards. */
export async function withScratchDatabase<T>(url: string, rootUrl: string, work: () => Promise<T>): Promise<T> {
  await refuseForeignTables(url, rootUrl);
  await recreateDatabase(url, rootUrl);
  try {
    return await work();
  } finally {
    await withClient(rootUrl, (client) =>
      client.query(`drop database if exists ${client.escapeIdentifier(databaseOf(url))} with (force)`),
    );
  }
}

/** A database that was left behind has the record of its migrations. Any other one with tables is somebody's data. */
async function refuseForeignTables(url: string, rootUrl: string): Promise<void> {
  const name = databaseOf(url);
  const exists = await withClient(rootUrl, (client) =>
    client.query("select from pg_database where datname = $1", [name]),
  );
  if (exists.rowCount === 0) return;
  const { rows } = await withClient(url, (client) =>
    client.query<{ isForeign: boolean }>(
      `select to_regclass('graphile_migrate.migrations') is null and exists (
        select from pg_tables where schemaname not in ('pg_catalog', 'information_schema')) as "isForeign"`,
    ),
  );
  if (!rows[0]!.isForeign) return;
  throw new Error(
    `The database ${name} has tables that these migrations did not create, so it is not used as the scratch database. ` +
      "Set SHADOW_DATABASE_URL to the name of a database that may be dropped.",
  );
}

// Of a unix socket the host is empty, which URL refuses.
function databaseOf(url: string): string {
  return decodeURIComponent(/^\w+:\/\/[^/?]*\/([^?]*)/.exec(url)?.[1] ?? "");
}

function userOf(url: string): string {
  return decodeURIComponent(/^\w+:\/\/([^:@/?]*)(?::[^@/?]*)?@/.exec(url)?.[1] ?? "");
}
