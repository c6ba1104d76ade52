import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { committedMigrations, type Migration } from "../migrate/committed.ts";
import type { History, MigrateSettings } from "../migrate/histories.ts";
import { runMigrations } from "../migrate/migrate.ts";
import type { ArchiveHeader } from "./archive-format.ts";

/** The last migration of the single history of earlier versions, and the last ones here that create the same tables. */
const SINGLE_HISTORY = {
  last: "sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4",
  platform: "000023",
  content: "000008",
} as const;

/** The migrations that were applied when the backup was made. Throws if this release lacks one of them. */
export async function migrationsOf(
  { migrations }: ArchiveHeader,
  histories: readonly History[],
): Promise<readonly Migration[]> {
  if (migrations.length === 0) {
    throw new Error(
      "The backup is of a database that was not created by this service's migrations. Use pg_dump for such databases.",
    );
  }
  const committed = (await Promise.all(histories.map(committedMigrations))).flat();
  if (migrations.some(({ history }) => history === undefined)) return ofSingleHistory(migrations, committed);
  const known = new Map(committed.map((migration) => [`${migration.history} ${migration.hash}`, migration]));
  const unknown = migrations.filter(({ history, hash }) => !known.has(`${history} ${hash}`));
  if (unknown.length > 0) {
    const list = unknown.map(({ history, name }) => `${history}/${name}`).join(", ");
    throw new Error(
      `The backup needs migrations that this release does not have: ${list}. Restore it with the release that made it.`,
    );
  }
  return migrations.map(({ history, hash }) => known.get(`${history} ${hash}`)!);
}

/** A project's own migrations must be in the project's history now. */
function ofSingleHistory(
  migrations: ArchiveHeader["migrations"],
  committed: readonly Migration[],
): readonly Migration[] {
  const end = migrations.findIndex(({ hash }) => hash === SINGLE_HISTORY.last);
  if (end < 0) {
    throw new Error(
      "The backup was made by an early version. Update that database to the last version with a single history of migrations " +
        "(npm run migrate), and back it up again.",
    );
  }
  const added = migrations.slice(end + 1);
  const own = committed.filter(({ history }) => history === "project");
  if (added.length > 0 && own.length === 0) {
    throw new Error(
      `The backup needs migrations of your own: ${added.map(({ name }) => name).join(", ")}. ` +
        "Commit the same SQL to your project's history (MIGRATIONS_DIR) first.",
    );
  }
  const released = committed.filter(
    ({ history, name }) => history !== "project" && name.slice(0, 6) <= SINGLE_HISTORY[history],
  );
  return added.length > 0 ? [...released, ...own] : released;
}

/** Runs exactly these migrations. */
export async function migrateTo(migrations: readonly Migration[], settings: Required<MigrateSettings>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-migrations-"));
  try {
    const histories = settings.histories.map(({ name }) => ({ name, folder: join(folder, name) }));
    for (const history of histories) await mkdir(join(history.folder, "committed"), { recursive: true });
    for (const { history, name, file } of migrations) await cp(file, join(folder, history, "committed", name));
    await runMigrations({ name: "migrate" }, { ...settings, histories });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
