import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { commandLine } from "./commands/command-line.ts";
import { takesStartWords } from "./commands/start-words.ts";
import { isEmbedded, type ReadConfig, readConfig } from "./engine/config/config.ts";
import { makeLogger } from "./engine/log.ts";
import { checkMailFolder } from "./engine/mail/mail-folder.ts";
import { type WatchedMigrations, watchMigrations } from "./engine/migrate/apply-current.ts";
import { shownFile } from "./engine/migrate/committed.ts";
import { standardOutput } from "./engine/output/standard-streams.ts";
import { CLOSE_TIMEOUT_MS, exitAfter, reportFailure } from "./processes/exit.ts";
import { keepYoungGenerationMemory } from "./processes/young-generation.ts";
import { type Admin, openAdmin } from "./rest-gateway/admin.ts";
import type { Running } from "./service.ts";

const startedAt = performance.now();
if (!takesStartWords(process.argv.slice(2))) process.exit();
keepYoungGenerationMemory();
const { config, warnings } = readOrExit();
const log = makeLogger(config);
for (const warning of warnings) log.warn(warning);

const print = (text: string) => standardOutput().write(`${text}\n`);
const tell = (step: string) => print(`  … ${step}`);
/** npm and a terminal tell both of one Ctrl-C. */
const SAME_SIGNAL_MS = 200;
/** `npm run dev`: the files of `current/` are applied at each change of them. */
const isDevelopment = process.argv.includes("--dev");
const isAlone = config.workers === 1 || isDevelopment;
let service: Running | null = null;
let admin: Admin | null = null;
let watched: WatchedMigrations | null = null;
let stoppingSince: number | null = null;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stoppingSince !== null && performance.now() - stoppingSince < SAME_SIGNAL_MS) return;
    // Nothing is in flight yet, or somebody asks twice: the embedded Postgres ends with us in any case.
    if (!service || stoppingSince !== null) process.exit(1);
    void end(0, `${signal} received, stopping`);
  });
}
// Not SIGHUP: a terminal that is closed sends it, and ends what runs there.
process.on("SIGUSR2", () => void renew());

try {
  print("content-service");
  // Grafast reads this when it is loaded: with anything else it checks itself at each step, which costs time.
  process.env.GRAPHILE_ENV ??= "production";
  if (!hasHome()) process.env.HOME = "/";
  await checkMailFolder(config);
  const start = isAlone
    ? (await import("./service.ts")).startService
    : (await import("./processes/start-worker-cluster.ts")).startWorkerCluster;
  if (config.adminPort !== null) {
    admin = await openAdmin({ config, log, service: () => service?.operable ?? null });
  }
  service = await start(config, { log, tell, giveUp: (reason) => void end(1, reason.message) });
  announce(service);
  if (isDevelopment) watched = watchMigrations(service.postgres.migrate, print);
} catch (error) {
  reportFailure(error);
  await admin?.close();
  // Whatever is still open: who looks after this process waits for its end to start it again.
  process.exit();
}

function readOrExit(): ReadConfig {
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

function announce(running: Running): void {
  const { url } = running;
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const data = isEmbedded(config) ? `${resolve(config.dataDir)} (embedded Postgres)` : "the Postgres of DATABASE_URL";
  print(`
  address    ${url}
  health     ${url}/health
  graphql    ${url}/graphql${config.graphqlExplorer ? `\n  explorer   ${url}/graphiql` : ""}
${admin ? `  operators  ${admin.url}/metrics\n` : ""}  data       ${data}
  keys       ${commandLine("keys")}
  psql       ${commandLine("psql")}
${isDevelopment ? `  migration  ${currentFolder(running)}, applied on every save\n` : ""}
  ready in ${seconds} s`);
}

/** Where the project's next migration is written. */
function currentFolder({ postgres }: Running): string {
  return shownFile(join(postgres.migrate.histories.at(-1)!.folder, "current"));
}

async function renew(): Promise<void> {
  if (!service || stoppingSince !== null) return;
  tell("SIGUSR2 received, renewing");
  try {
    await service.renew();
    tell("renewed");
  } catch (error) {
    // Who stops meanwhile ends the successor too.
    if (stoppingSince !== null) return;
    log.error({ err: error }, "what has changed could not be taken up; all stays as it was");
  }
}

async function end(code: number, reason: string): Promise<void> {
  stoppingSince = performance.now();
  process.exitCode = code;
  tell(reason);
  // Workers let go first; whoever of them hangs is ended before that time is over twice.
  exitAfter(config.drainTimeout * 1000 + (isAlone ? 1 : 2) * CLOSE_TIMEOUT_MS);
  await watched?.stop();
  await service?.stop().catch(reportFailure);
  await admin?.close();
  process.exit();
}
