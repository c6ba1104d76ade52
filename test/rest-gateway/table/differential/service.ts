import { readConfig } from "../../../../engine/config/config.ts";
import { makeLogger } from "../../../../engine/log.ts";
import { type Service, startService } from "../../../../service.ts";
import type { TestDatabase } from "../../../database.ts";
import { SECRET } from "./answer.ts";

/** The whole service in this process, on a port of its own. */
export async function serve(
  { url, ownerUrl }: TestDatabase,
  settings: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const { config } = readConfig({
    PORT: "0",
    LOG_LEVEL: "silent",
    DATABASE_URL: url,
    OWNER_DATABASE_URL: ownerUrl,
    JWT_SECRET: SECRET,
    RATE_LIMIT: "0",
    PGRST_DB_CONFIG: "false",
    ...settings,
  });
  const giveUp = (reason: Error) => {
    throw reason;
  };
  return startService(config, { log: makeLogger(config), tell: () => {}, giveUp });
}
