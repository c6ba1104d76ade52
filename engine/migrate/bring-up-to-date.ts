import { withClient } from "../with-client.ts";
import { type MigrationState, migrationState } from "./history.ts";
import { type MigrateSettings, runMigrations } from "./migrate.ts";
import { refuseOldServer, refuseOtherQuotes, refuseReadOnly } from "./unfit.ts";

type Options = {
  readonly settings: MigrateSettings;
  /** As the login that requests use. */
  readonly requestUrl: string;
  /** Whether this process owns the database and may change it by itself. */
  readonly ours: boolean;
  readonly tell: (step: string) => void;
};

/** Migrates our own database; a database of somebody else is only judged, and refused when it is half migrated. */
export async function bringUpToDate(options: Options): Promise<MigrationState> {
  const { settings, requestUrl } = options;
  const found = await stateOf(settings.url);
  await refuseUnfit(settings.url, found);
  const state = await migrated(found, options);
  // The first migration makes the login of our own database.
  if (requestUrl !== settings.url) await refuseUnfit(requestUrl, state);
  return state;
}

async function migrated(state: MigrationState, { settings, ours, tell }: Options): Promise<MigrationState> {
  if (state.kind === "current") return state;
  if (state.kind === "ahead") {
    tell(`the database has migrations of a newer release: ${state.unknown.join(", ")}`);
    return state;
  }
  if (ours) {
    tell("migrating the database");
    await runMigrations({ name: "migrate" }, settings);
    return stateOf(settings.url);
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

function stateOf(url: string): Promise<MigrationState> {
  return withClient(url, (client) => migrationState(client));
}
