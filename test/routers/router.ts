import { join } from "node:path";
import { startHostileRouter } from "./hostile-router.ts";
import { startPgBouncer } from "./pgbouncer.ts";
import { startPgpool } from "./pgpool.ts";

/** A program between the service and Postgres. */
export type Router = {
  /** The port on the loopback address, for any role and database of the server. */
  readonly port: number;
  /** The settings that an operator needs for it. */
  readonly settings: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

export type RouterName = "pgbouncer" | "pgpool" | "hostile";

/** The server's socket. */
export type PostgresSocketAddress = { readonly folder: string; readonly port: string };

const START: Readonly<Record<RouterName, (postgres: PostgresSocketAddress) => Promise<Router>>> = {
  pgbouncer: startPgBouncer,
  pgpool: startPgpool,
  hostile: async ({ folder, port }) => ({
    ...(await startHostileRouter({ path: join(folder, `.s.PGSQL.${port}`) })),
    settings: {},
  }),
};

export function startRouter(name: string, postgres: PostgresSocketAddress): Promise<Router> {
  const start = START[name as RouterName];
  if (!start) throw new Error(`ROUTER must be one of ${Object.keys(START).join(", ")}`);
  return start(postgres);
}

export function socketAddressOf(url: string): PostgresSocketAddress {
  const { searchParams } = new URL(url.replace("@/", "@localhost/"));
  return { folder: searchParams.get("host")!, port: searchParams.get("port")! };
}
