import { makeFirstAdministrator } from "./engine/auth/first-administrator.ts";
import { hasAccounts } from "./engine/auth/has-accounts.ts";
import { makeIdentification } from "./engine/auth/identification.ts";
import { makeCrossSite } from "./engine/caller/cross-site.ts";
import { keepCatalog } from "./engine/catalog/keep.ts";
import { openChanges } from "./engine/changes/changes.ts";
import { PUBLICATION } from "./engine/changes/publication.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { keepConfig } from "./engine/config/keep.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import { openDatabase } from "./engine/database/database.ts";
import { hasTasks } from "./engine/jobs/has-tasks.ts";
import { openJobs } from "./engine/jobs/jobs.ts";
import { makeRequestLimit } from "./engine/limits/request-limit.ts";
import { makeSharedLimit } from "./engine/limits/shared-limit.ts";
import { openListener } from "./engine/listen.ts";
import type { Logger } from "./engine/log.ts";
import { makeMailer } from "./engine/mail/mailer.ts";
import { openOutbox } from "./engine/mail/outbox.ts";
import { bringUpToDate } from "./engine/migrate/bring-up-to-date.ts";
import { type Postgres, startPostgres } from "./engine/postgres.ts";
import { GRAPHQL_PATH, type GraphQL, openGraphQL } from "./plugins/serve/graphql.ts";
import { openRealtime, type Realtime, SOCKET_PATH } from "./realtime/realtime.ts";
import { conditionOf } from "./rest-gateway/condition.ts";
import { makeReadConnection } from "./rest-gateway/connection.ts";
import { admissionTo } from "./rest-gateway/limits/admission.ts";
import { addressOf, checkAddress, drain, listen } from "./rest-gateway/listen.ts";
import { makeDefer } from "./rest-gateway/tasks/defer.ts";
import { taskJobs, tendTasks } from "./rest-gateway/tasks/jobs.ts";
import { makePerformer } from "./rest-gateway/tasks/perform.ts";
import { type AdmitUpgrade, makeUpgrade } from "./rest-gateway/upgrade.ts";
import { makeServing, type Serving } from "./serving.ts";

export type Service = {
  /** Where clients reach it. */
  readonly url: string;
  readonly postgres: Postgres;
  readonly graphql: GraphQL;
  readonly realtime: Realtime;
  /** Answers what is in flight, then lets go of everything. */
  stop(): Promise<void>;
};

export type Surroundings = {
  readonly log: Logger;
  /** Says what is being done, for the person who waits. */
  readonly tell: (step: string) => void;
  /** Called when the service cannot go on. */
  readonly giveUp: (reason: Error) => void;
};

const ONE_HOUR = 3600;

/** Everything that runs, wired from the bottom up; what was opened last is closed first. */
export async function startService(given: Config, { log, tell, giveUp }: Surroundings): Promise<Service> {
  await checkAddress(given);
  await using opened = new AsyncDisposableStack();

  const postgres = await startPostgres(given, tell, giveUp);
  opened.defer(() => postgres.close());
  await bringUpToDate({ settings: postgres.migrate, ours: isEmbedded(given), tell });

  const listener = openListener({ url: postgres.ownerUrl, log });
  opened.defer(() => listener.close());
  const reloads = given.channelEnabled ? listener : null;
  const settings = await keepConfig({ config: given, url: postgres.requestUrl, listener: reloads, log });
  const config = settings.current();

  const database = openDatabase({
    url: postgres.requestUrl,
    ownerUrl: postgres.ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    statementTimeout: config.statementTimeout * 1000,
    acquireTimeout: config.acquireTimeout * 1000,
    maxAnswerBytes: config.maxAnswerBytes,
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

  const defer = (await hasTasks(asOwner)) ? makeDefer(asOwner) : null;

  const identificationBy = makeIdentification({ asOwner, canSignIn, outbox, siteUrl: () => siteUrl!, log });
  let identification = await identificationBy(config);

  const graphql = await openGraphQL({
    config,
    callers: () => identification.callers,
    catalog,
    database,
    listener,
    loginRole: postgres.loginRole,
    log,
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
    defer,
    siteUrl: () => siteUrl!,
    log,
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
  const server = await listen((request, response) => serving.entry(request, response), config, upgrade);
  siteUrl ??= addressOf(server, config.host);
  opened.defer(async () => {
    accepting = false;
    const milliseconds = config.drainTimeout * 1000;
    await Promise.all([graphql.hangUp(milliseconds), realtime.hangUp(milliseconds), drain(server, milliseconds)]);
  });

  const running = opened.move();
  return { url: addressOf(server, config.host), postgres, graphql, realtime, stop: () => running.disposeAsync() };
}
