import pg from "pg";
import { endClient } from "./end-client.ts";
import { useSafeSearchPath } from "./search-path.ts";
import { findServer } from "./server-finder.ts";

/** Runs work on a separate connection: for use without a pool, or if the session must not be reused. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { client } = await findServer(url).connect((server) => {
    // A lost connection rejects the running query; without a listener it would also end the process.
    return new pg.Client(server).on("error", () => {});
  });
  try {
    return await work(client);
  } finally {
    await endClient(client);
  }
}

/** Runs statements of the service only, with the safe search path unless the session belongs to a pooler. */
export function withServiceClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await useSafeSearchPath(client);
    return work(client);
  });
}
