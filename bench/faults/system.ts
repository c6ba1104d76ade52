import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { type Cluster, startCluster } from "#cluster/embedded";
import { runMigrations } from "#migrate";
import { type Gateway, startGateway } from "../failover/gateway.ts";
import { MARKS } from "../failover/marks.ts";
import { freePort } from "../measuring/free-port.ts";

/** A cluster and a service that can be broken, and a receiver of webhooks. */
export type FaultySystem = AsyncDisposable & {
  /** The URL, which stays the same after a restart of the service. */
  readonly url: string;
  /** The numbers of the rows that the webhook receiver got, with the number of deliveries. */
  readonly delivered: ReadonlyMap<number, number>;
  readonly logFile: string;
  /** The connection settings for another gateway on the database. */
  readonly connections: Readonly<Record<"DATABASE_URL" | "OWNER_DATABASE_URL", string>>;
  /** Runs SQL as the superuser, who may log in when others cannot. */
  execute(sql: string): Promise<pg.QueryResult>;
  connect(): Promise<pg.Client>;
  startPostgres(): Promise<void>;
  /** Resolves when the server has ended. */
  signalPostgres(signal: NodeJS.Signals): Promise<void>;
  postmaster(): Promise<number>;
  service(): number;
  startService(): Promise<void>;
  /** Resolves when the service has ended. */
  killService(): Promise<void>;
};

const CONNECT_TIMEOUT_MS = 5_000;
/** These options override the database's current settings. */
const OPTIONS = "-c default_transaction_read_only=off -c statement_timeout=0";
/** Enough connections for two workers, but few enough to be exhausted. */
const SETTINGS = {
  max_connections: "100",
  superuser_reserved_connections: "3",
  max_slot_wal_keep_size: "1GB",
  fsync: "on",
};

const TABLES = `${MARKS};
  grant select on public.marks to service_role;
  grant insert (number, note) on public.marks to service_role;
  create function public.mark(number bigint) returns void language sql as
    $$ insert into public.marks (number, note) values (number, 'by the queue') $$;
  grant execute on function public.mark to service_role`;

export async function startFaultySystem(environment: Readonly<Record<string, string>>): Promise<FaultySystem> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "content-service-faults-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  let cluster: Cluster;
  const startPostgres = async () => {
    cluster = await startCluster({ dataDir: folder, port: null, settings: SETTINGS, tell: () => {} });
  };
  await startPostgres();
  opened.defer(() => cluster.stop());
  const urlOf = (database: string) => cluster.url("postgres", database);
  await withDatabase(urlOf("postgres"), "create database content");
  const migrated = { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") };
  await runMigrations({ name: "migrate" }, migrated);
  const execute = (sql: string) => withDatabase(urlOf("content"), sql);
  // The migrations do not publish tables.
  await execute(TABLES);
  // The default bound limits callers for a day; a run writes more.
  await execute("update content_service.bounds set bound = 10000000 where name like 'idempotency keys%'");
  const receiver = opened.use(await startReceiver());
  await execute(
    `insert into api.webhooks (name, table_name, events, url, role, max_attempts)
     values ('marks', 'public.marks', '{INSERT}', '${receiver.url}', 'service_role', 100)`,
  );
  const logFile = join(folder, "service.log");
  const port = await freePort();
  const connections = { DATABASE_URL: cluster!.url("authenticator", "content"), OWNER_DATABASE_URL: urlOf("content") };
  let gateway: Gateway;
  const startService = async () => {
    gateway = await startGateway(
      {
        ...connections,
        WEBHOOK_NETWORK: "loopback",
        DB_ACQUIRE_TIMEOUT_SECONDS: "5",
        ...environment,
      },
      port,
      logFile,
    );
  };
  await startService();
  opened.defer(() => gateway.stop());
  const everything = opened.move();
  const postmaster = async () => Number.parseInt(await readFile(join(folder, "postgres/postmaster.pid"), "utf8"), 10);
  return {
    url: gateway!.url,
    delivered: receiver.delivered,
    logFile,
    connections,
    execute,
    connect: () => connectTo(urlOf("content")),
    startPostgres,
    async signalPostgres(signal) {
      process.kill(await postmaster(), signal);
      await cluster.ended;
    },
    postmaster,
    service: () => gateway.pid,
    startService,
    async killService() {
      process.kill(gateway.pid, "SIGKILL");
      await gateway.ended;
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

async function connectTo(url: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: OPTIONS,
  });
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function withDatabase(url: string, sql: string): Promise<pg.QueryResult> {
  const client = await connectTo(url);
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

type MarkReceiver = AsyncDisposable & { readonly url: string; readonly delivered: ReadonlyMap<number, number> };

async function startReceiver(): Promise<MarkReceiver> {
  const delivered = new Map<number, number>();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const number = Number((JSON.parse(body) as { record: { number: number } }).record.number);
    delivered.set(number, (delivered.get(number) ?? 0) + 1);
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delivered,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
