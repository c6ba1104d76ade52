import type { MigrateSettings } from "../migrate/committed-migrations.ts";
import { withScratchDatabase } from "../migrate/scratch-database.ts";
import { checkArchive, type RestoreResult } from "./restore-archive.ts";

/** Restores a backup into the server's scratch database, compares both, and drops the database. Throws if they differ. */
export function checkInScratch(file: string, settings: Required<MigrateSettings>): Promise<RestoreResult> {
  const { shadowUrl, rootUrl } = settings;
  return withScratchDatabase(shadowUrl, rootUrl, () => checkArchive(file, { ...settings, url: shadowUrl }));
}
