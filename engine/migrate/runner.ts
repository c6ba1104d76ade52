import { text } from "node:stream/consumers";
import { commit, migrate, reset, uncommit, watch } from "graphile-migrate";
import type { MigrateJob } from "./migrate.ts";

const { command, settings } = JSON.parse(await text(process.stdin)) as MigrateJob;
const graphileSettings = {
  connectionString: settings.url,
  shadowConnectionString: settings.shadowUrl,
  rootConnectionString: settings.rootUrl,
  migrationsFolder: settings.folder,
};

switch (command.name) {
  case "migrate":
    await migrate(graphileSettings);
    break;
  case "watch":
    await watch(graphileSettings, command.once);
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
