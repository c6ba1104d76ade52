import { withClient } from "../with-client.ts";
import { applyCommitted } from "./apply-committed.ts";
import { applyCurrent } from "./apply-current.ts";
import { commitCurrent, uncommitLast } from "./commit.ts";
import { committedMigrations } from "./committed.ts";
import { type History, type MigrateSettings, releasedHistories } from "./histories.ts";
import { makeSchemas, writeSchemas } from "./schema-files.ts";
import { recreateDatabase } from "./scratch-database.ts";
import { refuseOldServer, refuseOtherLetters, refuseOtherQuotes } from "./unfit.ts";

export type MigrateCommand =
  | { readonly name: "migrate" }
  /** Applies `current/` once. */
  | { readonly name: "current" }
  | { readonly name: "commit"; readonly message: string; readonly history: History["name"] }
  | { readonly name: "uncommit"; readonly history: History["name"] }
  | { readonly name: "dump" }
  | { readonly name: "reset" };

/** One process migrates, the others wait for it: graphile-migrate itself fails when it is locked out. */
const LOCK = 7_446_309;

/** Gives the files that were written. */
export async function runMigrations(command: MigrateCommand, given: MigrateSettings): Promise<string[]> {
  const settings = { ...given, histories: given.histories ?? releasedHistories() };
  // A committed migration that was changed is refused before anything is done.
  await Promise.all(settings.histories.map(committedMigrations));
  if (command.name === "reset") await recreateDatabase(settings.url, settings.rootUrl);
  return whileLocked(settings.url, () => run(command, settings));
}

/** One at a time, on a database that can be migrated. */
export async function whileLocked<T>(url: string, work: () => Promise<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query("select pg_advisory_lock($1)", [LOCK]);
    await refuseOldServer(client);
    await refuseOtherLetters(client);
    await refuseOtherQuotes(client);
    return work();
  });
}

async function run(command: MigrateCommand, settings: Required<MigrateSettings>): Promise<string[]> {
  switch (command.name) {
    case "migrate":
    case "reset":
      await applyCommitted(settings.url, settings.rootUrl, settings.histories);
      return [];
    case "current":
      await applyCommitted(settings.url, settings.rootUrl, settings.histories);
      await applyCurrent(settings, () => {});
      return [];
    case "commit":
      return commitCurrent(historyOf(settings.histories, command.history), command.message, settings);
    case "uncommit":
      return uncommitLast(historyOf(settings.histories, command.history), settings);
    case "dump":
      return writeSchemas(await makeSchemas(settings, settings.histories));
  }
}

function historyOf(histories: readonly History[], wanted: History["name"]): History {
  const history = histories.find(({ name }) => name === wanted);
  if (!history) throw new Error(`There is no history "${wanted}" here.`);
  return history;
}
