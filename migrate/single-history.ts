import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import {
  type CommittedMigration,
  committedMigrations,
  computeHash,
  type MigrationHistory,
  UPGRADE_FOLDER,
} from "./committed-migrations.ts";
import { continueUpgrade, inTransaction, presentHistories } from "./earlier-histories.ts";
import { createRecordTables, recordMigrations } from "./migration-record.ts";

/**
 * Before 22 November 2026 there was one history of migrations, which the project's own followed. A database of its 57th migration or a
 * later one gets the changes that it lacks from a file of `db/upgrade`, and a record for each history.
 */
const UPGRADE_FILE = "single-history.sql";

/** The first migration of the single history. */
export const SINGLE_HISTORY_START = "sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1";

type AppliedMigration = { readonly name: string; readonly hash: string };
type SingleMigration = { readonly hash: string; readonly sql: string };

export type SingleHistoryState = {
  /** What the database lacks of the release's migrations; null if it is older than those that can be upgraded. */
  readonly missing: readonly SingleMigration[] | null;
  /** The project's migrations, after the release's, and the hash of the one before them. */
  readonly own: readonly AppliedMigration[];
  readonly last: string | null;
};

export function findSingleHistory(applied: readonly AppliedMigration[]): SingleHistoryState {
  const { from, migrations } = readUpgradeFile();
  const start = applied.findIndex(({ hash }) => hash === from);
  if (start < 0) return { missing: null, own: [], last: null };
  let position = 0;
  while (applied[start + 1 + position] && applied[start + 1 + position]!.hash === migrations[position]?.hash)
    position++;
  const last = applied[start + position]!.hash;
  return { missing: migrations.slice(position), own: applied.slice(start + 1 + position), last };
}

export function explainSingleHistory({ missing }: SingleHistoryState): string {
  const history = "The database was made by a version before 22 November 2026, which had one history of migrations";
  return missing === null
    ? `${history}, and has fewer than 57 of its migrations. Update it first to commit 5c10d4c: git checkout 5c10d4c, npm ci, ` +
        "npm run migrate. Then return to this version."
    : `${history}.`;
}

/** Throws if the database cannot be upgraded, or if the project's migrations are not here. */
export async function requireUpgradableProject(
  state: SingleHistoryState,
  histories: readonly MigrationHistory[],
): Promise<readonly CommittedMigration[]> {
  const { missing, own, last } = state;
  if (missing === null) throw new Error(explainSingleHistory(state));
  const project = histories.find(({ name }) => name === "project");
  const committed = project ? await committedMigrations(project) : [];
  let previous = last;
  for (const [index, { name, hash }] of own.entries()) {
    const migration = committed[index];
    // Each hash contains the previous one, so the same SQL has another hash in the project's own history.
    if (!migration || computeHash(migration.body, previous) !== hash) {
      throw new Error(
        `${explainSingleHistory(state)} Its migration ${name} is your own, and the project's migration ${index + 1} is ` +
          `${migration ? `${migration.name}, with other SQL` : "missing"}. Commit the same SQL, and nothing else before it, to db/migrations.`,
      );
    }
    previous = hash;
  }
  return committed.slice(0, own.length);
}

/** Brings the database to the present histories, in one transaction. */
export async function upgradeSingleHistory(
  client: pg.ClientBase,
  state: SingleHistoryState,
  histories: readonly MigrationHistory[],
): Promise<void> {
  const project = await requireUpgradableProject(state, histories);
  const present = await presentHistories(histories);
  await inTransaction(client, async () => {
    for (const { sql } of state.missing!) if (sql) await client.query(sql);
    await client.query(readUpgradeFile().rest);
    await continueUpgrade(client, present);
    await client.query("drop table graphile_migrate.migrations");
    await createRecordTables(client);
    for (const [name, migrations] of present) await recordMigrations(client, name, migrations);
    await recordMigrations(client, "project", project);
  });
}

type UpgradeFile = {
  /** The hash of the oldest migration from which databases are upgraded. */
  readonly from: string;
  /** The migrations after it. */
  readonly migrations: readonly SingleMigration[];
  /** From the last of them to the former histories,. */
  readonly rest: string;
};

function readUpgradeFile(): UpgradeFile {
  const file = join(UPGRADE_FOLDER, UPGRADE_FILE);
  if (!existsSync(file)) return { from: "", migrations: [], rest: "" };
  const [history = "", rest = ""] = readFileSync(file, "utf8").split(/^--! then\n/m);
  const [, from = "", , ...parts] = history.split(/^--! (?:from|migration) single\/\d+ (sha1:\w+)\n/m);
  const migrations: SingleMigration[] = [];
  for (let index = 0; index < parts.length; index += 2) {
    migrations.push({ hash: parts[index]!, sql: parts[index + 1]!.trim() });
  }
  return { from, migrations, rest };
}
