import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import pg from "pg";
import type { Config } from "#config";
import { requireSupportedServer, withClient, withServiceClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { applyCommitted, applyCurrent } from "./apply-migrations.ts";
import { type CommitOptions, commitCurrent, makeSchemaTexts, uncommitLast, writeSchemaFiles } from "./commit.ts";
import {
  committedMigrations,
  displayPath,
  includesRelease,
  type MigrateSettings,
  type MigrationHistory,
  type ReleaseMigrateSettings,
  releaseHistories,
} from "./committed-migrations.ts";
import { checkImport } from "./import-check.ts";
import type { ReportLine } from "./kept-rows.ts";
import { explainLostObjects, findLostObjects } from "./lost-objects.ts";
import { findErrorOffset, MigrationError } from "./migration-error.ts";
import { explainDivergence, type MigrationState, readMigrationState } from "./migration-state.ts";
import { explainTransactionError, runTransactions } from "./run-transactions.ts";
import { recreateDatabase } from "./scratch-database.ts";
import { endsTransactions, splitTransactions } from "./split-transactions.ts";

export type MigrateCommand =
  | { readonly name: "migrate"; readonly report?: ReportLine }
  /** Applies the files in `current/` once. */
  | { readonly name: "current" }
  | (CommitOptions & {
      readonly name: "commit";
      readonly message: string;
      readonly history: MigrationHistory["name"];
    })
  | { readonly name: "uncommit"; readonly history: MigrationHistory["name"] }
  | { readonly name: "dump" }
  /** Runs the project's seed.sql. */
  | { readonly name: "seed"; readonly isOptional?: boolean }
  | { readonly name: "reset" };

/** Other processes wait for this lock; graphile-migrate alone would fail in that case. */
const MIGRATION_LOCK = 7_446_309;

/** Returns the files that were written. */
export async function runMigrations(command: MigrateCommand, options: ReleaseMigrateSettings): Promise<string[]> {
  const settings = { ...options, histories: options.histories ?? releaseHistories() };
  // Throws if a committed migration was changed, before anything is done.
  await Promise.all(settings.histories.map(committedMigrations));
  if (command.name === "reset") await recreateDatabase(settings.url, settings.rootUrl);
  return withMigrationLock(settings.url, () => runCommand(command, settings));
}

/** Runs the work while no other process migrates the database, after checking that it can be migrated. */
export async function withMigrationLock<T>(url: string, work: () => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query("select pg_catalog.pg_advisory_lock($1)", [MIGRATION_LOCK]);
    await requireSupportedServer(client);
    await requireUtf8(client);
    await requireStandardStrings(client);
    return work();
  });
}

async function runCommand(command: MigrateCommand, settings: MigrateSettings): Promise<string[]> {
  switch (command.name) {
    case "migrate":
    case "reset":
      await checkImport(settings);
      await applyCommitted(settings.url, settings.rootUrl, settings.histories, {
        limits: settings.lockLimits,
        report: command.name === "migrate" ? command.report : undefined,
      });
      return [];
    case "current":
      await applyCommitted(settings.url, settings.rootUrl, settings.histories);
      await applyCurrent(settings, () => {});
      return [];
    case "commit":
      return commitCurrent(findHistory(settings.histories, command.history), command.message, settings, command);
    case "uncommit":
      return uncommitLast(findHistory(settings.histories, command.history), settings);
    case "seed":
      await runSeed(findHistory(settings.histories, "project"), settings.url, command);
      return [];
    case "dump":
      return writeSchemaFiles(
        await makeSchemaTexts(settings, settings.histories, includesRelease(settings.histories) ? "all" : "project"),
      );
  }
}

/** Rows for tests and development, from the file beside the folder of the migrations. */
async function runSeed(
  { folder }: MigrationHistory,
  url: string,
  { isOptional }: { isOptional?: boolean },
): Promise<void> {
  const file = join(dirname(folder), "seed.sql");
  if (!existsSync(file)) {
    if (isOptional) return;
    throw new Error(`There is no ${displayPath(file)}.`);
  }
  const sql = await readFile(file, "utf8");
  const origins = sql.split("\n").map((_, index) => ({ file: displayPath(file), line: index + 1 }));
  await withClient(url, async (client) => {
    if (endsTransactions(sql)) {
      const transactions = splitTransactions(sql);
      return runTransactions(client, transactions).catch((error) => {
        throw explainTransactionError(error, { sql, origins }, transactions);
      });
    }
    try {
      await client.query(sql);
    } catch (error) {
      throw new MigrationError(error as Error, { sql, origins }, await findErrorOffset(client, sql, error as Error));
    }
  });
}

function findHistory(histories: readonly MigrationHistory[], wanted: MigrationHistory["name"]): MigrationHistory {
  const history = histories.find(({ name }) => name === wanted);
  if (!history) throw new Error(`There is no history "${wanted}" here.`);
  return history;
}

type UpToDateOptions = {
  readonly settings: MigrateSettings;
  /** Connection string with the login role of requests. */
  readonly requestUrl: string;
  /** True if the database is the service's own, which it migrates without being asked. */
  readonly isOwnDatabase: boolean;
  readonly report: (step: string) => void;
};

type UsersAccess = "open" | "owner";

const CALLABLE_FUNCTION = `
  select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) p.pronamespace
  where n.nspname operator(pg_catalog.=) 'auth' and p.proname operator(pg_catalog.=) $1
    and pg_catalog.has_schema_privilege(n.oid, 'usage') and pg_catalog.has_function_privilege(p.oid, 'execute')`;

/** True if this login may call the function; a database without our migrations has no such functions. */
async function canCall(client: pg.ClientBase, authFunction: string): Promise<boolean> {
  return (await client.query(CALLABLE_FUNCTION, [authFunction])).rowCount !== 0;
}

const DEADLOCK_DETECTED = "40P01";
const MAX_DEADLOCKS = 5;

/** Makes the policies and privileges in the database those of USERS_ACCESS. Changes nothing if they are already. */
export async function setUsersAccess(client: pg.ClientBase, access: UsersAccess): Promise<void> {
  if (!(await canCall(client, "set_users_access"))) return;
  // The function locks one table after another, and so do the requests of serving gateways.
  for (let deadlocks = 0; ; deadlocks++) {
    try {
      await client.query("select auth.set_users_access($1)", [access]);
      return;
    } catch (error) {
      const isDeadlock = error instanceof pg.DatabaseError && error.code === DEADLOCK_DETECTED;
      if (!isDeadlock || deadlocks === MAX_DEADLOCKS) throw error;
    }
  }
}

/** Sets in the database whether only administrators may create accounts. */
export async function setAccountSettings(client: pg.ClientBase, { signUps }: Pick<Config, "signUps">): Promise<void> {
  if (!(await canCall(client, "set_account_settings"))) return;
  await client.query("select auth.set_account_settings($1)", [signUps]);
}

/** The access that policies and privileges implement; null for a database without our users. */
export async function readUsersAccess(client: pg.ClientBase): Promise<UsersAccess | null> {
  if (!(await canCall(client, "set_users_access"))) return null;
  const { rows } = await client.query<{ access: UsersAccess | null }>("select auth.users_access() as access");
  return rows[0]!.access;
}

/** Migrates the service's own database. Checks another database, and throws if it is partially migrated. */
export async function bringUpToDate(options: UpToDateOptions): Promise<MigrationState> {
  const { settings, requestUrl } = options;
  const found = await readState(settings);
  await checkDatabase(settings.url, found);
  const state = await migrateIfNeeded(found, options);
  await requireObjects(options);
  // The first migration creates the login role in the service's own database, so this check comes last.
  if (requestUrl !== settings.url) await checkDatabase(requestUrl, state);
  return state;
}

/** Creates objects again that were dropped from the service's own database. Throws if another database lacks objects. */
async function requireObjects({ settings, isOwnDatabase, report }: UpToDateOptions): Promise<void> {
  const lost = await withServiceClient(settings.url, (client) => findLostObjects(client, settings.histories));
  if (lost.length === 0) return;
  if (!isOwnDatabase) throw new Error(explainLostObjects(lost));
  report(explainLostObjects(lost));
  await runMigrations({ name: "migrate", report }, settings);
}

async function migrateIfNeeded(
  state: MigrationState,
  { settings, isOwnDatabase, report }: UpToDateOptions,
): Promise<MigrationState> {
  if (state.kind === "current") return state;
  if (state.kind === "diverged") throw new Error(explainDivergence(state));
  if (state.kind === "ahead") {
    report(
      `the database has migrations that are not here (a newer release has applied them, or they were removed): ${state.unknown.join(", ")}`,
    );
    return state;
  }
  if (isOwnDatabase) {
    report("migrating the database");
    await runMigrations({ name: "migrate", report }, settings);
    return readState(settings);
  }
  if (state.kind === "behind") {
    throw new Error(
      `The database is half migrated: ${state.applied} migrations are applied, ${state.missing.length} are missing ` +
        `(${state.missing.join(", ")}). Run ${commandLine("migrate")} against it, then start again.`,
    );
  }
  report(`the database has none of our schemas and is served as it is; ${commandLine("migrate")} would add them`);
  return state;
}

function checkDatabase(url: string, { kind }: MigrationState): Promise<void> {
  return withServiceClient(url, async (client) => {
    await requireSupportedServer(client);
    await requireStandardStrings(client);
    if (kind !== "foreign") await requireWritable(client);
  });
}

function readState({ url, histories }: MigrateSettings): Promise<MigrationState> {
  return withServiceClient(url, (client) => readMigrationState(client, histories));
}

/** Throws for another encoding, with which some migrations would be applied before one fails. */
async function requireUtf8(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ encoding: string; begun: boolean }>(
    `select pg_catalog.current_setting('server_encoding') as encoding,
      pg_catalog.to_regclass('graphile_migrate.migrations') is not null as begun`,
  );
  const { encoding, begun } = rows[0]!;
  if (encoding === "UTF8" || begun) return;
  throw new Error(
    `The database's encoding is ${encoding}, and the migrations want UTF8. Nothing was changed. ` +
      "Make another database: create database … template template0 encoding 'UTF8'.",
  );
}

/** Otherwise Postgres would parse string literals of the service and of functions differently. */
async function requireStandardStrings(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ login: string; is_standard: boolean }>(
    "select session_user as login, pg_catalog.current_setting('standard_conforming_strings')::pg_catalog.bool as is_standard",
  );
  const { login, is_standard: isStandard } = rows[0]!;
  if (isStandard) return;
  throw new Error(
    `standard_conforming_strings is off for the login "${login}", and SQL is read in another way then. ` +
      "Switch it on for the server, the database and the login.",
  );
}

/** The start already writes to the service's schemas: the task queue and rate limits. */
async function requireWritable(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ login: string; reads_only: boolean; is_standby: boolean }>(
    `select session_user as login, pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool as reads_only,
      pg_catalog.pg_is_in_recovery() as is_standby`,
  );
  const { login, reads_only: readsOnly, is_standby: isStandby } = rows[0]!;
  if (!readsOnly) return;
  throw new Error(
    isStandby
      ? "The database is a standby, which takes no writes. Set DATABASE_URL and OWNER_DATABASE_URL to its primary, " +
          "and READ_DATABASE_URLS to standbys."
      : `The database takes no writes from the login "${login}": default_transaction_read_only is on. Switch it off for the ` +
          "server, the database and the login; where the provider has switched it on, the disk is full.",
  );
}
