import { setTimeout as sleep } from "node:timers/promises";
import type { TaskList } from "graphile-worker";
import { createFirstAdministrator, hasAccounts } from "#accounts";
import { makeMissingRoleWarning } from "#accounts/identity";
import {
  EmailQueue,
  keepsEmails,
  MessageQueue,
  makeMailer,
  makeTextMessageGateway,
  RecentEmails,
  readMailTemplates,
} from "#accounts/mail";
import { checkNamedFunctions, makeCatalogRefresh } from "#catalog/loading";
import { checkInScratch, ScheduledBackup } from "#cluster/archive";
import type { Config } from "#config";
import { openFileStore, openFiles } from "#files";
import { GRAPHQL_PATH, type GraphqlInterface } from "#graphql";
import { makeServiceCounters, openRequestLog } from "#http/observability";
import {
  type AdmissionForUpgrade,
  type DrainMode,
  drain,
  HttpTraffic,
  makeAdmission,
  makeClientConnectionReader,
  makeUpgradeRouter,
  openRateLimits,
  openServer,
  type RateLimits,
  RequestMetrics,
  reloadCertificate,
  serverUrl,
} from "#http/serving";
import {
  hasTasks,
  type JobLane,
  type JobRunner,
  openSchedules,
  type SupabaseJobs,
  startJobRunner,
  startSupabaseJobs,
} from "#jobs/queue";
import { startWebhooks, type WebhookDispatcher } from "#jobs/webhooks";
import type { ReplicationStream } from "#live/stream";
import { shuttingDown } from "#postgres/database";
import { type Realtime, SOCKET_PATH } from "#realtime";
import {
  FUNCTIONS_PREFIX,
  type Functions,
  maintainTasks,
  makeTaskList,
  makeTaskRunner,
  openFunctions,
  type TaskLane,
} from "#rest-gateway";
import { makeQueueTask, type QueueTask } from "#rest-gateway/pipeline";
import { warnOfDisplacedTables } from "#rest-gateway/resource/collections";
import { defaultVersion, makeVersionReader } from "#rest-gateway/resource/parse";
import { makeFunctionEnvironment, openAgentServices } from "./extension-services.ts";
import { makeServiceHealth, openOperations } from "./operations.ts";
import { makeRequestHandlers, type RequestHandlers } from "./request-handlers.ts";
import type { RunningService, ServiceOptions } from "./running-service.ts";
import { type MetricsDependencies, serviceMetrics } from "./service-metrics.ts";
import { catalogOptionsOf, openCore, type ServiceCore } from "./shared-services.ts";
import { makeSignInServices, type SignInServices } from "./sign-in-services.ts";
import { openStreamingInterfaces, type StreamingInterfaces } from "./streaming-interfaces.ts";

export type Service = RunningService & {
  readonly graphql: GraphqlInterface;
  readonly changes: ReplicationStream;
  readonly realtime: Realtime;
};

/** Opens all parts of the service, from the bottom up; a stop closes them in the reverse order. */
export async function startService(environmentConfig: Config, options: ServiceOptions): Promise<Service> {
  await using opened = new AsyncDisposableStack();
  const core = await openCore(environmentConfig, options, opened);
  const { postgres, config, asOwner, catalog, log } = core;
  const state = new ServiceState(config);
  opened.defer(state.counts.recorder.start(core));
  const limits = openRateLimits(core, opened);
  const makeIdentification = await openIdentification(core, state, { ...options, ...limits }, opened);
  state.identification = await makeIdentification(config);
  const interfaces = await openStreamingInterfaces(core, state, limits, options, opened);
  const backups = makeScheduledBackup(core);
  const acceptsWork = () => state.acceptsWork;
  const health = makeServiceHealth({ ...core, ...interfaces, backups, workers: options.workers, acceptsWork });
  opened.defer(warnOfDisplacedTables(catalog, log));

  const versions = makeVersionReader(asOwner);
  const work = await openWork(core, state, { versions, backups, ...interfaces }, opened);
  const requestLog = openRequestLog(config, log);
  opened.defer(() => requestLog?.flush());
  const requests = new RequestMetrics({ isWatched: config.adminPort !== null, log: requestLog });
  const traffic = new HttpTraffic();
  const measured = { ...core, ...interfaces, ...work, ...work.jobKinds, counts: state.counts, requests, traffic };
  const metrics = serviceMetrics(measured);
  const operations = openOperations({ ...measured, health, metrics, emails: state.emails, opened });
  const makeHandlers = makeRequestHandlers({
    ...core,
    ...interfaces,
    ...limits,
    ...work,
    agents: openAgentServices(core, options.extendMcp, opened),
    health,
    versions,
    migrationWatch: options.migrationWatch ?? (() => null),
    siteUrl: () => state.siteUrl!,
    acceptsRequests: () => state.acceptsRequests,
    counts: state.counts,
    requests,
    everywhere: options.everywhere ?? operations,
  });
  state.handlers = makeHandlers(config, state.identification);
  await followSettings(core, state, { makeIdentification, makeHandlers }, opened);
  const jobs = work.queueTask || backups ? await openJobs(core, state, work.jobKinds, opened) : null;

  const server = await openHttpServer(core, state, limits, interfaces);
  if (config.adminPort !== null) traffic.follow(server);
  state.siteUrl ??= serverUrl(server, config.host);
  opened.defer(() => drainService(server, config, state, { ...interfaces, ...work, jobs }));

  const running = opened.move();
  return {
    url: serverUrl(server, config.host),
    postgres,
    ...interfaces,
    operations,
    reload: async () => {
      await core.settings.reload();
      work.functions?.reload();
      await reloadCertificate(server, config);
    },
    stop: (drainMode = {}) => {
      state.drainMode = drainMode;
      return running.disposeAsync();
    },
  };
}

type WorkOptions = {
  readonly versions: ReturnType<typeof makeVersionReader>;
  readonly backups: ScheduledBackup | null;
  readonly socketMemory: StreamingInterfaces["socketMemory"];
};

/** Opens the work besides requests: queued tasks, schedules, webhooks, functions, and the collection of unused files. */
async function openWork(
  core: ServiceCore,
  state: ServiceState,
  { versions, backups, socketMemory }: WorkOptions,
  opened: AsyncDisposableStack,
) {
  const { postgres, config, asOwner, supervisor, log } = core;
  const canQueueTasks = await hasTasks(asOwner);
  const schedules = canQueueTasks && config.runsSchedules ? await openSchedules(core) : null;
  const webhooks = await startWebhooks(core);
  opened.defer(() => webhooks?.close(0));
  const environment = makeFunctionEnvironment(core, state);
  const functions = openFunctions({ config, environment, socketMemory, log });
  opened.defer(() => functions?.close());
  const functionsUrl = () => (functions?.hasFolder() && state.siteUrl ? state.siteUrl + FUNCTIONS_PREFIX : null);
  const supabaseJobs = await startSupabaseJobs({ ...core, url: postgres.directUrl, functionsUrl });
  opened.defer(() => supabaseJobs.close(0));
  const files = await openFiles(config, asOwner, log);
  const collection = files?.keepCollected(supervisor);
  opened.defer(() => collection?.close());
  return {
    jobKinds: { hasTasks: canQueueTasks, schedules, backups },
    queueTask: canQueueTasks ? makeTaskQueue(core, versions) : null,
    ...{ webhooks, functions, supabaseJobs, fileStore: files?.store ?? null },
  };
}

function makeTaskQueue(
  { asOwner, config, settings }: ServiceCore,
  versions: ReturnType<typeof makeVersionReader>,
): QueueTask {
  return makeQueueTask({
    asOwner,
    publicUrl: config.publicUrl,
    anonRole: () => settings.current().anonRole,
    defaultVersion: async () => defaultVersion(await versions())?.number ?? 1,
  });
}

/** The state that changes while the service runs. */
class ServiceState {
  readonly counts = makeServiceCounters();
  /** Null if e-mails are not kept. */
  readonly emails: RecentEmails | null;
  /** PUBLIC_URL, or the address of the server, which is known once it listens. */
  siteUrl: string | null;
  /** Replaced when settings change. */
  identification!: SignInServices;
  /** Replaced when settings change. */
  handlers!: RequestHandlers;
  /** False as soon as the service begins to stop. */
  acceptsWork = true;
  /** False when requests are rejected, towards the end of a stop. */
  acceptsRequests = true;
  drainMode: DrainMode = {};
  readonly readConnection: ReturnType<typeof makeClientConnectionReader>;

  constructor(config: Config) {
    this.siteUrl = config.publicUrl;
    this.emails = keepsEmails(config) ? new RecentEmails() : null;
    this.readConnection = makeClientConnectionReader(config);
  }
}

type SettingsDependents = {
  readonly makeIdentification: (config: Config) => Promise<SignInServices>;
  readonly makeHandlers: (config: Config, identification: SignInServices) => RequestHandlers;
};

/** Applies settings that change in the database. Warns of roles and functions that the settings name but that do not exist. */
async function followSettings(
  core: ServiceCore,
  state: ServiceState,
  { makeIdentification, makeHandlers }: SettingsDependents,
  opened: AsyncDisposableStack,
): Promise<void> {
  const { postgres, config, settings, catalog, log } = core;
  opened.defer(() => settings.close());
  await warnOfNamedFunctions(core, config);
  const warnOfMissingRole = makeMissingRoleWarning(log);
  const checkRoles = () => {
    const { anonRole } = settings.current();
    warnOfMissingRole({ anonRole, loginRole: postgres.loginRole, catalog: catalog.current() });
  };
  checkRoles();
  opened.defer(catalog.onChange(checkRoles));
  settings.follow(async (changed) => {
    await catalog.setOptions(catalogOptionsOf(changed, postgres.loginRole));
    state.identification = await makeIdentification(changed);
    state.handlers = makeHandlers(changed, state.identification);
    await warnOfNamedFunctions(core, changed);
    checkRoles();
  });
}

function openHttpServer(
  { config, peers }: ServiceCore,
  state: ServiceState,
  { limit }: RateLimits,
  { graphql, realtime }: StreamingInterfaces,
): ReturnType<typeof openServer> {
  const admissionOf: AdmissionForUpgrade = (request) => {
    if (!state.acceptsRequests) throw shuttingDown();
    return makeAdmission(request.url ?? "/", limit, () => state.readConnection(request));
  };
  const upgrade = makeUpgradeRouter({
    interfaces: { [GRAPHQL_PATH]: graphql.upgrade, [SOCKET_PATH]: realtime.upgrade },
    folder: { prefix: `${FUNCTIONS_PREFIX}/`, upgrade: (...parts) => state.handlers.upgrade(...parts) },
    admissionOf,
    maxConnections: config.webSocketConnections,
    peers,
  });
  return openServer((request, response) => state.handlers.entry(request, response), config, upgrade);
}

type DrainedWork = {
  readonly jobs: JobRunner | null;
  readonly functions: Functions | null;
  readonly webhooks: WebhookDispatcher | null;
  readonly supabaseJobs: SupabaseJobs;
};

/** Completes requests, operations and tasks in progress, within DRAIN_TIMEOUT_SECONDS. */
async function drainService(
  server: Awaited<ReturnType<typeof openServer>>,
  config: Config,
  state: ServiceState,
  { graphql, realtime, live, jobs, functions, webhooks, supabaseJobs }: StreamingInterfaces & DrainedWork,
): Promise<void> {
  state.acceptsWork = false;
  // In a rolling restart of workers, others take over at the same address.
  const delay = state.drainMode.othersStay ? 0 : config.drainDelay * 1000;
  await sleep(delay);
  const milliseconds = config.drainTimeout * 1000 - delay;
  const refuseRequests = () => {
    state.acceptsRequests = false;
  };
  live.endAll();
  await Promise.all([
    drain(server, milliseconds, { ...state.drainMode, refuseRequests }),
    graphql.closeSockets(milliseconds),
    realtime.closeSockets(milliseconds),
    functions?.sockets.close(),
    jobs?.close(milliseconds),
    webhooks?.close(milliseconds),
    supabaseJobs.close(milliseconds),
  ]);
}

async function warnOfNamedFunctions({ asOwner, log }: ServiceCore, config: Config): Promise<void> {
  try {
    for (const fault of await checkNamedFunctions(asOwner, config)) log.warn(fault);
  } catch (err) {
    log.warn({ err }, "could not check whether the functions named by settings exist");
  }
}

/** Opens authentication, by keys and by accounts if the database has some, and the e-mails to accounts. */
async function openIdentification(
  { config, asOwner, supervisor, log }: ServiceCore,
  state: ServiceState,
  { report, limitSignUps, passwordHash }: Pick<ServiceOptions, "report" | "passwordHash"> & RateLimits,
  opened: AsyncDisposableStack,
): Promise<(config: Config) => Promise<SignInServices>> {
  const canSignIn = await hasAccounts(asOwner);
  if (!canSignIn) log.warn("nobody can sign in: the login owns no accounts (auth.users, with auth.find_account)");
  else if (await createFirstAdministrator(asOwner, config)) report(`${config.adminEmail} is the first administrator`);

  const mailer = makeMailer(config, log, state.emails);
  const emailQueue = mailer && new EmailQueue({ mailer, supervisor, log });
  opened.defer(() => emailQueue?.close());
  const gateway = makeTextMessageGateway(config);
  const textMessages = gateway && new MessageQueue({ mailer: gateway, supervisor, log, noun: "text message" });
  opened.defer(() => textMessages?.close());
  const mailTemplates = readMailTemplates(config.mailTemplatesDir);
  const siteUrl = () => state.siteUrl!;
  const services = { asOwner, canSignIn, emailQueue, textMessages, mailTemplates, siteUrl, limitSignUps, log };
  return makeSignInServices({ ...services, ...(passwordHash && { passwordHash }), hits: state.counts.tokens });
}

function makeScheduledBackup({ postgres, config, asOwner, log }: ServiceCore): ScheduledBackup | null {
  const { backupSchedule: schedule, backupDir: directory, backupKeep: keep, branch } = config;
  // A branch makes no backups, because they would count as backups of the database.
  if (schedule === null || branch !== null) return null;
  const check = config.checksBackups ? (file: string) => checkInScratch(file, postgres.migrate) : null;
  return new ScheduledBackup({
    url: postgres.directUrl,
    asOwner,
    schedule,
    directory,
    keep,
    check,
    store: openFileStore(config),
    log,
  });
}

/** The number of scheduled tasks that run at once: a backup may take hours, and the schedules must not wait for it. */
const CLOCK_CONCURRENCY = 2;

/** Separates the service's own tasks, which wait neither for callers nor, on the clock, for functions that the schedules call. */
function jobLanes(
  { taskConcurrency }: Config,
  { schedules, backups }: Pick<JobKinds, "schedules" | "backups">,
  tasksOf: (lane: TaskLane) => TaskList,
): readonly JobLane[] {
  const lanes = [
    {
      name: "schedules and backups",
      tasks: { ...schedules?.tasks, ...backups?.tasks },
      concurrency: CLOCK_CONCURRENCY,
      crons: [schedules?.cron, backups?.cron].filter((cron) => cron !== undefined),
    },
    { name: "tasks of the system", tasks: tasksOf("system"), concurrency: taskConcurrency },
    { name: "tasks of callers", tasks: tasksOf("caller"), concurrency: taskConcurrency },
    { name: "tasks of anonymous callers", tasks: tasksOf("anonymous"), concurrency: Math.ceil(taskConcurrency / 2) },
  ];
  return lanes.filter(({ tasks }) => Object.keys(tasks).length > 0);
}

type JobKinds = Pick<MetricsDependencies, "hasTasks" | "schedules" | "backups">;

/** Runs the tasks that requests have queued, schedules and scheduled backups. */
async function openJobs(
  { postgres, config, asOwner, catalog, listener, supervisor, log }: ServiceCore,
  state: ServiceState,
  { hasTasks, schedules, backups }: JobKinds,
  opened: AsyncDisposableStack,
): Promise<JobRunner> {
  const { errorVerbosity } = config;
  const taskRunner = makeTaskRunner({
    asOwner,
    authenticator: () => state.identification.authenticator,
    handlerFor: (path) => state.handlers.interfaceAt(path),
    prepareCall: (call, caller) => state.handlers.prepareCall(call, caller),
    catalog: () => catalog.current(),
    refreshCatalog: makeCatalogRefresh(catalog),
    errorVerbosity,
    log,
  });
  const jobs = await startJobRunner({
    url: postgres.directUrl,
    listener,
    lanes: jobLanes(config, { schedules, backups }, (lane) => (hasTasks ? makeTaskList(taskRunner, lane) : {})),
    maintain: async () => {
      // If one part fails, the others still run.
      const parts = [hasTasks ? maintainTasks(asOwner) : null, schedules?.processLate(), backups?.refresh()];
      const failed = (await Promise.allSettled(parts)).find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    },
    supervisor,
    cancelRunning: async () => {
      backups?.cancel();
      await taskRunner.cancelRunning();
    },
    log,
  });
  // This closes the jobs if the start fails later; a stop closes them earlier, with everything else that is drained.
  opened.defer(() => jobs.close(0));
  return jobs;
}
