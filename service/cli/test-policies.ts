import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { loadCatalog } from "#catalog/loading";
import { loginRoleOf, type PostgresUrls, reachPostgres, withTemporaryFolder } from "#cluster";
import { type Config, isEmbedded } from "#config";
import { type MigrateSettings, runMigrations, withScratchDatabase } from "#migrate";
import {
  type PolicyTestDependencies,
  PolicyTestError,
  type PolicyTestResult,
  parsePolicyTest,
  runPolicyTest,
} from "#operations/inspect";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import { EXIT_FAILURE, formatColumns, runCommand, UsageError } from "./command/command.ts";
import { makeCallerContexts } from "./command/command-context.ts";

const DEFAULT_FOLDER = "test/policies";

/** The tests of a file, or the error that prevents them. */
type FileReport = {
  readonly file: string;
  readonly results: readonly PolicyTestResult[];
  readonly error: PolicyTestError | null;
};

/** The SQL files of the arguments, which are files and folders. */
async function findTestFiles(paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const entry = await stat(path).catch(() => null);
      if (!entry) throw new UsageError(`There is no ${path}.`);
      if (!entry.isDirectory()) return [path];
      const names = await readdir(path, { recursive: true });
      return names.filter((name) => name.endsWith(".sql")).map((name) => join(path, name));
    }),
  );
  const files = [...new Set(found.flat())].sort();
  if (files.length === 0) throw new Error(`There are no policy tests in ${paths.join(", ")}.`);
  return files;
}

type TestedDatabase = { readonly ownerUrl: string; readonly loginRole: string };

/** Runs the work on a new database with all migrations, those in `current/` too, and the seed. */
async function withNewDatabase<T>(config: Config, work: (database: TestedDatabase) => Promise<T>): Promise<T> {
  if (isEmbedded(config)) return withNewCluster(config, (postgres) => migrateAndWork(postgres, postgres.migrate, work));
  const postgres = await reachPostgres(config, () => {});
  try {
    const { migrate } = postgres;
    return await withScratchDatabase(migrate.shadowUrl, migrate.rootUrl, () =>
      migrateAndWork(postgres, { ...migrate, url: migrate.shadowUrl }, work),
    );
  } finally {
    await postgres.close();
  }
}

/** Runs the work on a cluster of its own, so that roles of tests and of development do not meet. */
function withNewCluster<T>(config: Config, work: (postgres: PostgresUrls) => Promise<T>): Promise<T> {
  return withTemporaryFolder("content-service-policies", async (dataDir) => {
    const postgres = await reachPostgres({ ...config, dataDir, embeddedPort: null }, () => {}, { mayCreate: true });
    try {
      return await work(postgres);
    } finally {
      await postgres.close();
    }
  });
}

async function migrateAndWork<T>(
  { requestUrl }: PostgresUrls,
  settings: MigrateSettings,
  work: (database: TestedDatabase) => Promise<T>,
): Promise<T> {
  await runMigrations({ name: "current" }, settings);
  await runMigrations({ name: "seed", isOptional: true }, settings);
  return work({ ownerUrl: settings.url, loginRole: await loginRoleOf(requestUrl) });
}

/** Runs the work on the database of the settings, without migrations and seed. */
async function withServedDatabase<T>(config: Config, work: (database: TestedDatabase) => Promise<T>): Promise<T> {
  const postgres = await reachPostgres(config, (step) => console.error(step));
  try {
    return await work({ ownerUrl: postgres.directUrl, loginRole: await loginRoleOf(postgres.requestUrl) });
  } finally {
    await postgres.close();
  }
}

async function runFiles(files: readonly string[], config: Config, database: TestedDatabase): Promise<FileReport[]> {
  const { ownerUrl, loginRole } = database;
  const { schemas, extraSearchPath, anonRole } = config;
  return withClient(ownerUrl, async (client) => {
    const { catalog } = await loadCatalog(client, { schemas, extraSearchPath, loginRole, timeZones: false });
    const contextOf = makeCallerContexts(catalog, config);
    const reports: FileReport[] = [];
    for (const file of files) reports.push(await runFile(file, { client, loginRole, anonRole, contextOf }));
    return reports;
  });
}

async function runFile(file: string, dependencies: PolicyTestDependencies): Promise<FileReport> {
  const results: PolicyTestResult[] = [];
  try {
    const statements = parsePolicyTest(await readFile(file, "utf8"));
    await runPolicyTest(statements, dependencies, (result) => results.push(result));
    if (results.length === 0) throw new PolicyTestError(1, "No statement has an expectation.");
    return { file, results, error: null };
  } catch (error) {
    if (error instanceof PolicyTestError) return { file, results, error };
    throw error;
  }
}

const MAX_SQL_LENGTH = 60;

function shorten(sql: string): string {
  const line = sql.replace(/\s+/g, " ");
  return line.length <= MAX_SQL_LENGTH ? line : `${line.slice(0, MAX_SQL_LENGTH - 1)}…`;
}

/** Prints each test under its file and its caller, and each failure with its place. */
function printReport({ file, results, error }: FileReport): void {
  console.log(file);
  for (const [caller, tests] of Map.groupBy(results, ({ role, user }) => (user === null ? role : `${role} ${user}`))) {
    console.log(`  ${caller}`);
    for (const { line, sql, expected, failure } of tests) {
      const outcome = failure === null ? "ok    " : "FAILED";
      console.log(`    ${outcome} ${String(line).padStart(4)}  ${shorten(sql).padEnd(MAX_SQL_LENGTH)}  ${expected}`);
      if (failure !== null) console.log(`      ${file}:${line}: ${failure}`);
    }
  }
  if (error) console.log(`  ${file}:${error.line}: ${error.message}`);
}

function printSummary(reports: readonly FileReport[]): void {
  const results = reports.flatMap((report) => report.results);
  const byRole = Map.groupBy(results, ({ role }) => role);
  const rows = [...byRole].map(([role, tests]) => {
    const failed = tests.filter(({ failure }) => failure !== null).length;
    return [role, String(tests.length - failed), String(failed)];
  });
  const width = Math.max("role".length, ...rows.map(([role]) => role!.length));
  console.log(`\n${formatColumns([["role".padEnd(width), "passed", "failed"], ...rows])}`);
}

await runCommand({
  usage: `${commandLine("test", "[FILE|FOLDER …] [--in-place]")}
  Runs the policy tests in ${DEFAULT_FOLDER} (or in the given files and folders) on a new database, to which all migrations are applied,
  those in current/ too, and db/seed.sql; with DATABASE_URL on its server, as SHADOW_DATABASE_URL. Nothing is kept.
  --in-place   tests the database of the settings as it is, and rolls everything back

A test is SQL. --! as owner, anon, user NAME, or ROLE {"claims": …} selects the caller of the statements below.
--! expect after a statement makes it a test, which is rolled back: expect 2 rows, expect rows, expect no rows,
expect denied, expect error 23514, expect success. A statement without it is a step, such as an insert by the owner.

Example:
  --! as owner
  insert into notes (author_id, words) values (7, 'Hello.');
  --! as anon
  select * from notes;                        --! expect no rows
  insert into notes (words) values ('x');     --! expect denied`,
  options: { "in-place": { type: "boolean" } },
  async run(config, args, { "in-place": isInPlace }) {
    const files = await findTestFiles(args.length > 0 ? args : [DEFAULT_FOLDER]);
    const withDatabase = isInPlace ? withServedDatabase : withNewDatabase;
    // The policies of a new database are those of production.
    const callerConfig: Config = isInPlace ? config : { ...config, usersAccess: "owner" };
    const reports = await withDatabase(config, (database) => runFiles(files, callerConfig, database));
    for (const report of reports) printReport(report);
    printSummary(reports);
    const isFailed = ({ results, error }: FileReport) =>
      error !== null || results.some(({ failure }) => failure !== null);
    if (reports.some(isFailed)) process.exitCode = EXIT_FAILURE;
  },
});
