import { readConfig } from "../config/config.ts";
import { makeLogger } from "../runtime/log/log.ts";
import type { ServiceOptions } from "../service/wiring/running-service.ts";
import { type Service, startService } from "../service/wiring/service.ts";
import { type DatabaseOptions, type TestDatabase, useDatabase } from "./database.ts";
import { useFixture } from "./fixture.ts";
import { NO_PROJECT } from "./repository.ts";
import { settingsOf } from "./routers/through-router.ts";
import { SECRET } from "./secret.ts";

/** The usual one takes 25 ms of a processor, for each sign-up and sign-in. */
const CHEAP_HASH = { memory: 64, passes: 1, parallelism: 1 };

/** A start waits for the schema of GraphQL also on a busy machine. */
const LONGEST_BUILD_MS = 300_000;

type DatabaseUrls = Pick<TestDatabase, "url" | "ownerUrl">;

type UsedService = DatabaseOptions & {
  /** One that another fixture creates, instead of its own. */
  readonly database?: DatabaseUrls;
  /** A function where they are known only once other fixtures are open. */
  readonly settings?: NodeJS.ProcessEnv | (() => NodeJS.ProcessEnv);
  readonly options?: Partial<ServiceOptions>;
};

/** The whole service in this process for the tests of a file or of a `describe`, on a database of its own. */
export function useService({ database, settings, options, ...own }: UsedService = {}): Service {
  const used = database ?? useDatabase(own);
  return useFixture(() => serve(used, typeof settings === "function" ? settings() : settings, options));
}

/** The whole service in this process, on a port of its own. Its caller stops it. */
export function serve(
  database: DatabaseUrls,
  settings: NodeJS.ProcessEnv = {},
  options: Partial<ServiceOptions> = {},
): Promise<Service> {
  const { config } = readConfig({
    PORT: "0",
    LOG_LEVEL: "silent",
    ...settingsOf(database),
    JWT_SECRET: SECRET,
    MIGRATIONS_DIR: NO_PROJECT,
    RATE_LIMIT: "0",
    // The tests share the processors.
    LOAD_SHEDDING: "false",
    USERS_ACCESS: "open",
    // The connections that the tests hold open are closed at once.
    DRAIN_TIMEOUT_SECONDS: "0",
    // A run of all tests in this mode shows that nothing depends on how the caller's settings are set.
    ...(process.env.CALLER_SETTINGS && { CALLER_SETTINGS: process.env.CALLER_SETTINGS }),
    ...settings,
  });
  const giveUp = (reason: Error) => {
    throw reason;
  };
  return startService(config, {
    log: makeLogger(config),
    report: () => {},
    onFatalError: giveUp,
    passwordHash: CHEAP_HASH,
    schemaWaitMs: LONGEST_BUILD_MS,
    ...options,
  });
}
