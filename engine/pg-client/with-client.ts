import pg from "pg";

/** Lends a connection of its own for the time of the work: where there is no pool yet, or the session must be left behind. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  // A connection that is lost fails the query that uses it, and would otherwise end the process too.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
