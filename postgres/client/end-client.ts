import type pg from "pg";

const END_TIMEOUT_MS = 1_000;

/** Closes a session. Does not wait for a server that has vanished from the network and never answers. */
export async function endClient(client: pg.Client): Promise<void> {
  const timer = setTimeout(() => client.connection.stream.destroy(), END_TIMEOUT_MS);
  try {
    await client.end();
  } finally {
    clearTimeout(timer);
  }
}
