import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { branchDatabase, type Config, isEmbedded, withDatabase } from "#config";
import { parseServers, toPgConnectionString, toPrimaryUrl } from "#config/connection-string";
import { allHistories, lockLimitsOf, type MigrateSettings } from "#migrate";
import {
  findServer,
  isTimeout,
  NoServerError,
  requireTransactions,
  type ServerOptions,
  UnsuitableServerError,
  withClient,
  withServiceClient,
} from "#postgres/client";
import { commandLine, readOrMakeSecrets } from "#runtime";
import { readBranchNote } from "./branch-mark.ts";
import { runningCluster, startCluster, superviseCluster } from "./embedded/cluster.ts";
import { clusterExists } from "./embedded/create-cluster.ts";

/** Errors of the network while a server starts. */
const TRANSIENT_CODES = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  // The socket or the host name does not exist, for example that of a container that has not started yet.
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
];
/**
 * SQLSTATEs of a server that starts, stops, recovers or has no room, and of a pooler without a server. They do not include a
 * wrong password or name.
 */
const TRANSIENT_SQLSTATES = /^(08|53|57P0[123])/;
/** The errors of pg without a code: a server or a proxy closes the connection, or cannot start a process for it. */
const TRANSIENT_MESSAGES = ["Connection terminated unexpectedly", "There was an error establishing an SSL connection"];
const DEFAULT_WAIT_MS = 60_000;
const ATTEMPT_TIMEOUT_MS = 10_000;
const UNTRUSTED =
  "the authority that signed its certificate is not trusted here: name the file that holds it with sslrootcert";
/** pg's error when the server requires a password. */
const NO_PASSWORD = "client password must be a string";
const STANDBY_ADVICE =
  "add the other hosts, so that the primary is among them (postgresql://user@a,b/database); a standby can be served with " +
  "target_session_attrs=any, for reads only";
const WRITE_PASSWORD = "the server asks for a password, and the connection string has none";
/** Advice for the TLS errors of Node and pg. */
const CONNECTION_ADVICE: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_SIGNATURE_FAILURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: "use the name that its certificate is for",
};

/** The connection strings of the served database, embedded or external. */
export type PostgresUrls = {
  /** The URL of the login that requests use. */
  readonly requestUrl: string;
  /** The URL of the owner of the schemas, for single statements and explicit transactions, which a pooler supports. */
  readonly ownerUrl: string;
  /** The URL of the owner without a pooler, for features that need a session, such as LISTEN, replication and advisory locks. */
  readonly directUrl: string;
  /** The URL of the owner for tools such as psql: over loopback if that is enabled. */
  readonly clientUrl: string;
  readonly migrate: MigrateSettings;
  close(): Promise<void>;
};

/** A database that requests are served from. */
export type ServedPostgres = PostgresUrls & {
  /** The name of the login that requests use. */
  readonly loginRole: string;
};

/** Without these parameters pg would use PGSSLMODE and PGOPTIONS, which are meant for another Postgres. */
const IGNORE_PG_ENVIRONMENT = "sslmode=disable&options=%20";

type ReportProgress = (step: string) => void;
type UrlOf = (role: string, database: string) => string;

/** The database name in the embedded cluster. */
export const EMBEDDED_DATABASE = "content";
const EMBEDDED_LOGIN = "authenticator";
const MAX_CONNECTIONS = 100;
const MAX_WAL_SENDERS = 20;
/** A restore locks all objects that it creates until it commits: this is enough for 30,000 tables, if the command starts the cluster. */
const RESTORE_LOCKS = { max_locks_per_transaction: "2048" };
/**
 * Connections of a worker besides its share of DB_POOL: the owner's pool, the task queue, LISTEN, replication and a
 * reserve. During a replacement of the worker it needs them twice; the reserves of the others cover that.
 */
const CONNECTIONS_PER_WORKER = 12;

/** Starts Postgres for the service: connects to DATABASE_URL, or starts and supervises an embedded cluster. */
export async function startPostgres(
  config: Config,
  tell: ReportProgress,
  giveUp: (reason: Error) => void,
  onSpawned: () => void = () => {},
): Promise<ServedPostgres> {
  if (!isEmbedded(config)) {
    onSpawned();
    await awaitLogin(config, tell);
    if (config.ownerDatabaseUrl) await awaitOwner(config, tell);
    if (config.directDatabaseUrl) await awaitDirect(config, tell);
    const postgres = externalPostgres(config);
    await refuseTwoDatabases(postgres);
    await withClient(postgres.requestUrl, requireTransactions);
    await refuseIncomplete(config, postgres.directUrl);
    return { ...postgres, loginRole: await loginRoleOf(postgres.requestUrl) };
  }
  const cluster = await superviseCluster({ ...clusterOptions(config), tell, onSpawned }, giveUp);
  return { ...(await embeddedPostgres(config, cluster.url, () => cluster.stop())), loginRole: EMBEDDED_LOGIN };
}

type ReachPostgresOptions = {
  /** True if the embedded cluster is created if there is none. */
  readonly mayCreate?: boolean;
};

/**
 * Opens Postgres for commands: connects to the cluster of a running service, or starts it for the duration of the command.
 * For an external database it waits for the owner only: the first migration creates the login of requests. Commands need a
 * session, so they use the direct connection.
 */
export async function reachPostgres(
  config: Config,
  tell: ReportProgress,
  { mayCreate = false }: ReachPostgresOptions = {},
): Promise<PostgresUrls> {
  if (!isEmbedded(config)) {
    await awaitDirect(config, tell, 0);
    const postgres = externalPostgres(config);
    await refuseIncomplete(config, postgres.directUrl);
    return postgres;
  }
  const running = await runningCluster({ dataDir: config.dataDir });
  if (running) return embeddedPostgres(config, running, async () => {});
  if (!mayCreate && !clusterExists(config.dataDir)) {
    throw new Error(
      `There is no database in ${resolve(config.dataDir)}. ` +
        "Start the service once to create it, or set DATA_DIR to the folder that has it.",
    );
  }
  const { settings, ...options } = clusterOptions(config);
  const cluster = await startCluster({ ...options, settings: { ...settings, ...(mayCreate && RESTORE_LOCKS) }, tell });
  return embeddedPostgres(config, cluster.url, () => cluster.stop());
}

/** Returns the embedded database of a running service; null if none runs. */
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

/** Waits for the request login of an external database. */
export function awaitLogin({ databaseUrl }: Config, tell: ReportProgress, patience?: number): Promise<void> {
  return awaitDatabase(toSessionUrl(databaseUrl!), "DATABASE_URL", tell, patience);
}

function awaitOwner(config: Config, tell: ReportProgress, patience?: number): Promise<void> {
  const { ownerDatabaseUrl } = config;
  if (!ownerDatabaseUrl) return awaitLogin(config, tell, patience);
  return awaitDatabase(toSessionUrl(ownerDatabaseUrl), "OWNER_DATABASE_URL", tell, patience);
}

function awaitDirect(config: Config, tell: ReportProgress, patience?: number): Promise<void> {
  const { directDatabaseUrl } = config;
  if (!directDatabaseUrl) return awaitOwner(config, tell, patience);
  return awaitDatabase(toSessionUrl(directDatabaseUrl), "DIRECT_DATABASE_URL", tell, patience);
}

function externalPostgres(config: Config): PostgresUrls {
  const requestUrl = config.databaseUrl!;
  const ownerUrl = config.ownerDatabaseUrl ?? requestUrl;
  const directUrl = config.directDatabaseUrl ?? ownerUrl;
  const shadowUrl = config.shadowDatabaseUrl ?? withDatabase(directUrl, (name) => `${name}_shadow`);
  const rootUrl =
    config.rootDatabaseUrl ?? withDatabase(directUrl, (name) => (name === "postgres" ? "template1" : "postgres"));
  return {
    requestUrl: toSessionUrl(requestUrl),
    ownerUrl: toSessionUrl(ownerUrl),
    directUrl: toSessionUrl(directUrl),
    clientUrl: toClientUrl(directUrl),
    migrate: {
      url: toSessionUrl(directUrl),
      shadowUrl: toSessionUrl(shadowUrl),
      rootUrl: toSessionUrl(rootUrl),
      histories: allHistories(config),
      lockLimits: lockLimitsOf(config),
    },
    close: async () => {},
  };
}

/** Writing needs a primary, so the URL selects it among the servers. */
function toSessionUrl(url: string): string {
  return toPgConnectionString(toPrimaryUrl(url));
}

/** Returns the URL for libpq's tools: clients before version 14 do not know `target_session_attrs=primary`. */
export function toClientUrl(url: string): string {
  return parseServers(url).servers.length > 1 ? toPrimaryUrl(url) : url;
}

async function embeddedPostgres(config: Config, urlOf: UrlOf, close: () => Promise<void>): Promise<PostgresUrls> {
  try {
    const ownUrlOf: UrlOf = (role, database) => `${urlOf(role, database)}&${IGNORE_PG_ENVIRONMENT}`;
    const database = branchDatabase(EMBEDDED_DATABASE, config.branch);
    const ownerUrl = ownUrlOf("postgres", database);
    const rootUrl = ownUrlOf("postgres", "postgres");
    const password = await prepareEmbeddedDatabase(config, rootUrl);
    await refuseIncomplete(config, ownerUrl);
    return {
      requestUrl: ownUrlOf(EMBEDDED_LOGIN, database),
      ownerUrl,
      directUrl: ownerUrl,
      clientUrl: password
        ? `postgresql://postgres:${password}@127.0.0.1:${config.embeddedPort}/${database}`
        : urlOf("postgres", database),
      migrate: {
        url: ownerUrl,
        shadowUrl: ownUrlOf("postgres", `${database}_shadow`),
        rootUrl,
        histories: allHistories(config),
        lockLimits: lockLimitsOf(config),
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Creates the database at the first start, and the password if loopback connections are enabled. A concurrent command waits
 * for it: if two create or change the same object at the same time, Postgres lets one fail.
 */
async function prepareEmbeddedDatabase(
  { dataDir, embeddedPort, branch }: Config,
  rootUrl: string,
): Promise<string | null> {
  return withServiceClient(rootUrl, async (client) => {
    // The lock ends with the connection.
    await client.query("select pg_catalog.pg_advisory_lock(pg_catalog.hashtext($1))", [
      "prepare the embedded database",
    ]);
    const { rowCount } = await client.query("select from pg_catalog.pg_database where datname = $1", [
      branchDatabase(EMBEDDED_DATABASE, branch),
    ]);
    if (!rowCount && branch !== null) throw new Error(`There is no branch "${branch}".`);
    if (!rowCount) await client.query(`create database ${client.escapeIdentifier(EMBEDDED_DATABASE)}`);
    if (embeddedPort === null) return null;
    const { databasePassword } = await readOrMakeSecrets(dataDir);
    await client.query(`alter role postgres password ${client.escapeLiteral(databasePassword)}`);
    return databasePassword;
  });
}

/** Refuses a database that is being copied: migrations would interfere with the copy, or replace its rows. */
async function refuseIncomplete({ branch }: Config, url: string): Promise<void> {
  if (branch === null) return;
  const comment = await withServiceClient(url, async (client) => {
    const { rows } = await client.query<{ comment: string | null }>(
      "select pg_catalog.shobj_description(oid, 'pg_database') as comment from pg_catalog.pg_database where datname = pg_catalog.current_database()",
    );
    return rows[0]!.comment;
  });
  if (comment === null || !readBranchNote(comment).isIncomplete) return;
  throw new Error(`The branch "${branch}" is not complete. See ${commandLine("branch", "list")}.`);
}

/** Returns the name of the login that requests use. */
export async function loginRoleOf(url: string): Promise<string> {
  const { rows } = await withServiceClient(url, (client) =>
    client.query<{ name: string }>("select session_user as name"),
  );
  return rows[0]!.name;
}

type DatabaseUrls = Pick<PostgresUrls, "requestUrl" | "ownerUrl" | "directUrl">;
/** `cluster` is null if the role may not read it. */
type DatabaseIdentity = { readonly name: string; readonly cluster: string | null };

/** Throws if the URLs belong to different databases: requests would use one with the catalogue of the other. */
export async function refuseTwoDatabases({ requestUrl, ownerUrl, directUrl }: DatabaseUrls): Promise<void> {
  const ofRequests = { url: requestUrl, setting: "DATABASE_URL" };
  await refuseOtherDatabase(ofRequests, { url: ownerUrl, setting: "OWNER_DATABASE_URL" });
  if (directUrl !== ownerUrl) await refuseOtherDatabase(ofRequests, { url: directUrl, setting: "DIRECT_DATABASE_URL" });
}

type DatabaseSetting = { readonly url: string; readonly setting: string };

async function refuseOtherDatabase(ofRequests: DatabaseSetting, ofOwner: DatabaseSetting): Promise<void> {
  if (ofRequests.url === ofOwner.url) return;
  const [one, other] = await Promise.all([identityOf(ofRequests.url), identityOf(ofOwner.url)]);
  const isKnown = one.cluster !== null && other.cluster !== null;
  const isOneServer = !isKnown || one.cluster === other.cluster;
  if (isOneServer && one.name === other.name) return;
  const where = isOneServer ? "of one server" : "of two servers";
  throw new Error(
    `${ofRequests.setting} and ${ofOwner.setting} name two databases ${where}, "${one.name}" and "${other.name}". ` +
      "Set both to the same one: the first as the login of requests, the second as the owner.",
  );
}

/** Identifies the database. A pooler may use another database name; a standby has its primary's system identifier. */
function identityOf(url: string): Promise<DatabaseIdentity> {
  return withServiceClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>("select pg_catalog.current_database() as name");
    return { name: rows[0]!.name, cluster: await clusterOf(client) };
  });
}

async function clusterOf(client: pg.ClientBase): Promise<string | null> {
  try {
    const { rows } = await client.query<{ id: string }>(
      "select system_identifier::pg_catalog.text as id from pg_catalog.pg_control_system()",
    );
    return rows[0]!.id;
  } catch (error) {
    // Some providers do not permit this query.
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  }
}

/** Waits for a database that is still starting, and reports it; other errors are thrown at once. */
export async function awaitDatabase(
  url: string,
  setting: string,
  tell: (step: string) => void,
  patience = DEFAULT_WAIT_MS,
  attemptTimeout = ATTEMPT_TIMEOUT_MS,
): Promise<void> {
  const giveUpAt = performance.now() + patience;
  for (let pause = 100; ; pause = Math.min(pause * 2, 2000)) {
    const fault = await connectionErrorOf(url, attemptTimeout);
    if (!fault) return;
    const place = findServer(url).names;
    const passing = isTransient(fault);
    if (!passing || performance.now() >= giveUpAt) {
      const advice = adviceFor(fault);
      const reason = advice ? `${fault.message}; ${advice}` : fault.message;
      throw new Error(`The database at ${place} (${setting}) cannot be used: ${reason}`, { cause: fault });
    }
    if (pause === 100) tell(`waiting for the database at ${place} (${fault.message})`);
    await sleep(pause);
  }
}

async function connectionErrorOf(url: string, timeoutMs: number): Promise<(Error & { code?: string }) | null> {
  try {
    const makeClient = (server: ServerOptions) => new pg.Client(server).on("error", () => {});
    const { client } = await findServer(url).connect(makeClient, timeoutMs);
    await client.end().catch(() => {});
    return null;
  } catch (error) {
    // A host name with several addresses fails once per address.
    return error instanceof AggregateError ? error.errors[0] : (error as Error);
  }
}

function adviceFor(fault: Error & { readonly code?: string }): string | undefined {
  if (fault instanceof NoServerError) return STANDBY_ADVICE;
  return fault.message.includes(NO_PASSWORD) ? WRITE_PASSWORD : CONNECTION_ADVICE[fault.code ?? ""];
}

function isTransient(fault: Error & { readonly code?: string }): boolean {
  // A standby may be promoted.
  if (fault instanceof NoServerError) return fault.faults.some(isTransient);
  if (fault instanceof pg.DatabaseError) return TRANSIENT_SQLSTATES.test(fault.code ?? "");
  return (
    fault instanceof UnsuitableServerError ||
    isTimeout(fault) ||
    TRANSIENT_CODES.includes(fault.code ?? "") ||
    TRANSIENT_MESSAGES.includes(fault.message)
  );
}
