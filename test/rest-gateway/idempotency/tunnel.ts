import type { TestDatabase } from "../../database.ts";
import { openWire } from "../../postgres-wire.ts";

export type Tunnel = AsyncDisposable & {
  /** The database as the login of requests reaches it through the tunnel. */
  readonly url: string;
  /** Hides the next commit: the tunnel drops its response and the connection, and calls `then`. */
  loseCommits(then: () => void): void;
};

const COMMITTED = "COMMIT\0";

/** A way to Postgres that can be cut between a commit and its response. */
export async function openTunnel({ url: databaseUrl }: Pick<TestDatabase, "url">): Promise<Tunnel> {
  let onCommit: (() => void) | null = null;
  const passes = (said: Buffer) => {
    if (onCommit === null || !said.includes(COMMITTED)) return true;
    const tell = onCommit;
    onCommit = null;
    tell();
    return false;
  };
  const { url, close } = await openWire(databaseUrl, { passes });
  return {
    url,
    loseCommits(then) {
      onCommit = then;
    },
    [Symbol.asyncDispose]: close,
  };
}
