import { withClient } from "#postgres/client";
import { readCurrentState } from "./apply-migrations.ts";
import {
  committedMigrations,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
} from "./committed-migrations.ts";
import { readCurrentFiles } from "./current-files.ts";
import { appliedMigrations } from "./migration-state.ts";

type ListedMigration = {
  readonly history: MigrationHistory["name"];
  readonly name: string;
  readonly file: string;
  /** True for a file of `current/`; several files may become one migration. */
  readonly isCurrent: boolean;
  /** Files of `current/` stay pending while they are applied: other databases do not have them. */
  readonly isApplied: boolean;
  readonly sql: string;
};

export type MigrationList = {
  readonly pending: readonly ListedMigration[];
  /** The latest migration comes first. The history of databases of the first versions has no name. */
  readonly applied: readonly { readonly history: string | null; readonly name: string; readonly appliedAt: Date }[];
};

/** The migrations that are not applied, or not committed, and those that are applied. */
export async function listMigrations(settings: MigrateSettings): Promise<MigrationList> {
  const { url, histories } = settings;
  const committed = (await Promise.all(histories.map(committedMigrations))).flat();
  const current = await readCurrentFiles(histories);
  const recorded = await withClient(url, appliedMigrations);
  const unapplied = new Set((await readCurrentState(settings)).pending);
  const names = new Map(committed.map(({ hash, name }) => [hash, name]));
  const hashes = new Set(recorded.map(({ hash }) => hash));
  return {
    pending: [
      ...committed
        .filter(({ hash }) => !hashes.has(hash))
        .map(({ history, name, file, body }) => {
          return { history, name, file: displayPath(file), isCurrent: false, isApplied: false, sql: body.trim() };
        }),
      ...current.map(({ history, name, file: path, sql }) => {
        const file = displayPath(path);
        return { history, name, file, isCurrent: true, isApplied: !unapplied.has(file), sql };
      }),
    ],
    applied: recorded
      .toReversed()
      .map(({ history, name, hash, appliedAt }) => ({ history, name: names.get(hash) ?? name, appliedAt })),
  };
}
