import { hasAccounts } from "./engine/accounts/accounts.ts";
import { createFirstAdministrator } from "./engine/accounts/administration.ts";
import { type CatalogKeeper, keepCatalog } from "./engine/catalog/catalog-keeper.ts";
import type { CatalogOptions } from "./engine/catalog/catalog-rows.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { type Database, openDatabase } from "./engine/database/database.ts";
import { shuttingDown } from "./engine/database/database-errors.ts";
import { combineObservers, logSlowStatements } from "./engine/database/observe-statements.ts";
import type { AsOwner } from "./engine/database/owner-pool.ts";
import { type ConfigKeeper, findMissingFunctions, keepConfig } from "./engine/database-config/config-keeper.ts";
import type { Authenticator } from "./engine/identity/authenticator.ts";
import { makeMissingRoleWarning } from "./engine/identity/missing-role-warning.ts";
import { makeRequestLimit, type RequestLimit } from "./engine/limits/request-limit.ts";
import { makeSharedRateLimit, type SharedRateLimit } from "./engine/limits/shared-rate-limit.ts";
import { EmailQueue } from "./engine/mail/email-queue.ts";
import { makeMailer } from "./engine/mail/mailer.ts";
import { SocketMemory } from "./engine/memory/socket-memory.ts";
import { bringUpToDate } from "./engine/migrate/migrate.ts";
import { makeServiceCounters, type ServiceCounters } from "./engine/observability/counters.ts";
import { makeMetricsReader } from "./engine/observability/metrics.ts";
import { openTracing, type Tracing } from "./engine/observability/tracing.ts";
import type { Logger } from "./engine/output/log.ts";
import { toPgConnectionString } from "./engine/pg-client/connection-string.ts";
import { type Listener, openListener } from "./engine/pg-client/listen.ts";
import { type PostgresUrls, type ServedPostgres, startPostgres } from "./engine/postgres/served-postgres.ts";
import { openReplication, type ReplicationStream } from "./engine/replication/changes.ts";
import { REALTIME_PUBLICATION } from "./engine/replication/replication-slots.ts";
import { hasTasks, type JobRunner, startJobRunner } from "./engine/tasks/job-runner.ts";
import { makeCsrfProtection } from "./http/csrf-protection.ts";
import {
  GRAPHQL_PATH,
  type GraphqlDependencies,
  type GraphqlInterface,
  openGraphql,
} from "./plugins/server/graphql.ts";
import { openRealtime, type Realtime, SOCKET_PATH } from "./realtime/realtime.ts";
import { makeRequestHandlers, type RequestHandlers } from "./request-handlers.ts";
import type { ServiceOperations } from "./rest-gateway/http/admin.ts";
import { type DrainMode, drain } from "./rest-gateway/http/drain.ts";
import { isReady, makeHealthState } from "./rest-gateway/http/health.ts";
import { makeAdmission } from "./rest-gateway/http/limits.ts";
import { makeClientConnectionReader } from "./rest-gateway/http/request.ts";
import { HttpTraffic, RequestMetrics } from "./rest-gateway/http/request-metrics.ts";
import { checkListenAddress, openServer, reloadCertificate, serverUrl } from "./rest-gateway/http/server.ts";
import { type AdmissionForUpgrade, makeUpgradeRouter } from "./rest-gateway/http/upgrade.ts";
import { warnOfDisplacedTables } from "./rest-gateway/resource/table-addresses.ts";
import { defaultVersion, makeVersionReader } from "./rest-gateway/resource/versions/versions.ts";
import { makeQueueTask } from "./rest-gateway/tasks/queue-task.ts";
import { maintainTasks, makeTaskList, makeTaskRunner } from "./rest-gateway/tasks/task-runner.ts";
import { serviceMetrics } from "./service-metrics.ts";
import { makeSignInServices } from "./sign-in-services.ts";

/** The service in one process or several, as its entry point knows it. */
export type RunningService = {
  /** Where clients reach it. */
  readonly url: string;
  readonly postgres: PostgresUrls;
  /** What operators may ask of it. */
  readonly operations: ServiceOperations;
  /** Takes up what has changed in files, while it goes on serving. */
  reload(): Promise<void>;
  /** Answers what is in flight, then lets go of everything. */
  stop(departure?: DrainMode): Promise<void>;
};

export type Service = RunningService & {
  readonly graphql: GraphqlInterface;
  readonly changes: ReplicationStream;
  readonly realtime: Realtime;
};

export type ServiceOptions = {
  readonly log: Logger;
  /** Says what is being done, for the person who waits. */
  readonly report: (step: string) => void;
  /** Called when the service cannot go on. */
  readonly onFatalError: (reason: Error) => void;
  /** The database, where another process has started it. */
  readonly postgres?: ServedPostgres;
  /** Why fewer processes serve than should; null when all do. */
  readonly workerShortage?: () => string | null;
  /** For how many milliseconds a start waits for GraphQL's schema. */
  readonly schemaTimeoutMs?: number;
};

const ONE_HOUR = 3600;

/** Everything that runs, wired from the bottom up; what was opened last is closed first. */
export async function startService(given: Config, options: ServiceOptions): Promise<Service> {
  if (!options.postgres) await checkListenAddress(given);
  await using opened = new AsyncDisposableStack();
  const core = await openCore(given, options, opened);
  const { postgres, config, settings, database, asOwner, catalog, tracing, log } = core;

  // Where clients reach it is known when it listens, if nobody has said it.
  let siteUrl = config.publicUrl;
  const counts = makeServiceCounters();
  const makeIdentification = await openIdentification(
    { ...core, siteUrl: () => siteUrl!, counts, report: options.report },
    opened,
  );
  let identification = await makeIdentification(config);
  const limits = openRateLimits(core, opened);

  const authenticator = () => identification.authenticator;
  const { schemaTimeoutMs, workerShortage = () => null } = options;
  const readConnection = makeClientConnectionReader(config);
  const clientAddress: StreamingDependencies["clientAddress"] = (request) => readConnection(request).address;
  const streaming = { ...core, authenticator, clientAddress, counts, patienceMs: schemaTimeoutMs };
  const { graphql, changes, realtime } = await openStreamingInterfaces(streaming, opened);

  let accepting = true;
  let takesRequests = true;
  const condition = makeHealthState({
    database,
    schemaFault: () => catalog.state().reason ?? graphql.state().fault,
    isSchemaAwaited: () => graphql.state().isAwaited,
    leftOut: () => graphql.state().leftOut,
    workerShortage,
    acceptsWork: () => accepting,
  });
  opened.defer(warnOfDisplacedTables(catalog, log));
  const versions = makeVersionReader(asOwner);
  const queueTask = (await hasTasks(asOwner))
    ? makeQueueTask({
        asOwner,
        publicUrl: config.publicUrl,
        defaultVersion: async () => defaultVersion(await versions())?.number ?? 1,
      })
    : null;
  const requests = config.adminPort === null ? null : new RequestMetrics();
  const makeHandlers = makeRequestHandlers({
    asOwner,
    database,
    catalog,
    graphql,
    realtime,
    condition,
    ...limits,
    versions,
    defer: queueTask,
    siteUrl: () => siteUrl!,
    takesRequests: () => takesRequests,
    log,
    counts,
    requests,
    tracing,
  });
  let handlers = makeHandlers(config, identification);
  opened.defer(() => settings.close());
  await warnOfMissingFunctions(core, config);
  const warnOfMissingRole = makeMissingRoleWarning(log);
  const checkRoles = () => {
    const { anonRole } = settings.current();
    warnOfMissingRole({ anonRole, loginRole: postgres.loginRole, catalog: catalog.current() });
  };
  checkRoles();
  opened.defer(catalog.onChange(checkRoles));
  settings.follow(async (changed) => {
    await catalog.setOptions(catalogOptionsOf(changed, postgres.loginRole));
    identification = await makeIdentification(changed);
    handlers = makeHandlers(changed, identification);
    await warnOfMissingFunctions(core, changed);
    checkRoles();
  });
  const interfaceAt: RequestHandlers["interfaceAt"] = (path) => handlers.interfaceAt(path);
  const jobs = queueTask && (await openTasks({ ...core, authenticator, interfaceAt }, opened));

  const admissionOf: AdmissionForUpgrade = (request) => {
    if (!takesRequests) throw shuttingDown();
    return makeAdmission(request.url ?? "/", limits.limit, () => readConnection(request));
  };
  const upgrade = makeUpgradeRouter({
    interfaces: { [GRAPHQL_PATH]: graphql.upgrade, [SOCKET_PATH]: realtime.upgrade },
    admissionOf,
    maxConnections: config.webSocketConnections,
  });
  const traffic = new HttpTraffic();
  const measurable = {
    asOwner,
    database,
    catalog,
    changes,
    graphql,
    realtime,
    counts,
    traffic,
    hasTasks: queueTask !== null,
  };
  const meter = requests && makeMetricsReader(serviceMetrics({ ...measurable, requests }));
  const server = await openServer((request, response) => handlers.entry(request, response), config, upgrade);
  if (requests) traffic.follow(server);
  siteUrl ??= serverUrl(server, config.host);
  let departure: DrainMode = {};
  opened.defer(async () => {
    accepting = false;
    const milliseconds = config.drainTimeout * 1000;
    const turnAway = () => {
      takesRequests = false;
    };
    await Promise.all([
      drain(server, milliseconds, { ...departure, refuseRequests: turnAway }),
      graphql.hangUp(milliseconds),
      realtime.closeSockets(milliseconds),
      jobs?.close(milliseconds),
    ]);
  });

  const running = opened.move();
  return {
    url: serverUrl(server, config.host),
    postgres,
    graphql,
    changes,
    realtime,
    operations: {
      isReady: () => isReady(condition),
      measure: async () => (meter ? [await meter()] : []),
      underWay: async () => database.runningStatements(),
    },
    reload: () => reloadCertificate(server, config),
    stop: (given = {}) => {
      departure = given;
      return running.disposeAsync();
    },
  };
}

async function warnOfMissingFunctions({ asOwner, log }: ServiceCore, config: Config): Promise<void> {
  try {
    for (const fault of await findMissingFunctions(asOwner, config)) log.warn(fault);
  } catch (err) {
    log.warn({ err }, "whether the functions that settings name are there could not be looked up");
  }
}

type IdentificationDependencies = ServiceCore & {
  readonly siteUrl: () => string;
  readonly counts: ServiceCounters;
  readonly report: ServiceOptions["report"];
};

/** Who calls, by keys and by accounts where there are some, and the mails to those. */
async function openIdentification(dependencies: IdentificationDependencies, opened: AsyncDisposableStack) {
  const { config, asOwner, siteUrl, counts, report, log } = dependencies;
  const canSignIn = await hasAccounts(asOwner);
  if (!canSignIn)
    log.warn(
      "nobody can sign in: the login owns no accounts (auth.credentials) that are connected to a table of users (auth.find_account)",
    );
  else if (await createFirstAdministrator(asOwner, config)) report(`${config.adminEmail} is the first administrator`);

  const mailer = makeMailer(config, log);
  const emailQueue = mailer && new EmailQueue({ mailer, log });
  opened.defer(() => emailQueue?.close());
  return makeSignInServices({ asOwner, canSignIn, emailQueue, siteUrl, hits: counts.tokens, log });
}

/** Null: nothing is counted. */
type RateLimits = { readonly limit: RequestLimit | null; readonly signUpLimit: SharedRateLimit | null };

function openRateLimits({ config, asOwner, log }: ServiceCore, opened: AsyncDisposableStack): RateLimits {
  if (config.rateLimit === 0) return { limit: null, signUpLimit: null };
  const limit = makeRequestLimit({ limit: config.rateLimit, asOwner, log });
  opened.defer(() => limit.close());
  const signUps = { name: "sign-up", points: config.signUpLimit, seconds: ONE_HOUR, asOwner };
  return { limit, signUpLimit: signUps.points > 0 ? makeSharedRateLimit(signUps) : null };
}

type StreamingDependencies = ServiceCore & {
  readonly authenticator: () => Authenticator;
  readonly clientAddress: GraphqlDependencies["clientAddress"];
  readonly counts: ServiceCounters;
  readonly patienceMs: number | undefined;
};

/** The interfaces that tell of changes, and where those come from. */
async function openStreamingInterfaces(dependencies: StreamingDependencies, opened: AsyncDisposableStack) {
  const { postgres, config, database, asOwner, catalog, listener, tracing, log } = dependencies;
  const { authenticator, clientAddress, counts, patienceMs } = dependencies;
  const memory = new SocketMemory(config);
  const graphql = await openGraphql({
    config,
    authenticator,
    catalog,
    database,
    listener,
    loginRole: postgres.loginRole,
    clientAddress,
    log,
    counts,
    tracing,
    patienceMs,
    memory,
  });
  opened.defer(() => graphql.close());

  const keep = config.realtimeSlot;
  const changes = openReplication({ url: postgres.ownerUrl, asOwner, publication: REALTIME_PUBLICATION, keep, log });
  opened.defer(() => changes.close());
  const realtime = openRealtime({
    config,
    authenticator,
    csrf: makeCsrfProtection(config),
    clientAddress,
    catalog,
    database,
    changes,
    publication: REALTIME_PUBLICATION,
    memory,
    log,
  });
  opened.defer(() => realtime.close());
  return { graphql, changes, realtime };
}

type TaskDependencies = ServiceCore &
  Pick<RequestHandlers, "interfaceAt"> & { readonly authenticator: () => Authenticator };

/** Does what requests have left for later. */
async function openTasks(dependencies: TaskDependencies, opened: AsyncDisposableStack): Promise<JobRunner> {
  const { postgres, config, asOwner, authenticator, interfaceAt, log } = dependencies;
  const { tableErrorVerbosity } = config;
  const taskRunner = makeTaskRunner({ asOwner, authenticator, handlerFor: interfaceAt, tableErrorVerbosity, log });
  const jobs = await startJobRunner({
    url: postgres.ownerUrl,
    tasks: makeTaskList(taskRunner),
    maintain: () => maintainTasks(asOwner),
    cancelRunning: taskRunner.cancelRunning,
    log,
  });
  // For a start that fails behind this: who stops closes them together with all else that is under way.
  opened.defer(() => jobs.close(0));
  return jobs;
}

/** What every interface stands on. */
export type ServiceCore = {
  readonly postgres: ServedPostgres;
  /** As they are at the start, with what the database says of them. */
  readonly config: Config;
  readonly settings: ConfigKeeper;
  readonly database: Database;
  readonly asOwner: AsOwner;
  readonly catalog: CatalogKeeper;
  readonly listener: Listener;
  readonly tracing: Tracing | null;
  readonly log: Logger;
};

/** Starts Postgres or reaches it, up to date; reads the settings that it holds, and what it has. */
export async function openCore(
  environmentConfig: Config,
  options: ServiceOptions,
  opened: AsyncDisposableStack,
): Promise<ServiceCore> {
  const { log, report, onFatalError } = options;
  const postgres = options.postgres ?? (await startPostgres(environmentConfig, report, onFatalError));
  opened.defer(() => postgres.close());
  const { migrate, requestUrl, ownerUrl, loginRole } = postgres;
  await bringUpToDate({ settings: migrate, requestUrl, isOwnDatabase: isEmbedded(environmentConfig), report });

  const listener = openListener({ url: ownerUrl, log });
  opened.defer(() => listener.close());
  const reloads = environmentConfig.channelEnabled ? listener : null;
  const settings = await keepConfig({ config: environmentConfig, url: requestUrl, listener: reloads, log });
  const config = settings.current();

  const tracing = await openTracing(config, log);
  opened.defer(() => tracing?.close());
  const database = openRequestDatabase(config, postgres, { tracing, log });
  opened.defer(() => database.close());
  const asOwner: AsOwner = (work) => database.asOwner(work);

  const catalog = await keepCatalog({
    ...catalogOptionsOf(config, loginRole),
    asOwner,
    listener: reloads,
    channel: config.channel,
    log,
  });
  opened.defer(() => catalog.close());
  catalog.onChange(() => database.forgetStatements());
  return { postgres, config, settings, database, asOwner, catalog, listener, tracing, log };
}

/** How the catalogue is read by those settings. */
export function catalogOptionsOf(config: Config, loginRole: string): CatalogOptions {
  const { schemas, extraSearchPath, timezoneEnabled: timeZones } = config;
  return { schemas, extraSearchPath, timeZones, loginRole };
}

/** The way to Postgres that requests take. */
function openRequestDatabase(
  config: Config,
  { requestUrl, ownerUrl }: ServedPostgres,
  { tracing, log }: Pick<ServiceCore, "tracing" | "log">,
): Database {
  const slowStatements = config.slowQueryMs === 0 ? [] : [logSlowStatements({ log, milliseconds: config.slowQueryMs })];
  return openDatabase({
    url: requestUrl,
    ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    pipelineDepth: config.pipelineDepth,
    statementTimeout: config.statementTimeout * 1000,
    lockTimeout: config.lockTimeout * 1000,
    anonymous: { role: config.anonRole, statementTimeout: config.anonStatementTimeout * 1000 },
    acquireTimeout: config.acquireTimeout * 1000,
    maxAnswerBytes: config.maxAnswerBytes,
    observe: combineObservers([...slowStatements, ...(tracing ? [tracing.observe] : [])]),
    replicaUrls: config.readDatabaseUrls?.map(toPgConnectionString) ?? [],
    mostReplicaLag: config.maxReplicaLag,
  });
}
