import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { acceptsStartArguments, commandLine } from "./cli/command.ts";
import { isEmbedded, type LoadedConfig, readConfig } from "./engine/config/config.ts";
import { checkMailFolder } from "./engine/mail/mailer.ts";
import { type MigrationWatch, watchMigrations } from "./engine/migrate/apply-current.ts";
import { displayPath } from "./engine/migrate/committed-migrations.ts";
import { makeLogger } from "./engine/output/log.ts";
import { standardOutput } from "./engine/output/standard-streams.ts";
import {
  CLOSE_TIMEOUT_MS,
  exitAfter,
  keepYoungGenerationMemory,
  reportFailure,
} from "./processes/process-lifecycle.ts";
import { type AdminServer, openAdminServer } from "./rest-gateway/http/admin.ts";
import type { RunningService } from "./service.ts";

const startedAt = performance.now();
if (!acceptsStartArguments(process.argv.slice(2))) process.exit();
keepYoungGenerationMemory();
const { config, warnings } = readConfigOrExit();
const log = makeLogger(config);
for (const warning of warnings) log.warn(warning);

const print = (text: string) => standardOutput().write(`${text}\n`);
const report = (step: string) => print(`  … ${step}`);
/** npm and a terminal tell both of one Ctrl-C. */
const SAME_SIGNAL_MS = 200;
/** `npm run dev`: the files of `current/` are applied at each change of them. */
const isDevelopment = process.argv.includes("--dev");
const isSingleProcess = config.workers === 1 || isDevelopment;
let service: RunningService | null = null;
let admin: AdminServer | null = null;
let migrationWatch: MigrationWatch | null = null;
let stoppingSince: number | null = null;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stoppingSince !== null && performance.now() - stoppingSince < SAME_SIGNAL_MS) return;
    // Nothing is in flight yet, or somebody asks twice: the embedded Postgres ends with us in any case.
    if (!service || stoppingSince !== null) process.exit(1);
    void shutDown(0, `${signal} received, stopping`);
  });
}
// Not SIGHUP: a terminal that is closed sends it, and ends what runs there.
process.on("SIGUSR2", () => void reload());

try {
  print("content-service");
  // Grafast reads this when it is loaded: with anything else it checks itself at each step, which costs time.
  process.env.GRAPHILE_ENV ??= "production";
  if (!hasHome()) process.env.HOME = "/";
  await checkMailFolder(config);
  const start = isSingleProcess
    ? (await import("./service.ts")).startService
    : (await import("./processes/worker-cluster.ts")).startWorkerCluster;
  if (config.adminPort !== null) {
    admin = await openAdminServer({ config, log, service: () => service?.operations ?? null });
  }
  service = await start(config, { log, report, onFatalError: (reason) => void shutDown(1, reason.message) });
  printBanner(service);
  if (isDevelopment) migrationWatch = watchMigrations(service.postgres.migrate, print);
} catch (error) {
  reportFailure(error);
  await admin?.close();
  // Whatever is still open: who looks after this process waits for its end to start it again.
  process.exit();
}

function readConfigOrExit(): LoadedConfig {
  try {
    return readConfig(process.env);
  } catch (error) {
    reportFailure(error);
    process.exit();
  }
}

/** A user of a container may have neither HOME nor a name, and graphile-worker cannot be loaded without. */
function hasHome(): boolean {
  try {
    return homedir() !== "";
  } catch {
    return false;
  }
}

function printBanner(running: RunningService): void {
  const { url } = running;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const data = isEmbedded(config) ? `${resolve(config.dataDir)} (embedded Postgres)` : "DATABASE_URL";
  print(`
  address    ${url}
  health     ${url}/health
  graphql    ${url}/graphql${config.graphqlExplorer ? `\n  explorer   ${url}/graphiql` : ""}
${admin ? `  metrics    ${admin.url}/metrics\n` : ""}  data       ${data}
  keys       ${commandLine("keys")}
  psql       ${commandLine("psql")}
${isDevelopment ? `  migration  ${currentFolder(running)}, applied on every save\n` : ""}
  ready in ${seconds} s`);
}

/** Where the project's next migration is written. */
function currentFolder({ postgres }: RunningService): string {
  return displayPath(join(postgres.migrate.histories.at(-1)!.folder, "current"));
}

async function reload(): Promise<void> {
  if (!service || stoppingSince !== null) return;
  report("SIGUSR2 received, reloading");
  try {
    await service.reload();
    report("reloaded");
  } catch (error) {
    // Who stops meanwhile ends the successor too.
    if (stoppingSince !== null) return;
    log.error({ err: error }, "reload failed; the service keeps running as before");
  }
}

async function shutDown(code: number, reason: string): Promise<void> {
  stoppingSince = performance.now();
  process.exitCode = code;
  report(reason);
  // Workers let go first; whoever of them hangs is ended before that time is over twice.
  exitAfter(config.drainTimeout * 1000 + (isSingleProcess ? 1 : 2) * CLOSE_TIMEOUT_MS);
  await migrationWatch?.stop();
  await service?.stop().catch(reportFailure);
  await admin?.close();
  process.exit();
}
