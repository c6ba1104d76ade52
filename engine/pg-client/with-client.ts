import pg from "pg";

/** Runs work on a connection of its own: for use without a pool, or if the session must not be reused. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  // A lost connection rejects the running query; without a listener it would also end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
