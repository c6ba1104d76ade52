import type { RequestListener } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { makeAccountStates } from "./engine/auth/account-states.ts";
import { type Accounts, makeAccounts } from "./engine/auth/accounts.ts";
import { makeFirstAdministrator } from "./engine/auth/first-administrator.ts";
import { hasAccounts } from "./engine/auth/has-accounts.ts";
import { readPasswords } from "./engine/auth/password-caller.ts";
import { readSessions } from "./engine/auth/session-caller.ts";
import { makeKeyFinder } from "./engine/caller/api-keys.ts";
import { type Callers, makeCallers } from "./engine/caller/caller.ts";
import { deploymentKeys } from "./engine/caller/deployment-keys.ts";
import type { TokenKeys } from "./engine/caller/keys.ts";
import { keepCatalog } from "./engine/catalog/keep.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { keepConfig } from "./engine/config/keep.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import { type Database, openDatabase } from "./engine/database/database.ts";
import { openListener } from "./engine/listen.ts";
import type { Logger } from "./engine/log.ts";
import { bringUpToDate } from "./engine/migrate/bring-up-to-date.ts";
import { type Postgres, startPostgres } from "./engine/postgres.ts";
import { GRAPHQL_PATH, type GraphQL, openGraphQL } from "./plugins/serve/graphql.ts";
import { answerWith } from "./rest-gateway/answer.ts";
import { makeApp } from "./rest-gateway/app.ts";
import { keySetRoutes } from "./rest-gateway/auth/key-set.ts";
import { authRoutes } from "./rest-gateway/auth/routes.ts";
import { makeEntry } from "./rest-gateway/entry.ts";
import { makeGateway } from "./rest-gateway/gateway.ts";
import { healthRoutes } from "./rest-gateway/health.ts";
import { addressOf, checkAddress, drain, listen } from "./rest-gateway/listen.ts";
import { makeTableInterface } from "./rest-gateway/table/handle.ts";
import { PREFIX } from "./rest-gateway/table/prefix.ts";
import { makeUpgrade } from "./rest-gateway/upgrade.ts";

export type Service = {
  /** Where clients reach it. */
  readonly url: string;
  readonly postgres: Postgres;
  readonly graphql: GraphQL;
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

/** Who may ask, by the settings of now. */
type Identification = {
  readonly keys: TokenKeys;
  readonly callers: Callers;
  /** Null: nobody can sign in here. */
  readonly accounts: Accounts | null;
};

/** How long the database may take to say that it is well. */
const HEALTH_PATIENCE_MS = 2_000;

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

  const findKey = makeKeyFinder({ asOwner, log });
  const objectionTo = makeAccountStates({ asOwner, log });
  const identificationBy = async (config: Config): Promise<Identification> => {
    const keys = await deploymentKeys(config);
    const accounts = canSignIn ? makeAccounts({ asOwner, keys, config }) : null;
    const readers = accounts ? [readSessions(accounts.sessions), readPasswords(accounts)] : [];
    return { keys, accounts, callers: makeCallers({ ...config, keys, findKey, objectionTo, readers }) };
  };
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

  let accepting = true;
  const health = healthRoutes({
    databaseFault: () => databaseFault(database),
    askDatabase: () => askDatabase(database),
    schemaFault: () => catalog.state().reason ?? graphql.state().fault,
    acceptsWork: () => accepting,
  });
  /** All that depends on settings which the database may change; a request ends with those that it began with. */
  const entryBy = (config: Config, { callers, accounts, keys }: Identification): RequestListener => {
    const signIn = accounts ? authRoutes({ accounts, callers, config }) : {};
    const routes = { ...health, ...keySetRoutes(keys), ...signIn };
    const table = makeTableInterface({ config, callers, database, catalog: () => catalog.current() });
    const folders = { [PREFIX]: table, ...graphql.folders };
    const gateway = makeGateway({ routes, folders, errorBody: config.errorBody, log });
    const answer = answerWith(gateway, config, log);
    const ahead = { folders: [PREFIX, GRAPHQL_PATH], answer };
    return makeEntry({ config, log, ahead, app: makeApp({ config, answer }) });
  };
  let entry = entryBy(config, identification);
  opened.defer(() => settings.close());
  settings.follow(async (changed) => {
    await catalog.read(readBy(changed));
    identification = await identificationBy(changed);
    entry = entryBy(changed, identification);
  });

  const upgrade = makeUpgrade({ [GRAPHQL_PATH]: graphql.upgrade });
  const server = await listen((request, response) => entry(request, response), config, upgrade);
  opened.defer(async () => {
    accepting = false;
    const milliseconds = config.drainTimeout * 1000;
    await Promise.all([graphql.hangUp(milliseconds), drain(server, milliseconds)]);
  });

  const running = opened.move();
  return { url: addressOf(server, config.host), postgres, graphql, stop: () => running.disposeAsync() };
}

function databaseFault(database: Database): string | null {
  const { status, reason } = database.state();
  return status === "up" ? null : (reason ?? "not connected yet");
}

async function askDatabase(database: Database): Promise<void> {
  const answer = database.asOwner((client) => client.query("select"));
  const silence = sleep(HEALTH_PATIENCE_MS, undefined, { ref: false }).then(() => {
    throw new Error(`no answer for ${HEALTH_PATIENCE_MS} ms`);
  });
  await Promise.race([answer, silence]);
}
