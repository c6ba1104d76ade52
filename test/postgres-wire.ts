import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A way to the Postgres of the tests that falls silent or is cut when a test wants it. */
export type Wire = {
  /** The same login and database, by way of the wire. */
  readonly url: string;
  /** Returns the number of connections so far. */
  opened(): number;
  /** Stops the traffic of the present connections, without an end. */
  silence(): void;
  /** Destroys the present connections, and refuses others until it is repaired. */
  cut(): void;
  /** Ends the present connections for Postgres alone: their clients hear nothing any more. Refuses others until it is repaired. */
  abandon(): void;
  repair(): void;
  /** Leads connections from now on to another server; the present ones stay. */
  leadTo(url: string): void;
  close(): Promise<void>;
};

type Listeners = {
  /** Makes a listener for each connection, which receives the bytes of the client. */
  readonly listen?: () => (said: Buffer) => void;
  /** False to drop messages of Postgres; the connection is then lost too. */
  readonly passes?: (said: Buffer) => boolean;
  /** Makes a function for each connection that returns the bytes which its client receives instead, and whether they are the last. */
  readonly alter?: () => (said: Buffer) => { readonly bytes: Buffer; readonly ends: boolean };
};

export async function openWire(url: string, { listen, passes = () => true, alter }: Listeners = {}): Promise<Wire> {
  const { username, pathname } = new URL(url.replace("@/", "@localhost/"));
  let path = socketOf(url);
  const sockets = new Set<Socket>();
  const toPostgres = new Set<Socket>();
  const silent = new Set<Socket>();
  let opened = 0;
  let isUp = true;
  // A silent connection reports its end to neither side.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (!isUp) {
      client.destroy();
      return;
    }
    opened++;
    const postgres = connect(path);
    toPostgres.add(postgres);
    postgres.on("close", () => toPostgres.delete(postgres));
    const part = () => {
      if (!silent.has(client)) client.destroy();
      if (!silent.has(postgres)) postgres.destroy();
    };
    for (const socket of [client, postgres]) {
      sockets.add(socket);
      socket.on("error", part).on("close", () => {
        sockets.delete(socket);
        part();
      });
    }
    client.on("end", () => {
      if (!silent.has(client)) part();
    });
    const hear = listen?.();
    const change = alter?.() ?? ((said: Buffer) => ({ bytes: said, ends: false }));
    client.on("data", (said) => {
      hear?.(said);
      postgres.write(said);
    });
    postgres.on("data", (said) => {
      if (silent.has(postgres)) return;
      if (!passes(said)) {
        part();
        return;
      }
      const { bytes, ends } = change(said);
      client.write(bytes);
      if (ends) client.end();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const cut = () => {
    isUp = false;
    for (const socket of sockets) socket.destroy();
  };
  const silence = () => {
    for (const socket of sockets) silent.add(socket);
  };
  return {
    url: `postgresql://${username}@127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`,
    opened: () => opened,
    silence,
    cut,
    abandon: () => {
      isUp = false;
      silence();
      for (const socket of toPostgres) socket.destroy();
    },
    repair: () => {
      isUp = true;
    },
    leadTo: (other) => {
      path = socketOf(other);
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

/** The path of the socket of a connection string of the tests. */
export function socketOf(url: string): string {
  const { searchParams } = new URL(url.replace("@/", "@localhost/"));
  return `${searchParams.get("host")}/.s.PGSQL.${searchParams.get("port")}`;
}
