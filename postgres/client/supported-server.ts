import pg from "pg";

const MIN_MAJOR_VERSION = 14;

/** The versions and the host that identify a server. */
type ServerIdentity = {
  readonly host: string;
  /** `server_version_num` */
  readonly number: number;
  /** `server_version` */
  readonly release: string;
  /** `version()` */
  readonly version: string;
};

type UnsupportedEngine = {
  readonly name: string;
  readonly lacks: string;
  readonly isEngine: (server: ServerIdentity) => boolean;
};

/** Engines with the protocol and a version number of Postgres, but without features that the service needs. See docs/engines.md for the sources. */
const UNSUPPORTED_ENGINES: readonly UnsupportedEngine[] = [
  {
    name: "CockroachDB",
    lacks: "LISTEN, column privileges, domains, or advisory locks that lock",
    isEngine: ({ version }) => version.startsWith("CockroachDB"),
  },
  {
    name: "Aurora DSQL",
    lacks: "triggers, PL/pgSQL, or temporary tables",
    isEngine: ({ host }) => /\.dsql(-[a-z]+)?\.[a-z0-9-]+\.on\.aws$/i.test(host),
  },
];

/** Throws if the service does not support the server, before a migration fails after others were applied. */
export async function requireSupportedServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<Omit<ServerIdentity, "host">>(
    `select pg_catalog.current_setting('server_version_num')::int as number, pg_catalog.current_setting('server_version') as release,
      pg_catalog.version() as version`,
  );
  const reason = explainUnsupported({ host: client.host, ...rows[0]! });
  if (reason !== null) throw new Error(reason);
}

/** Returns the reason why the service does not support the server; null if it does. */
export function explainUnsupported(server: ServerIdentity): string | null {
  const engine = UNSUPPORTED_ENGINES.find(({ isEngine }) => isEngine(server));
  if (engine) {
    return (
      `The database is of ${engine.name}, which cannot be served: it has no ${engine.lacks}. Nothing was changed. ` +
      "The page Engines of the guide (/docs/guide/engines) lists what can be."
    );
  }
  if (server.number >= MIN_MAJOR_VERSION * 10_000) return null;
  return (
    `The database is of Postgres ${server.release}, and ${MIN_MAJOR_VERSION} is the oldest that can be served. Nothing was changed. ` +
    "Carry it over to a newer one with pg_upgrade or pg_dump."
  );
}

/** Throws if a pooler refuses transactions of several statements: each request is a transaction of its settings and its statement. */
export async function requireTransactions(client: pg.ClientBase): Promise<void> {
  try {
    await client.query("begin");
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new Error(
      `DATABASE_URL is that of a pooler that refuses transactions (${error.message}). ` +
        "Set its pool mode to transaction or session.",
      { cause: error },
    );
  }
  await client.query("rollback");
}
