import { makeFirstAdministrator } from "./engine/auth/first-administrator.ts";
import { hasAccounts } from "./engine/auth/has-accounts.ts";
import { makeIdentification } from "./engine/auth/identification.ts";
import { makeCrossSite } from "./engine/caller/cross-site.ts";
import { keepCatalog } from "./engine/catalog/keep.ts";
import { type Changes, openChanges } from "./engine/changes/changes.ts";
import { PUBLICATION } from "./engine/changes/publication.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { keepConfig } from "./engine/config/keep.ts";
import { asPgReads } from "./engine/connection-string.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import { openDatabase } from "./engine/database/database.ts";
import { observeAll } from "./engine/database/observe.ts";
import { logSlowStatements } from "./engine/database/slow-statements.ts";
import { hasTasks } from "./engine/jobs/has-tasks.ts";
import { openJobs } from "./engine/jobs/jobs.ts";
import { makeRequestLimit } from "./engine/limits/request-limit.ts";
import { makeSharedLimit } from "./engine/limits/shared-limit.ts";
import { openListener } from "./engine/listen.ts";
import type { Logger } from "./engine/log.ts";
import { makeMailer } from "./engine/mail/mailer.ts";
import { openOutbox } from "./engine/mail/outbox.ts";
import { makeCounts } from "./engine/metrics/counts.ts";
import { makeMeter } from "./engine/metrics/exposition.ts";
import { bringUpToDate } from "./engine/migrate/bring-up-to-date.ts";
import { type Postgres, type ServedPostgres, startPostgres } from "./engine/postgres.ts";
import { openTracing } from "./engine/tracing/tracing.ts";
import { measuresOf } from "./measures.ts";
import { GRAPHQL_PATH, type GraphQL, openGraphQL } from "./plugins/serve/graphql.ts";
import { openRealtime, type Realtime, SOCKET_PATH } from "./realtime/realtime.ts";
import type { Operable } from "./rest-gateway/admin.ts";
import { conditionOf } from "./rest-gateway/condition.ts";
import { makeReadConnection } from "./rest-gateway/connection.ts";
import { type Departure, drain } from "./rest-gateway/drain.ts";
import { isReady } from "./rest-gateway/health.ts";
import { admissionTo } from "./rest-gateway/limits/admission.ts";
import { addressOf, checkAddress, listen, renewCertificate } from "./rest-gateway/listen.ts";
import { RequestCounts } from "./rest-gateway/metrics/requests.ts";
import { Traffic } from "./rest-gateway/metrics/traffic.ts";
import { readVersions } from "./rest-gateway/resource/versions/served.ts";
import { makeDefer } from "./rest-gateway/tasks/defer.ts";
import { taskJobs, tendTasks } from "./rest-gateway/tasks/jobs.ts";
import { makePerformer } from "./rest-gateway/tasks/perform.ts";
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
  const { log, tell, giveUp, shortage = () => null } = surroundings;
  if (!surroundings.postgres) await checkAddress(given);
  await using opened = new AsyncDisposableStack();

  const postgres = surroundings.postgres ?? (await startPostgres(given, tell, giveUp));
  opened.defer(() => postgres.close());
  await bringUpToDate({ settings: postgres.migrate, ours: isEmbedded(given), tell });

  const listener = openListener({ url: postgres.ownerUrl, log });
  opened.defer(() => listener.close());
  const reloads = given.channelEnabled ? listener : null;
  const settings = await keepConfig({ config: given, url: postgres.requestUrl, listener: reloads, log });
  const config = settings.current();

  const tracing = await openTracing(config, log);
  opened.defer(() => tracing?.close());
  const slowStatements = config.slowQueryMs === 0 ? [] : [logSlowStatements({ log, milliseconds: config.slowQueryMs })];
  const database = openDatabase({
    url: postgres.requestUrl,
    ownerUrl: postgres.ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    statementTimeout: config.statementTimeout * 1000,
    acquireTimeout: config.acquireTimeout * 1000,
    maxAnswerBytes: config.maxAnswerBytes,
    observe: observeAll([...slowStatements, ...(tracing ? [tracing.observe] : [])]),
    replicaUrls: config.readDatabaseUrls?.map(asPgReads) ?? [],
    mostReplicaLag: config.maxReplicaLag,
  });
  opened.defer(() => database.close());

  const readBy = ({ schemas, extraSearchPath, timezoneEnabled: timeZones }: Config) => {
    return { schemas, extraSearchPath, timeZones, loginRole: postgres.loginRole };
  };
  const catalog = await keepCatalog({
    ...readBy(config),
    asOwner: (work) => database.asOwner(work),
    listener: reloads,
    channel: config.channel,
    log,
  });
  opened.defer(() => catalog.close());
  catalog.onChange(() => database.forgetStatements());

  const asOwner: AsOwner = (work) => database.asOwner(work);
  const canSignIn = await hasAccounts(asOwner);
  if (!canSignIn) log.warn("nobody can sign in: there are no accounts (auth.credentials) that the login owns");
  else if (await makeFirstAdministrator(asOwner, config)) tell(`${config.adminEmail} is the first administrator`);

  const { rateLimit } = config;
  const limit = rateLimit > 0 ? makeRequestLimit({ limit: rateLimit, asOwner, log }) : null;
  opened.defer(() => limit?.close());
  const signUps = { name: "sign-up", points: config.signUpLimit, seconds: ONE_HOUR, asOwner };
  const signUpLimit = rateLimit > 0 && signUps.points > 0 ? makeSharedLimit(signUps) : null;

  const mailer = makeMailer(config, log);
  const outbox = mailer && openOutbox({ mailer, log });
  opened.defer(() => outbox?.close());
  let siteUrl = config.publicUrl;

  const counts = makeCounts();
  const requests = config.adminPort === null ? null : new RequestCounts();
  const traffic = new Traffic();

  const versions = readVersions(asOwner);
  const defer = (await hasTasks(asOwner)) ? makeDefer(asOwner, versions) : null;

  const identificationBy = makeIdentification({
    asOwner,
    canSignIn,
    outbox,
    siteUrl: () => siteUrl!,
    hits: counts.tokens,
    log,
  });
  let identification = await identificationBy(config);

  const graphql = await openGraphQL({
    config,
    callers: () => identification.callers,
    catalog,
    database,
    listener,
    loginRole: postgres.loginRole,
    log,
    counts,
    tracing,
    patienceMs: surroundings.schemaPatienceMs,
  });
  opened.defer(() => graphql.close());

  const changes = openChanges({
    url: postgres.ownerUrl,
    asOwner,
    publication: PUBLICATION,
    keep: config.realtimeSlot,
    log,
  });
  opened.defer(() => changes.close());
  const realtime = openRealtime({
    config,
    callers: () => identification.callers,
    crossSite: makeCrossSite(config),
    catalog,
    database,
    changes,
    publication: PUBLICATION,
    log,
  });
  opened.defer(() => realtime.close());

  let accepting = true;
  const condition = conditionOf({
    database,
    schemaFault: () => catalog.state().reason ?? graphql.state().fault,
    isSchemaAwaited: () => graphql.state().isAwaited,
    shortage,
    acceptsWork: () => accepting,
  });
  const servingBy = makeServing({
    asOwner,
    database,
    catalog,
    graphql,
    realtime,
    condition,
    limit,
    signUpLimit,
    versions,
    defer,
    siteUrl: () => siteUrl!,
    log,
    counts,
    requests,
    tracing,
  });
  let serving = servingBy(config, identification);
  opened.defer(() => settings.close());
  settings.follow(async (changed) => {
    await catalog.read(readBy(changed));
    identification = await identificationBy(changed);
    serving = servingBy(changed, identification);
  });

  if (defer) {
    const interfaceAt: Serving["interfaceAt"] = (path) => serving.interfaceAt(path);
    const performer = makePerformer({ asOwner, callers: () => identification.callers, interfaceAt, log });
    const jobs = await openJobs({
      url: postgres.ownerUrl,
      tasks: taskJobs(performer),
      tend: () => tendTasks(asOwner),
      abandon: performer.abandon,
      log,
    });
    opened.defer(() => jobs.close(config.drainTimeout * 1000));
  }

  const readConnection = makeReadConnection(config);
  const admissionOf: AdmitUpgrade = (request) => admissionTo(request.url ?? "/", limit, () => readConnection(request));
  const upgrade = makeUpgrade({ [GRAPHQL_PATH]: graphql.upgrade, [SOCKET_PATH]: realtime.upgrade }, admissionOf);
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
  const meter = requests && makeMeter(measuresOf({ ...measurable, requests }));
  const server = await listen((request, response) => serving.entry(request, response), config, upgrade);
  if (requests) traffic.follow(server);
  siteUrl ??= addressOf(server, config.host);
  let departure: Departure = {};
  opened.defer(async () => {
    accepting = false;
    const milliseconds = config.drainTimeout * 1000;
    await Promise.all([
      drain(server, milliseconds, departure),
      graphql.hangUp(milliseconds),
      realtime.hangUp(milliseconds),
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
