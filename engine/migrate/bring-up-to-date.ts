import type pg from "pg";
import { withClient } from "../with-client.ts";
import { type MigrationState, migrationState } from "./history.ts";
import { type MigrateSettings, runMigrations } from "./migrate.ts";

type Options = {
  readonly settings: MigrateSettings;
  /** Whether this process owns the database and may change it by itself. */
  readonly ours: boolean;
  readonly tell: (step: string) => void;
};

/** Migrates our own database; a database of somebody else is only judged, and refused when it is half migrated. */
export async function bringUpToDate({ settings, ours, tell }: Options): Promise<MigrationState> {
  const state = await stateOf(settings.url);
  if (state.kind !== "foreign") await withClient(settings.url, refuseReadOnly);
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

/** Our schemas are written at a start already: by the queue of tasks, and by limits. */
async function refuseReadOnly(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ reads_only: boolean; is_standby: boolean }>(
    "select current_setting('transaction_read_only')::bool as reads_only, pg_is_in_recovery() as is_standby",
  );
  const { reads_only: readsOnly, is_standby: isStandby } = rows[0]!;
  if (!readsOnly) return;
  throw new Error(
    isStandby
      ? "The database is a standby, which takes no writes. Set DATABASE_URL and OWNER_DATABASE_URL to its primary, " +
          "and READ_DATABASE_URLS to standbys."
      : "The database takes no writes from its owner: default_transaction_read_only is on. Switch it off for the " +
          "server, the database and the owner; where the provider has switched it on, the disk is full.",
  );
}

function stateOf(url: string): Promise<MigrationState> {
  return withClient(url, (client) => migrationState(client));
}
