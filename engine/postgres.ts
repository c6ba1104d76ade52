import { resolve } from "node:path";
import { awaitDatabase } from "./await-database.ts";
import { type Config, isEmbedded } from "./config/config.ts";
import { asPgReads } from "./connection-string.ts";
import { runningCluster, startCluster } from "./embedded/cluster.ts";
import { clusterExists } from "./embedded/create-cluster.ts";
import { superviseCluster } from "./embedded/supervise-cluster.ts";
import { allHistories, type MigrateSettings } from "./migrate/histories.ts";
import { refuseTwoDatabases } from "./one-database.ts";
import { readOrMakeSecrets } from "./secrets.ts";
import { withClient } from "./with-client.ts";

/** The database that is served, wherever it runs. */
export type Postgres = {
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
export type ServedPostgres = Postgres & {
  /** The name of the login that requests use. */
  readonly loginRole: string;
};

/** Where a connection string is silent, pg takes PGSSLMODE and PGOPTIONS, which are meant for another Postgres. */
const DEAF_TO_THE_SHELL = "sslmode=disable&options=%20";

type Tell = (step: string) => void;
type UrlOf = (role: string, database: string) => string;

/** Of the embedded cluster. */
export const DATABASE = "content";
const LOGIN = "authenticator";
const MOST_CONNECTIONS = 100;
const MOST_SENDERS = 20;
/**
 * Beside its share of DB_POOL: the owner's, those of the queue, one that listens, one that reads the log, one to spare.
 * While it is being replaced it needs them twice, for which the others leave room.
 */
const CONNECTIONS_PER_WORKER = 12;

/** For the service: the database of DATABASE_URL, or a cluster that is ours alone and is kept alive. */
export async function startPostgres(
  config: Config,
  tell: Tell,
  giveUp: (reason: Error) => void,
): Promise<ServedPostgres> {
  if (!isEmbedded(config)) {
    await awaitLogin(config, tell);
    if (config.ownerDatabaseUrl) await awaitOwner(config, tell);
    const postgres = external(config);
    await refuseTwoDatabases(postgres);
    return { ...postgres, loginRole: await loginRoleOf(postgres.requestUrl) };
  }
  const cluster = await superviseCluster({ ...clusterOptions(config), tell }, giveUp);
  return { ...(await embedded(config, cluster.url, () => cluster.stop())), loginRole: LOGIN };
}

type ReachOptions = {
  /** For what fills a database: where there is no embedded cluster yet, one is made. */
  readonly mayCreate?: boolean;
};

/**
 * For commands: joins the cluster of a service that is running, and starts it for the moment when none is.
 * Of an external one only the owner is awaited: the first migration makes the login of requests.
 */
export async function reachPostgres(
  config: Config,
  tell: Tell,
  { mayCreate = false }: ReachOptions = {},
): Promise<Postgres> {
  if (!isEmbedded(config)) {
    await awaitOwner(config, tell, 0);
    return external(config);
  }
  const running = await runningCluster({ dataDir: config.dataDir });
  if (running) return embedded(config, running, async () => {});
  if (!mayCreate && !clusterExists(config.dataDir)) {
    throw new Error(
      `There is no database in ${resolve(config.dataDir)}. ` +
        "Start the service once to create it, or set DATA_DIR to the folder that has it.",
    );
  }
  const cluster = await startCluster({ ...clusterOptions(config), tell });
  return embedded(config, cluster.url, () => cluster.stop());
}

/** The embedded database of a service that is running; null when none is. */
export async function joinPostgres(config: Config): Promise<Postgres | null> {
  const running = await runningCluster({ dataDir: config.dataDir });
  return running && embedded(config, running, async () => {});
}

function clusterOptions({ dataDir, embeddedPort, workers }: Config) {
  const settings = {
    max_connections: String(MOST_CONNECTIONS + CONNECTIONS_PER_WORKER * (workers - 1)),
    max_wal_senders: String(MOST_SENDERS + workers - 1),
    max_replication_slots: String(MOST_SENDERS + workers - 1),
  };
  return { dataDir, port: embeddedPort, settings };
}

/** The login of requests to a database that is not embedded. */
export function awaitLogin({ databaseUrl }: Config, tell: Tell, patience?: number): Promise<void> {
  return awaitDatabase(asPgReads(databaseUrl!), "DATABASE_URL", tell, patience);
}

function awaitOwner(config: Config, tell: Tell, patience?: number): Promise<void> {
  const { ownerDatabaseUrl } = config;
  if (!ownerDatabaseUrl) return awaitLogin(config, tell, patience);
  return awaitDatabase(asPgReads(ownerDatabaseUrl), "OWNER_DATABASE_URL", tell, patience);
}

function external(config: Config): Postgres {
  const requestUrl = config.databaseUrl!;
  const ownerUrl = config.ownerDatabaseUrl ?? requestUrl;
  const shadowUrl = config.shadowDatabaseUrl ?? withDatabase(ownerUrl, (name) => `${name}_shadow`);
  const rootUrl =
    config.rootDatabaseUrl ?? withDatabase(ownerUrl, (name) => (name === "postgres" ? "template1" : "postgres"));
  return {
    requestUrl: asPgReads(requestUrl),
    ownerUrl: asPgReads(ownerUrl),
    clientUrl: ownerUrl,
    migrate: {
      url: asPgReads(ownerUrl),
      shadowUrl: asPgReads(shadowUrl),
      rootUrl: asPgReads(rootUrl),
      histories: allHistories(config.migrationsDir),
    },
    close: async () => {},
  };
}

async function embedded(config: Config, urlOf: UrlOf, close: () => Promise<void>): Promise<Postgres> {
  try {
    const ownUrlOf: UrlOf = (role, database) => `${urlOf(role, database)}&${DEAF_TO_THE_SHELL}`;
    const ownerUrl = ownUrlOf("postgres", DATABASE);
    const rootUrl = ownUrlOf("postgres", "postgres");
    const password = await prepare(config, rootUrl);
    return {
      requestUrl: ownUrlOf(LOGIN, DATABASE),
      ownerUrl,
      clientUrl: password
        ? `postgresql://postgres:${password}@127.0.0.1:${config.embeddedPort}/${DATABASE}`
        : urlOf("postgres", DATABASE),
      migrate: {
        url: ownerUrl,
        shadowUrl: ownUrlOf("postgres", `${DATABASE}_shadow`),
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
async function prepare({ dataDir, embeddedPort }: Config, rootUrl: string): Promise<string | null> {
  return withClient(rootUrl, async (client) => {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [DATABASE]);
    if (!rowCount) await client.query(`create database ${client.escapeIdentifier(DATABASE)}`);
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
