import { homedir } from "node:os";
import { join } from "node:path";
import { checkMailFolder, readMailTemplates } from "#accounts/mail";
import { startPostgres } from "#cluster";
import { deleteStaleDrafts } from "#cluster/embedded";
import { type Config, checkListenAddress, type LoadedConfig, readConfig } from "#config";
import type { AdminServer } from "#http/admin";
import { displayPath, type MigrateSettings, type MigrationWatch, readUsersAccess, watchMigrations } from "#migrate";
import { withServiceClient } from "#postgres/client";
import { makeLogger, standardOutput } from "#runtime/log";
import { writeBanner } from "./banner.ts";
import { acceptsStartArguments, takeBranch } from "./cli/command/command.ts";
import { CLOSE_TIMEOUT_MS, exitAfter, handleUncaughtErrors, reportFailure } from "./processes/process-lifecycle.ts";
import { growYoungGeneration } from "./processes/young-generation.ts";
import type { RunningService, ServiceOptions } from "./wiring/running-service.ts";

const startedAt = performance.now();
if (!acceptsStartArguments(takeBranch(process.argv.slice(2), process.env))) process.exit();
/** True for `npm run dev`: the files in `current/` are applied whenever they change. */
const isDevelopment = process.argv.includes("--dev");
const { config, warnings } = readConfigOrExit();
const log = makeLogger(config);
for (const warning of warnings) log.warn(warning);

const print = (text: string) => standardOutput().write(`${text}\n`);
const report = (step: string) => print(`  … ${step}`);
handleUncaughtErrors();
/** The time within which a second SIGINT is ignored: npm and the terminal both send one for one Ctrl-C. */
const SAME_SIGNAL_MS = 200;
const isSingleProcess = config.workers === 1;
let service: RunningService | null = null;
let admin: AdminServer | null = null;
let migrationWatch: MigrationWatch | null = null;
let stoppingSince: number | null = null;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stoppingSince !== null && performance.now() - stoppingSince < SAME_SIGNAL_MS) return;
    // The service has not started yet, or this is the second signal: exit at once. The embedded Postgres ends with this process in any case.
    if (!service || stoppingSince !== null) process.exit(1);
    void shutDown(0, `${signal} received, stopping`);
  });
}
// SIGHUP is not used, because terminals send it on close.
process.on("SIGUSR2", () => void reload());
// PostgREST uses the same signal.
process.on("SIGUSR1", () => void reloadSchema());

try {
  print("content-service");
  // Grafast reads this on import; in other modes it runs slow self-checks.
  process.env.GRAPHILE_ENV ??= "production";
  if (!hasHome()) process.env.HOME = "/";
  await checkMailFolder(config);
  // Backups that were killed have left these drafts.
  for (const folder of [config.backupDir, "."]) await deleteStaleDrafts(folder);
  // Invalid templates are reported before any process starts.
  readMailTemplates(config.mailTemplatesDir);
  const start = isSingleProcess
    ? startSingleProcess
    : (await import("./processes/worker-cluster.ts")).startWorkerCluster;
  if (config.adminPort !== null) {
    const { openAdminServer } = await import("#http/admin");
    admin = await openAdminServer({ config, log, service: () => service?.operations ?? null });
  }
  const onFatalError = (reason: Error) => void shutDown(1, reason.message);
  service = await start(config, {
    ...{ log, report, onFatalError },
    ...(isDevelopment && { onMigrated: applyCurrentMigrations, migrationWatch: () => migrationWatch }),
  });
  growYoungGeneration();
  await printBanner(service);
} catch (error) {
  reportFailure(error);
  await admin?.close();
  // This exits even if handles are open, so that the supervisor can restart the process.
  process.exit();
}

/** Starts the service in this process. Its modules are loaded while Postgres starts, but only once Postgres is spawned, which they would delay. */
async function startSingleProcess(config: Config, options: ServiceOptions): Promise<RunningService> {
  await checkListenAddress(config);
  const spawned = Promise.withResolvers<void>();
  const startingPostgres = startPostgres(config, options.report, options.onFatalError, spawned.resolve);
  // An error is reported when the service waits for it.
  await Promise.race([spawned.promise, startingPostgres]).catch(() => {});
  const { startService } = await import("./wiring/service.ts");
  return startService(config, { ...options, startingPostgres });
}

/** Applies the files of `current/` as long as the service runs. The first requests find the tables of these files. */
async function applyCurrentMigrations(settings: MigrateSettings): Promise<void> {
  migrationWatch = watchMigrations(settings, print);
  await migrationWatch.begun;
}

function readConfigOrExit(): LoadedConfig {
  try {
    const { config, warnings } = readConfig(process.env);
    return { config: isDevelopment ? { ...config, workers: 1 } : config, warnings };
  } catch (error) {
    reportFailure(error);
    process.exit();
  }
}

/** True if there is a home directory. graphile-worker needs one on import, which a container's user may not have. */
function hasHome(): boolean {
  try {
    return homedir() !== "";
  } catch {
    return false;
  }
}

async function printBanner({ url, postgres }: RunningService): Promise<void> {
  print(
    writeBanner({
      config,
      url,
      workers: isSingleProcess ? null : config.workers,
      adminUrl: admin?.url ?? null,
      hasUsers: (await withServiceClient(postgres.migrate.url, readUsersAccess)) !== null,
      currentFolder: isDevelopment ? currentFolder(postgres) : null,
      seconds: ((performance.now() - startedAt) / 1000).toFixed(1),
    }),
  );
}

/** The folder of the project's current migration. */
function currentFolder({ migrate }: RunningService["postgres"]): string {
  return displayPath(join(migrate.histories.at(-1)!.folder, "current"));
}

async function reload(): Promise<void> {
  if (!service || stoppingSince !== null) return;
  report("SIGUSR2 received, reloading");
  try {
    await service.reload();
    report("reloaded");
  } catch (error) {
    // A stop during the reload is not an error.
    if (stoppingSince !== null) return;
    log.error({ err: error }, "reload failed; the service keeps running as before");
  }
}

/** Reloads the schema in all processes and gateways of the database. */
async function reloadSchema(): Promise<void> {
  if (!service || stoppingSince !== null) return;
  report("SIGUSR1 received, reloading the schema");
  try {
    await withServiceClient(service.postgres.migrate.url, (client) =>
      client.query("select pg_catalog.pg_notify($1, 'reload schema')", [config.channel]),
    );
  } catch (error) {
    log.error({ err: error }, "the schema was not reloaded");
  }
}

async function shutDown(code: number, reason: string): Promise<void> {
  stoppingSince = performance.now();
  process.exitCode = code;
  report(reason);
  // Workers close first, and those that hang are ended within twice the time.
  exitAfter(config.drainTimeout * 1000 + (isSingleProcess ? 1 : 2) * CLOSE_TIMEOUT_MS);
  await migrationWatch?.stop();
  await service?.stop().catch(reportFailure);
  await admin?.close();
  process.exit();
}
