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
 * The histories of the release were written anew twice before its first release. A database of former ones gets the changes that it lacks
 * from files of `db/upgrade`, and the record of the present ones. The project's own history stays as it is.
 */
const FORMER_HISTORIES = [
  { first: "sha1:de578ca582f33ba09bc65b82f4a989da35ac1448", file: "platform-000055.sql", commit: "6bd84e18" },
  { first: "sha1:bbc9a5cc7065f1e85585fee92258b0b0792ddafa", file: "platform-000022.sql", commit: "a0c93425" },
] as const;

type FormerHistories = {
  /** The first migration of the platform. */
  readonly first: string;
  /** The file of `db/upgrade` that goes on from their last state. */
  readonly file: string;
  /** A commit of this repository that brings older databases to that state. */
  readonly commit: string;
};

/** Gives the schema of the service its name, between the changes of the first file and those of the next. */
const SCHEMA_NAME_FILE = "schema-name.sql";
const FORMER_SCHEMA_FILE: FormerHistories["file"] = FORMER_HISTORIES[0].file;

type ReleaseHistory = "platform" | "content";
const RELEASE_HISTORIES: readonly ReleaseHistory[] = ["platform", "content"];

/** A migration of the former histories: what a database that lacks it gets instead. */
type FormerMigration = {
  readonly history: ReleaseHistory;
  readonly hash: string;
  /** The file of `db/upgrade` that it is in. */
  readonly file: FormerHistories["file"];
  /** Files of the present history, such as `000024-storage-functions.sql`, whose subject the database lacks. */
  readonly files: readonly string[];
  /** Those that need functions of other files. */
  readonly laterFiles: readonly string[];
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
  /** The commit that brings it to a state that can be upgraded. */
  readonly commit: string;
};

/** Null if the database does not have the former histories. */
export function findEarlierState(recorded: readonly RecordedMigration[]): EarlierState | null {
  const ofHistory = (wanted: ReleaseHistory) =>
    recorded.filter(({ history }) => history === wanted).sort((one, other) => (one.name < other.name ? -1 : 1));
  const start = ofHistory("platform")[0]?.hash;
  const position = FORMER_HISTORIES.findIndex(({ first }) => first === start);
  if (position < 0) return null;
  const { file, commit } = FORMER_HISTORIES[position]!;
  const former = readUpgradeFile(file);
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
  missing?.push(...FORMER_HISTORIES.slice(position + 1).flatMap((later) => formerMigrations(later.file)));
  return { applied, missing, commit };
}

/** What the database lacks. Throws if it is older than those that can be upgraded. */
export function requireUpgradable({ applied, missing, commit }: EarlierState): readonly FormerMigration[] {
  if (missing !== null) return missing;
  throw new Error(
    `The database was made by an unreleased version (${applied.join(", ")}) that cannot be upgraded at once. Update it first to commit ` +
      `${commit}: git checkout ${commit}, npm ci, npm run migrate. Then return to this version.`,
  );
}

export function explainEarlierBackup({ applied, commit }: EarlierState): string {
  return (
    `The backup was made by an unreleased version (${applied.join(", ")}) that cannot be upgraded at once. Restore it with commit ` +
    `${commit} (git checkout ${commit}, npm ci, npm run restore), then start this version on that database.`
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
    await applyMissing(client, missing, present, (name, migrations) =>
      functionStatements(migrations, functionsOf(missing, name)),
    );
    await recordPresent(client, present);
  });
}

/** Continues an upgrade from a state older than the former histories: functions and comments are those of the present histories. */
export async function continueUpgrade(client: pg.ClientBase, present: PresentHistories): Promise<void> {
  const missing = FORMER_HISTORIES.flatMap(({ file }) => formerMigrations(file));
  await applyMissing(client, missing, present, (_name, migrations) => functionStatements(migrations, null));
  for (const sql of statementsOf(present)) if (sql.startsWith("comment on ")) await client.query(sql);
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

/** A comment whose text names the schema of the service. */
const NAMES_SCHEMA = /^comment on .* is '.*\bcontent_service\./;

async function applyMissing(
  client: pg.ClientBase,
  missing: readonly FormerMigration[],
  present: PresentHistories,
  functionsIn: (history: ReleaseHistory, migrations: readonly CommittedMigration[]) => Iterable<string>,
): Promise<void> {
  const hasFormerSchema = ({ file }: FormerMigration) => file === FORMER_SCHEMA_FILE;
  for (const { before } of missing.filter(hasFormerSchema)) if (before) await client.query(before);
  await renameSchema(client, present);
  for (const { history, files, before } of missing.filter((migration) => !hasFormerSchema(migration))) {
    await executeFiles(client, present.get(history), files);
    if (before) await client.query(before);
  }
  const later = missing.flatMap(({ laterFiles }) => laterFiles);
  for (const history of RELEASE_HISTORIES) {
    const others = (present.get(history) ?? []).filter(({ name }) => !later.includes(name));
    for (const statement of functionsIn(history, others)) await client.query(statement);
  }
  for (const { history, laterFiles } of missing) await executeFiles(client, present.get(history), laterFiles);
  for (const { after } of missing) if (after) await client.query(after);
  for (const sql of statementsOf(present)) if (NAMES_SCHEMA.test(sql)) await client.query(sql);
}

async function executeFiles(
  client: pg.ClientBase,
  migrations: readonly CommittedMigration[] | undefined,
  names: readonly string[],
): Promise<void> {
  for (const { name, body } of migrations ?? []) if (names.includes(name)) await client.query(body);
}

async function renameSchema(client: pg.ClientBase, present: PresentHistories): Promise<void> {
  const texts = [
    ...[...present.values()].flat().map(({ body }) => body),
    ...FORMER_HISTORIES.map(({ file }) => readText(file)),
  ];
  const names = new Set(
    texts.flatMap((text) => [...text.matchAll(/\b(?:private|content_service)\.(\w+)/g)].map(([, name]) => name)),
  );
  await client.query("select pg_catalog.set_config('content_service.names', $1, true)", [[...names].join("|")]);
  await client.query(readText(SCHEMA_NAME_FILE));
}

function functionsOf(missing: readonly FormerMigration[], name: ReleaseHistory): ReadonlySet<string> {
  const { functions: renamed } = parseChanges(readText(SCHEMA_NAME_FILE));
  return new Set([
    ...missing.filter(({ history }) => history === name).flatMap(({ functions }) => functions),
    ...renamed,
  ]);
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
  const until = readUpgradeParts(FORMER_HISTORIES.at(-1)!.file)
    .filter(({ kind }) => kind === "to")
    .map(({ hash }) => hash);
  const [first] = migrations;
  if (!first) return [];
  const last = migrations.findIndex(({ hash }) => until.includes(hash));
  if (last < 0) throw new Error(`The history "${first.history}" has none of the migrations that an upgrade ends with.`);
  return migrations.slice(0, last + 1);
}

function statementsOf(present: PresentHistories): string[] {
  return [...present.values()].flat().flatMap(({ body }) => splitStatements(body).map(({ sql }) => sql));
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

/** The state that a file goes on from, and the migrations after it. */
function readUpgradeFile(file: FormerHistories["file"]): FormerMigration[] {
  return readUpgradeParts(file)
    .filter(({ kind }) => kind !== "to")
    .map(({ history, hash, text }) => ({ history, hash, file, ...parseChanges(text) }));
}

/** The migrations after the state that a file goes on from. */
function formerMigrations(file: FormerHistories["file"]): FormerMigration[] {
  const states = readUpgradeParts(file).filter(({ kind }) => kind === "from");
  return readUpgradeFile(file).filter(({ hash }) => !states.some((state) => state.hash === hash));
}

type UpgradePart = {
  /** `from`: the state that the file goes on from; `to`: the last of the present migrations that the upgraded database has. */
  readonly kind: "from" | "to" | "migration";
  readonly history: ReleaseHistory;
  readonly hash: string;
  readonly text: string;
};

function readUpgradeParts(file: FormerHistories["file"]): UpgradePart[] {
  const parts = readText(file).split(/^--! (from|to|migration) (platform|content)\/\d+ (sha1:\w+)\n/m);
  const found: UpgradePart[] = [];
  for (let index = 1; index < parts.length; index += 4) {
    const [kind, history, hash, text] = parts.slice(index, index + 4) as [
      UpgradePart["kind"],
      ReleaseHistory,
      string,
      string,
    ];
    found.push({ kind, history, hash, text });
  }
  return found;
}

/** Empty where the release is without it. */
function readText(file: string): string {
  const path = join(UPGRADE_FOLDER, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

const FILES = /^--! files (.+)\n?/gm;
const FUNCTIONS = /^--! functions (.+)\n?/gm;

const LATER_FILES = /^--! later-files (.+)\n?/gm;

type Changes = Pick<FormerMigration, "files" | "laterFiles" | "before" | "functions" | "after">;

function parseChanges(text: string): Changes {
  const namesOf = (lines: RegExp) => [...text.matchAll(lines)].flatMap(([, names]) => names!.split(" "));
  const [before = "", ...rest] = text
    .replace(FILES, "")
    .replace(LATER_FILES, "")
    .split(/(?:^--! functions .+\n?)+/m);
  return {
    files: namesOf(FILES),
    laterFiles: namesOf(LATER_FILES),
    before: before.trim(),
    functions: namesOf(FUNCTIONS),
    after: rest.join("").trim(),
  };
}
