import { once } from "node:events";
import { commit, migrate, reset, uncommit, watch } from "graphile-migrate";
import type { MigrateJob } from "./migrate.ts";
import { makeWatchLogger } from "./watch-log.ts";

const [{ command, settings }] = (await once(process, "message")) as [MigrateJob];
const graphileSettings = {
  blankMigrationContent:
    "-- The new chapter goes here, one subject per file: 0010-tags.sql, 0020-likes.sql. Rename or delete this file then.\n" +
    "-- See db/README.md.\n",
  connectionString: settings.url,
  shadowConnectionString: settings.shadowUrl,
  rootConnectionString: settings.rootUrl,
  migrationsFolder: settings.folder,
};

// Whoever asked for this is gone, however it ended.
process.once("disconnect", () => process.exit(1));

try {
  await run();
} catch (error) {
  console.error((error as Error).message);
  process.exit(1);
}

// graphile-migrate would hold on to its connections for a while.
if (command.name !== "watch" || command.once) process.exit(0);

async function run(): Promise<void> {
  switch (command.name) {
    case "migrate":
      await migrate(graphileSettings);
      break;
    case "watch":
      await watch(
        { ...graphileSettings, ...(!command.once && { logger: makeWatchLogger((text) => console.log(text)) }) },
        command.once,
      );
      break;
    case "commit":
      await commit(graphileSettings, command.message);
      break;
    case "uncommit":
      await uncommit(graphileSettings);
      break;
    case "reset":
      await reset(graphileSettings);
      break;
  }
}
