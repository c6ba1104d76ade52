import { createFirstAdministrator } from "./engine/auth/first-administrator.ts";
import { hasAccounts } from "./engine/auth/has-accounts.ts";
import { makeSignInServices } from "./engine/auth/sign-in-services.ts";
import type { Callers } from "./engine/caller/caller.ts";
import { makeCrossSite } from "./engine/caller/cross-site.ts";
import { makeWarnOfMissingRole } from "./engine/caller/warn-of-missing-role.ts";
import { type Changes, openChanges } from "./engine/changes/changes.ts";
import { PUBLICATION } from "./engine/changes/publication.ts";
import type { Config } from "./engine/config/config.ts";
import { missingFunctions } from "./engine/config/named-functions.ts";
import { shuttingDown } from "./engine/database/faults.ts";
import { hasTasks } from "./engine/jobs/has-tasks.ts";
import { type JobRunner, startJobRunner } from "./engine/jobs/job-runner.ts";
import { makeRequestLimit, type RequestLimit } from "./engine/limits/request-limit.ts";
import { makeSharedRateLimit, type SharedRateLimit } from "./engine/limits/shared-rate-limit.ts";
import type { Logger } from "./engine/log.ts";
import { makeEmailQueue } from "./engine/mail/email-queue.ts";
import { makeMailer } from "./engine/mail/mailer.ts";
import { SocketMemory } from "./engine/memory/socket-memory.ts";
import { type Counts, makeCounts } from "./engine/metrics/counts.ts";
import { makeMetricsReader } from "./engine/metrics/exposition.ts";
import type { Postgres, ServedPostgres } from "./engine/postgres.ts";
import { catalogOptions, type Foundation, layFoundation } from "./foundation.ts";
import { measuresOf } from "./measures.ts";
import { GRAPHQL_PATH, type GraphQL, type GraphQLServices, openGraphQL } from "./plugins/serve/graphql.ts";
import { openRealtime, type Realtime, SOCKET_PATH } from "./realtime/realtime.ts";
import type { Operable } from "./rest-gateway/admin.ts";
import { conditionOf } from "./rest-gateway/condition.ts";
import { makeReadConnection } from "./rest-gateway/connection.ts";
import { type Departure, drain } from "./rest-gateway/drain.ts";
import { isReady } from "./rest-gateway/health.ts";
import { makeAdmission } from "./rest-gateway/limits/admission.ts";
import { addressOf, checkAddress, listen, renewCertificate } from "./rest-gateway/listen.ts";
import { HttpTraffic } from "./rest-gateway/metrics/http-traffic.ts";
import { RequestMetrics } from "./rest-gateway/metrics/request-metrics.ts";
import { readVersions } from "./rest-gateway/resource/versions/served.ts";
import { warnOfDisplacedTables } from "./rest-gateway/resource/warn-of-displaced-tables.ts";
import { makeQueueTask } from "./rest-gateway/tasks/queue-task.ts";
import { maintainTasks, makeTaskList } from "./rest-gateway/tasks/task-jobs.ts";
import { makeTaskRunner } from "./rest-gateway/tasks/task-runner.ts";
import { type AdmitUpgrade, makeUpgrade } from "./rest-gateway/upgrade.ts";
import { makeServing, type Serving } from "./serving.ts";

/** The service in one process or several, as its entry point knows it. */
export type Running = {
  /** Where clients reach it. */
  readonly url: string;
  readonly postgres: Postgres;
  /** What operators may ask of it. */
  readonly operable: Operable;
  /** Takes up what has changed in files, while it goes on serving. */
  renew(): Promise<void>;
  /** Answers what is in flight, then lets go of everything. */
  stop(departure?: Departure): Promise<void>;
};

export type Service = Running & {
  readonly graphql: GraphQL;
  readonly changes: Changes;
  readonly realtime: Realtime;
};

export type Surroundings = {
  readonly log: Logger;
  /** Says what is being done, for the person who waits. */
  readonly tell: (step: string) => void;
  /** Called when the service cannot go on. */
  readonly giveUp: (reason: Error) => void;
  /** The database, where another process has started it. */
  readonly postgres?: ServedPostgres;
  /** Why fewer processes serve than should; null when all do. */
  readonly shortage?: () => string | null;
  /** For how many milliseconds a start waits for GraphQL's schema. */
  readonly schemaPatienceMs?: number;
};

const ONE_HOUR = 3600;

/** Everything that runs, wired from the bottom up; what was opened last is closed first. */
export async function startService(given: Config, surroundings: Surroundings): Promise<Service> {
  if (!surroundings.postgres) await checkAddress(given);
  await using opened = new AsyncDisposableStack();
  const foundation = await layFoundation(given, surroundings, opened);
  const { postgres, config, settings, database, asOwner, catalog, tracing, log } = foundation;

  // Where clients reach it is known when it listens, if nobody has said it.
  let siteUrl = config.publicUrl;
  const counts = makeCounts();
  const identificationBy = await openIdentification(
    { ...foundation, siteUrl: () => siteUrl!, counts, tell: surroundings.tell },
    opened,
  );
  let identification = await identificationBy(config);
  const limits = openLimits(foundation, opened);

  const callers = () => identification.callers;
  const { schemaPatienceMs: patienceMs, shortage = () => null } = surroundings;
  const readConnection = makeReadConnection(config);
  const clientAddress: Live["clientAddress"] = (request) => readConnection(request).address;
  const live = { ...foundation, callers, clientAddress, counts, patienceMs };
  const { graphql, changes, realtime } = await openLive(live, opened);

  let accepting = true;
  let takesRequests = true;
  const condition = conditionOf({
    database,
    schemaFault: () => catalog.state().reason ?? graphql.state().fault,
    isSchemaAwaited: () => graphql.state().isAwaited,
    leftOut: () => graphql.state().leftOut,
    shortage,
    acceptsWork: () => accepting,
  });
  opened.defer(warnOfDisplacedTables(catalog, log));
  const versions = readVersions(asOwner);
  const defer = (await hasTasks(asOwner)) ? makeQueueTask({ asOwner, versions, publicUrl: config.publicUrl }) : null;
  const requests = config.adminPort === null ? null : new RequestMetrics();
  const servingBy = makeServing({
    asOwner,
    database,
    catalog,
    graphql,
    realtime,
    condition,
    ...limits,
    versions,
    defer,
    siteUrl: () => siteUrl!,
    takesRequests: () => takesRequests,
    log,
    counts,
    requests,
    tracing,
  });
  let serving = servingBy(config, identification);
  opened.defer(() => settings.close());
  await warnOfMissing(foundation, config);
  const warnOfMissingRole = makeWarnOfMissingRole(log);
  const checkRoles = () => {
    const { anonRole } = settings.current();
    warnOfMissingRole({ anonRole, loginRole: postgres.loginRole, catalog: catalog.current() });
  };
  checkRoles();
  opened.defer(catalog.onChange(checkRoles));
  settings.follow(async (changed) => {
    await catalog.read(catalogOptions(changed, postgres.loginRole));
    identification = await identificationBy(changed);
    serving = servingBy(changed, identification);
    await warnOfMissing(foundation, changed);
    checkRoles();
  });
  const interfaceAt: Serving["interfaceAt"] = (path) => serving.interfaceAt(path);
  const jobs = defer && (await openTasks({ ...foundation, callers, interfaceAt }, opened));

  const admissionOf: AdmitUpgrade = (request) => {
    if (!takesRequests) throw shuttingDown();
    return makeAdmission(request.url ?? "/", limits.limit, () => readConnection(request));
  };
  const upgrade = makeUpgrade({
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
    hasTasks: defer !== null,
  };
  const meter = requests && makeMetricsReader(measuresOf({ ...measurable, requests }));
  const server = await listen((request, response) => serving.entry(request, response), config, upgrade);
  if (requests) traffic.follow(server);
  siteUrl ??= addressOf(server, config.host);
  let departure: Departure = {};
  opened.defer(async () => {
    accepting = false;
    const milliseconds = config.drainTimeout * 1000;
    const turnAway = () => {
      takesRequests = false;
    };
    await Promise.all([
      drain(server, milliseconds, { ...departure, turnAway }),
      graphql.hangUp(milliseconds),
      realtime.hangUp(milliseconds),
      jobs?.close(milliseconds),
    ]);
  });

  const running = opened.move();
  return {
    url: addressOf(server, config.host),
    postgres,
    graphql,
    changes,
    realtime,
    operable: {
      isReady: () => isReady(condition),
      measure: async () => (meter ? [await meter()] : []),
      underWay: async () => database.underWay(),
    },
    renew: () => renewCertificate(server, config),
    stop: (given = {}) => {
      departure = given;
      return running.disposeAsync();
    },
  };
}

async function warnOfMissing({ asOwner, log }: Foundation, config: Config): Promise<void> {
  try {
    for (const fault of await missingFunctions(asOwner, config)) log.warn(fault);
  } catch (err) {
    log.warn({ err }, "whether the functions that settings name are there could not be looked up");
  }
}

type Introduced = Foundation & {
  readonly siteUrl: () => string;
  readonly counts: Counts;
  readonly tell: Surroundings["tell"];
};

/** Who calls, by keys and by accounts where there are some, and the mails to those. */
async function openIdentification(introduced: Introduced, opened: AsyncDisposableStack) {
  const { config, asOwner, siteUrl, counts, tell, log } = introduced;
  const canSignIn = await hasAccounts(asOwner);
  if (!canSignIn)
    log.warn(
      "nobody can sign in: the login owns no accounts (auth.credentials) that are connected to a table of users (auth.find_account)",
    );
  else if (await createFirstAdministrator(asOwner, config)) tell(`${config.adminEmail} is the first administrator`);

  const mailer = makeMailer(config, log);
  const emailQueue = mailer && makeEmailQueue({ mailer, log });
  opened.defer(() => emailQueue?.close());
  return makeSignInServices({ asOwner, canSignIn, emailQueue, siteUrl, hits: counts.tokens, log });
}

/** Null: nothing is counted. */
type Limits = { readonly limit: RequestLimit | null; readonly signUpLimit: SharedRateLimit | null };

function openLimits({ config, asOwner, log }: Foundation, opened: AsyncDisposableStack): Limits {
  if (config.rateLimit === 0) return { limit: null, signUpLimit: null };
  const limit = makeRequestLimit({ limit: config.rateLimit, asOwner, log });
  opened.defer(() => limit.close());
  const signUps = { name: "sign-up", points: config.signUpLimit, seconds: ONE_HOUR, asOwner };
  return { limit, signUpLimit: signUps.points > 0 ? makeSharedRateLimit(signUps) : null };
}

type Live = Foundation & {
  readonly callers: () => Callers;
  readonly clientAddress: GraphQLServices["clientAddress"];
  readonly counts: Counts;
  readonly patienceMs: number | undefined;
};

/** The interfaces that tell of changes, and where those come from. */
async function openLive(live: Live, opened: AsyncDisposableStack) {
  const { postgres, config, database, asOwner, catalog, listener, tracing, log } = live;
  const { callers, clientAddress, counts, patienceMs } = live;
  const memory = new SocketMemory(config);
  const graphql = await openGraphQL({
    config,
    callers,
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
  const changes = openChanges({ url: postgres.ownerUrl, asOwner, publication: PUBLICATION, keep, log });
  opened.defer(() => changes.close());
  const realtime = openRealtime({
    config,
    callers,
    crossSite: makeCrossSite(config),
    catalog,
    database,
    changes,
    publication: PUBLICATION,
    memory,
    log,
  });
  opened.defer(() => realtime.close());
  return { graphql, changes, realtime };
}

type Performing = Foundation & Pick<Serving, "interfaceAt"> & { readonly callers: () => Callers };

/** Does what requests have left for later. */
async function openTasks(performing: Performing, opened: AsyncDisposableStack): Promise<JobRunner> {
  const { postgres, config, asOwner, callers, interfaceAt, log } = performing;
  const { tableErrorVerbosity } = config;
  const performer = makeTaskRunner({ asOwner, callers, handlerFor: interfaceAt, tableErrorVerbosity, log });
  const jobs = await startJobRunner({
    url: postgres.ownerUrl,
    tasks: makeTaskList(performer),
    maintain: () => maintainTasks(asOwner),
    cancelRunning: performer.cancelRunning,
    log,
  });
  // For a start that fails behind this: who stops closes them together with all else that is under way.
  opened.defer(() => jobs.close(0));
  return jobs;
}
