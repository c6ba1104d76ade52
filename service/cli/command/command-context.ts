import pg from "pg";
import { type Claims, parseClaims } from "#accounts/identity";
import type { Catalog } from "#catalog";
import { loadCatalog, readDatabaseSettings } from "#catalog/loading";
import { awaitLogin, joinPostgres, loginRoleOf, type PostgresUrls, reachPostgres } from "#cluster";
import { type Config, type DatabaseSettings, isEmbedded, withDatabaseSettings } from "#config";
import { toPgConnectionString } from "#config/connection-string";
import { bringUpToDate, readMigrationState } from "#migrate";
import { makeAssumedContexts } from "#operations/inspect";
import { withClient, withServiceClient } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { ApiError, commandLine } from "#runtime";
import { UsageError } from "./command.ts";

/** Undefined function, undefined table, invalid schema name. */
const NOT_MIGRATED: readonly (string | undefined)[] = ["42883", "42P01", "3F000"];
const INSUFFICIENT_PRIVILEGE = "42501";
/** SQLSTATEs of the service's own functions, whose messages are for users. */
const OWN_SQLSTATE = /^[A-Z]{5}$/;

export type CatalogCommandContext = {
  readonly catalog: Catalog;
  /** The settings, including those in the database. */
  readonly config: Config;
  readonly postgres: PostgresUrls;
};

/** Migrates the database if it is the service's own, loads the catalogue, and runs the work. */
export async function withCatalog<T>(
  baseConfig: Config,
  work: (context: CatalogCommandContext) => Promise<T>,
): Promise<T> {
  // For commands that import Grafast later, which prints a long warning if the variable is not set.
  process.env.GRAPHILE_ENV ??= "production";
  const report = (step: string) => console.error(step);
  const postgres = await reachPostgres(baseConfig, report);
  try {
    // Without a URL of the owner the login role is the owner, whose connection was just tested.
    if (postgres.requestUrl !== postgres.directUrl && !isEmbedded(baseConfig)) await awaitLogin(baseConfig, report, 0);
    await bringUpToDate({
      settings: postgres.migrate,
      requestUrl: postgres.requestUrl,
      isOwnDatabase: isEmbedded(baseConfig),
      report,
    });
    const { config } = withDatabaseSettings(baseConfig, await tryReadDatabaseSettings(baseConfig));
    const loginRole = await loginRoleOf(postgres.requestUrl);
    const { schemas, extraSearchPath } = config;
    const options = { schemas, extraSearchPath, loginRole, timeZones: false };
    const { catalog } = await withServiceClient(postgres.directUrl, (client) => loadCatalog(client, options));
    return await work({ catalog, config, postgres });
  } finally {
    await postgres.close();
  }
}

/** Rejects if the service's own database lacks migrations of this version, since `withCatalog` would apply them. */
export async function requireMigrated(config: Config): Promise<void> {
  if (!isEmbedded(config)) return;
  const postgres = await reachPostgres(config, (step) => console.error(step));
  try {
    const state = await withClient(postgres.directUrl, (client) =>
      readMigrationState(client, postgres.migrate.histories),
    );
    if (state.kind !== "current")
      throw new Error(
        `The database does not have the migrations of this version: see ${commandLine("migrate", "status")}.`,
      );
  } finally {
    await postgres.close();
  }
}

/** Runs the work as the database owner, and converts errors to messages for users. */
export async function withOwner<T>(config: Config, work: (asOwner: AsOwner) => Promise<T>): Promise<T> {
  const postgres = await reachPostgres(config, (step) => console.error(step));
  try {
    return await withServiceClient(postgres.directUrl, (client) => work((read) => read(client)));
  } catch (error) {
    throw toReadableError(error);
  } finally {
    await postgres.close();
  }
}

function toReadableError(error: unknown): unknown {
  if (error instanceof ApiError) return new Error(error.message, { cause: error });
  if (!(error instanceof pg.DatabaseError) || !error.code) return error;
  if (NOT_MIGRATED.includes(error.code)) {
    return new Error(`This database has no accounts. Run ${commandLine("migrate")}; BASE_SCHEMA=platform adds them.`, {
      cause: error,
    });
  }
  if (error.code === INSUFFICIENT_PRIVILEGE) {
    return new Error(`${error.message}: set OWNER_DATABASE_URL to the same database as its owner.`, { cause: error });
  }
  return OWN_SQLSTATE.test(error.code) ? new Error(error.message, { cause: error }) : error;
}

/** The settings in the database; empty, with a warning, if they cannot be read. */
export async function tryReadDatabaseSettings(config: Config): Promise<DatabaseSettings> {
  if (!config.databaseConfig) return new Map();
  try {
    const postgres = isEmbedded(config)
      ? await joinPostgres(config)
      : { requestUrl: toPgConnectionString(config.databaseUrl!) };
    if (!postgres) return new Map();
    return await readDatabaseSettings(postgres.requestUrl, config.preConfig);
  } catch (error) {
    console.error(`warning: the settings in the database could not be read: ${(error as Error).message}`);
    return new Map();
  }
}

/** Makes the role and settings with which a request of a given caller would run. */
export function makeCallerContexts(catalog: Catalog, config: Config): ReturnType<typeof makeAssumedContexts> {
  const contextOf = makeAssumedContexts(catalog, config);
  return (caller, request) => {
    if (!catalog.roles.has(caller.role)) throw unusableRole(caller.role, config);
    return contextOf(caller, request);
  };
}

function unusableRole(role: string, { anonRole }: Config): Error {
  const message = `Requests cannot use the role "${role}"`;
  if (role !== anonRole) return new UsageError(`${message}.`);
  return new Error(`${message} of anonymous callers: create it and grant it to the login, or set PGRST_DB_ANON_ROLE.`);
}

/** Parses `--claims` (JSON) and `--sub` (the claim that is used most). */
export function parseClaimOptions({ claims, sub }: Readonly<Record<string, unknown>>): Claims {
  const subClaim = sub === undefined ? {} : { sub };
  if (claims === undefined) return subClaim;
  const parsed = parseClaims(String(claims));
  if (parsed) return { ...parsed, ...subClaim };
  throw new UsageError(`--claims must be a JSON object, such as '{"sub": "7"}'.`);
}
