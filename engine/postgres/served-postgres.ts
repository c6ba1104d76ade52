import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Config, isEmbedded } from "../config/config.ts";
import { runningCluster, startCluster } from "../embedded/cluster.ts";
import { clusterExists } from "../embedded/create-cluster.ts";
import { superviseCluster } from "../embedded/supervise-cluster.ts";
import { allHistories, type MigrateSettings } from "../migrate/committed-migrations.ts";
import { toPgConnectionString } from "../pg-client/connection-string.ts";
import { withClient } from "../pg-client/with-client.ts";
import { readOrMakeSecrets } from "../secrets.ts";

/** Faults that pass by themselves while a server starts; a wrong password or name does not. */
const TRANSIENT_CODES = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  // No such socket, and no such name: that of a container that has not been started yet.
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "57P03",
  "53300",
];
const DEFAULT_WAIT_MS = 60_000;
const UNTRUSTED =
  "the authority that signed its certificate is not trusted here: name the file that holds it with sslrootcert";
/** What pg says, in words of the protocol, of a server that asks for one. */
const NO_PASSWORD = "client password must be a string";
const WRITE_PASSWORD = "the server asks for a password, and the connection string has none";
/** What Node and pg say of TLS, in words that say what to do. */
const CONNECTION_ADVICE: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "use the name that its certificate is for",
};

/** The database that is served, wherever it runs. */
export type PostgresUrls = {
  /** As the login that requests use. */
  readonly requestUrl: string;
  /** As the owner of the schemas. */
  readonly ownerUrl: string;
  /** As the owner, for the tools of people: over loopback where that is open. */
  readonly clientUrl: string;
  readonly migrate: Required<MigrateSettings>;
  close(): Promise<void>;
};

/** A database that requests are served from. */
export type ServedPostgres = PostgresUrls & {
  /** The name of the login that requests use. */
  readonly loginRole: string;
};

/** Where a connection string is silent, pg takes PGSSLMODE and PGOPTIONS, which are meant for another Postgres. */
const IGNORE_PG_ENVIRONMENT = "sslmode=disable&options=%20";

type ReportProgress = (step: string) => void;
type UrlOf = (role: string, database: string) => string;

/** Of the embedded cluster. */
export const EMBEDDED_DATABASE = "content";
const EMBEDDED_LOGIN = "authenticator";
const MAX_CONNECTIONS = 100;
const MAX_WAL_SENDERS = 20;
/**
 * Beside its share of DB_POOL: the owner's, those of the queue, one that listens, one that reads the log, one to spare.
 * While it is being replaced it needs them twice, for which the others leave room.
 */
const CONNECTIONS_PER_WORKER = 12;

/** For the service: the database of DATABASE_URL, or a cluster that is ours alone and is kept alive. */
export async function startPostgres(
  config: Config,
  tell: ReportProgress,
  giveUp: (reason: Error) => void,
): Promise<ServedPostgres> {
  if (!isEmbedded(config)) {
    await awaitLogin(config, tell);
    if (config.ownerDatabaseUrl) await awaitOwner(config, tell);
    const postgres = externalPostgres(config);
    await refuseTwoDatabases(postgres);
    return { ...postgres, loginRole: await loginRoleOf(postgres.requestUrl) };
  }
  const cluster = await superviseCluster({ ...clusterOptions(config), tell }, giveUp);
  return { ...(await embeddedPostgres(config, cluster.url, () => cluster.stop())), loginRole: EMBEDDED_LOGIN };
}

type ReachPostgresOptions = {
  /** For what fills a database: where there is no embedded cluster yet, one is made. */
  readonly mayCreate?: boolean;
};

/**
 * For commands: joins the cluster of a service that is running, and starts it for the moment when none is.
 * Of an external one only the owner is awaited: the first migration makes the login of requests.
 */
export async function reachPostgres(
  config: Config,
  tell: ReportProgress,
  { mayCreate = false }: ReachPostgresOptions = {},
): Promise<PostgresUrls> {
  if (!isEmbedded(config)) {
    await awaitOwner(config, tell, 0);
    return externalPostgres(config);
  }
  const running = await runningCluster({ dataDir: config.dataDir });
  if (running) return embeddedPostgres(config, running, async () => {});
  if (!mayCreate && !clusterExists(config.dataDir)) {
    throw new Error(
      `There is no database in ${resolve(config.dataDir)}. ` +
        "Start the service once to create it, or set DATA_DIR to the folder that has it.",
    );
  }
  const cluster = await startCluster({ ...clusterOptions(config), tell });
  return embeddedPostgres(config, cluster.url, () => cluster.stop());
}

/** The embedded database of a service that is running; null when none is. */
export async function joinPostgres(config: Config): Promise<PostgresUrls | null> {
  const running = await runningCluster({ dataDir: config.dataDir });
  return running && embeddedPostgres(config, running, async () => {});
}

function clusterOptions({ dataDir, embeddedPort, workers }: Config) {
  const settings = {
    max_connections: String(MAX_CONNECTIONS + CONNECTIONS_PER_WORKER * (workers - 1)),
    max_wal_senders: String(MAX_WAL_SENDERS + workers - 1),
    max_replication_slots: String(MAX_WAL_SENDERS + workers - 1),
  };
  return { dataDir, port: embeddedPort, settings };
}

/** The login of requests to a database that is not embedded. */
export function awaitLogin({ databaseUrl }: Config, tell: ReportProgress, patience?: number): Promise<void> {
  return awaitDatabase(toPgConnectionString(databaseUrl!), "DATABASE_URL", tell, patience);
}

function awaitOwner(config: Config, tell: ReportProgress, patience?: number): Promise<void> {
  const { ownerDatabaseUrl } = config;
  if (!ownerDatabaseUrl) return awaitLogin(config, tell, patience);
  return awaitDatabase(toPgConnectionString(ownerDatabaseUrl), "OWNER_DATABASE_URL", tell, patience);
}

function externalPostgres(config: Config): PostgresUrls {
  const requestUrl = config.databaseUrl!;
  const ownerUrl = config.ownerDatabaseUrl ?? requestUrl;
  const shadowUrl = config.shadowDatabaseUrl ?? withDatabase(ownerUrl, (name) => `${name}_shadow`);
  const rootUrl =
    config.rootDatabaseUrl ?? withDatabase(ownerUrl, (name) => (name === "postgres" ? "template1" : "postgres"));
  return {
    requestUrl: toPgConnectionString(requestUrl),
    ownerUrl: toPgConnectionString(ownerUrl),
    clientUrl: ownerUrl,
    migrate: {
      url: toPgConnectionString(ownerUrl),
      shadowUrl: toPgConnectionString(shadowUrl),
      rootUrl: toPgConnectionString(rootUrl),
      histories: allHistories(config.migrationsDir),
    },
    close: async () => {},
  };
}

async function embeddedPostgres(config: Config, urlOf: UrlOf, close: () => Promise<void>): Promise<PostgresUrls> {
  try {
    const ownUrlOf: UrlOf = (role, database) => `${urlOf(role, database)}&${IGNORE_PG_ENVIRONMENT}`;
    const ownerUrl = ownUrlOf("postgres", EMBEDDED_DATABASE);
    const rootUrl = ownUrlOf("postgres", "postgres");
    const password = await prepareEmbeddedDatabase(config, rootUrl);
    return {
      requestUrl: ownUrlOf(EMBEDDED_LOGIN, EMBEDDED_DATABASE),
      ownerUrl,
      clientUrl: password
        ? `postgresql://postgres:${password}@127.0.0.1:${config.embeddedPort}/${EMBEDDED_DATABASE}`
        : urlOf("postgres", EMBEDDED_DATABASE),
      migrate: {
        url: ownerUrl,
        shadowUrl: ownUrlOf("postgres", `${EMBEDDED_DATABASE}_shadow`),
        rootUrl,
        histories: allHistories(config.migrationsDir),
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes the database at the first start, and the password when loopback connections are asked for. */
async function prepareEmbeddedDatabase({ dataDir, embeddedPort }: Config, rootUrl: string): Promise<string | null> {
  return withClient(rootUrl, async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [EMBEDDED_DATABASE]);
    if (!rowCount) await client.query(`create database ${client.escapeIdentifier(EMBEDDED_DATABASE)}`);
    if (embeddedPort === null) return null;
    const { databasePassword } = await readOrMakeSecrets(dataDir);
    await client.query(`alter role postgres password ${client.escapeLiteral(databasePassword)}`);
    return databasePassword;
  });
}

/** The name of the login that requests use. */
export async function loginRoleOf(url: string): Promise<string> {
  const { rows } = await withClient(url, (client) => client.query<{ name: string }>("select session_user as name"));
  return rows[0]!.name;
}

function withDatabase(url: string, rename: (name: string) => string): string {
  return url.replace(/(^\w+:\/\/[^/?]*\/)([^?]+)/, (_, start: string, name: string) => start + rename(name));
}

type DatabaseUrls = { readonly requestUrl: string; readonly ownerUrl: string };
/** The cluster is null where the server does not tell it. */
type DatabaseIdentity = { readonly name: string; readonly cluster: string | null };

/** Requests would be answered from one database by what is known of another. */
export async function refuseTwoDatabases({ requestUrl, ownerUrl }: DatabaseUrls): Promise<void> {
  if (requestUrl === ownerUrl) return;
  const [ofRequests, ofOwner] = await Promise.all([identityOf(requestUrl), identityOf(ownerUrl)]);
  const isKnown = ofRequests.cluster !== null && ofOwner.cluster !== null;
  const isOneServer = !isKnown || ofRequests.cluster === ofOwner.cluster;
  if (isOneServer && ofRequests.name === ofOwner.name) return;
  const where = isOneServer ? "of one server" : "of two servers";
  throw new Error(
    `DATABASE_URL and OWNER_DATABASE_URL name two databases ${where}, "${ofRequests.name}" and "${ofOwner.name}". ` +
      "Set both to the same one: the first as the login of requests, the second as the owner.",
  );
}

/** A pooler may call it otherwise; a standby has its primary's. */
function identityOf(url: string): Promise<DatabaseIdentity> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>("select current_database() as name");
    return { name: rows[0]!.name, cluster: await clusterOf(client) };
  });
}

async function clusterOf(client: pg.ClientBase): Promise<string | null> {
  try {
    const { rows } = await client.query<{ id: string }>(
      "select system_identifier::text as id from pg_control_system()",
    );
    return rows[0]!.id;
  } catch (error) {
    // Not every provider lets everybody ask.
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  }
}

/** Waits for a database that is still starting, and says so; any other fault is told at once, in words. */
export async function awaitDatabase(
  url: string,
  setting: string,
  tell: (step: string) => void,
  patience = DEFAULT_WAIT_MS,
): Promise<void> {
  const giveUpAt = performance.now() + patience;
  for (let pause = 100; ; pause = Math.min(pause * 2, 2000)) {
    const fault = await connectionErrorOf(url);
    if (!fault) return;
    const place = new URL(url.replace("@/", "@localhost/")).host;
    const passing = TRANSIENT_CODES.includes(fault.code ?? "");
    if (!passing || performance.now() >= giveUpAt) {
      const advice = fault.message.includes(NO_PASSWORD) ? WRITE_PASSWORD : CONNECTION_ADVICE[fault.code ?? ""];
      const reason = advice ? `${fault.message}; ${advice}` : fault.message;
      throw new Error(`The database at ${place} (${setting}) cannot be used: ${reason}`, { cause: fault });
    }
    if (pause === 100) tell(`waiting for the database at ${place} (${fault.message})`);
    await sleep(pause);
  }
}

async function connectionErrorOf(url: string): Promise<(Error & { code?: string }) | null> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    return null;
  } catch (error) {
    // A name with several addresses fails once for each.
    return error instanceof AggregateError ? error.errors[0] : (error as Error);
  } finally {
    await client.end().catch(() => {});
  }
}
