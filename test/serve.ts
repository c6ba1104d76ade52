import { readConfig } from "../config/config.ts";
import { makeLogger } from "../runtime/log/log.ts";
import { type Service, type ServiceOptions, startService } from "../service/service.ts";
import type { TestDatabase } from "./database.ts";
import { NO_PROJECT } from "./repository.ts";
import { settingsOf } from "./routers/through-router.ts";
import { SECRET } from "./secret.ts";

/** The whole service in this process, on a port of its own. */
export function serve(
  database: Pick<TestDatabase, "url" | "ownerUrl">,
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
    // What a test measures or awaits begins with a schema.
    GRAPHQL_PRELOAD: "on",
    // The connections that the tests hold open are closed at once.
    DRAIN_TIMEOUT_SECONDS: "0",
    ...settings,
  });
  const giveUp = (reason: Error) => {
    throw reason;
  };
  return startService(config, { log: makeLogger(config), report: () => {}, onFatalError: giveUp, ...options });
}
