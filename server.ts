import { resolve } from "node:path";
import { ConfigError, isEmbedded, type ReadConfig, readConfig } from "./engine/config/config.ts";
import { makeLogger } from "./engine/log.ts";
import { type WatchedMigrations, watchMigrations } from "./engine/migrate/migrate.ts";
import type { Service } from "./service.ts";

const startedAt = performance.now();
const { config, warnings } = readOrExit();
const log = makeLogger(config);
for (const warning of warnings) log.warn(warning);

const tell = (step: string) => console.log(`  … ${step}`);
/** What is closed after the last answer needs no longer, unless it hangs. */
const CLOSING_MS = 5_000;
/** `npm run dev`: the chapter in db/migrations/current is applied at each change of its files. */
const isDevelopment = process.argv.includes("--dev");
let service: Service | null = null;
let chapter: WatchedMigrations | null = null;
let stopping = false;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // Nothing is in flight yet, or somebody asks twice: the embedded Postgres ends with us in any case.
    if (!service || stopping) process.exit(1);
    void end(0, `${signal} received, stopping`);
  });
}

try {
  console.log("content-service");
  // Grafast reads this when it is loaded: with anything else it checks itself at each step, which costs time.
  process.env.GRAPHILE_ENV ??= "production";
  const { startService } = await import("./service.ts");
  service = await startService(config, { log, tell, giveUp: (reason) => void end(1, reason.message) });
  announce(service);
  if (isDevelopment) chapter = watchMigrations(service.postgres.migrate, console.log);
} catch (error) {
  fail(error);
}

function readOrExit(): ReadConfig {
  try {
    return readConfig(process.env);
  } catch (error) {
    fail(error);
    process.exit();
  }
}

function announce({ url }: Service): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const data = isEmbedded(config) ? `${resolve(config.dataDir)} (embedded Postgres)` : "the Postgres of DATABASE_URL";
  console.log(`
  address    ${url}
  health     ${url}/health
  graphql    ${url}/graphql${config.graphqlExplorer ? `\n  explorer   ${url}/graphiql` : ""}
  data       ${data}
  keys       npm run keys
  psql       npm run psql
${isDevelopment ? "  chapter    db/migrations/current, applied at each change\n" : ""}
  ready in ${seconds} s`);
}

async function end(code: number, reason: string): Promise<void> {
  stopping = true;
  process.exitCode = code;
  console.log(`  … ${reason}`);
  setTimeout(
    () => {
      console.error("What is still open does not close; ending without it.");
      process.exit(1);
    },
    config.drainTimeout * 1000 + CLOSING_MS,
  ).unref();
  await chapter?.stop();
  await service?.stop().catch(fail);
  process.exit();
}

/** What people can mend is said in words; a fault of the program shows where it happened. */
function fail(error: unknown): void {
  const plain = error instanceof ConfigError || (error instanceof Error && error.constructor === Error);
  console.error(plain ? error.message : error);
  process.exitCode = 1;
}
