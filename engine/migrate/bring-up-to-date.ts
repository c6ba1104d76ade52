import { withClient } from "../with-client.ts";
import type { MigrateSettings } from "./histories.ts";
import { runMigrations } from "./migrate.ts";
import { SINGLE_HISTORY_ADVICE } from "./record.ts";
import { divergedAdvice, type MigrationState, migrationState } from "./state.ts";
import { refuseOldServer, refuseOtherQuotes, refuseReadOnly } from "./unfit.ts";

type Options = {
  readonly settings: Required<MigrateSettings>;
  /** As the login that requests use. */
  readonly requestUrl: string;
  /** Whether this process owns the database and may change it by itself. */
  readonly ours: boolean;
  readonly tell: (step: string) => void;
};

/** Migrates our own database; a database of somebody else is only judged, and refused when it is half migrated. */
export async function bringUpToDate(options: Options): Promise<MigrationState> {
  const { settings, requestUrl } = options;
  const found = await stateOf(settings);
  await refuseUnfit(settings.url, found);
  const state = await migrated(found, options);
  // The first migration makes the login of our own database.
  if (requestUrl !== settings.url) await refuseUnfit(requestUrl, state);
  return state;
}

async function migrated(state: MigrationState, { settings, ours, tell }: Options): Promise<MigrationState> {
  if (state.kind === "current") return state;
  if (state.kind === "single history") throw new Error(SINGLE_HISTORY_ADVICE);
  if (state.kind === "diverged") throw new Error(divergedAdvice(state));
  if (state.kind === "ahead") {
    tell(
      `the database has migrations that are not here (a newer release has applied them, or they were removed): ${state.unknown.join(", ")}`,
    );
    return state;
  }
  if (ours) {
    tell("migrating the database");
    await runMigrations({ name: "migrate" }, settings);
    return stateOf(settings);
  }
  if (state.kind === "behind") {
    throw new Error(
      `The database is half migrated: ${state.applied} migrations are applied, ${state.missing.length} are missing ` +
        `(${state.missing.join(", ")}). Run npm run migrate against it, then start again.`,
    );
  }
  tell("the database has none of our schemas and is served as it is; npm run migrate would add them");
  return state;
}

function refuseUnfit(url: string, { kind }: MigrationState): Promise<void> {
  return withClient(url, async (client) => {
    await refuseOldServer(client);
    await refuseOtherQuotes(client);
    if (kind !== "foreign") await refuseReadOnly(client);
  });
}

function stateOf({ url, histories }: Required<MigrateSettings>): Promise<MigrationState> {
  return withClient(url, (client) => migrationState(client, histories));
}
