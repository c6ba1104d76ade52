import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type pg from "pg";
import { withClient } from "#postgres/client";
import { applyCommitted } from "./apply-migrations.ts";
import {
  type CommittedMigration,
  committedMigrations,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
  writeMigration,
} from "./committed-migrations.ts";
import { type CurrentFile, currentFiles } from "./current-files.ts";
import { groupIntoMigrations } from "./current-groups.ts";
import { dumpSchema } from "./dump-schema.ts";
import {
  describeLostTable,
  findDroppedTables,
  findLostTables,
  type LostTable,
  type ReportLine,
  withKeptRows,
} from "./kept-rows.ts";
import { forgetProgress } from "./migration-progress.ts";
import { appliedMigrations } from "./migration-state.ts";
import { type RehearsedStatement, rehearseCurrent } from "./rehearse.ts";
import { withScratchDatabase } from "./scratch-database.ts";
import { splitStatements } from "./split-statements.ts";

type WrittenMigration = Pick<CommittedMigration, "file" | "name" | "hash">;

type UnfinishedCommit = {
  /** The names of the migrations that it writes. */
  readonly migrations: readonly string[];
  /** The time at which each file of `current/` was written, by its name, in milliseconds since 1970. */
  readonly files: Readonly<Record<string, number>>;
};

const NOTHING_UNFINISHED: UnfinishedCommit = { migrations: [], files: {} };

const NO_TRANSACTION = "--! no-transaction";
/** The record of a commit, which is there until its files in `current/` are deleted. */
const UNFINISHED = ".unfinished";
const DRAFT = ".draft";
const MAX_NAME_LENGTH = 60;

export type CommitOptions = {
  readonly report?: ReportLine | undefined;
  /** Receives the verdicts of the statements before the commit, judged as if tables were large; null if they cannot be rehearsed. */
  readonly reportStatements?: ((statements: readonly RehearsedStatement[] | null) => void) | undefined;
  /** Decides whether tables may be dropped with their rows, each of which is described; without it they may not. */
  readonly confirmLoss?: ((tables: readonly string[]) => Promise<boolean>) | undefined;
};

/**
 * Turns the files in `current/` into the next migration of the history, or into several if some run without a transaction,
 * each of which is its own migration. If they cannot be applied to an empty database and to this one, everything is reverted.
 * A commit that was interrupted is finished: what it has written is neither written nor applied again.
 */
export async function commitCurrent(
  history: MigrationHistory,
  message: string,
  settings: MigrateSettings,
  { report = () => {}, reportStatements, confirmLoss = async () => false }: CommitOptions = {},
): Promise<string[]> {
  if (/\p{Cc}/u.test(message) || message.length > 200)
    throw new Error("The message is one line of at most 200 characters.");
  const files = await currentFiles(history);
  if (files.length === 0) {
    await writeUnfinished(history, NOTHING_UNFINISHED);
    throw new Error(`${displayPath(join(history.folder, "current"))} has nothing to commit.`);
  }
  const committed = await committedMigrations(history);
  const applied = await readAppliedHashes(history, settings.url);
  const groups = groupIntoMigrations(files);
  const times = await writingTimes(files);
  const unfinished = await readUnfinished(history);
  const begun = committed.filter(({ name }) => unfinished.migrations.includes(name));
  const isSame = ({ name }: CurrentFile) => unfinished.files[name] === times[name];
  const found = findWritten(begun, groups, { applied, isSame });
  const forgotten = begun.find((each) => !applied.has(each.hash) && !found.includes(each));
  if (forgotten) throw new Error(refuseForgotten(forgotten));
  for (const { file } of found) report(`${displayPath(file)}: an interrupted commit has written it, and is finished.`);
  if (found.length === 0) reportStatements?.(await rehearseCurrent(settings));
  const added = makeMigrations(history, message, groups.slice(found.length), committed);
  const written = [...found, ...added];
  const record = (migrations: readonly WrittenMigration[]) =>
    writeUnfinished(history, { migrations: migrations.map(({ name }) => name), files: times });
  await record(written);
  await writeMigrations(added);
  const isPending = ({ hash }: WrittenMigration) => !applied.has(hash);
  const changed = written.map(({ file }) => displayPath(file));
  try {
    const pendingFiles = groups.filter((_, index) => isPending(written[index]!)).flat();
    const dropped = await withClient(settings.url, (client) => findDroppedTables(client, pendingFiles));
    let lost: LostTable[] = [];
    const schemas = await makeSchemaTexts(settings, settings.histories, schemaScopeOf(history.name), async (client) => {
      lost = await findLostTables(client, dropped);
    });
    const losses = lost.map(describeLostTable);
    if (losses.length > 0 && !(await confirmLoss(losses))) throw new Error(refuseLoss(losses));
    const kept = dropped.filter((table) => !lost.some((each) => each.table === table));
    await withKeptRows(settings.url, kept, report, () =>
      applyCommitted(settings.url, settings.rootUrl, settings.histories, { limits: settings.lockLimits, report }),
    );
    changed.push(...(await writeSchemaFiles(schemas)));
  } catch (error) {
    await removeMigrations(history, written.filter(isPending), settings.url);
    await record(written.filter((migration) => !isPending(migration)));
    throw error;
  }
  // Done last, so that the SQL is always in at least one of the two folders.
  await clearCurrentRecord(history, settings.url);
  for (const { file } of files) await rm(file, { force: true });
  await writeUnfinished(history, NOTHING_UNFINISHED);
  return changed;
}

async function writingTimes(files: readonly CurrentFile[]): Promise<UnfinishedCommit["files"]> {
  return Object.fromEntries(await Promise.all(files.map(async ({ name, file }) => [name, (await stat(file)).mtimeMs])));
}

async function readUnfinished(history: MigrationHistory): Promise<UnfinishedCommit> {
  const file = join(committedFolder(history), UNFINISHED);
  return existsSync(file) ? JSON.parse(await readFile(file, "utf8")) : NOTHING_UNFINISHED;
}

async function writeUnfinished(history: MigrationHistory, commit: UnfinishedCommit): Promise<void> {
  const file = join(committedFolder(history), UNFINISHED);
  if (commit.migrations.length === 0) await rm(file, { force: true });
  else await writeWhole(file, JSON.stringify(commit));
}

function refuseForgotten({ file }: CommittedMigration): string {
  return (
    `An interrupted commit has written ${displayPath(file)}, which is not applied here, and current/ was changed since. ` +
    "Delete that file if no other database has it, or apply it by migrate. Then commit again."
  );
}

/** Writes a file that is complete or absent, also if the process is killed. */
async function writeWhole(file: string, text: string): Promise<void> {
  const draft = join(dirname(file), DRAFT);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(draft, text);
  await rename(draft, file);
}

function committedFolder({ folder }: MigrationHistory): string {
  return join(folder, "committed");
}

/** The hashes of the migrations of the history that the database has applied. */
async function readAppliedHashes({ name }: MigrationHistory, url: string): Promise<ReadonlySet<string>> {
  const applied = await withClient(url, appliedMigrations);
  return new Set(applied.filter(({ history }) => history === name).map(({ hash }) => hash));
}

/** Returns the last migrations that an interrupted commit has written for all groups, or for the first ones. */
function findWritten(
  unfinished: readonly CommittedMigration[],
  groups: readonly (readonly CurrentFile[])[],
  { applied, isSame }: { readonly applied: ReadonlySet<string>; readonly isSame: (file: CurrentFile) => boolean },
): readonly CommittedMigration[] {
  for (let count = Math.min(groups.length, unfinished.length); count > 0; count--) {
    const last = unfinished.slice(-count);
    const isWritten = last.every(({ body, hash }, index) => {
      if (!groups[index]!.every(isSame)) return false;
      if (body.trim() === bodyOf(groups[index]!).trim()) return true;
      // The commit was interrupted while it emptied current/, and the last files of its first group are left.
      return index === 0 && applied.has(hash) && body.trim().endsWith(`\n${joinFiles(groups[index]!).trim()}`);
    });
    if (isWritten) return last;
  }
  return [];
}

function refuseLoss(losses: readonly string[]): string {
  return (
    `The migration drops rows that cannot come back:\n${losses.map((loss) => `  ${loss}\n`).join("")}` +
    "Change the table by alter table, which keeps its rows, or commit with --drop-rows."
  );
}

/** Turns the last migration of the history back into files in `current/`. */
export async function uncommitLast(history: MigrationHistory, settings: MigrateSettings): Promise<string[]> {
  const current = join(history.folder, "current");
  const last = (await committedMigrations(history)).at(-1);
  if (!last) throw new Error(`History "${history.name}" has no migration to take back.`);
  if ((await currentFiles(history)).length > 0) {
    throw new Error(`${displayPath(current)} has a migration already. Commit it, or move it away first.`);
  }
  await mkdir(current, { recursive: true });
  const files: string[] = [];
  for (const { name, text } of toCurrentFiles(last)) {
    await writeFile(join(current, name), text);
    files.push(displayPath(join(current, name)));
  }
  // A commit after an interruption finishes the migration, which is in both folders then.
  const written = await writingTimes(await currentFiles(history));
  await writeUnfinished(history, { migrations: [last.name], files: written });
  await removeMigrations(history, [last], settings.url);
  await writeUnfinished(history, NOTHING_UNFINISHED);
  const schemas = await makeSchemaTexts(settings, settings.histories, schemaScopeOf(last.history));
  return [...files, ...(await writeSchemaFiles(schemas))];
}

type NewMigration = WrittenMigration & { readonly text: string };

function makeMigrations(
  history: MigrationHistory,
  message: string,
  groups: readonly (readonly CurrentFile[])[],
  committed: readonly CommittedMigration[],
): NewMigration[] {
  let previous = committed.at(-1)?.hash ?? null;
  let number = Number.parseInt(committed.at(-1)?.name ?? "0", 10);
  return groups.map((group) => {
    const { hash, text } = writeMigration({ previous, message, body: bodyOf(group) });
    previous = hash;
    const name = `${String(++number).padStart(6, "0")}-${slugOf(message)}.sql`;
    return { file: join(committedFolder(history), name), name, hash, text };
  });
}

async function writeMigrations(migrations: readonly NewMigration[]): Promise<void> {
  for (const { file, text } of migrations) await writeWhole(file, text);
}

function bodyOf(files: readonly CurrentFile[]): string {
  const [first] = files;
  // graphile-migrate expects the marker in the first line.
  if (!first!.transaction)
    return `${NO_TRANSACTION}\n${splitMark(first!)}${first!.sql.slice(NO_TRANSACTION.length).trim()}`;
  return files.length === 1 ? first!.sql : joinFiles(files);
}

function joinFiles(files: readonly CurrentFile[]): string {
  return files.map((file) => `${splitMark(file)}${file.sql}${endsInStatement(file.sql) ? "\n;" : ""}\n`).join("\n");
}

/** True if following SQL would belong to the last statement, which has no semicolon. */
function endsInStatement(sql: string): boolean {
  return splitStatements(`${sql}\nselect`).length === splitStatements(sql).length;
}

/** graphile-migrate's marker for the start of a file of `current/`. */
function splitMark({ name }: CurrentFile): string {
  return `--! split: ${name}\n`;
}

function toCurrentFiles({ name, body }: CommittedMigration): { readonly name: string; readonly text: string }[] {
  const included = /^--! Included (\S+)\n[\s\S]*?^--! EndIncluded \1$/gm;
  const text = body.replace(included, (_, included: string) => `--! include ${included}`).trim();
  const isWithout = text.startsWith(NO_TRANSACTION);
  const [before = "", ...parts] = text.split(/^--! split: (\S+)\n/m);
  if (parts.length === 0)
    return [{ name: `0010-${name.replace(/^\d+-?/, "") || "migration.sql"}`, text: `${before}\n` }];
  return Array.from({ length: parts.length / 2 }, (_, index) => ({
    name: parts[2 * index]!,
    text: `${isWithout ? `${NO_TRANSACTION}\n` : ""}${parts[2 * index + 1]!.trim()}\n`,
  }));
}

async function removeMigrations(
  { name: history }: MigrationHistory,
  migrations: readonly WrittenMigration[],
  url: string,
): Promise<void> {
  for (const { file } of migrations) await rm(file, { force: true });
  await withClient(url, async (client) => {
    await client.query("delete from graphile_migrate.histories where history = $1 and hash = any($2)", [
      history,
      migrations.map(({ hash }) => hash),
    ]);
    for (const { name } of migrations) await forgetProgress(client, { history, name });
  });
}

/** Deletes the record of files that `npm run dev` has applied. */
async function clearCurrentRecord({ name }: MigrationHistory, url: string): Promise<void> {
  await withClient(url, (client) =>
    client.query("delete from graphile_migrate.current where filename like $1", [`${name}/%`]),
  );
}

/** Makes the part of a file name that describes the migration. */
export function slugOf(message: string): string {
  const slug = message
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .slice(0, MAX_NAME_LENGTH);
  return slug.replace(/^-+|-+$/g, "") || "migration";
}

type ScratchDatabases = { readonly shadowUrl: string; readonly rootUrl: string };

/** The `schema.sql` of a history: one for the release's histories, and one with everything for the project's. */
export function schemaFileOf({ name, folder }: MigrationHistory): string {
  return join(name === "project" ? folder : dirname(folder), "schema.sql");
}

/** The histories whose `schema.sql` is written. */
type SchemaScope = "project" | "all";

/** The scope of a history: a project's migration does not change the release's schema. */
function schemaScopeOf(name: MigrationHistory["name"]): SchemaScope {
  return name === "project" ? "project" : "all";
}

/** The texts by file; null if there are no migrations. */
type SchemaTexts = ReadonlyMap<string, string | null>;

/** The schema after all committed migrations are applied to an empty database, which can be inspected. */
export async function makeSchemaTexts(
  { shadowUrl, rootUrl }: ScratchDatabases,
  histories: readonly MigrationHistory[],
  scope: SchemaScope,
  inspect: (client: pg.ClientBase) => Promise<void> = async () => {},
): Promise<SchemaTexts> {
  const schemas = new Map<string, string | null>();
  await withScratchDatabase(shadowUrl, rootUrl, async () => {
    const applied: MigrationHistory[] = [];
    for (const [file, added] of Map.groupBy(histories, schemaFileOf)) {
      applied.push(...added);
      if (scope === "project" && added.every(({ name }) => name !== "project")) continue;
      const committed = (await Promise.all(added.map(committedMigrations))).flat();
      if (committed.length > 0) await applyCommitted(shadowUrl, rootUrl, applied);
      schemas.set(file, committed.length > 0 ? await withClient(shadowUrl, dumpSchema) : null);
    }
    await withClient(shadowUrl, inspect);
  });
  return schemas;
}

/** Writes the `schema.sql` files. Returns those that have changed. */
export async function writeSchemaFiles(schemas: SchemaTexts): Promise<string[]> {
  const changed: string[] = [];
  for (const [file, schema] of schemas) {
    if (schema === null) await rm(file, { force: true });
    else if (schema !== (await readFile(file, "utf8").catch(() => ""))) {
      await writeFile(file, schema);
      changed.push(displayPath(file));
    }
  }
  return changed;
}
