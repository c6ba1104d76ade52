import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import {
  type CommittedMigration,
  committedMigrations,
  type MigrationHistory,
  releaseHistories,
  UPGRADE_FOLDER,
} from "./committed-migrations.ts";
import { recordMigrations } from "./migration-record.ts";
import { splitStatements } from "./split-statements.ts";

/**
 * The histories of the release were written anew before its first release. A database of the former ones gets the changes that it lacks from
 * a file of `db/upgrade`, and the record of the present ones. The project's own history stays as it is.
 */
const UPGRADE_FILE = "platform-000055.sql";

/** The first migration of the former history of the platform, and a commit of this repository that brings older databases to a known state. */
export const FORMER = {
  first: "sha1:de578ca582f33ba09bc65b82f4a989da35ac1448",
  commit: "6bd84e18",
} as const;

type ReleaseHistory = "platform" | "content";
const RELEASE_HISTORIES: readonly ReleaseHistory[] = ["platform", "content"];

/** A migration of the former histories: what a database that lacks it gets instead. */
type FormerMigration = {
  readonly history: ReleaseHistory;
  readonly hash: string;
  /** Changes of tables. */
  readonly before: string;
  /** Functions of the present histories, such as `auth.sign_up`. */
  readonly functions: readonly string[];
  /** What needs these functions. */
  readonly after: string;
};

type RecordedMigration = { readonly history?: string | null; readonly name: string; readonly hash: string };

/** A database with the former histories; `missing` is null if it is older than those that can be upgraded. */
export type EarlierState = {
  /** The last migrations that are applied: `platform/000055.sql`. */
  readonly applied: readonly string[];
  readonly missing: readonly FormerMigration[] | null;
};

/** Null if the database does not have the former histories. */
export function findEarlierState(recorded: readonly RecordedMigration[]): EarlierState | null {
  const ofHistory = (wanted: ReleaseHistory) =>
    recorded.filter(({ history }) => history === wanted).sort((one, other) => (one.name < other.name ? -1 : 1));
  if (ofHistory("platform")[0]?.hash !== FORMER.first) return null;
  const { migrations: former } = readUpgradeFile();
  const applied: string[] = [];
  let missing: FormerMigration[] | null = [];
  for (const name of RELEASE_HISTORIES) {
    const last = ofHistory(name).at(-1);
    if (!last) continue;
    applied.push(`${name}/${last.name}`);
    const known = former.filter(({ history }) => history === name);
    const index = known.findIndex(({ hash }) => hash === last.hash);
    missing = index < 0 || missing === null ? null : [...missing, ...known.slice(index + 1)];
  }
  return { applied, missing };
}

/** What the database lacks. Throws if it is older than those that can be upgraded. */
export function requireUpgradable({ applied, missing }: EarlierState): readonly FormerMigration[] {
  if (missing !== null) return missing;
  throw new Error(
    `The database was made by an unreleased version (${applied.join(", ")}) that cannot be upgraded at once. Update it first to commit ` +
      `${FORMER.commit}: git checkout ${FORMER.commit}, npm ci, npm run migrate. Then return to this version.`,
  );
}

export function explainEarlierBackup({ applied }: EarlierState): string {
  return (
    `The backup was made by an unreleased version (${applied.join(", ")}) that cannot be upgraded at once. Restore it with commit ` +
    `${FORMER.commit} (git checkout ${FORMER.commit}, npm ci, npm run restore), then start this version on that database.`
  );
}

/** Brings the database to the present histories, in one transaction. */
export async function upgradeEarlier(
  client: pg.ClientBase,
  state: EarlierState,
  histories: readonly MigrationHistory[],
): Promise<void> {
  const missing = requireUpgradable(state);
  const present = await presentHistories(histories);
  await inTransaction(client, async () => {
    await applyMissing(client, missing, (name) =>
      functionStatements(present.get(name) ?? [], functionsOf(missing, name)),
    );
    await recordPresent(client, present);
  });
}

/** Continues an upgrade from a state older than the former histories: functions and comments are those of the present histories. */
export async function continueUpgrade(client: pg.ClientBase, present: PresentHistories): Promise<void> {
  const statements = [...present.values()].flat().flatMap(({ body }) => splitStatements(body).map(({ sql }) => sql));
  await applyMissing(client, readUpgradeFile().migrations, (name) => functionStatements(present.get(name) ?? [], null));
  for (const sql of statements) if (sql.startsWith("comment on ")) await client.query(sql);
}

export async function inTransaction(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query("begin");
  try {
    await work();
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function applyMissing(
  client: pg.ClientBase,
  missing: readonly FormerMigration[],
  functionsIn: (history: ReleaseHistory) => Iterable<string>,
): Promise<void> {
  for (const { before } of missing) if (before) await client.query(before);
  for (const name of RELEASE_HISTORIES) for (const statement of functionsIn(name)) await client.query(statement);
  for (const { after } of missing) if (after) await client.query(after);
}

function functionsOf(missing: readonly FormerMigration[], name: ReleaseHistory): ReadonlySet<string> {
  return new Set(missing.filter(({ history }) => history === name).flatMap(({ functions }) => functions));
}

export type PresentHistories = ReadonlyMap<ReleaseHistory, readonly CommittedMigration[]>;

export async function presentHistories(histories: readonly MigrationHistory[]): Promise<PresentHistories> {
  const present = new Map<ReleaseHistory, readonly CommittedMigration[]>();
  for (const name of RELEASE_HISTORIES) {
    const found = [...histories, ...releaseHistories()].find((history) => history.name === name);
    if (found) present.set(name, upgraded(await committedMigrations(found)));
  }
  return present;
}

/** Without those that were added since the histories were written anew: they are applied afterwards, like any. */
function upgraded(migrations: readonly CommittedMigration[]): readonly CommittedMigration[] {
  const { until } = readUpgradeFile();
  const [first] = migrations;
  if (!first) return [];
  const last = migrations.findIndex(({ hash }) => until.includes(hash));
  if (last < 0) throw new Error(`The history "${first.history}" has none of the migrations that an upgrade ends with.`);
  return migrations.slice(0, last + 1);
}

/** The statements that define these functions (null: all), grant and describe them, in the order of the history. */
function* functionStatements(
  migrations: readonly CommittedMigration[],
  names: ReadonlySet<string> | null,
): Iterable<string> {
  const isWanted = (name: string | undefined) => name !== undefined && (names === null || names.has(name));
  for (const { body } of migrations) {
    for (const { sql } of splitStatements(body)) {
      const [, defined] = /^create (?:or replace )?function ([\w.]+)/.exec(sql) ?? [];
      const [, about] = /^(?:grant \w+ on|revoke \w+ on|comment on) function ([\w.]+)/.exec(sql) ?? [];
      if (isWanted(defined)) {
        yield sql.replace(/^create (or replace )?/, "create or replace ");
      } else if (isWanted(about)) yield sql;
    }
  }
}

async function recordPresent(client: pg.ClientBase, present: PresentHistories): Promise<void> {
  for (const [name, migrations] of present) {
    const { rowCount } = await client.query("delete from graphile_migrate.histories where history = $1", [name]);
    if (rowCount !== 0) await recordMigrations(client, name, migrations);
  }
}

type UpgradeFile = {
  readonly migrations: readonly FormerMigration[];
  /** The hashes of the present migrations that the upgraded database has last. */
  readonly until: readonly string[];
};

function readUpgradeFile(): UpgradeFile {
  const file = join(UPGRADE_FOLDER, UPGRADE_FILE);
  if (!existsSync(file)) return { migrations: [], until: [] };
  const parts = readFileSync(file, "utf8").split(/^--! (from|to|migration) (platform|content)\/(\d+) (sha1:\w+)\n/m);
  const migrations: FormerMigration[] = [];
  const until: string[] = [];
  for (let index = 1; index < parts.length; index += 5) {
    const [kind, history, , hash, text] = parts.slice(index, index + 5) as [
      string,
      ReleaseHistory,
      string,
      string,
      string,
    ];
    if (kind === "to") until.push(hash);
    else migrations.push({ history, hash, ...parseChanges(text) });
  }
  return { migrations, until };
}

const FUNCTIONS = /^--! functions (.+)\n?/gm;

function parseChanges(text: string): Pick<FormerMigration, "before" | "functions" | "after"> {
  const functions = [...text.matchAll(FUNCTIONS)].flatMap(([, names]) => names!.split(" "));
  const [before = "", ...rest] = text.split(/(?:^--! functions .+\n?)+/m);
  return { before: before.trim(), functions, after: rest.join("").trim() };
}
