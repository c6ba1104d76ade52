import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { TestDatabase } from "../../database.ts";

export type Tunnel = AsyncDisposable & {
  /** The database as the login of requests reaches it through the tunnel. */
  readonly url: string;
  /** From now on nobody is told that a transaction was committed: the tunnel caves in, and `then` is called. */
  loseCommits(then: () => void): void;
};

const COMMITTED = "COMMIT\0";

/** A way to Postgres that can be cut between what the server has done and what it says of it. */
export async function openTunnel(database: Pick<TestDatabase, "url" | "name">): Promise<Tunnel> {
  const address = new URL(database.url.replace("@/", "@localhost/"));
  const folder = address.searchParams.get("host")!;
  const path = join(folder, `.s.PGSQL.${address.searchParams.get("port") ?? (address.port || "5432")}`);
  const sockets = new Set<Socket>();
  let onCommit: (() => void) | null = null;

  const server = createServer((near) => {
    const far = connect({ path });
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", cut).on("close", cut);
    }
    near.pipe(far);
    far.on("data", (data) => {
      if (onCommit && data.includes(COMMITTED)) {
        const tell = onCommit;
        onCommit = null;
        tell();
        cut();
      } else near.write(data);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgresql://authenticator@127.0.0.1:${port}/${database.name}`,
    loseCommits(then) {
      onCommit = then;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
