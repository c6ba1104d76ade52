import { join } from "node:path";
import type { useDatabase } from "../database.ts";
import { NO_PROJECT, REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";

/** The environment of commands that readers type in a clone, for a database of the tests. */
export function inClone({
  url,
  ownerUrl,
}: Pick<ReturnType<typeof useDatabase>, "url" | "ownerUrl">): Record<string, string> {
  return {
    PATH: `${join(REPOSITORY, "node_modules/.bin")}:${process.env.PATH}`,
    npm_config_loglevel: "silent",
    npm_config_update_notifier: "false",
    MIGRATIONS_DIR: NO_PROJECT,
    JWT_SECRET: SECRET,
    DATABASE_URL: url,
    OWNER_DATABASE_URL: ownerUrl,
  };
}
