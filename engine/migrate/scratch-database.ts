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
  await recreateDatabase(url, rootUrl);
  try {
    return await work();
  } finally {
    await withClient(rootUrl, (client) =>
      client.query(`drop database if exists ${client.escapeIdentifier(databaseOf(url))} with (force)`),
    );
  }
}

// Of a unix socket the host is empty, which URL refuses.
function databaseOf(url: string): string {
  return decodeURIComponent(/^\w+:\/\/[^/?]*\/([^?]*)/.exec(url)?.[1] ?? "");
}

function userOf(url: string): string {
  return decodeURIComponent(/^\w+:\/\/([^:@/?]*)(?::[^@/?]*)?@/.exec(url)?.[1] ?? "");
}
